"""The supervisor's decision when a child has ended. Pure.

The rules are Erlang/OTP's (``supervisor``); ``supervision.py`` puts the decisions in order.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs

from actors.spec import AnySpec, AutoShutdown, Backoff, Restart, Strategy


class ExitKind(enum.Enum):
    """How an incarnation ended."""

    CRASHED = "crashed"
    """By an exception."""
    FINISHED = "finished"
    """By its own decision."""
    STOPPED = "stopped"
    """By its supervisor or by ``Ref.stop``."""


@attrs.frozen
class Exit:
    """The end of one incarnation; ``error`` is the cause of a crash."""

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
    """Restart the child, with its group, after ``delay_s`` seconds."""

    delay_s: float


@attrs.frozen
class ForgetChild:
    """Do not restart the child."""


@attrs.frozen
class GiveUp:
    """Stop all children and crash: there were too many restarts."""

    restarts: int


Decision = RestartChild | ForgetChild | GiveUp


@attrs.frozen(kw_only=True)
class RestartBudget:
    """At most ``intensity`` restarts within ``period_s`` seconds; ``times`` are the past ones."""

    intensity: int
    period_s: float
    times: tuple[float, ...] = ()

    def spend(self, now: float) -> RestartBudget:
        """Return the budget after a restart at ``now``, without times older than the period."""
        recent = tuple(time for time in self.times if now - time < self.period_s)
        return attrs.evolve(self, times=(*recent, now))

    @property
    def is_exhausted(self) -> bool:
        """Whether there were more restarts than the period allows."""
        return len(self.times) > self.intensity


def is_restarted(spec: AnySpec, ended: Exit) -> bool:
    """Return whether a child of this spec is restarted after this exit."""
    if ended.kind is ExitKind.STOPPED or spec.restart is Restart.TEMPORARY:
        return False
    return spec.restart is Restart.PERMANENT or ended.kind is ExitKind.CRASHED


def decide(
    spec: AnySpec, ended: Exit, budget: RestartBudget, now: float, chance: float
) -> tuple[Decision, RestartBudget]:
    """Return the decision about ``ended``, and the new budget. ``chance`` is in [0, 1)."""
    if not is_restarted(spec, ended):
        return ForgetChild(), budget
    spent = budget.spend(now)
    if spent.is_exhausted:
        return GiveUp(len(spent.times)), spent
    return RestartChild(delay_s(spec.backoff, len(spent.times), chance)), spent


def restarted_with(strategy: Strategy, children: Sequence[str], name: str) -> Sequence[str]:
    """Return the children that restart together with ``name``, in the order of starting."""
    match strategy:
        case Strategy.ONE_FOR_ONE:
            return (name,)
        case Strategy.REST_FOR_ONE:
            return children[children.index(name) :]
        case Strategy.ONE_FOR_ALL:
            return children


def shuts_down(when: AutoShutdown, child: AnySpec, ended: Exit, *, others: bool) -> bool:
    """Return whether a child that is not restarted ends its supervisor.

    ``others``: there are other significant children that run or will run. A child that was stopped
    on purpose does not end its supervisor.
    """
    if not child.significant or ended.kind is ExitKind.STOPPED:
        return False
    return when is AutoShutdown.ANY_SIGNIFICANT or (
        when is AutoShutdown.ALL_SIGNIFICANT and not others
    )


def delay_s(backoff: Backoff, restart: int, chance: float) -> float:
    """Return the seconds before the ``restart``-th restart (from 1) within the period."""
    if restart <= 1:
        return backoff.first_s
    try:
        grown = min(backoff.most_s, backoff.step_s * backoff.factor ** (restart - 2))
    except OverflowError:
        grown = backoff.most_s
    return grown * (1 - backoff.jitter * chance)


def describe(error: BaseException) -> str:
    """Return ``error`` in one line; of a group, its first error and the number of others."""
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
