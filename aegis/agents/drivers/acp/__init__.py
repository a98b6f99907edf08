"""The Agent Client Protocol, version 1, as its client. Pure.

Owns: the events of an update (``updates``) and the machine of a process (``machine``).

Public: ``Acp``.
"""
