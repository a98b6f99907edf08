"""The actor that spawns, lists, closes and restores the terminals of a root.

Owns: the directory (``directory``), the start and end of terminals (``lives``, ``restoring``,
``purging``, ``failed``, ``closed``), checks of a spawn (``spawning``), the subtrees of actors and
where they are placed (``subtrees``, ``placed_subtrees``, ``placement``, ``hosting``, ``moving``),
the file of open terminals (``workspace``), and broadcasts (``broadcast``, ``fitting``).

Public: ``TerminalDirectory``, ``TerminalHost``.
"""
