"""What the clients of a load did and were told, each thing at its moment."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import attrs

from aegis.client.line import CommandFailed
from tests.chaos.checking.evidence import Command, Handoff, Told
from tests.chaos.checking.happenings import (
    Disturbance,
    OutputRead,
    RecordsRead,
    Span,
    Subscribing,
    Waited,
)


@attrs.frozen
class Refusal:
    """A call of ``who`` that ended in an error. ``terminal`` is which it was about, if any."""

    who: str
    terminal: str
    code: str
    sentence: str
    span: Span

    def __str__(self) -> str:
        return f"{self.who} was told {self.code}: {self.sentence}"


@attrs.define
class Notebook:
    """All that the clients of one daemon, in all of its lives, did and were told.

    ``pardoned`` are the error codes that clients may get in this life: of a disk that is made to
    fail, of a daemon that is made to stop. ``refusals`` are the other errors, which something else
    must explain. Whoever works stops once ``is_over`` is set.
    """

    told: list[Told] = attrs.field(factory=list)
    refused: list[str] = attrs.field(factory=list)
    refusals: list[Refusal] = attrs.field(factory=list)
    handoffs: list[Handoff] = attrs.field(factory=list)
    subscriptions: list[Subscribing] = attrs.field(factory=list)
    reads: list[RecordsRead] = attrs.field(factory=list)
    outputs: list[OutputRead] = attrs.field(factory=list)
    waits: list[Waited] = attrs.field(factory=list)
    disturbances: list[Disturbance] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)
    life: int = 0
    pardoned: frozenset[str] = frozenset()
    is_over: threading.Event = attrs.field(factory=threading.Event)
    _sent: dict[str, Command] = attrs.field(factory=dict)
    _numbers: Iterator[int] = attrs.field(factory=itertools.count)
    _moments: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))

    def moment(self) -> int:
        """A number above those of all moments before, whichever thread asks."""
        return next(self._moments)

    def new_token(self, terminal: str) -> str:
        """A token that no other command has."""
        return f"@{terminal}.{self.life}.{next(self._numbers)}@"

    def new_name(self) -> str:
        """A name that no other terminal has."""
        return f"x{self.life}-{next(self._numbers)}"

    @property
    def commands(self) -> list[Command]:
        """The commands that were sent, in their order."""
        return list(self._sent.values())

    def send(self, command: Command) -> int:
        """Note a command that is about to be sent; gives the moment."""
        asked = self.moment()
        self._sent[command.token] = attrs.evolve(command, span=Span(asked))
        return asked

    def was_answered(self, token: str) -> Span:
        """The call that sent the command is over, and nothing of it is still under way."""
        span = Span(self._sent[token].span.asked, self.moment())
        self._sent[token] = attrs.evolve(self._sent[token], span=span)
        return span

    def was_refused(
        self, who: str, error: CommandFailed, *, terminal: str = "", asked: int = 0
    ) -> None:
        """Note an error that a call which began at ``asked`` ended in."""
        if error.code not in self.pardoned:
            span = Span(asked, self.moment())
            self.refusals.append(Refusal(who, terminal, error.code, str(error), span))
