"""The fault points of the terminals; those of a shell's life have its name as their subject."""

from __future__ import annotations

from actors.faults import FaultTable

TERMINALS = FaultTable()

TYPE_BEFORE = TERMINALS.point("command.type.before")
"""The note of a command is written; its text is about to go to the shell."""
START_MARK_AFTER = TERMINALS.point("mark.start.after")
"""The shell said that a command began; nobody was told."""
END_MARK_AFTER = TERMINALS.point("mark.end.after")
"""The shell said that it ended; nobody was told."""
REPLY_BEFORE = TERMINALS.point("reply.send.before")
"""The record is synced; its caller is about to get it."""
WORKSPACE_BEFORE = TERMINALS.point("workspace.write.before")
"""The names of the open terminals are about to be written."""
WORKSPACE_AFTER = TERMINALS.point("workspace.write.after")
"""They are written and synced; nobody was told."""
PURGE_AFTER = TERMINALS.point("purge.rename.after")
"""What is to be purged has lost its name; it is about to be deleted."""
SHELL_START_BEFORE = TERMINALS.point("shell.start.before", may_wait=True)
SHELL_START_AFTER = TERMINALS.point("shell.start.after", may_wait=True)
"""The process runs; nothing of it is written down but its cookie."""
SHELL_END_BEFORE = TERMINALS.point("shell.end.before", may_wait=True)
"""The shell has ended; what it left running is about to be ended."""
SHELL_END_AFTER = TERMINALS.point("shell.end.after", may_wait=True)
