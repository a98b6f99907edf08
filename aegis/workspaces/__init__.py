"""Workspaces: named directories with shells, and commands without a terminal.

Owns: the actor (``directory``), its rules (``rules``, pure), its note on disk (``store``) and the
execution of one command (``execution``).

Rules: a shell is a terminal, controlled through the terminal directory's commands.
"""
