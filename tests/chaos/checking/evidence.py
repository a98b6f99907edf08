"""The evidence of a load: requests, replies, and the final state of the system. Pure.

A load leaves out the fields with defaults for requests that it does not make.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from tests.chaos.checking.agent_evidence import AgentEvidence
from tests.chaos.checking.canvas_evidence import CanvasEvidence
from tests.chaos.checking.group_evidence import GroupEvidence
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
from tests.chaos.checking.task_evidence import TaskEvidence
from tests.chaos.checking.workflow_evidence import WorkflowEvidence


@attrs.frozen(kw_only=True)
class Command:
    """A command that a client sent, with its result if nothing disturbs it.

    ``token`` is unique; it is part of ``text`` and of every line of ``stdout``. ``life`` numbers
    the daemon's processes. ``typed``: sent as keys, so no client got its number. ``is_silent``: it
    writes no lines of evidence. ``span`` is that of the call that sent it.
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
class SeenRecord:
    terminal: str
    record: Record
    span: Span = UNKNOWN


@attrs.frozen
class Answer:
    """One answer of an inbox: its messages. ``acknowledged`` is the ``after`` of the read.

    A read without an answer is here too where its moment is known: without messages, its ``span``
    without an end. Its acknowledgement may or may not have taken effect. ``limit`` is the number of
    messages requested; None: nothing is concluded from missing messages.
    """

    messages: tuple[Message, ...]
    acknowledged: str | None = None
    span: Span = UNKNOWN
    limit: int | None = None


@attrs.frozen
class Handoff:
    """A message of one client to another. ``id`` is that of its receipt; None without a receipt."""

    to: str
    body: str
    id: str | None
    sender: str = ""
    span: Span = UNKNOWN


@attrs.frozen(kw_only=True)
class Life:
    """One process of the daemon: its end, and the remains of earlier processes that it found.

    ``killed``: by a signal or by a loss of power; ``stopping``: while it stopped in order.
    ``missing`` are terminals that it did not restore, ``left`` the processes of earlier
    incarnations that were alive when it was ready, at the moment ``ready``.
    """

    number: int
    killed: bool
    stopping: bool = False
    ready: int = 0
    missing: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Evidence:
    """The evidence. ``begun`` and ``ended`` are the lines that the commands wrote, in order.

    ``refused`` are the tokens of commands that were never typed, according to their answers.
    ``ledgers`` has the final ledgers: only records after the last purge. ``ids`` is the life id of
    each terminal in ``ledgers``, ``former`` the known ids before a purge. ``damaged`` gives the
    number of damaged lines of a ledger by the place of the record behind them, 0 for the first:
    each may have held a number. ``kept`` are the newest messages of each inbox, ``damaged_inboxes``
    the handles whose inbox has damaged lines. ``errors`` are answers that no client should get.

    ``subscriptions`` is None where every handle in ``answers`` subscribed to every record before
    the first one.
    """

    commands: tuple[Command, ...]
    begun: tuple[str, ...]
    ended: tuple[str, ...]
    seen: tuple[SeenRecord, ...]
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
    damaged_inboxes: frozenset[str] = frozenset()
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
    agents: AgentEvidence = attrs.field(factory=AgentEvidence)
    tasks: TaskEvidence = attrs.field(factory=TaskEvidence)
    groups: GroupEvidence = attrs.field(factory=GroupEvidence)
    canvases: CanvasEvidence = attrs.field(factory=CanvasEvidence)
    workflows: WorkflowEvidence = attrs.field(factory=WorkflowEvidence)

    @property
    def by_token(self) -> dict[str, Command]:
        """The commands by their tokens."""
        return {command.token: command for command in self.commands}

    def records(self) -> Iterator[tuple[str, Record]]:
        """Yield every record with its terminal."""
        for terminal, records in self.ledgers.items():
            for record in records:
                yield terminal, record

    def all_seen(self) -> Iterator[SeenRecord]:
        """Yield every record that a client got, from any request."""
        yield from self.seen
        for read in self.reads:
            yield from (SeenRecord(read.terminal, record, read.span) for record in read.records)
        for waited in self.waits:
            if waited.record is not None:
                yield SeenRecord(waited.terminal, waited.record, waited.span)
        for cast in self.broadcasts:
            for terminal, record in zip(cast.answered, cast.records, strict=True):
                if record is not None:
                    yield SeenRecord(terminal, record, cast.span)
