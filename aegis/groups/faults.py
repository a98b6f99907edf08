"""The fault points of groups. The subject of a line is its kind, that of the others a group."""

from __future__ import annotations

from actors.faults import FaultTable

GROUPS = FaultTable()

APPEND_BEFORE = GROUPS.point("group.append.before")
"""A line will now be written."""
APPEND_AFTER = GROUPS.point("group.append.after")
"""The line is written, not synced, and nothing has followed from it."""
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
