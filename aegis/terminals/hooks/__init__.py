"""The hooks that mark the boundaries of commands, with one adapter for each kind of shell.

Owns: the scripts for bash, zsh, fish and POSIX shells, the files that start a shell with them
(``startup``), the adapters (``adapter``, ``bash``, ``zsh``, ``fish``, ``fallback``), the keys that
make a shell read exactly one text (``submission``, ``greeting``), and the texts that people typed
(``bash_history``, ``echo``).

Rules: the user's own start-up files stay in force. No mark costs a fork. A secret reaches a shell
through a file of mode 0600 only, never through its environment.

Public: ``prepare_shell``, ``rearm_shell``, ``is_supported`` (all in ``choice``), ``ShellAdapter``.
"""
