"""The actor that owns the PTY of a terminal and the processes on it.

Owns: starting, running and replacing a shell (``starting``, ``running``, ``cleaning``,
``earlier``), following its output (``tracker``), its input (``incoming``), answers to programs
(``responder``), and what its front is sent (``command_news``, ``news``, ``introducing``).

Rules: a shell is replaced only after every process of the earlier one is gone or named. Nothing
here knows the queue of commands or the ledger.

Public: ``Shell``, ``ShellMessage``.
"""
