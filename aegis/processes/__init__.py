"""Processes and pseudo-terminals of this machine, for terminals, workspaces and agents.

Owns: the PTY (``pty``) and its line discipline (``line_discipline``); the port to the operating
system (``process_host``) and its real side (``os_processes``); reading ``/proc``
(``process_table``, ``process_scan``, ``foreground``, ``input_wait``, ``working_directory``); ending
processes (``reaper``), and those that pid 1 adopts (``init_process``); the environment of a shell
(``environment``); the bounded clean text of output (``capture``, ``text``, ``line``).

Rules: this package knows nothing of terminals. Only ``pty`` does I/O on a PTY, and only
``os_processes`` reads the whole process table. A process is identified by pid *and* start time.

Public: ``ProcessHost``, ``OsProcessHost``, ``ProcessScan``, ``end_processes``, ``OutputCapture``.
"""
