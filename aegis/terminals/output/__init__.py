"""The output of a shell, and its readers.

Owns: the output of a command for its record (``shell_output``), its observers (``observers``),
reads and long polls by cursor (``reading``, ``readers``), byte streams (``watchers``), the window
(``window``), the progress of a command (``command_progress``), searches with clients' patterns
(``patterns``), and the wake-up of waiting tasks (``notifier``).

Rules: a slow reader loses intermediate output and gets the number of lost bytes, but never loses
the end of a command. Patterns are searched in linear time (RE2) and in slices.

Public: ``OutputObservers``, ``CommandOutput``, ``open_raw_log``, ``TextSearch``, ``Notifier``.
"""
