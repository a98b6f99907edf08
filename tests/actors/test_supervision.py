"""The order of stops and starts: escalation, stops that hang, pauses, and everything at random.

``test_otp_rules.py`` holds it against a model of Erlang/OTP's supervisor.
"""

from __future__ import annotations

import itertools

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors import (
    AutoShutdown,
    Restart,
    RestartsExhausted,
    StartFailed,
    Strategy,
)
from actors.supervision import (
    Action,
    BackoffPause,
    ChildStatus,
    EndIncarnation,
    EndSupervisor,
    RemoveChild,
    StartChild,
    StopChild,
    Supervision,
    Up,
)
from tests.actors.machines import (
    CRASH,
    EXITS,
    NAMES,
    PERMANENT,
    STOPPED,
    TRANSIENT,
    spec_of,
)

# Escalation.


@pytest.mark.parametrize("intensities", list(itertools.product((0, 1, 2), repeat=3)))
def test_each_level_multiplies_the_crashes_that_are_borne(
    intensities: tuple[int, int, int],
) -> None:
    borne = 0
    lowest, middle, top = intensities
    levels = {"top": top, "middle": middle, "lowest": lowest}
    machines = {name: begun(name, most) for name, most in levels.items()}
    while not machines["top"].is_ending:
        borne += 1
        crash_lowest(machines, levels)
    assert borne == (lowest + 1) * (middle + 1) * (top + 1)


def begun(name: str, intensity: int) -> Supervision:
    """A machine with one child ``a``, up."""
    machine = Supervision(name, spec_of([PERMANENT], Strategy.ONE_FOR_ONE, intensity=intensity))
    machine.begin()
    machine.started("a")
    return machine


def crash_lowest(machines: dict[str, Supervision], levels: dict[str, int]) -> None:
    """The lowest child crashes; a supervisor that gives up is a crash of the next level's child."""
    ended = CRASH
    for name in reversed(machines):
        actions = machines[name].ended("a", ended, 0.0, 0.0)
        if StartChild("a") in actions:
            machines[name].started("a")
            return
        (end,) = (action for action in actions if isinstance(action, EndSupervisor))
        assert isinstance(end.ended.error, RestartsExhausted)
        ended = end.ended
        if name != "top":
            machines[name] = begun(name, levels[name])


# A stop that hangs, pauses, and what comes meanwhile.


def up(strategy: Strategy, delay_s: float = 0.0) -> Supervision:
    """Three permanent children, up."""
    machine = Supervision("s", spec_of([PERMANENT] * 3, strategy, delay_s=delay_s))
    actions = machine.begin()
    for name in NAMES:
        assert actions == [StartChild(name)]
        actions = machine.started(name)
    assert actions == [Up()]
    return machine


def crash(machine: Supervision, name: str) -> list[Action]:
    return machine.ended(name, CRASH, 0.0, 0.0)


def stopped(machine: Supervision, name: str) -> list[Action]:
    return machine.ended(name, STOPPED, 0.0, 0.0)


def test_a_restart_waits_for_a_stop_that_hangs_but_hears_a_stop_of_all() -> None:
    machine = up(Strategy.ONE_FOR_ALL)
    assert crash(machine, "b") == [EndIncarnation("b", CRASH), StopChild("c")]
    assert machine.stop() == []  # c is already being stopped
    assert stopped(machine, "c") == [EndIncarnation("c", STOPPED), StopChild("a")]
    assert stopped(machine, "a") == [EndIncarnation("a", STOPPED), EndSupervisor(STOPPED)]


def test_a_child_whose_stop_hangs_can_be_stopped_for_good() -> None:
    machine = up(Strategy.REST_FOR_ONE)
    assert crash(machine, "b") == [EndIncarnation("b", CRASH), StopChild("c")]
    assert machine.remove("c") == []
    assert stopped(machine, "c") == [RemoveChild("c", STOPPED), StartChild("b")]
    assert machine.started("b") == []
    assert machine.status("c") is ChildStatus.GONE


def test_a_child_that_waits_for_its_group_can_be_stopped_for_good() -> None:
    machine = up(Strategy.ONE_FOR_ALL)
    crash(machine, "a")
    stopped(machine, "c")
    assert machine.remove("c") == [RemoveChild("c", STOPPED)]
    assert stopped(machine, "b") == [EndIncarnation("b", STOPPED), StartChild("a")]
    assert machine.started("a") == [StartChild("b")]
    assert machine.started("b") == []


def test_a_sibling_that_crashes_while_another_hangs_is_one_restart() -> None:
    machine = up(Strategy.ONE_FOR_ALL)
    crash(machine, "b")
    assert crash(machine, "a") == [EndIncarnation("a", CRASH)]
    assert stopped(machine, "c") == [EndIncarnation("c", STOPPED), StartChild("a")]
    assert machine.restarts == 1


