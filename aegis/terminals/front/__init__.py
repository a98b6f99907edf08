"""The actor that owns a terminal's queue of commands, its current command and its records.

Owns: the queue (``calls``, ``runs``); the current command and its note (``current_command``); the
records and the ledger (``recorder``, ``writer``, ``recovery``); the terminal state
(``terminal_state``); waits and progress (``waits``, ``progress``); requests for the shell
(``requests``, ``resizing``); and events for clients (``events``).

Rules: holds no resource of the operating system. A number is claimed with the note, before the
first byte is typed. A record is shown only after it is synced.

Public: ``Terminal``, ``LedgerWriter``.
"""
