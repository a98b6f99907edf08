"""Agents that are their terminal: any interactive program, run in a shared terminal.

Owns: the state of such an agent, with its messages to people (``standing``, pure), its terminal
(``terminal``), the hooks of Claude Code (``hooks``, ``hook_sender``), and the actor (``agent``).

Rules: the program runs as a command of the terminal, so it has a record in the ledger and ends with
the terminal. Its state is judged by ``aegis.lifecycle``; nothing here types into it.
"""