def test_an_earlier_sibling_that_crashes_meanwhile_widens_the_group() -> None:
    machine = up(Strategy.REST_FOR_ONE)
    assert crash(machine, "b") == [EndIncarnation("b", CRASH), StopChild("c")]
    assert crash(machine, "a") == [EndIncarnation("a", CRASH)]
    assert machine.restarts == 2
    assert stopped(machine, "c") == [EndIncarnation("c", STOPPED), StartChild("a")]
    assert machine.started("a") == [StartChild("b")]
    assert machine.started("b") == [StartChild("c")]


def test_a_group_pauses_after_all_are_down_and_an_outdated_pause_is_ignored() -> None:
    machine = up(Strategy.REST_FOR_ONE, delay_s=1.0)
    assert crash(machine, "c") == [EndIncarnation("c", CRASH), BackoffPause(1, 1.0)]
    assert crash(machine, "b") == [EndIncarnation("b", CRASH), BackoffPause(2, 1.0)]
    assert machine.pause_over(1) == []
    assert machine.pause_over(2) == [StartChild("b")]
    assert machine.pause_over(2) == []


def test_a_restart_that_fails_stops_what_the_group_had_started() -> None:
    machine = up(Strategy.ONE_FOR_ALL)
    crash(machine, "a")
    stopped(machine, "c")
    stopped(machine, "b")
    assert machine.started("a") == [StartChild("b")]
    assert crash(machine, "b") == [EndIncarnation("b", CRASH), StopChild("a")]
    assert stopped(machine, "a") == [EndIncarnation("a", STOPPED), StartChild("a")]
    assert machine.restarts == 2


def test_a_child_that_is_starting_is_stopped_with_its_group() -> None:
    machine = up(Strategy.ONE_FOR_ALL)
    crash(machine, "a")
    stopped(machine, "c")
    stopped(machine, "b")
    machine.started("a")
    assert crash(machine, "a") == [EndIncarnation("a", CRASH), StopChild("b")]
    assert machine.started("b") == []  # its set-up came to an end; the stop is still on its way
    assert stopped(machine, "b") == [EndIncarnation("b", STOPPED), StartChild("a")]


def test_one_for_one_children_restart_apart_from_each_other() -> None:
    machine = up(Strategy.ONE_FOR_ONE, delay_s=1.0)
    assert crash(machine, "a") == [EndIncarnation("a", CRASH), BackoffPause(1, 1.0)]
    assert crash(machine, "b") == [EndIncarnation("b", CRASH), BackoffPause(2, 1.0)]
    assert machine.pause_over(2) == [StartChild("b")]
    assert machine.remove("a") == [RemoveChild("a", STOPPED)]
    assert machine.pause_over(1) == []


def test_a_stop_during_a_pause_starts_nothing() -> None:
    for strategy in Strategy:
        machine = up(strategy, delay_s=1.0)
        actions = crash(machine, "c")
        for name in ("b", "a") if strategy is Strategy.ONE_FOR_ALL else ():
            actions = stopped(machine, name)
        assert actions[-1] == BackoffPause(1, 1.0)
        actions = machine.stop()
        while actions != [EndSupervisor(STOPPED)]:
            (stop,) = (action for action in actions if isinstance(action, StopChild))
            actions = stopped(machine, stop.name)[1:]
        assert machine.pause_over(1) == []


def test_a_first_start_that_fails_while_another_child_crashed_ends_the_supervisor() -> None:
    machine = Supervision("s", spec_of([PERMANENT] * 2, Strategy.ONE_FOR_ONE))
    machine.begin()
    machine.started("a")
    assert crash(machine, "a") == [EndIncarnation("a", CRASH), StartChild("a")]
    assert crash(machine, "b") == [EndIncarnation("b", CRASH), StopChild("a")]
    _, end = stopped(machine, "a")
    assert isinstance(end, EndSupervisor)
    assert isinstance(end.ended.error, StartFailed)


def test_the_first_reason_to_end_is_the_one_that_counts() -> None:
    machine = up(Strategy.ONE_FOR_ONE)
    assert machine.stop() == [StopChild("c")]
    assert crash(machine, "a") == [EndIncarnation("a", CRASH)]
    assert crash(machine, "c") == [EndIncarnation("c", CRASH), StopChild("b")]
    assert machine.started("b") == []
    assert stopped(machine, "b") == [EndIncarnation("b", STOPPED), EndSupervisor(STOPPED)]
    assert machine.stop() == []


