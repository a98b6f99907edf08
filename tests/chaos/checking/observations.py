"""Requests of clients, replies, and the faults of a load, a class each. Pure.

Moments order all of it: a number that rises with every thing that a client of the run does or is
told, through all lives of the daemon. What happened between two moments may have happened at any
time there; rules count with all of them.
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
"""Later than every moment."""


@attrs.frozen
class Span:
    """When a call was under way. ``answered`` is None if it never was; a refusal is an answer."""

    asked: int = 0
    answered: int | None = None

    def is_before(self, other: Span) -> bool:
        """Whether it was over when ``other`` began."""
        return self.answered is not None and self.answered < other.asked

    @property
    def last(self) -> int:
        """The moment of the answer, or one later than all if there is none."""
        return NEVER if self.answered is None else self.answered

    def overlaps(self, other: Span) -> bool:
        """Whether neither was over when the other began."""
        return not self.is_before(other) and not other.is_before(self)


UNKNOWN = Span()
"""Of evidence without moments: it overlaps everything, so nothing is concluded from it."""


@attrs.frozen(kw_only=True)
class Outcome:
    """What an ask ended in; ``code`` and ``sentence`` are those of a refusal or an error."""

    kind: OutcomeKind
    code: str = ""
    sentence: str = ""


@attrs.frozen(kw_only=True)
class Ask:
    """One request of ``client``, and every outcome that it was given, which should be one.

    Its life may end before that: then there may be none. ``gave_up``: its client did not wait for
    it any longer, so there may be none as well.
    """

    client: str
    life: int
    what: str
    span: Span
    outcomes: tuple[Outcome, ...]
    gave_up: bool = False


@attrs.frozen(kw_only=True)
class Change:
    """A spawn, a close or a close with purge. ``done``: None if nobody was told, False if refused.

    ``id`` is the life id that the terminal had after a spawn was answered, where that is known.
    """

    kind: ChangeKind
    terminal: str
    span: Span
    done: bool | None
    id: str | None = None


@attrs.frozen(kw_only=True)
class Subscribing:
    """A subscription that was asked for, or with ``on=False`` its end; ``done`` as of a change."""

    handle: str
    terminal: str
    span: Span
    done: bool | None
    on: bool = True
    pattern: str | None = None
    only_failures: bool = False

    def wants(self, record: Record) -> bool:
        """Whether it asks for this record. A pattern lets pass what has no known text.

        Patterns are such as RE2 and Python read alike.
        """
        if not self.on or (self.only_failures and record["exit"] == 0):
            return False
        if self.pattern is None:
            return True
        return record["cmd"] is None or re.search(self.pattern, record["cmd"]) is not None


@attrs.frozen(kw_only=True)
class Listing:
    """The names of the open terminals, as somebody was told."""

    span: Span
    terminals: tuple[str, ...]


@attrs.frozen(kw_only=True)
class RecordsRead:
    """An answer to who read the records of ``terminal`` since a number."""

    terminal: str
    span: Span
    since_seq: int
    records: tuple[Record, ...]
    more: bool = False


@attrs.frozen(kw_only=True)
class OutputRead:
    """An answer to who read output. ``from_cursor`` is where it was asked to begin, if anywhere."""

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
    """An answer to who waited for something on a terminal, after so many (simulated) seconds."""

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
    """Which terminals a broadcast named, and those that its answer has, each with what it got."""

    span: Span
    named: tuple[str, ...]
    answered: tuple[str, ...]
    records: tuple[Record | None, ...]
    errors: tuple[str | None, ...]


@attrs.frozen(kw_only=True)
class Disturbance:
    """What was done to a terminal that may change how its commands end, on purpose.

    ``number`` is that of a signal. ``keys``: something was typed that the output may echo; tokens
    in ``text`` may stand in any output of that time. ``crash`` and ``disk fault`` may concern every
    terminal: then ``terminal`` is None. ``span`` ends when it was surely over.
    """

    kind: Harm
    terminal: str | None
    span: Span
    number: int | None = None
    text: str = ""


@attrs.frozen(kw_only=True)
class Death:
    """How, and when, a life of the daemon ended."""

    life: int
    kind: DeathKind
    moment: int


@attrs.frozen(kw_only=True)
class Remains:
    """Something of ``life`` that was still there after its end, though nothing should be."""

    life: int
    kind: RemainsKind
    what: str
