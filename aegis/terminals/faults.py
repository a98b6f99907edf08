"""The fault points of the terminals; the terminal's name is the subject of those of its shells."""

from __future__ import annotations

from actors.faults import FaultTable

TERMINALS = FaultTable()

TYPE_BEFORE = TERMINALS.point("command.type.before")
"""The note of a command is written; its text is about to go to the shell."""
START_MARK_AFTER = TERMINALS.point("mark.start.after")
"""The shell has reported the start of a command; the front is not notified yet."""
END_MARK_AFTER = TERMINALS.point("mark.end.after")
"""The shell has reported the end of a command; the front is not notified yet."""
REPLY_BEFORE = TERMINALS.point("reply.send.before")
"""The record is synced; it is about to be sent to its caller."""
WORKSPACE_BEFORE = TERMINALS.point("workspace.write.before")
"""The names of the open terminals are about to be written."""
WORKSPACE_AFTER = TERMINALS.point("workspace.write.after")
"""The names are written and synced; the change is not acknowledged yet."""
PURGE_AFTER = TERMINALS.point("purge.rename.after")
"""The directory to purge is renamed; it is about to be deleted."""
SHELL_START_BEFORE = TERMINALS.point("shell.start.before", may_wait=True)
SHELL_START_AFTER = TERMINALS.point("shell.start.after", may_wait=True)
"""The process runs; its note has the cookie only."""
SHELL_END_BEFORE = TERMINALS.point("shell.end.before", may_wait=True)
"""The shell has ended; its remaining processes are about to be ended."""
SHELL_END_AFTER = TERMINALS.point("shell.end.after", may_wait=True)
