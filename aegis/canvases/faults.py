"""The fault points of canvases, whose subject is a canvas.

The lines of a ledger and the exchange of a file have points of their own
(``aegis.journal.faults``).
"""

from __future__ import annotations

from actors.faults import FaultTable

CANVASES = FaultTable()

WRITE_BEFORE = CANVASES.point("canvas.write.before")
"""The intent of a write is synced, and the file will now be exchanged."""
WRITE_AFTER = CANVASES.point("canvas.write.after")
"""The exchange has ended, and nothing has followed from it."""
OPEN_BEFORE = CANVASES.point("canvas.open.before")
"""The settings of a new canvas will now be written."""
OPEN_AFTER = CANVASES.point("canvas.open.after")
"""The settings are synced; the canvas has no actor yet."""
NOTIFY_BEFORE = CANVASES.point("canvas.notify.before")
"""A change is recorded, and its subscribers will now be notified."""
NOTIFY_AFTER = CANVASES.point("canvas.notify.after")
"""The inboxes have the wakes, which is not noted yet."""
