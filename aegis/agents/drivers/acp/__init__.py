"""The Agent Client Protocol, version 1, as its client. Pure.

Owns: the events of an update (``updates``), the conversation and its settings (``conversation``,
``options``), permissions, elicitations and writes of files, and the machine of a process
(``machine``).

Public: ``Acp`` in ``machine``, ``AcpOptions`` in ``options``.
"""
