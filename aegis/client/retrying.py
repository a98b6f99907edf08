"""When a call is made again after a lost connection, and how long is waited before each try. Pure.

A command that only reads is made again without a word. Any other is not: it may have been carried
out, and who called must decide. What never left this process is sent with the next connection.
"""

from __future__ import annotations

from aegis.client.errors import ConnectionLost
from aegis.protocol.entry import Entry

FIRST_DELAY_S = 0.05
MAX_DELAY_S = 2.0

SETTLED_S = 5.0
"""A connection that lasted so long was a good one: the delays begin anew."""

MAX_TRIES = 3
"""Times that a call is sent at most: one that brings the daemon down must not do so for ever."""


def checked_patience(patience_s: float) -> float:
    """Return ``patience_s`` if it is 0 or more seconds, or infinite; else raise ``ValueError``."""
    if not patience_s >= 0:  # false for nan too, with which a wait would never end
        raise ValueError(f"patience_s must be 0 or more seconds, or math.inf, not {patience_s!r}")
    return patience_s


def delay_s(failures: int, chance: float) -> float:
    """Seconds to wait after so many failures in a row, 1 or more; ``chance`` is from 0 to 1.

    The delay doubles up to ``MAX_DELAY_S``; its upper half is left to chance, so that many clients
    of a daemon that went away do not come back at the same moment.
    """
    whole = min(MAX_DELAY_S, FIRST_DELAY_S * 2.0 ** min(failures - 1, 16))
    return whole * (0.5 + 0.5 * chance)


def failures_after(failures: int, lasted_s: float) -> int:
    """How many connections failed in a row, now that one has ended after ``lasted_s`` seconds."""
    return 1 if lasted_s >= SETTLED_S else failures + 1


def is_repeated(entry: Entry, tries: int, *, was_sent: bool) -> bool:
    """Whether a call that lost its connection at its ``tries``-th try is made again by itself."""
    return not was_sent or (entry.read_only and tries < MAX_TRIES)


def lost(entry: Entry, reason: str) -> ConnectionLost:
    """What a caller is told of a call that was sent and got no answer."""
    may_repeat = entry.read_only or entry.idempotent
    advice = (
        "calling again does no harm" if may_repeat else "look at what became of it before you call"
    )
    return ConnectionLost(
        f"the connection was lost during {entry.name} ({reason}): it may have been carried out; "
        f"{advice}" + ("" if may_repeat else " again"),
        command=entry.name,
        may_repeat=may_repeat,
    )
