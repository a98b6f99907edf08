"""Claude Code's stream-json with control frames, both ways. Pure.

Owns: the events of a frame (``frames``) and the machine of a process (``machine``).

Public: ``Claude``.
"""
