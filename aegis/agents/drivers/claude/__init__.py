"""Claude Code's stream-json with control frames, both ways. Pure.

Owns: the start of a process (``launch``), the machine of a process (``machine``), the events of a
frame (``frames``), and requests with their answers (``requests``).

Public: ``Claude``, ``launch``, ``config_text``.
"""
