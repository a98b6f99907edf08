"""The evidence of a load: requests, replies, and the final state of the system. Pure.

All of it that has a default may be left out by a load that does not do such things.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from tests.chaos.checking.observations import (
    UNKNOWN,
    Ask,
    Broadcasted,
    Change,
    Death,
    Disturbance,
    Listing,
    Message,
    OutputRead,
    Record,
    RecordsRead,
    Remains,
    Span,
    Subscribing,
    Waited,
)


@attrs.frozen(kw_only=True)
class Command:
    """A command that a client sent, and what becomes of it if nobody disturbs it.

    ``token`` is unique; it stands in ``text`` and in every line of ``stdout``. ``life`` counts the
    daemon's processes. ``typed``: sent as keys, so nobody was told its number. ``is_silent``: it
    writes down nothing of itself. ``span`` is that of the call that sent it.
    """

    token: str
    terminal: str
    writer: str
    life: int
    text: str
    stdout: str
    exit: int = 0
    end: str = "exited"
    typed: bool = False
    is_silent: bool = False
    span: Span = UNKNOWN


@attrs.frozen
class Told:
    """A record of ``terminal`` that a client got, as the reply to its run or by reading."""

    terminal: str
    record: Record
    span: Span = UNKNOWN


@attrs.frozen
class Answer:
    """One answer of an inbox: its messages. ``acknowledged`` is the ``after`` that it confirms.

    A read that was never answered is here too where its moment is known: without messages, its
    ``span`` without an end. What it acknowledges may or may not be acknowledged then. ``limit`` is
    how many messages were asked for; None: nothing is concluded from what is missing.
    """

    messages: tuple[Message, ...]
    acknowledged: str | None = None
    span: Span = UNKNOWN
    limit: int | None = None


@attrs.frozen
class Handoff:
    """A message of one client to another. ``id`` is that of its receipt; None if none came."""

    to: str
    body: str
    id: str | None
    sender: str = ""
    span: Span = UNKNOWN


@attrs.frozen(kw_only=True)
class Life:
    """One process of the daemon: how it ended, and what it found of the ones before it.

    ``killed``: by a signal or by a loss of power; ``stopping``: while it stopped in order.
    ``missing`` are terminals that it did not bring
    back, ``left`` the processes that were still there when it was ready, at the moment ``ready``.
    """

    number: int
    killed: bool
    stopping: bool = False
    ready: int = 0
    missing: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Evidence:
    """All of it. ``begun`` and ``ended`` are what the commands themselves wrote, in order.

    ``refused`` are the tokens of commands that were never typed, as their caller was told.
    ``ledgers`` has what is there in the end: of a terminal that was purged and spawned again what
    came after, of one that was purged nothing. ``ids`` is the life id of each terminal that is in
    ``ledgers``, ``former`` those that terminals had before a purge, as far as they are known.
    ``damaged`` says of a ledger how many damaged lines stand before which of its records, by its
    place, 0 for the first: each may have held a number.
    ``kept`` are the newest messages of each inbox as it holds them. ``errors`` are answers that no
    client should get.

    ``subscriptions`` is None where everybody in ``answers`` subscribed to every record before the
    first one.
    """

    commands: tuple[Command, ...]
    begun: tuple[str, ...]
    ended: tuple[str, ...]
    told: tuple[Told, ...]
    refused: tuple[str, ...]
    ledgers: Mapping[str, tuple[Record, ...]]
    ids: Mapping[str, str]
    answers: Mapping[str, tuple[Answer, ...]]
    kept: Mapping[str, tuple[Message, ...]]
    handoffs: tuple[Handoff, ...]
    lives: tuple[Life, ...]
    errors: tuple[str, ...] = ()
    former: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    damaged: Mapping[str, Mapping[int, int]] = attrs.field(factory=dict)
    subscriptions: tuple[Subscribing, ...] | None = None
    changes: tuple[Change, ...] = ()
    listings: tuple[Listing, ...] = ()
    asks: tuple[Ask, ...] = ()
    reads: tuple[RecordsRead, ...] = ()
    outputs: tuple[OutputRead, ...] = ()
    waits: tuple[Waited, ...] = ()
    broadcasts: tuple[Broadcasted, ...] = ()
    disturbances: tuple[Disturbance, ...] = ()
    deaths: tuple[Death, ...] = ()
    remains: tuple[Remains, ...] = ()

    @property
    def by_token(self) -> dict[str, Command]:
        """The commands by their tokens."""
        return {command.token: command for command in self.commands}

    def records(self) -> Iterator[tuple[str, Record]]:
        """Every record with its terminal."""
        for terminal, records in self.ledgers.items():
            for record in records:
                yield terminal, record

    def all_told(self) -> Iterator[Told]:
        """Every record that anybody was told, however."""
        yield from self.told
        for read in self.reads:
            yield from (Told(read.terminal, record, read.span) for record in read.records)
        for waited in self.waits:
            if waited.record is not None:
                yield Told(waited.terminal, waited.record, waited.span)
        for cast in self.broadcasts:
            for terminal, record in zip(cast.answered, cast.records, strict=True):
                if record is not None:
                    yield Told(terminal, record, cast.span)
