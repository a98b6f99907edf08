"""Processes and pseudo-terminals of this machine, for terminals, workspaces and agents.

Owns: the PTY (``pty``), the port to the operating system (``process_host``) and its real side
(``os_processes``), what ``/proc`` says (``process_table``, ``process_scan``, ``process_groups``,
``foreground``, ``waiting``, ``syscalls``, ``whereabouts``), ending processes (``reaper``), the
environment of a shell (``environment``), and the bounded clean text of output (``capture``,
``text``, ``line``).

Rules: this package knows nothing of terminals. Only ``pty`` does I/O on a PTY, and only
``process_scan`` reads the whole process table. A process is named by pid *and* start time.

Public: ``ProcessHost``, ``OsProcessHost``, ``ProcessScan``, ``end_processes``, ``Capture``.
"""
