"""``Reply``: the one result of one request, and the wait for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, cast

import outcome
import trio

T = TypeVar("T")

_TAKEN: outcome.Outcome[Any] = outcome.Value(None)
"""Replaces an outcome that the caller has taken."""


class LateReplies(Protocol):
    """The counter of outcomes that came too late: ``System``."""

    late_replies: int


class Reply(Generic[T]):
    """The pending answer to a request. The caller gets exactly one outcome: the first.

    A handler answers with ``send`` or ``fail``, at once or (after ``Actor.defer``) later. Later
    outcomes are dropped and counted, here and in ``System.late_replies``.
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
        """The incarnation that deferred this reply and did not forward it, if any."""

    @property
    def is_settled(self) -> bool:
        """Whether the caller has its outcome, or no longer waits for one."""
        return self._outcome is not None or self._abandoned

    @property
    def is_abandoned(self) -> bool:
        """Whether the caller stopped waiting: it timed out, or was cancelled."""
        return self._abandoned

    @property
    def late(self) -> int:
        """The number of outcomes that were dropped because they came after the first."""
        return self._late

    def send(self, value: T) -> None:
        """Return ``value`` to the caller; dropped and counted if there is an outcome already."""
        self._settle(cast("outcome.Outcome[T]", outcome.Value(value)))

    def fail(self, error: Exception) -> None:
        """Raise ``error`` at the caller; dropped and counted if there is an outcome already."""
        self._settle(outcome.Error(error))

    def on_abandon(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` when the caller stops waiting without an outcome.

        Holds one callback, which must be quick and must not raise. Called at once if the caller has
        already stopped waiting.
        """
        if self._abandoned:
            callback()
        else:
            self._on_abandon = callback

    def give_up(self, error: Exception) -> None:
        """Raise ``error`` at the caller if it still waits. For the runtime."""
        if not self.is_settled:
            self._settle(outcome.Error(error))

    def expire(self, error: Exception) -> None:
        """Raise ``error`` at the caller, whose time limit has passed. For the runtime."""
        if not self.is_settled:
            self._settle(outcome.Error(error))
            self._abandon()

    async def wait(self) -> T:
        """Wait for the outcome; return the value or raise the error. Call it once.

        A cancelled wait abandons the reply.
        """
        if self._outcome is None:
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._abort)
        else:
            await trio.lowlevel.checkpoint()
        assert self._outcome is not None
        # The answering actor may keep this reply for a while, and its value can be large.
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
