"""The place where one asker waits for one outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, cast

import outcome
import trio

T = TypeVar("T")

_TAKEN: outcome.Outcome[Any] = outcome.Value(None)
"""In the place of an outcome that its asker has."""


class LateReplies(Protocol):
    """The counter of outcomes that came too late: ``System``."""

    late_replies: int


class Reply(Generic[T]):
    """An answer that is owed. Exactly one outcome reaches the asker; later ones are dropped.

    A handler answers with ``send`` or ``fail``, at once or (after ``Actor.defer``) later. What
    comes late is counted here and in ``System.late_replies``.
    """

    __slots__ = ("_abandoned", "_late", "_on_abandon", "_outcome", "_task", "_totals", "owner")

    def __init__(self, totals: LateReplies | None = None) -> None:
        self._totals = totals
        self._outcome: outcome.Outcome[T] | None = None
        self._task: trio.lowlevel.Task | None = None
        self._abandoned = False
        self._on_abandon: Callable[[], object] | None = None
        self._late = 0
        self.owner: object = None
        """The life that took it with ``defer`` and did not forward it: if it ends, none answers."""

    @property
    def is_settled(self) -> bool:
        """Whether the asker has its outcome, or no longer waits for one."""
        return self._outcome is not None or self._abandoned

    @property
    def is_abandoned(self) -> bool:
        """Whether the asker went away (its time ran out, or it was cancelled)."""
        return self._abandoned

    @property
    def late(self) -> int:
        """How many outcomes came after the first and were dropped."""
        return self._late

    def send(self, value: T) -> None:
        """Give the asker its value; dropped and counted if it already has an outcome."""
        self._settle(cast("outcome.Outcome[T]", outcome.Value(value)))

    def fail(self, error: Exception) -> None:
        """Raise ``error`` at the asker; dropped and counted if it already has an outcome."""
        self._settle(outcome.Error(error))

    def on_abandon(self, callback: Callable[[], object]) -> None:
        """Have ``callback`` called when the asker goes away without an outcome.

        One callback; called at once if the asker has gone already. It must be quick and not raise.
        """
        if self._abandoned:
            callback()
        else:
            self._on_abandon = callback

    def give_up(self, error: Exception) -> None:
        """No answer will come: raise ``error`` at the asker, if it still waits. For the runtime."""
        if not self.is_settled:
            self._settle(outcome.Error(error))

    def expire(self, error: Exception) -> None:
        """The asker's time is over: it gets ``error`` and no longer waits."""
        if not self.is_settled:
            self._settle(outcome.Error(error))
            self._abandon()

    async def wait(self) -> T:
        """Wait for the outcome. Called once, by the asker; a cancelled wait abandons the reply."""
        if self._outcome is None:
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._abort)
        else:
            await trio.lowlevel.checkpoint()
        assert self._outcome is not None
        # Whoever owed this reply may keep it for a while: what it carried can be large.
        result, self._outcome = self._outcome, _TAKEN
        return result.unwrap()

    def _settle(self, result: outcome.Outcome[T]) -> None:
        if self.is_settled:
            self._late += 1
            if self._totals is not None:
                self._totals.late_replies += 1
            return
        self._outcome = result
        if self._task is not None:
            task, self._task = self._task, None
            trio.lowlevel.reschedule(task)

    def _abort(self, _: Any) -> trio.lowlevel.Abort:
        self._task = None
        self._abandon()
        return trio.lowlevel.Abort.SUCCEEDED

    def _abandon(self) -> None:
        self._abandoned = True
        if self._on_abandon is not None:
            self._on_abandon()
