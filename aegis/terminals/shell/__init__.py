"""The actor that owns the PTY of a terminal and the processes on it.

Owns: starting, running and replacing a shell (``starting``, ``running``, ``cleanup``, ``note``);
its output (``tracker``, ``responder``, ``tty_watch``, ``rearming``); its input (``input_queue``,
``typed_line``, ``signalling``); and notifications to its front (``notifications``).

Rules: a shell is replaced only once every process of the earlier one is gone or reported. The
shell knows neither the queue of commands nor the ledger.

Public: ``Shell``, ``ShellMessage``.
"""
