"""The fault points of the journal. Their subject is the name of the file."""

from __future__ import annotations

from actors.faults import FaultTable

JOURNAL = FaultTable()

APPEND_BEFORE = JOURNAL.point("ledger.append.before")
"""A line will now be written at the end of a ledger."""
APPEND_AFTER = JOURNAL.point("ledger.append.after")
"""The line is written, not synced, and not acknowledged."""
SYNC_BEFORE = JOURNAL.point("ledger.sync.before", may_wait=True)
SYNC_AFTER = JOURNAL.point("ledger.sync.after", may_wait=True)
"""The written lines are synced, and not acknowledged."""
NOTE_BEFORE = JOURNAL.point("note.write.before")
NOTE_AFTER = JOURNAL.point("note.write.after")
"""The note is written, not synced."""
