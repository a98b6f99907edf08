"""``Case``: evidence, and the order of events that follows from it. Pure.

The evidence has the moments of a call and of its answer, not the moment when it took effect. So
every question here has a set of possible answers, or a moment before which something is certain.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

import attrs

from tests.chaos.checking.evidence import Command, Evidence, SeenRecord
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
    """Return the possible states during ``when``, if each of ``steps`` leads to its state.

    The third item of a step says whether it was surely carried out. ``when`` without an answer has
    no end.
    """
    states = {start}
    earlier: list[tuple[Span, T]] = []
    for span, state, is_certain in sorted(steps, key=lambda step: step[0].asked):
        if is_certain and span.is_before(when):
            # A simultaneous step may have taken effect later, although it was requested earlier.
            states = {state, *(other for each, other in earlier if each.overlaps(span))}
        elif not when.is_before(span):
            states.add(state)
        earlier.append((span, state))
    return states


class Case:
    """The evidence of one load, with the questions that rules ask."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    @cached_property
    def matching(self) -> Matching:
        """The command of each record."""
        return Matching(self.evidence)

    @cached_property
    def seen(self) -> tuple[SeenRecord, ...]:
        """Every record that a client got, from any request."""
        return tuple(self.evidence.all_seen())

    @cached_property
    def matched(self) -> tuple[tuple[str, Record, Command | None], ...]:
        """Every record with its terminal and its command."""
        return tuple(
            (terminal, record, command)
            for terminal, commands in self.matching.of.items()
            for record, command in zip(self.evidence.ledgers[terminal], commands, strict=True)
        )

    def numbers_from(self, first: int, count: int, terminal: str) -> list[int]:
        """Return the first ``count`` numbers of records of a terminal, from ``first`` on."""
        damaged = self._damaged_numbers.get(terminal, frozenset())
        free = (seq for seq in itertools.count(first) if seq not in damaged)
        return list(itertools.islice(free, count))

    @cached_property
    def _damaged_numbers(self) -> Mapping[str, frozenset[int]]:
        """The unused numbers by terminal, where a loss of power damaged lines.

        Each damaged line may have held a number, so the number is not used again.
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

    # Incarnations.

    @cached_property
    def killed_lives(self) -> frozenset[int]:
        """The incarnations that were killed."""
        return frozenset(life.number for life in self.evidence.lives if life.killed)

    @cached_property
    def stopping_lives(self) -> frozenset[int]:
        """The incarnations that had at least begun an ordered stop."""
        lives = self.evidence.lives
        return frozenset(life.number for life in lives if life.stopping or not life.killed)

    @cached_property
    def lives_without_power(self) -> frozenset[int]:
        """The incarnations that ended with a loss of power."""
        return frozenset(each.life for each in self.evidence.deaths if each.kind == "power loss")

    def has_hole(self, handle: str) -> bool:
        """Return whether a loss of power has damaged lines of an inbox that were not synced.

        Whole lines behind them may have survived: their messages stay before those that are sent
        again.
        """
        return bool(self.lives_without_power) and handle in self.evidence.damaged_inboxes

    def lost_power_by_recovery(self, number: int) -> bool:
        """Return whether the power failed in that incarnation, or in the one that recovers from it.

        The recovering incarnation syncs what was in flight before it reports it.
        """
        later = (each.number for each in self.evidence.lives if each.number > number and each.ready)
        recovery = min(later, default=number)
        return any(number <= each <= recovery for each in self.lives_without_power)

    def lost_pages(self, command: Command) -> bool:
        """Return whether its daemon died on a disk that failed while it knew the command."""
        failed = any(each.kind == "disk fault" for each in self.harms_to(command))
        return failed and command.life in self.killed_lives

    def end_of_life(self, number: int) -> int:
        """Return the moment of its end; 0 if that is not known."""
        return next((each.moment for each in self.evidence.deaths if each.life == number), 0)

    def settled(self, span: Span) -> Span:
        """Return ``span``, ended at the latest at the next start: no call outlives its daemon."""
        if span.answered is not None:
            return span
        later = [life.ready for life in self.evidence.lives if life.ready > span.asked]
        return attrs.evolve(span, answered=min(later, default=NEVER))

    def lost_power_in(self, when: Span) -> bool:
        """Return whether the power may have failed in that time."""
        return any(
            each.kind == "power loss" and Span(each.moment, each.moment).overlaps(when)
            for each in self.evidence.deaths
        )

    # Requests that change terminals, and disturbances.

    @cached_property
    def _purges(self) -> dict[str, list[Change]]:
        found: dict[str, list[Change]] = {}
        for change in self.evidence.changes:
            if change.kind == "purge" and change.done is not False:
                settled = attrs.evolve(change, span=self.settled(change.span))
                found.setdefault(change.terminal, []).append(settled)
        return found

    def purges(self, terminal: str) -> list[Change]:
        """Return the possible purges, each with the moment when it was surely over."""
        return self._purges.get(terminal, [])

    def may_be_purged(self, terminal: str, since: Span) -> bool:
        """Return whether the data from the beginning of ``since`` may have been purged."""
        return any(not each.span.is_before(since) for each in self.purges(terminal))

    def may_be_open(self, terminal: str, when: Span) -> set[bool]:
        """Return the possible answers to whether the terminal is open, by its spawns and closes."""
        steps = [
            (self.settled(change.span), change.kind == "spawn", change.done is True)
            for change in self.evidence.changes
            if change.terminal == terminal and change.done is not False
        ]
        return possible_states(False, steps, when)

    def harms(self, terminal: str, when: Span) -> list[Disturbance]:
        """Return the disturbances that may have affected ``terminal`` in that time."""
        return [
            each
            for each in self.evidence.disturbances
            if each.terminal in (terminal, None) and each.span.overlaps(when)
        ]

    def harms_to(self, command: Command, record: Record | None = None) -> list[Disturbance]:
        """Return the disturbances between the sending of the command and its record."""
        finished = None
        if record is not None:
            finished = self.finished[command.terminal, record["seq"]].answered
        return self.harms(command.terminal, Span(command.span.asked, finished))

    def may_be_crashed(self, command: Command, record: Record) -> bool:
        """Return whether a crash may have ended the command.

        The effects of a crash take a while: actors end, others are started in their place.
        """
        ready = next((life.ready for life in self.evidence.lives if life.number == command.life), 0)
        since = Span(ready, self.finished[command.terminal, record["seq"]].answered)
        return any(each.kind in CRASHING for each in self.harms(command.terminal, since))

    # Records.

    @cached_property
    def finished(self) -> dict[tuple[str, int], Span]:
        """The span in which each record was finished, as far as that is known.

        Records are finished in the order of their numbers: not before a command with a lower number
        was sent, and before a client got the record, or a later one, with its end.
        """
        spans: dict[tuple[str, int], Span] = {}
        for terminal, records in self.evidence.ledgers.items():
            seen = self._ends_seen(terminal)
            earliest, from_then = 0, []
            for record, command in zip(records, self.matching.of[terminal], strict=True):
                earliest = max(earliest, self._earliest(terminal, record, command))
                from_then.append(earliest)
            latest = NEVER
            for record, begin in zip(reversed(records), reversed(from_then), strict=True):
                latest = min(latest, seen.get(record["seq"], NEVER))
                spans[terminal, record["seq"]] = Span(begin, max(begin, latest))
        return spans

    def is_rebuilt_from_less(self, terminal: str, record: Record, since: Span) -> bool:
        """Return whether the output comes from the raw log, which may have lost or changed bytes.

        The raw log is not synced, so a loss of power may change it; so may a failing disk, if the
        daemon then died. Both affect also a command whose end was noted before.
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

    def _ends_seen(self, terminal: str) -> dict[int, int]:
        """Return the first moment when a client got each record of the ledger with its end."""
        found: dict[int, int] = {}
        for seen in self.seen:
            is_end = seen.terminal == terminal and seen.record["end"] is not None
            if is_end and not self.may_be_purged(terminal, seen.span):
                seq = seen.record["seq"]
                found[seq] = min(found.get(seq, NEVER), seen.span.last)
        return found

    # Subscriptions.

    def wanted(self, handle: str, terminal: str, record: Record) -> set[bool]:
        """Return the possible answers to whether ``handle`` was to be sent the record."""
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
