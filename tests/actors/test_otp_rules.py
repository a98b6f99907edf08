"""The order of stops and starts, against a small model of Erlang/OTP's supervisor.

The model is sequential, as OTP's is: it ends one restart before it looks at the next exit. The
state machine is not, so that it can hear a stop meanwhile. Where every start and stop is done at
once the two must do exactly the same; where children die in the middle of a restart they must come
to the same end, having counted the same restarts.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator

import pytest

from actors import (
    AutoShutdown,
    Restart,
    Strategy,
    SupervisorSpec,
)
from actors.policy import Exit
from actors.supervision import (
    Action,
    BackoffPause,
    ChildStatus,
    EndSupervisor,
    StartChild,
    StopChild,
    Supervision,
)
from tests.actors.machines import (
    CRASH,
    EXITS,
    NAMES,
    PERIOD_S,
    PERMANENT,
    STOPPED,
    TEMPORARY,
    TRANSIENT,
    spec_of,
)

pytestmark = pytest.mark.one_python

# The model.


class OtpSupervisor:
    """What OTP's manual and source say a supervisor does, one event after the other.

    ``failing`` are the starts that fail, counted from 1; ``dying`` is a child that dies by a crash
    right after so many starts and stops.
    """

    def __init__(
        self,
        spec: SupervisorSpec,
        failing: frozenset[int] = frozenset(),
        dying: tuple[int, str] = (0, ""),
    ) -> None:
        self.spec = spec
        self.failing = failing
        self.dying = dying
        self.trace: list[str] = []
        self.order = [child.name for child in spec.children]
        self.specs = {child.name: child for child in spec.children}
        self.alive: set[str] = set()
        self.lives: dict[str, int] = dict.fromkeys(self.order, 0)
        self.exits: deque[tuple[str, int, str]] = deque()
        self.times: list[float] = []
        self.counted = 0
        self.now = 0.0
        self.over = ""
        self.starts = 0
        if self._start_all(self.order) is not None:
            self._shut_down("crashed")

    def handle(self, what: str, name: str) -> None:
        if self.over:
            return
        if what == "wait":
            self.now += PERIOD_S
        elif what == "stop":
            self._terminate(name)
            self._drop_if_temporary(name)
        elif name in self.alive:
            self.alive.discard(name)
            self.exits.append((name, self.lives[name], what))
        self._handle_exits()

    def _handle_exits(self) -> None:
        while self.exits and not self.over:
            self._handle_exit(*self.exits.popleft())

    def _handle_exit(self, name: str, life: int, what: str) -> None:
        if life != self.lives.get(name) or name not in self.order:
            return  # of a life that was taken down meanwhile
        kind = self.specs[name].restart
        if kind is Restart.PERMANENT or (kind is Restart.TRANSIENT and what == "crash"):
            self._restart(name)
            return
        self._drop_if_temporary(name)
        if self._ends_it(name):
            self._shut_down("finished")

    def _ends_it(self, name: str) -> bool:
        if not self.specs[name].significant:
            return False
        left = [each for each in self.alive if self.specs[each].significant]
        # A child whose exit is not yet handled still counts as one that is left.
        left += [each for each, _, _ in self.exits if self.specs[each].significant]
        when = self.spec.auto_shutdown
        return when is AutoShutdown.ANY_SIGNIFICANT or (
            when is AutoShutdown.ALL_SIGNIFICANT and not left
        )

    def _restart(self, name: str) -> None:
        failed: str | None = name
        while failed is not None:
            self.counted += 1
            self.times = [time for time in self.times if self.now - time < PERIOD_S] + [self.now]
            if len(self.times) > self.spec.intensity:
                self._shut_down("crashed")
                return
            failed = self._restart_once(failed)

    def _restart_once(self, name: str) -> str | None:
        if self.spec.strategy is Strategy.ONE_FOR_ONE:
            return self._start_all([name])
        rest = self.spec.strategy is Strategy.REST_FOR_ONE
        first = self.order.index(name) if rest else 0
        for each in reversed(self.order[first:]):
            self._terminate(each)
            self._drop_if_temporary(each)
        return self._start_all(self.order[first:])

    def _start_all(self, names: list[str]) -> str | None:
        """Start them in order; give the first that does not come up."""
        for name in list(names):
            self.starts += 1
            self.trace.append(f"start {name}")
            if self.starts in self.failing:
                return name
            self.alive.add(name)
            self.lives[name] += 1
            self._somebody_may_die()
        return None

    def _terminate(self, name: str) -> None:
        self.lives[name] += 1  # an exit that waits to be handled is of no interest any more
        if name in self.alive:
            self.alive.discard(name)
            self.trace.append(f"stop {name}")
            self._somebody_may_die()

    def _somebody_may_die(self) -> None:
        step, name = self.dying
        if len(self.trace) == step and name in self.alive:
            self.alive.discard(name)
            self.exits.append((name, self.lives[name], "crash"))

    def _drop_if_temporary(self, name: str) -> None:
        if name in self.order and self.specs[name].restart is TEMPORARY:
            self.order.remove(name)

    def _shut_down(self, how: str) -> None:
        for name in reversed(self.order):
            self._terminate(name)
        self.over = how


# The machine, with an environment that does at once what it is told.


class Driver:
    """Carries actions out at once and in order, and writes down the same trace as the model.

    With ``hanging`` no stop is done at once: who is to die at that step dies first, and only then
    does the child that was stopped end, like this.
    """

    def __init__(
        self,
        spec: SupervisorSpec,
        failing: frozenset[int] = frozenset(),
        dying: tuple[int, str] = (0, ""),
        hanging: Exit | None = None,
    ) -> None:
        self.machine = Supervision("s", spec)
        self.failing = failing
        self.dying = dying
        self.hanging = hanging
        self.trace: list[str] = []
        self.now = 0.0
        self.over = ""
        self.starts = 0
        self.counted = 0
        self.alive: set[str] = set()
        self._todo: deque[Action] = deque(self.machine.begin())
        self._work()

    def handle(self, what: str, name: str) -> None:
        if self.over:
            return
        if what == "wait":
            self.now += PERIOD_S
        elif what == "stop":
            self._todo.extend(self.machine.remove(name))
        elif name in self.alive:
            self._end(name, EXITS[what])
        self._work()

    def _work(self) -> None:
        while self._todo:
            self._carry_out(self._todo.popleft())

    def _carry_out(self, action: Action) -> None:
        match action:
            case StartChild(name):
                self._start(name)
            case StopChild(name) if name in self.alive:
                self.trace.append(f"stop {name}")
                self._stop(name)
            case BackoffPause(ticket, _):
                self._todo.extend(self.machine.pause_over(ticket))
            case EndSupervisor(ended):
                self.over = ended.kind.value

    def _stop(self, name: str) -> None:
        if self.hanging is None:
            self._end(name, STOPPED)
            self._somebody_may_die()
        else:
            self._somebody_may_die()
            if name in self.alive:
                self._end(name, self.hanging)

    def _start(self, name: str) -> None:
        self.starts += 1
        self.trace.append(f"start {name}")
        self.alive.add(name)
        if self.starts in self.failing:
            self._end(name, CRASH)
        else:
            self._todo.extend(self.machine.started(name))
            self._somebody_may_die()

    def _end(self, name: str, ended: Exit) -> None:
        self.alive.discard(name)
        before = self.machine.restarts
        self._todo.extend(self.machine.ended(name, ended, self.now, 0.0))
        self.counted += self.machine.restarts > before

    def _somebody_may_die(self) -> None:
        step, name = self.dying
        is_up = self.machine.status(name) in (ChildStatus.RUNNING, ChildStatus.STOPPING)
        if len(self.trace) == step and name in self.alive and is_up:
            self._end(name, CRASH)


EVENTS = [("wait", ""), *itertools.product(("crash", "finish", "stop"), NAMES)]


def scripts(length: int) -> Iterator[tuple[tuple[str, str], ...]]:
    return itertools.product(EVENTS, repeat=length)


def assert_same(spec: SupervisorSpec, script: Iterable[tuple[str, str]], *failing: int) -> None:
    model, machine = (each(spec, frozenset(failing)) for each in (OtpSupervisor, Driver))
    for event in script:
        model.handle(*event)
        machine.handle(*event)
    assert machine.trace == model.trace, (spec, script, failing)
    assert (machine.over, machine.alive) == (model.over, model.alive), (spec, script, failing)


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("types", list(itertools.product(Restart, repeat=3)))
def test_every_two_events_do_what_otp_does(types: tuple[Restart, ...], strategy: Strategy) -> None:
    for intensity, script in itertools.product((0, 1, 2), scripts(2)):
        assert_same(spec_of(types, strategy, intensity=intensity), script)


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize(
    "types",
    [(PERMANENT, PERMANENT, PERMANENT), (PERMANENT, TRANSIENT, TEMPORARY)],
)
def test_every_three_events_do_what_otp_does(
    types: tuple[Restart, ...], strategy: Strategy
) -> None:
    for script in scripts(3):
        assert_same(spec_of(types, strategy), script)


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize(
    "types",
    [(PERMANENT, PERMANENT, PERMANENT), (TRANSIENT, TEMPORARY, PERMANENT)],
)
def test_every_one_or_two_failing_starts_do_what_otp_does(
    types: tuple[Restart, ...], strategy: Strategy
) -> None:
    spec = spec_of(types, strategy, intensity=3)
    for script in scripts(2):
        for failing in itertools.combinations_with_replacement(range(1, 9), 2):
            assert_same(spec, script, *failing)


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("when", [AutoShutdown.ANY_SIGNIFICANT, AutoShutdown.ALL_SIGNIFICANT])
@pytest.mark.parametrize("significant", ["a", "c", "ab", "bc", "abc"])
def test_significant_children_end_their_supervisor_as_in_otp(
    significant: str, when: AutoShutdown, strategy: Strategy
) -> None:
    for types in itertools.product((TRANSIENT, TEMPORARY), repeat=3):
        spec = spec_of(types, strategy, significant=significant, auto_shutdown=when)
        for script in scripts(2):
            assert_same(spec, script)


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("types", list(itertools.product(Restart, repeat=3)))
def test_a_child_that_dies_in_the_middle_of_a_restart_leads_where_it_does_in_otp(
    types: tuple[Restart, ...], strategy: Strategy
) -> None:
    for intensity, first, second, step in itertools.product((1, 3), NAMES, NAMES, range(4, 10)):
        spec = spec_of(types, strategy, intensity=intensity)
        model, machine = (each(spec, dying=(step, second)) for each in (OtpSupervisor, Driver))
        model.handle("crash", first)
        machine.handle("crash", first)
        case = (intensity, first, second, step)
        assert (machine.over, machine.alive) == (model.over, model.alive), case
        assert machine.counted == model.counted, case


@pytest.mark.parametrize("hanging", [STOPPED, CRASH], ids=["cut", "crashes"])
@pytest.mark.parametrize("strategy", [Strategy.ONE_FOR_ALL, Strategy.REST_FOR_ONE])
@pytest.mark.parametrize("types", list(itertools.product(Restart, repeat=3)))
def test_a_stop_that_hangs_leads_where_it_does_in_otp_whoever_dies_meanwhile(
    types: tuple[Restart, ...], strategy: Strategy, hanging: Exit
) -> None:
    """OTP waits for the one that hangs and looks at the other only then."""
    for intensity, first, second, step in itertools.product((1, 3), NAMES, NAMES, range(4, 10)):
        spec = spec_of(types, strategy, intensity=intensity)
        model = OtpSupervisor(spec, dying=(step, second))
        machine = Driver(spec, dying=(step, second), hanging=hanging)
        model.handle("crash", first)
        machine.handle("crash", first)
        case = (intensity, first, second, step)
        assert (machine.over, machine.alive) == (model.over, model.alive), case
        assert machine.counted == model.counted, case


# Escalation.


Kind = Callable[[SupervisorSpec], OtpSupervisor | Driver]


class TwoLevels:
    """A supervisor whose child ``b`` is another one: when that gives up, it is a crash of ``b``."""

    def __init__(self, kind: Kind, top: SupervisorSpec, low: SupervisorSpec) -> None:
        self._kind = kind
        self._low_spec = low
        self.top = kind(top)
        self.low = kind(low)
        self.traces = [self.low.trace]

    def handle(self, level: str, what: str, name: str) -> None:
        if level == "low":
            if self._gives_up(what, name):
                self.top.handle("crash", "b")
        else:
            if what == "wait":
                self.low.handle(what, name)
            self.top.handle(what, name)
        if self.top.trace.count("start b") > len(self.traces):
            self.low = self._kind(self._low_spec)
            self.traces.append(self.low.trace)

    def _gives_up(self, what: str, name: str) -> bool:
        """Whether the lower one, if it is there, does so at this event."""
        if "b" not in self.top.alive:
            return False
        self.low.handle(what, name)
        return bool(self.low.over)


KINDS: tuple[Kind, ...] = (OtpSupervisor, Driver)
LEVELS = [("both", "wait", ""), ("low", "crash", "a"), ("low", "crash", "b"), ("top", "crash", "a")]


@pytest.mark.parametrize("low", Strategy)
@pytest.mark.parametrize("top", Strategy)
@pytest.mark.parametrize("intensities", [(0, 1), (1, 0), (1, 1)])
def test_escalation_through_two_levels_does_what_otp_does(
    intensities: tuple[int, int], top: Strategy, low: Strategy
) -> None:
    upper = spec_of([PERMANENT] * 3, top, intensity=intensities[0])
    lower = spec_of([PERMANENT] * 2, low, intensity=intensities[1])
    ends: Counter[str] = Counter()
    for script in itertools.product(LEVELS, repeat=4):
        model, machine = (TwoLevels(kind, upper, lower) for kind in KINDS)
        for event in script:
            model.handle(*event)
            machine.handle(*event)
        assert machine.traces == model.traces, script
        assert (machine.top.trace, machine.top.over) == (model.top.trace, model.top.over), script
        ends[machine.top.over] += 1
        ends["escalated once"] += len(machine.traces) > 1
    assert ends["crashed"] > 10
    assert ends[""] > 10
    assert intensities[0] == 0 or ends["escalated once"] > 10
