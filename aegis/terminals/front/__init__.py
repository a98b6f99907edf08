"""The actor that owns a terminal's queue of commands, its current command and its records.

``terminal`` is that actor, and the only place that changes its state. It calls classes that hold
one part each and decide about it: the queue (``calls``), the numbers and the note of commands
(``current_command``), the records that are not confirmed (``recorder``), the shell's state
(``terminal_state``), the window's size (``window_size``), calls of ``wait`` (``waits``).
``writer`` is the actor that owns the ledger. ``recovery`` writes the records of lost commands.

Rules: holds no resource of the operating system. A number is claimed with the note, before the
first byte is typed. A record is shown only after it is synced.

Public: ``Terminal``, ``LedgerWriter``.
"""
