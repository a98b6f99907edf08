"""The actor that owns the PTY of a terminal and the processes on it.

Owns: the actor (``shell``); what the bytes of its PTY mean (``pipeline``, ``responder``); what may
be typed at it, and when (``submissions``); its process and PTYs (``running``, ``processes``); the
checks of a quiet shell (``tty_watch``); and the notifications that a restarted front gets again
(``notifications``).

Rules: a shell is replaced only once every process of the earlier one is gone or reported. The
shell knows neither the queue of commands nor the ledger.

Public: ``Shell``, ``ShellMessage``.
"""
