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
ROTATE_BEFORE = JOURNAL.point("ledger.rotate.before")
"""A new file of a ledger will now be written; it is not the current one yet."""
RENAME_BEFORE = JOURNAL.point("ledger.rename.before")
"""The new file is synced; the current one will now be renamed."""
RENAME_AFTER = JOURNAL.point("ledger.rename.after")
"""The old file is renamed, which is synced; the new one is not renamed yet."""
ROTATE_AFTER = JOURNAL.point("ledger.rotate.after")
"""The new file is the current one, which is synced; nothing is written to it yet."""
COMPACT_BEFORE = JOURNAL.point("ledger.compact.before")
"""A file with only the rows of a ledger will now be written beside it."""
REPLACE_BEFORE = JOURNAL.point("ledger.replace.before")
"""The new file is synced, and will now take the place of the ledger."""
REPLACE_AFTER = JOURNAL.point("ledger.replace.after")
"""The new file has taken the place of the ledger, which is not synced yet."""
SPLIT_BEFORE = JOURNAL.point("ledger.split.before")
"""The ledger of a terminal, all of it synced, will now be renamed to a segment."""
SPLIT_AFTER = JOURNAL.point("ledger.split.after")
"""The ledger has the name of a segment, which is synced; there is no new file yet."""
PACK_BEFORE = JOURNAL.point("ledger.pack.before")
"""A segment will now be written, compressed, beside the segment."""
PACK_AFTER = JOURNAL.point("ledger.pack.after")
"""The compressed segment is synced; the other file will now be removed."""
EXCHANGE_WRITE = JOURNAL.point("exchange.write.before")
"""The new content of a shared file will now be written beside it."""
EXCHANGE_WRITTEN = JOURNAL.point("exchange.write.after")
"""The new content is synced beside the file; the names will now be exchanged."""
EXCHANGE_AFTER = JOURNAL.point("exchange.rename.after")
"""The names are exchanged, which is not synced; the displaced file is not checked yet."""
EXCHANGE_SYNCED = JOURNAL.point("exchange.sync.after")
"""The exchange is synced; the displaced file is still beside the file."""