def test_a_significant_child_that_waits_for_its_restart_is_one_that_is_left() -> None:
    spec = spec_of(
        [TRANSIENT] * 2,
        Strategy.ONE_FOR_ONE,
        significant="ab",
        auto_shutdown=AutoShutdown.ALL_SIGNIFICANT,
        delay_s=1.0,
    )
    machine = Supervision("s", spec)
    machine.begin()
    machine.started("a")
    machine.started("b")
    finished = EXITS["finish"]
    assert crash(machine, "a") == [EndIncarnation("a", CRASH), BackoffPause(1, 1.0)]
    assert machine.ended("b", finished, 0.0, 0.0) == [RemoveChild("b", finished)]
    assert machine.pause_over(1) == [StartChild("a")]
    machine.started("a")
    assert machine.ended("a", finished, 0.0, 0.0) == [
        RemoveChild("a", finished),
        EndSupervisor(finished),
    ]


def test_a_child_stopped_before_its_first_start_fails_later_like_a_restart() -> None:
    machine = Supervision("s", spec_of([PERMANENT] * 2, Strategy.ONE_FOR_ALL))
    machine.begin()
    assert machine.remove("b") == [RemoveChild("b", STOPPED)]
    assert machine.started("a") == [Up()]
    assert crash(machine, "a") == [EndIncarnation("a", CRASH), StartChild("a")]
    assert machine.started("a") == [StartChild("b")]
    assert crash(machine, "b") == [EndIncarnation("b", CRASH), StopChild("a")]
    assert not machine.is_ending


# At random: whatever happens in whatever order.


@attrs.define
class World:
    """Children that start, stop and die when the script says so; checks every action."""

    machine: Supervision
    alive: dict[str, str] = attrs.field(factory=dict)
    pauses: list[int] = attrs.field(factory=list)
    is_over: bool = False

    def carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            assert not self.is_over
            match action:
                case StartChild(name):
                    assert name not in self.alive
                    assert not self.machine.is_ending
                    self.alive[name] = "starting"
                case StopChild(name):
                    assert self.alive[name] in ("starting", "running")
                    self.alive[name] = "stopping"
                case BackoffPause(ticket, _):
                    self.pauses.append(ticket)
                case EndSupervisor():
                    assert self.alive == {}
                    self.is_over = True

    def step(self, what: str, choice: int) -> None:
        names = sorted(self.alive)
        if what == "stop all":
            self.carry_out(self.machine.stop())
        elif what == "remove":
            self.carry_out(self.machine.remove(NAMES[choice % 3]))
        elif what == "pause over":
            if self.pauses:
                ticket = self.pauses.pop(choice % len(self.pauses))
                self.carry_out(self.machine.pause_over(ticket))
        elif names:
            self._of_child(what, names[choice % len(names)])

    def _of_child(self, what: str, name: str) -> None:
        state = self.alive[name]
        if what == "started":
            if state == "starting":
                self.alive[name] = "running"
                self.carry_out(self.machine.started(name))
            return
        if what == "stopped" and state != "stopping":
            return
        if what == "finish" and state == "starting":
            return
        del self.alive[name]
        ended = STOPPED if what == "stopped" else EXITS[what]
        self.carry_out(self.machine.ended(name, ended, 0.0, 0.5))

    def settle(self) -> None:
        """Let everything that is under way come to its end, well."""
        while self.pauses or set(self.alive.values()) & {"starting", "stopping"}:
            for choice in range(3):
                self.step("pause over", choice)
                self.step("started", choice)
                self.step("stopped", choice)


STEPS = st.tuples(
    st.sampled_from(
        ["crash"] * 3 + ["started"] * 3 + ["finish", "stopped", "pause over", "remove", "stop all"]
    ),
    st.integers(0, 2),
)


@given(
    st.lists(STEPS, max_size=30),
    st.tuples(*[st.sampled_from(Restart)] * 3),
    st.sampled_from(Strategy),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([2, 20]),
)
@settings(max_examples=600, deadline=None)
def test_whatever_happens_nothing_is_left_half_done(
    script: list[tuple[str, int]],
    types: tuple[Restart, ...],
    strategy: Strategy,
    delay_s: float,
    intensity: int,
) -> None:
    machine = Supervision("s", spec_of(types, strategy, delay_s=delay_s, intensity=intensity))
    world = World(machine)
    world.carry_out(machine.begin())
    for step in script:
        world.step(*step)
    world.settle()
    running = {name for name in NAMES if machine.status(name) is ChildStatus.RUNNING}
    assert set(world.alive) == running
    assert world.is_over is machine.is_ending
    assert {machine.status(name) for name in NAMES} <= (
        {ChildStatus.DOWN, ChildStatus.GONE}
        if world.is_over
        else {ChildStatus.RUNNING, ChildStatus.GONE}
    )
