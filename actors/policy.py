"""The supervisor's decision when a child has ended. Pure.

The rules are Erlang/OTP's (``supervisor``); ``supervision.py`` puts the decisions in order.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs

from actors.spec import AnySpec, AutoShutdown, Backoff, Restart, Strategy


class ExitKind(enum.Enum):
    """How a life ended."""

    CRASHED = "crashed"
    """Something in it raised."""
    FINISHED = "finished"
    """It ended of its own will."""
    STOPPED = "stopped"
    """Its supervisor stopped it."""


@attrs.frozen
class Exit:
    """The end of one life; ``error`` is what crashed it."""

    kind: ExitKind
    error: Exception | None = None

    @property
    def reason(self) -> str:
        """One line for people."""
        if self.error is None:
            return self.kind.value
        return f"{self.kind.value}: {describe(self.error)}"


@attrs.frozen
class RestartChild:
    """Start the child, and who comes back with it, again after ``delay_s`` seconds."""

    delay_s: float


@attrs.frozen
class ForgetChild:
    """The child is gone for good."""


@attrs.frozen
class GiveUp:
    """Too many restarts: stop everything and crash."""

    restarts: int


Decision = RestartChild | ForgetChild | GiveUp


@attrs.frozen(kw_only=True)
class Budget:
    """At most ``intensity`` restarts within ``period_s`` seconds; ``times`` are those so far."""

    intensity: int
    period_s: float
    times: tuple[float, ...] = ()

    def spend(self, now: float) -> Budget:
        """The budget after one more restart at ``now``; times out of the period are forgotten."""
        recent = tuple(time for time in self.times if now - time < self.period_s)
        return attrs.evolve(self, times=(*recent, now))

    @property
    def is_exhausted(self) -> bool:
        """Whether more restarts were made than the period allows."""
        return len(self.times) > self.intensity


def is_restarted(spec: AnySpec, ended: Exit) -> bool:
    """Whether a child of this spec comes back after this exit."""
    if ended.kind is ExitKind.STOPPED or spec.restart is Restart.TEMPORARY:
        return False
    return spec.restart is Restart.PERMANENT or ended.kind is ExitKind.CRASHED


def decide(
    spec: AnySpec, ended: Exit, budget: Budget, now: float, chance: float
) -> tuple[Decision, Budget]:
    """What to do about ``ended``, and the budget after it. ``chance`` is in [0, 1)."""
    if not is_restarted(spec, ended):
        return ForgetChild(), budget
    spent = budget.spend(now)
    if spent.is_exhausted:
        return GiveUp(len(spent.times)), spent
    return RestartChild(delay_s(spec.backoff, len(spent.times), chance)), spent


def restarted_with(strategy: Strategy, children: Sequence[str], name: str) -> Sequence[str]:
    """Which of ``children``, in the order of starting, start again together with ``name``."""
    match strategy:
        case Strategy.ONE_FOR_ONE:
            return (name,)
        case Strategy.REST_FOR_ONE:
            return children[children.index(name) :]
        case Strategy.ONE_FOR_ALL:
            return children


def shuts_down(when: AutoShutdown, child: AnySpec, ended: Exit, *, others: bool) -> bool:
    """Whether a child that will not come back takes its supervisor along.

    ``others`` says whether there are other significant children, running or about to. A child that
    somebody stopped takes nobody along.
    """
    if not child.significant or ended.kind is ExitKind.STOPPED:
        return False
    return when is AutoShutdown.ANY_SIGNIFICANT or (
        when is AutoShutdown.ALL_SIGNIFICANT and not others
    )


def delay_s(backoff: Backoff, restart: int, chance: float) -> float:
    """Seconds before the ``restart``-th restart (1 is the first) within the period."""
    if restart <= 1:
        return backoff.first_s
    try:
        grown = min(backoff.most_s, backoff.step_s * backoff.factor ** (restart - 2))
    except OverflowError:
        grown = backoff.most_s
    return grown * (1 - backoff.jitter * chance)


def describe(error: BaseException) -> str:
    """``error`` in one line; of a group, its first leaf and how many more there are."""
    if isinstance(error, BaseExceptionGroup):
        leaves = list(_leaves(error))
        more = f" (+{len(leaves) - 1} more)" if len(leaves) > 1 else ""
        return describe(leaves[0]) + more
    text = str(error).strip().split("\n", 1)[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return found
