"""The fault points of queues, whose subject is a queue; those of its lines are the journal's."""

from __future__ import annotations

from actors.faults import FaultTable

QUEUES = FaultTable()

SPAWN_BEFORE = QUEUES.point("queue.spawn.before")
"""The dispatch is synced, and the worker's session will now be opened."""
SPAWN_AFTER = QUEUES.point("queue.spawn.after")
"""The session is open with the payload, and nothing has followed from that."""
NOTIFY_BEFORE = QUEUES.point("queue.notify.before")
"""The end of a task is synced, and its sender will now be notified."""
NOTIFY_AFTER = QUEUES.point("queue.notify.after")
"""The sender's inbox has the message, which is not noted yet."""
