"""The fault points of Telegram. The subject of a line is its kind, that of a call its method."""

from __future__ import annotations

from actors.faults import FaultTable

TELEGRAM = FaultTable()

APPEND_BEFORE = TELEGRAM.point("telegram.append.before")
"""A line will now be written to the ledger of the chat."""
APPEND_AFTER = TELEGRAM.point("telegram.append.after")
"""The line is written, not synced, and nothing has followed from it."""
SEND_BEFORE = TELEGRAM.point("telegram.send.before")
"""A call of the Bot API will now be made."""
SEND_AFTER = TELEGRAM.point("telegram.send.after")
"""Telegram has made the call; its caller in the daemon does not know that."""
