"""The fault points of the inboxes. Their subject is the handle."""

from __future__ import annotations

from actors.faults import FaultTable

INBOXES = FaultTable()

APPEND_BEFORE = INBOXES.point("inbox.append.before")
"""A message will now be written."""
APPEND_AFTER = INBOXES.point("inbox.append.after")
"""The message is written, not synced, and not confirmed."""
CONFIRM_BEFORE = INBOXES.point("inbox.confirm.before")
"""The message is synced; its sender will now get the confirmation."""
