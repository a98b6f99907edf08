"""Requests of clients, replies, and the faults of a load, a class each. Pure.

Moments order all of it: a number that rises with every request and reply of a client, through all
incarnations of the daemon. An event between two moments may have happened at any time between them;
rules allow each possibility.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import attrs

Record = Mapping[str, Any]
Message = Mapping[str, Any]

ChangeKind = Literal["spawn", "close", "purge"]
DeathKind = Literal["kill", "power loss", "stop"]
Harm = Literal[
    "keys", "interrupt", "signal", "shell killed", "shell stopped", "crash", "disk fault"
]
OutcomeKind = Literal[
    "value", "refused", "crashed", "stopped", "mailbox full", "deadline", "cycle", "no reply"
]
RemainsKind = Literal["task", "process", "descriptor", "lock"]


NEVER = 2**62
"""A moment later than all others."""


@attrs.frozen
class Span:
    """The time of a call. ``answered`` is None without an answer; a refusal is an answer."""

    asked: int = 0
    answered: int | None = None

    def is_before(self, other: Span) -> bool:
        """Return whether it was over when ``other`` began."""
        return self.answered is not None and self.answered < other.asked

    @property
    def last(self) -> int:
        """The moment of the answer, or ``NEVER``."""
        return NEVER if self.answered is None else self.answered

    def overlaps(self, other: Span) -> bool:
        """Return whether neither was over when the other began."""
        return not self.is_before(other) and not other.is_before(self)


UNKNOWN = Span()
"""The span of evidence without moments: it overlaps everything, so it proves no order."""


@attrs.frozen(kw_only=True)
class Outcome:
    """The outcome of an ask; ``code`` and ``sentence`` are those of a refusal or an error."""

    kind: OutcomeKind
    code: str = ""
    sentence: str = ""


@attrs.frozen(kw_only=True)
class Ask:
    """One request of ``client``, with all its outcomes, which should be one.

    There may be none if the incarnation ended before, or if the client stopped waiting
    (``gave_up``).
    """

    client: str
    life: int
    what: str
    span: Span
    outcomes: tuple[Outcome, ...]
    gave_up: bool = False


@attrs.frozen(kw_only=True)
class Change:
    """A spawn, a close or a close with purge. ``done``: None if unknown, False if refused.

    ``id`` is the life id of the terminal after an answered spawn, where that is known.
    """

    kind: ChangeKind
    terminal: str
    span: Span
    done: bool | None
    id: str | None = None


@attrs.frozen(kw_only=True)
class Subscribing:
    """A request to subscribe, or with ``on=False`` to unsubscribe; ``done`` as in ``Change``."""

    handle: str
    terminal: str
    span: Span
    done: bool | None
    on: bool = True
    pattern: str | None = None
    only_failures: bool = False

    def wants(self, record: Record) -> bool:
        """Return whether the subscription matches this record.

        A pattern matches a record without a known text. RE2 and Python read all patterns alike.
        """
        if not self.on or (self.only_failures and record["exit"] == 0):
            return False
        if self.pattern is None:
            return True
        return record["cmd"] is None or re.search(self.pattern, record["cmd"]) is not None


@attrs.frozen(kw_only=True)
class Listing:
    """The names of the open terminals in an answer."""

    span: Span
    terminals: tuple[str, ...]


@attrs.frozen(kw_only=True)
class RecordsRead:
    """An answer to a read of the records of ``terminal`` since a number."""

    terminal: str
    span: Span
    since_seq: int
    records: tuple[Record, ...]
    more: bool = False


@attrs.frozen(kw_only=True)
class OutputRead:
    """An answer to a read of output. ``from_cursor`` is the requested beginning, if any."""

    terminal: str
    span: Span
    from_cursor: int | None
    cursor: int
    next_cursor: int
    dropped: int
    text: str
    max_bytes: int
    plain: bool = True


@attrs.frozen(kw_only=True)
class Waited:
    """An answer to a wait on a terminal, after so many (simulated) seconds."""

    terminal: str
    span: Span
    seconds: float
    timeout_s: float
    reason: str
    record: Record | None
    cursor: int
    match: str | None = None
    seq: int | None = None
    pattern: str | None = None
    idle_s: float | None = None


@attrs.frozen(kw_only=True)
class Broadcasted:
    """The terminals that a broadcast named, and the entries of its answer."""

    span: Span
    named: tuple[str, ...]
    answered: tuple[str, ...]
    records: tuple[Record | None, ...]
    errors: tuple[str | None, ...]


@attrs.frozen(kw_only=True)
class Disturbance:
    """Something done on purpose to a terminal that may change how its commands end.

    ``number`` is that of a signal. ``keys``: keystrokes that the output may echo; tokens in
    ``text`` may be in any output of that time. ``crash`` and ``disk fault`` may affect every
    terminal: then ``terminal`` is None. ``span`` ends when the effect was surely over.
    """

    kind: Harm
    terminal: str | None
    span: Span
    number: int | None = None
    text: str = ""


@attrs.frozen(kw_only=True)
class Death:
    """The end of an incarnation of the daemon."""

    life: int
    kind: DeathKind
    moment: int


@attrs.frozen(kw_only=True)
class Remains:
    """Something of ``life`` that was left after its end, although nothing should be."""

    life: int
    kind: RemainsKind
    what: str
