"""The supervisor's decision, as tables."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import Actor, AutoShutdown, Backoff, ChildSpec, Restart, Strategy, SupervisorSpec
from actors.policy import (
    Exit,
    ExitKind,
    ForgetChild,
    GiveUp,
    RestartBudget,
    RestartChild,
    decide,
    delay_s,
    describe,
    is_restarted,
    restarted_with,
    shuts_down,
)


@attrs.frozen
class Ping:
    pass


class Idle(Actor[Ping]):
    pass


def child(restart: Restart, backoff: Backoff | None = None) -> ChildSpec:
    return ChildSpec.of("child", Idle).with_options(restart=restart, backoff=backoff or Backoff())


CRASHED, FINISHED, STOPPED = ExitKind.CRASHED, ExitKind.FINISHED, ExitKind.STOPPED


@pytest.mark.parametrize(
    ("restart", "kind", "comes_back"),
    [
        (Restart.PERMANENT, CRASHED, True),
        (Restart.PERMANENT, FINISHED, True),
        (Restart.PERMANENT, STOPPED, False),
        (Restart.TRANSIENT, CRASHED, True),
        (Restart.TRANSIENT, FINISHED, False),
        (Restart.TRANSIENT, STOPPED, False),
        (Restart.TEMPORARY, CRASHED, False),
        (Restart.TEMPORARY, FINISHED, False),
        (Restart.TEMPORARY, STOPPED, False),
    ],
)
def test_the_restart_type_decides_who_comes_back(
    restart: Restart, kind: ExitKind, comes_back: bool
) -> None:
    assert is_restarted(child(restart), Exit(kind)) is comes_back
    assert is_restarted(SupervisorSpec(name="s", restart=restart), Exit(kind)) is comes_back


@pytest.mark.parametrize(
    ("earlier", "now", "gives_up"),
    [
        ((), 0.0, False),
        ((0.0,), 1.0, False),
        ((0.0, 1.0), 2.0, True),
        ((0.0, 1.0), 4.999, True),
        ((0.0, 1.0), 5.0, False),  # the first is out of the period
        ((0.0, 0.0), 100.0, False),
    ],
)
def test_more_than_the_intensity_within_the_period_gives_up(
    earlier: tuple[float, ...], now: float, gives_up: bool
) -> None:
    budget = RestartBudget(intensity=2, period_s=5.0, times=earlier)
    decision, after = decide(child(Restart.PERMANENT), Exit(CRASHED), budget, now, 0.0)
    assert isinstance(decision, GiveUp if gives_up else RestartChild)
    assert after.times[-1] == now


def test_an_intensity_of_zero_allows_no_restart() -> None:
    budget = RestartBudget(intensity=0, period_s=5.0)
    decision, _ = decide(child(Restart.PERMANENT), Exit(CRASHED), budget, 0.0, 0.0)
    assert decision == GiveUp(1)


def test_a_child_that_does_not_come_back_costs_no_budget() -> None:
    budget = RestartBudget(intensity=0, period_s=5.0)
    decision, after = decide(child(Restart.TEMPORARY), Exit(CRASHED), budget, 0.0, 0.0)
    assert decision == ForgetChild()
    assert after is budget


@pytest.mark.parametrize(
    ("restart", "chance", "seconds"),
    [
        (1, 0.0, 0.25),  # the first is not left to chance
        (1, 0.9, 0.25),
        (2, 0.0, 1.0),
        (3, 0.0, 3.0),
        (4, 0.0, 7.0),  # 9 would be more than the most
        (3, 0.5, 2.25),
        (100_000, 0.0, 7.0),  # no overflow
    ],
)
def test_the_delay_grows_up_to_its_most_less_the_jitter(
    restart: int, chance: float, seconds: float
) -> None:
    backoff = Backoff(first_s=0.25, step_s=1.0, factor=3.0, most_s=7.0, jitter=0.5)
    assert delay_s(backoff, restart, chance) == pytest.approx(seconds)


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=40),
    st.integers(0, 5),
    st.floats(0.1, 20),
)
def test_a_period_never_sees_more_restarts_than_its_intensity(
    gaps: list[float], intensity: int, period_s: float
) -> None:
    budget, now, restarts = (
        RestartBudget(intensity=intensity, period_s=period_s),
        0.0,
        list[float](),
    )
    for gap in gaps:
        now += gap
        decision, budget = decide(child(Restart.PERMANENT), Exit(CRASHED), budget, now, 0.5)
        if isinstance(decision, GiveUp):
            break
        restarts.append(now)
        assert sum(1 for time in restarts if now - time < period_s) <= intensity


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("broken"), "ValueError: broken"),
        (ValueError("first\nsecond"), "ValueError: first"),
        (KeyError(), "KeyError"),
        (ExceptionGroup("g", [OSError("disk")]), "OSError: disk"),
        (
            ExceptionGroup("g", [ExceptionGroup("h", [OSError("a"), ValueError()]), KeyError()]),
            "OSError: a (+2 more)",
        ),
    ],
)
def test_an_error_is_described_in_one_line(error: Exception, line: str) -> None:
    assert describe(error) == line


def test_an_exit_says_its_kind_and_its_error() -> None:
    assert Exit(FINISHED).reason == "finished"
    assert Exit(CRASHED, ValueError("no")).reason == "crashed: ValueError: no"


@pytest.mark.parametrize(
    ("strategy", "crashed", "names"),
    [
        (Strategy.ONE_FOR_ONE, "b", "b"),
        (Strategy.ONE_FOR_ALL, "b", "abc"),
        (Strategy.REST_FOR_ONE, "a", "abc"),
        (Strategy.REST_FOR_ONE, "b", "bc"),
        (Strategy.REST_FOR_ONE, "c", "c"),
    ],
)
def test_the_strategy_decides_who_comes_back_together(
    strategy: Strategy, crashed: str, names: str
) -> None:
    assert tuple(restarted_with(strategy, tuple("abc"), crashed)) == tuple(names)


@pytest.mark.parametrize(
    ("when", "others", "ends"),
    [
        (AutoShutdown.NEVER, False, False),
        (AutoShutdown.ANY_SIGNIFICANT, True, True),
        (AutoShutdown.ANY_SIGNIFICANT, False, True),
        (AutoShutdown.ALL_SIGNIFICANT, True, False),
        (AutoShutdown.ALL_SIGNIFICANT, False, True),
    ],
)
@pytest.mark.parametrize("kind", ExitKind)
@pytest.mark.parametrize("significant", [True, False])
def test_a_significant_child_that_ends_by_itself_may_end_its_supervisor(
    when: AutoShutdown, others: bool, ends: bool, kind: ExitKind, significant: bool
) -> None:
    spec = ChildSpec.of("child", Idle).with_options(
        restart=Restart.TEMPORARY, significant=significant
    )
    expected = ends and significant and kind is not STOPPED
    assert shuts_down(when, spec, Exit(kind), others=others) is expected
