"""Specs and exits for tests of the state machine of a supervisor: nothing of it lives."""

from __future__ import annotations

from collections.abc import Iterable

from actors import Actor, AutoShutdown, Backoff, ChildSpec, Restart, Strategy, SupervisorSpec
from actors.policy import Exit, ExitKind

PERMANENT, TRANSIENT, TEMPORARY = Restart.PERMANENT, Restart.TRANSIENT, Restart.TEMPORARY
NAMES = "abc"
CRASH = Exit(ExitKind.CRASHED, ValueError("made to order"))
EXITS = {"crash": CRASH, "finish": Exit(ExitKind.FINISHED)}
STOPPED = Exit(ExitKind.STOPPED)
PERIOD_S = 5.0


class Idle(Actor[None]):
    """Never started."""


def spec_of(
    types: Iterable[Restart],
    strategy: Strategy,
    *,
    intensity: int = 2,
    significant: str = "",
    auto_shutdown: AutoShutdown = AutoShutdown.NEVER,
    delay_s: float = 0.0,
) -> SupervisorSpec:
    """Supervisor ``s`` with children ``a``, ``b``, ``c`` of these restart types, as many as given.

    ``significant`` are the names of those that are.
    """
    backoff = Backoff(first_s=delay_s, step_s=delay_s, jitter=0)
    children = tuple(
        ChildSpec.of(name, Idle).with_options(
            restart=each, backoff=backoff, significant=name in significant
        )
        for name, each in zip(NAMES, types, strict=False)
    )
    return SupervisorSpec(
        name="s",
        children=children,
        strategy=strategy,
        auto_shutdown=auto_shutdown,
        intensity=intensity,
        period_s=PERIOD_S,
    )
