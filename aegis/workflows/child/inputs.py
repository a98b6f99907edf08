"""``Inputs``: the outcomes of calls, which the function gets one at a time, in a recorded order.

Which of two calls ended first is an input of the function: it may append to a list, take a lock or
leave a race. So each outcome is delivered once all tasks wait, its place in the order is sent with
the next call, and a replay delivers the outcomes in that order.
"""

from __future__ import annotations

from typing import Any

import attrs
import trio

from aegis.workflows.calls import Outcome
from aegis.workflows.child.clock import Timeline, long_rest
from aegis.workflows.child.journal import Journal

LOST_S = 5.0
"""Seconds at rest after which the next recorded outcome is no longer waited for.

Its call may follow work outside of the engine, in a thread for example, whose time nobody recorded.
"""


@attrs.define(eq=False)
class AwaitedCall:
    """A call that waits for its outcome; ``may_proceed``: the process carries it out itself."""

    may_proceed: trio.Event = attrs.field(factory=trio.Event)
    ended: trio.Event = attrs.field(factory=trio.Event)
    outcome: Outcome | None = None


class Inputs:
    """The outcomes of one process; ``is_live`` once those of its journal are delivered."""

    def __init__(self, journal: Journal, timeline: Timeline) -> None:
        self._journal = journal
        self._timeline = timeline
        self._recorded = [each for each in journal.seen if not each[0].startswith("#")]
        self._outcomes: dict[str, Outcome] = {}
        self._waiting: dict[str, AwaitedCall] = {}
        self._new: list[tuple[str, float | None]] = []
        self._changed = trio.Event()
        self.is_live = trio.Event()
        self.is_over = False

    def expect(self, position: str) -> AwaitedCall:
        """Return a place for the outcome of a call."""
        waiting = self._waiting[position] = AwaitedCall()
        self._look()
        return waiting

    def take(self, frame: dict[str, Any]) -> None:
        """Take a frame of the daemon about a call."""
        position = str(frame.get("position"))
        if frame["kind"] == "answer":
            self._outcomes[position] = frame["outcome"]
            self._look()
        elif position in self._waiting:
            self._waiting[position].may_proceed.set()

    def moment(self) -> dict[str, Any]:
        """Return what the function has got since the last frame, for the next one."""
        new, self._new = self._new + self._timeline.take_readings(), []
        return {"seen": new, "time": self._timeline.now}

    def skip(self, position: str) -> None:
        """Continue behind a call of the main path, with the time at which its outcome was seen."""
        places = [each for each, _ in self._recorded]
        # Nothing shows that the function got the outcome: then all others are from before it.
        at = places.index(position) if position in places else len(places) - 1
        if places:
            self._timeline.arrive(self._recorded[at][1])
            del self._recorded[: at + 1]

    async def run(self) -> None:
        """Deliver outcomes, first those of the journal, without an end."""
        try:
            with self._timeline.read_by("call"):
                while self._recorded:
                    await self._replay(*self._recorded[0])
                self._timeline.allow(self._journal.time)
                await self._timeline.rest()
                self._timeline.go_live(self._journal.at)
                self.is_live.set()
                known = {each: self._journal.ended(each) for each in self._journal.unseen}
                found = {each: outcome for each, outcome in known.items() if outcome is not None}
                self._outcomes = {**found, **self._outcomes}
                while True:
                    await self._deliver_next()
        finally:
            # No call gets an outcome any more: those that wait end without one.
            self.is_over = True
            for each in self._waiting.values():
                each.ended.set()

    async def _replay(self, position: str, moment: float | None) -> None:
        self._timeline.allow(moment)
        await self._timeline.rest()
        while position not in self._waiting:
            if await self._is_lost(position):
                break
        if not self._recorded or self._recorded[0][0] != position:
            return  # the workflow continues behind its checkpoint
        del self._recorded[0]
        outcome = self._journal.ended(position)
        if outcome is None:
            return
        if position in self._waiting:
            self._timeline.arrive(moment)
            self._give(position, outcome)
        else:
            self._outcomes[position] = outcome

    async def _is_lost(self, position: str) -> bool:
        """Wait until the call at a position is made; return whether it is not expected any more."""
        async with trio.open_nursery() as nursery:

            async def give_up() -> None:
                await long_rest(LOST_S)
                nursery.cancel_scope.cancel()

            nursery.start_soon(give_up)
            while position not in self._waiting:
                await self._changed.wait()
            nursery.cancel_scope.cancel()
        await self._timeline.rest()
        return position not in self._waiting

    async def _deliver_next(self) -> None:
        await self._timeline.rest()
        position = next((each for each in self._outcomes if each in self._waiting), None)
        if position is None:
            # A step from before the checkpoint behind which the workflow continues.
            position = next((each for each in self._waiting if self._journal.ended(each)), None)
        if position is None:
            await self._changed.wait()
            return
        outcome = self._outcomes.pop(position, None) or self._journal.ended(position)
        assert outcome is not None
        self._new.append((position, self._timeline.arrive(None)))
        self._give(position, outcome)

    def _give(self, position: str, outcome: Outcome) -> None:
        waiting = self._waiting.pop(position)
        waiting.outcome = outcome
        waiting.ended.set()

    def _look(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
