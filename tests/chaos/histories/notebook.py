"""What the clients of a history did and were told, as it is written down while it happens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from tests.chaos.checking.evidence import Answer, Command, Evidence, Handoff, Life, Told
from tests.chaos.checking.happenings import (
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


@attrs.define(kw_only=True)
class Notebook:
    """All that happened in all lives; ``life`` is the number of the present one."""

    life: int = 0
    commands: list[Command] = attrs.field(factory=list)
    told: list[Told] = attrs.field(factory=list)
    refused: list[str] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)
    handoffs: list[Handoff] = attrs.field(factory=list)
    answers: dict[str, list[Answer]] = attrs.field(factory=dict)
    kept: dict[str, tuple[Message, ...]] = attrs.field(factory=dict)
    lives: list[Life] = attrs.field(factory=list)
    ledgers: dict[str, tuple[Record, ...]] = attrs.field(factory=dict)
    damaged: dict[str, dict[int, int]] = attrs.field(factory=dict)
    ids: dict[str, list[str]] = attrs.field(factory=dict)
    """The life ids that each terminal had, the present one at the end."""
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
    _moment: int = 0

    def moment(self) -> int:
        """A new moment, after all earlier ones."""
        self._moment += 1
        return self._moment

    def point(self) -> Span:
        """A span that is over at once."""
        return Span(self.moment(), self.moment())

    def saw_id(self, terminal: str, life_id: str) -> None:
        """The terminal has this life id now."""
        known = self.ids.setdefault(terminal, [])
        if life_id not in known[-1:]:
            known.append(life_id)

    def evidence(self, witnessed: Iterable[tuple[str, ...]]) -> Evidence:
        """All of it; ``witnessed`` is what the commands themselves wrote down."""
        written = list(witnessed)
        return Evidence(
            commands=tuple(self.commands),
            begun=tuple(words[1] for words in written if words[0] == "begun"),
            ended=tuple(words[1] for words in written if words[0] == "ended"),
            told=tuple(self.told),
            refused=tuple(self.refused),
            ledgers=self.ledgers,
            damaged=self.damaged,
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
        )

    def _former(self) -> Mapping[str, tuple[str, ...]]:
        return {
            name: tuple(ids[:-1] if name in self.ledgers else ids) for name, ids in self.ids.items()
        }
