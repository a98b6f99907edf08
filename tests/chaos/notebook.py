"""The log of the clients of a simulated or a real daemon: their requests and the replies."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping

import attrs

from aegis.client.errors import CommandFailed
from tests.chaos.agent_notes import AgentNotes
from tests.chaos.checking.canvas_evidence import CanvasNotes
from tests.chaos.checking.evidence import Answer, Command, Evidence, Handoff, Life, SeenRecord
from tests.chaos.checking.group_evidence import GroupNotes
from tests.chaos.checking.observations import (
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
from tests.chaos.checking.workflow_evidence import WorkflowNotes
from tests.chaos.task_notes import TaskNotes


@attrs.frozen
class Refusal:
    """A call of ``who`` that ended in an error; ``terminal`` is its terminal, if it had one."""

    who: str
    terminal: str
    code: str
    sentence: str
    span: Span

    def __str__(self) -> str:
        return f"{self.who} got {self.code}: {self.sentence}"


@attrs.define(kw_only=True)
class Notebook:
    """The log of all incarnations of a daemon; ``life`` is the number of the current one.

    ``pardoned`` are the error codes that clients may get in this incarnation: of a disk that is
    made to fail, of a daemon that is made to stop. ``refusals`` are the other errors, which need
    an explanation. Real clients stop once ``is_over`` is set. Threads may share a notebook.
    """

    life: int = 0
    seen: list[SeenRecord] = attrs.field(factory=list)
    refused: list[str] = attrs.field(factory=list)
    refusals: list[Refusal] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)
    handoffs: list[Handoff] = attrs.field(factory=list)
    answers: dict[str, list[Answer]] = attrs.field(factory=dict)
    kept: dict[str, tuple[Message, ...]] = attrs.field(factory=dict)
    lives: list[Life] = attrs.field(factory=list)
    ledgers: dict[str, tuple[Record, ...]] = attrs.field(factory=dict)
    damaged: dict[str, dict[int, int]] = attrs.field(factory=dict)
    damaged_inboxes: set[str] = attrs.field(factory=set)
    ids: dict[str, list[str]] = attrs.field(factory=dict)
    """The life ids of each terminal, the current one last."""
    subscriptions: list[Subscribing] = attrs.field(factory=list)
    changes: list[Change] = attrs.field(factory=list)
    listings: list[Listing] = attrs.field(factory=list)
    asks: list[Ask] = attrs.field(factory=list)
    reads: list[RecordsRead] = attrs.field(factory=list)
    outputs: list[OutputRead] = attrs.field(factory=list)
    waits: list[Waited] = attrs.field(factory=list)
    broadcasts: list[Broadcasted] = attrs.field(factory=list)
    disturbances: list[Disturbance] = attrs.field(factory=list)
    deaths: list[Death] = attrs.field(factory=list)
    remains: list[Remains] = attrs.field(factory=list)
    agents: AgentNotes = attrs.field(factory=AgentNotes)
    tasks: TaskNotes = attrs.field(factory=TaskNotes)
    groups: GroupNotes = attrs.field(factory=GroupNotes)
    canvases: CanvasNotes = attrs.field(factory=CanvasNotes)
    workflows: WorkflowNotes = attrs.field(factory=WorkflowNotes)
    pardoned: frozenset[str] = frozenset()
    is_over: threading.Event = attrs.field(factory=threading.Event)
    _commands: dict[str, Command] = attrs.field(factory=dict)
    _numbers: Iterator[int] = attrs.field(factory=itertools.count)
    _moments: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))

    def moment(self) -> int:
        """Return a new moment, after all earlier ones of all threads."""
        return next(self._moments)

    def point(self) -> Span:
        """Return a span that is over at once."""
        return Span(self.moment(), self.moment())

    def new_token(self, terminal: str) -> str:
        """Return a token that no other command has."""
        return f"@{terminal}.{self.life}.{next(self._numbers)}@"

    def new_name(self) -> str:
        """Return a name that no other terminal has."""
        return f"x{self.life}-{next(self._numbers)}"

    @property
    def commands(self) -> list[Command]:
        """The commands that were sent, in their order."""
        return list(self._commands.values())

    def sent(self, command: Command, span: Span) -> None:
        """Record a command that was sent."""
        self._commands[command.token] = attrs.evolve(command, span=span)

    def send(self, command: Command) -> int:
        """Record a command that is about to be sent; return the moment."""
        asked = self.moment()
        self.sent(command, Span(asked))
        return asked

    def was_answered(self, token: str) -> Span:
        """Record the end of the call that sent the command; return the span of the call."""
        command = self._commands[token]
        span = Span(command.span.asked, self.moment())
        self.sent(command, span)
        return span

    def was_refused(
        self, who: str, error: CommandFailed, *, terminal: str = "", asked: int = 0
    ) -> None:
        """Record the error of a call that began at ``asked``, unless its code is pardoned."""
        if error.code not in self.pardoned:
            span = Span(asked, self.moment())
            self.refusals.append(Refusal(who, terminal, error.code, str(error), span))

    def saw_id(self, terminal: str, life_id: str) -> None:
        """Record the current life id of a terminal."""
        known = self.ids.setdefault(terminal, [])
        if life_id not in known[-1:]:
            known.append(life_id)

    def evidence(self, witnessed: Iterable[tuple[str, ...]]) -> Evidence:
        """Return the log as evidence; ``witnessed`` are the lines that the commands wrote."""
        written = list(witnessed)
        return Evidence(
            commands=tuple(self.commands),
            begun=tuple(words[1] for words in written if words[0] == "begun"),
            ended=tuple(words[1] for words in written if words[0] == "ended"),
            seen=tuple(self.seen),
            refused=tuple(self.refused),
            ledgers=self.ledgers,
            damaged=self.damaged,
            damaged_inboxes=frozenset(self.damaged_inboxes),
            ids={name: ids[-1] for name, ids in self.ids.items() if name in self.ledgers},
            former=self._former(),
            answers={handle: tuple(answers) for handle, answers in self.answers.items()},
            kept=self.kept,
            handoffs=tuple(self.handoffs),
            lives=tuple(self.lives),
            errors=tuple(self.errors),
            subscriptions=tuple(self.subscriptions),
            changes=tuple(self.changes),
            listings=tuple(self.listings),
            asks=tuple(self.asks),
            reads=tuple(self.reads),
            outputs=tuple(self.outputs),
            waits=tuple(self.waits),
            broadcasts=tuple(self.broadcasts),
            disturbances=tuple(self.disturbances),
            deaths=tuple(self.deaths),
            remains=tuple(self.remains),
            agents=self.agents.evidence(),
            tasks=self.tasks.evidence(),
            groups=self.groups.evidence(),
            canvases=self.canvases.evidence(),
            workflows=self.workflows.evidence(),
        )

    def _former(self) -> Mapping[str, tuple[str, ...]]:
        return {
            name: tuple(ids[:-1] if name in self.ledgers else ids) for name, ids in self.ids.items()
        }
