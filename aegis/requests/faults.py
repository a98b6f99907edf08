"""The fault points of requests. The subject of a line is its kind, that of an answer its owner."""

from __future__ import annotations

from actors.faults import FaultTable

REQUESTS = FaultTable()

APPEND_BEFORE = REQUESTS.point("request.append.before")
"""A line will now be written."""
APPEND_AFTER = REQUESTS.point("request.append.after")
"""The line is written, not synced, and nothing has followed from it."""
APPLY_BEFORE = REQUESTS.point("request.apply.before")
"""The answer is synced and will now be sent to its owner."""
APPLY_AFTER = REQUESTS.point("request.apply.after")
"""The owner has replied to the answer; that is not written yet."""
