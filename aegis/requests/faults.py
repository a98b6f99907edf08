"""The fault points of requests, whose subject is an owner; those of its lines are the journal's."""

from __future__ import annotations

from actors.faults import FaultTable

REQUESTS = FaultTable()

APPLY_BEFORE = REQUESTS.point("request.apply.before")
"""The answer is synced and will now be sent to its owner."""
APPLY_AFTER = REQUESTS.point("request.apply.after")
"""The owner has replied to the answer; that is not written yet."""
