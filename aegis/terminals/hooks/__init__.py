"""The hooks that mark where commands begin and end, one adapter for each kind of shell.

Owns: the scripts for bash, zsh, fish and POSIX shells, the files that start a shell with them
(``startup``), the adapters (``adapter``, ``bash``, ``zsh``, ``fish``, ``fallback``), and what is
typed so that a shell reads exactly one text (``submission``, ``greeting``).

Rules: the user's own start-up files stay in force. No mark costs a fork. A secret reaches a shell
through a 0600 file only, never through its environment.

Public: ``prepare_shell``, ``rearm_shell``, ``is_supported`` (all in ``choice``), ``ShellAdapter``.
"""
