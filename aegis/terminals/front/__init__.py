"""The actor that owns a terminal's queue of commands, the note in flight and the records.

Owns: the queue (``calls``, ``runs``), the command in flight and its note (``flight``), the records
and their way into the ledger (``recorder``, ``writer``, ``recovery``, ``finalising``), the
terminal's state (``standing``), waits and progress (``waits``, ``following``), and events for
clients (``telling``).

Rules: holds no resource of the operating system. A number is claimed with the note, before the
first byte is typed. A record is shown after it is synced.

Public: ``Terminal``, ``LedgerWriter``.
"""
