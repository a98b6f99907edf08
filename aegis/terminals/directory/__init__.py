"""The actor that spawns, lists, closes and restores the terminals of a root.

Owns: the directory (``directory``, ``listing``, ``broadcast``); starting, failing, ending and
purging (``life_cycle``, ``spawning``, ``inactive``); the actors of terminals and
their processes (``hosting``, ``placed_subtrees``, ``placement``, ``moving``); and the file of open
terminals (``workspace``).

Rules: a terminal is in the workspace before it is started, and until it is closed. A terminal that
cannot be started is listed as failed.

Public: ``TerminalDirectory``, ``TerminalHost``.
"""
