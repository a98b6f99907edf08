"""The fault points of groups, whose subject is a group; those of its lines are the journal's."""

from __future__ import annotations

from actors.faults import FaultTable

GROUPS = FaultTable()

SPAWN_BEFORE = GROUPS.point("group.spawn.before")
"""The line of new members is synced, and one of them will now be opened."""
SPAWN_AFTER = GROUPS.point("group.spawn.after")
"""The session of a member is open, and nothing has followed from that."""
CANCEL_BEFORE = GROUPS.point("group.cancel.before")
"""The line of a member that is not awaited any more is synced; it will now be interrupted."""
CANCEL_AFTER = GROUPS.point("group.cancel.after")
"""It is interrupted and has the message about it, which is not noted yet."""
CLOSE_BEFORE = GROUPS.point("group.close.before")
"""The end of the group is synced, and its members will now be closed."""
NOTIFY_BEFORE = GROUPS.point("group.notify.before")
"""The last reply is synced, and the sender will now be notified."""
NOTIFY_AFTER = GROUPS.point("group.notify.after")
"""The sender's inbox has the message, which is not noted yet."""
