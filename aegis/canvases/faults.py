"""The fault points of canvases. The subject of a line is its kind, that of a wake the canvas.

The exchange of a file has points of its own (``aegis.journal.faults``).
"""

from __future__ import annotations

from actors.faults import FaultTable

CANVASES = FaultTable()

APPEND_BEFORE = CANVASES.point("canvas.append.before")
"""A line will now be written."""
APPEND_AFTER = CANVASES.point("canvas.append.after")
"""The line is written, not synced, and nothing has followed from it."""
OPEN_BEFORE = CANVASES.point("canvas.open.before")
"""The settings of a new canvas will now be written."""
OPEN_AFTER = CANVASES.point("canvas.open.after")
"""The settings are synced; the canvas has no actor yet."""
NOTIFY_BEFORE = CANVASES.point("canvas.notify.before")
"""A change is recorded, and its subscribers will now be notified."""
NOTIFY_AFTER = CANVASES.point("canvas.notify.after")
"""The inboxes have the wakes, which is not noted yet."""
