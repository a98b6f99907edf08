"""The output of a shell, and its readers.

Owns: the way of the output to the raw log, to its observers and into a command's record
(``shell_output``, ``observers``), reads and long polls by cursor (``reading``, ``readers``), byte
streams (``watchers``), the progress of a command (``command_progress``), searches with clients'
patterns (``patterns``), and the wake-up of waiting tasks (``notifier``).

Rules: a slow reader loses intermediate output and gets the number of lost bytes, but never loses
the end of a command. Patterns are searched in linear time (RE2) and in slices.

Public: ``OutputObservers``, ``VisibleOutput``, ``CommandOutput``, ``open_raw_log``, ``TextSearch``,
``Notifier``.
"""
