"""``Case``: evidence, and the order of events that follows from it. Pure.

Evidence tells when a call was asked and answered, not when it took effect. So every question here
has the answers that are possible: a set of states, or a moment before which something is certain.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

import attrs

from tests.chaos.checking.evidence import Command, Evidence, Told
from tests.chaos.checking.matching import Matching
from tests.chaos.checking.observations import (
    NEVER,
    Change,
    Disturbance,
    Record,
    Span,
    Subscribing,
)

CRASHING = ("crash", "disk fault")
"""Harm that may end the actors of a terminal."""

T = TypeVar("T")


def possible_states(start: T, steps: Iterable[tuple[Span, T, bool]], when: Span) -> set[T]:
    """What may be the case at some moment of ``when``, if each of ``steps`` leads to its state.

    Of each step the third says whether it was surely carried out. ``when`` without an answer goes
    on for ever.
    """
    states = {start}
    earlier: list[tuple[Span, T]] = []
    for span, state, is_certain in sorted(steps, key=lambda step: step[0].asked):
        if is_certain and span.is_before(when):
            # What was under way at the same time may have come after it, though asked before.
            states = {state, *(other for each, other in earlier if each.overlaps(span))}
        elif not when.is_before(span):
            states.add(state)
        earlier.append((span, state))
    return states


class Case:
    """The evidence of one load, as rules look at it."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    @cached_property
    def matching(self) -> Matching:
        """Which record tells of which command."""
        return Matching(self.evidence)

    @cached_property
    def told(self) -> tuple[Told, ...]:
        """Every record that anybody was told, however."""
        return tuple(self.evidence.all_told())

    @cached_property
    def matched(self) -> tuple[tuple[str, Record, Command | None], ...]:
        """Every record with its terminal and its command."""
        return tuple(
            (terminal, record, command)
            for terminal, commands in self.matching.of.items()
            for record, command in zip(self.evidence.ledgers[terminal], commands, strict=True)
        )

    def numbers_from(self, first: int, count: int, terminal: str) -> list[int]:
        """The numbers that so many records of a terminal must have, from ``first`` on."""
        damaged = self._damaged_numbers.get(terminal, frozenset())
        free = (seq for seq in itertools.count(first) if seq not in damaged)
        return list(itertools.islice(free, count))

    @cached_property
    def _damaged_numbers(self) -> Mapping[str, frozenset[int]]:
        """The numbers that are left out, by terminal, where a loss of power has damaged lines.

        Each damaged line may have held one, so it is not given again.
        """
        if not self.lives_without_power:
            return {}
        return {
            terminal: frozenset(self._left_out(terminal, places))
            for terminal, places in self.evidence.damaged.items()
        }

    def _left_out(self, terminal: str, places: Mapping[int, int]) -> Iterator[int]:
        seqs = [-1, *(record["seq"] for record in self.evidence.ledgers[terminal])]
        for place, lines in places.items():
            if place + 1 < len(seqs):
                before, behind = seqs[place], seqs[place + 1]
                if behind - before - 1 <= lines:
                    yield from range(before + 1, behind)

    # Lives.

    @cached_property
    def killed_lives(self) -> frozenset[int]:
        """The lives that ended without order."""
        return frozenset(life.number for life in self.evidence.lives if life.killed)

    @cached_property
    def stopping_lives(self) -> frozenset[int]:
        """The lives that had at least begun to stop in order."""
        lives = self.evidence.lives
        return frozenset(life.number for life in lives if life.stopping or not life.killed)

    @cached_property
    def lives_without_power(self) -> frozenset[int]:
        """The lives that ended with a loss of power."""
        return frozenset(each.life for each in self.evidence.deaths if each.kind == "power loss")

    def lost_power_by_recovery(self, number: int) -> bool:
        """Whether the power failed in that life, or before the next that was ready had ended.

        That life recovers what the first had in flight, and syncs it before it tells of it.
        """
        later = (each.number for each in self.evidence.lives if each.number > number and each.ready)
        recovery = min(later, default=number)
        return any(number <= each <= recovery for each in self.lives_without_power)

    def end_of_life(self, number: int) -> int:
        """When it was over; 0 if that is not known."""
        return next((each.moment for each in self.evidence.deaths if each.life == number), 0)

    def settled(self, span: Span) -> Span:
        """``span``, ended at the latest when the next life was ready: no call outlives its life."""
        if span.answered is not None:
            return span
        later = [life.ready for life in self.evidence.lives if life.ready > span.asked]
        return attrs.evolve(span, answered=min(later, default=NEVER))

    def lost_power_in(self, when: Span) -> bool:
        """Whether the power may have failed in that time."""
        return any(
            each.kind == "power loss" and Span(each.moment, each.moment).overlaps(when)
            for each in self.evidence.deaths
        )

    # What was done to terminals.

    @cached_property
    def _purges(self) -> dict[str, list[Change]]:
        found: dict[str, list[Change]] = {}
        for change in self.evidence.changes:
            if change.kind == "purge" and change.done is not False:
                settled = attrs.evolve(change, span=self.settled(change.span))
                found.setdefault(change.terminal, []).append(settled)
        return found

    def purges(self, terminal: str) -> list[Change]:
        """Those that may have been carried out, each with the moment when it was surely over."""
        return self._purges.get(terminal, [])

    def may_be_purged(self, terminal: str, since: Span) -> bool:
        """Whether what was there when ``since`` began may have been purged then or later."""
        return any(not each.span.is_before(since) for each in self.purges(terminal))

    def may_be_open(self, terminal: str, when: Span) -> set[bool]:
        """Whether the terminal is open, as far as spawns and closes say."""
        steps = [
            (self.settled(change.span), change.kind == "spawn", change.done is True)
            for change in self.evidence.changes
            if change.terminal == terminal and change.done is not False
        ]
        return possible_states(False, steps, when)

    def harms(self, terminal: str, when: Span) -> list[Disturbance]:
        """What may have disturbed ``terminal`` then."""
        return [
            each
            for each in self.evidence.disturbances
            if each.terminal in (terminal, None) and each.span.overlaps(when)
        ]

    def harms_to(self, command: Command, record: Record | None = None) -> list[Disturbance]:
        """What may have disturbed the command, from when it was sent until it was recorded."""
        finished = None
        if record is not None:
            finished = self.finished[command.terminal, record["seq"]].answered
        return self.harms(command.terminal, Span(command.span.asked, finished))

    def may_be_crashed(self, command: Command, record: Record) -> bool:
        """Whether a crash in its life may have ended the command, or been on its way to it.

        What comes of a crash takes a while: actors end, others are started in their place.
        """
        ready = next((life.ready for life in self.evidence.lives if life.number == command.life), 0)
        since = Span(ready, self.finished[command.terminal, record["seq"]].answered)
        return any(each.kind in CRASHING for each in self.harms(command.terminal, since))

    # Records.

    @cached_property
    def finished(self) -> dict[tuple[str, int], Span]:
        """For each record between which moments it was finished, as far as that is known.

        Records are finished in the order of their numbers: none before the command of any earlier
        one was sent, each before anybody was told that it or a later one has ended.
        """
        spans: dict[tuple[str, int], Span] = {}
        for terminal, records in self.evidence.ledgers.items():
            told = self._ends_told(terminal)
            earliest, from_then = 0, []
            for record, command in zip(records, self.matching.of[terminal], strict=True):
                earliest = max(earliest, self._earliest(terminal, record, command))
                from_then.append(earliest)
            latest = NEVER
            for record, begin in zip(reversed(records), reversed(from_then), strict=True):
                latest = min(latest, told.get(record["seq"], NEVER))
                spans[terminal, record["seq"]] = Span(begin, max(begin, latest))
        return spans

    def is_rebuilt_from_less(self, terminal: str, record: Record, since: Span) -> bool:
        """Whether its output is what the raw log had, which may have lost or changed bytes.

        That is so after a loss of power, for nothing of the log is synced, and where the disk
        refused some of it and the daemon died then. Both also of one whose end was noted before.
        """
        then = Span(since.asked, self.finished[terminal, record["seq"]].answered)
        if self.lost_power_in(then):
            return True
        rebuilt = record["killed_by_restart"] or self._died_in(then)
        return rebuilt and any(each.kind == "disk fault" for each in self.harms(terminal, then))

    def _died_in(self, when: Span) -> bool:
        return any(Span(each.moment, each.moment).overlaps(when) for each in self.evidence.deaths)

    def _earliest(self, terminal: str, record: Record, command: Command | None) -> int:
        if command is None:
            return 0
        sent = command.span
        if not record["killed_by_restart"] or self.harms(terminal, Span(sent.asked)):
            return sent.asked
        return max(sent.asked, self.end_of_life(command.life))

    def _ends_told(self, terminal: str) -> dict[int, int]:
        """When somebody was first told that a record has ended; only what is in the ledger."""
        found: dict[int, int] = {}
        for told in self.told:
            is_end = told.terminal == terminal and told.record["end"] is not None
            if is_end and not self.may_be_purged(terminal, told.span):
                seq = told.record["seq"]
                found[seq] = min(found.get(seq, NEVER), told.span.last)
        return found

    # Subscriptions.

    def wanted(self, handle: str, terminal: str, record: Record) -> set[bool]:
        """Whether ``handle`` was to be told of the record when it was finished, as is possible."""
        if record["writer"] == f"agent:{handle}":
            return {False}
        changes = self.evidence.subscriptions
        if changes is None:
            return {True}
        mine = [
            (self.settled(each.span), each, each.done is True)
            for each in changes
            if each.handle == handle and each.terminal == terminal and each.done is not False
        ]
        purged = [(each.span, None, each.done is True) for each in self.purges(terminal)]
        states: set[Subscribing | None] = possible_states(
            None, [*mine, *purged], self.finished[terminal, record["seq"]]
        )
        return {state is not None and state.wants(record) for state in states}
