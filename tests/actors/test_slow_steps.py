"""Rule 5: a step that blocks the loop is told of; with debugging, where it was."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterator

import attrs
import pytest
import trio
import trio.testing

from actors import (
    SLOW_STEP_S,
    Actor,
    ChildSpec,
    Request,
    SlowStep,
    SupervisorSpec,
    System,
    open_system,
    slow_steps,
)
from actors.simulate import Simulation, simulate

GUARD_S = 60.0
WATCHDOG = "actors-watchdog"


class Stopwatch:
    """Real time as the runtime sees it: it stands still unless ``block`` moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def block(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def stopwatch(monkeypatch: pytest.MonkeyPatch) -> Stopwatch:
    made = Stopwatch()
    monkeypatch.setattr(slow_steps, "perf_counter", made)
    return made


@attrs.frozen
class Do(Request[str]):
    """Block in a handler, or in a helper task; or crash after it, or wait in between."""

    how: str = "handler"


class Blocker(Actor[Do]):
    """Blocks the loop where it is told to."""

    def __init__(self, block: Callable[[], None], where: str = "") -> None:
        self._block = block
        self._where = where

    async def setup(self) -> None:
        if self._where == "setup":
            self._block()

    async def teardown(self) -> None:
        if self._where == "teardown":
            self._block()

    async def receive(self, message: Do) -> None:
        match message.how:
            case "handler":
                self._block()
            case "helper":
                await self.context.start(self._help)
            case "crash":
                self._block()
                raise ValueError("made to order")
            case "wait in between":
                self._block()
                await trio.lowlevel.checkpoint()
                self._block()
        self.reply(message, "done")

    async def _help(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        self._block()
        task_status.started()


def family(block: Callable[[], None], where: str = "", name: str = "root") -> SupervisorSpec:
    inner = SupervisorSpec(
        name="inner", children=(ChildSpec.of("a", Blocker, block=block, where=where),)
    )
    return SupervisorSpec(name=name, children=(inner,))


async def use(system: System, how: str) -> None:
    if how == "crash":
        system.ref("root/inner/a").tell(Do(how))
        await trio.testing.wait_all_tasks_blocked()
    elif how:
        await system.ref("root/inner/a").ask(Do(how))


@pytest.mark.parametrize("where", ["setup", "teardown", "handler", "helper", "crash"])
async def test_a_step_that_blocks_the_loop_is_told_with_its_actor_its_task_and_how_long(
    where: str, stopwatch: Stopwatch
) -> None:
    told: list[SlowStep] = []
    spec = family(lambda: stopwatch.block(0.25), where)
    async with open_system(spec, on_slow_step=told.append) as system:
        await use(system, where if where in ("handler", "helper", "crash") else "")
    (step,) = told
    assert step.path == "root/inner/a"
    assert step.task.endswith("Blocker._help" if where == "helper" else "root/inner/a")
    assert step.duration_s == pytest.approx(0.25)
    assert step.stack == ""


@pytest.mark.parametrize(
    ("how", "block_s", "told_of"),
    [
        ("handler", SLOW_STEP_S + 0.001, 1),
        ("handler", SLOW_STEP_S - 0.001, 0),
        # Two steps, each within its time; and two that are both too long.
        ("wait in between", SLOW_STEP_S - 0.001, 0),
        ("wait in between", SLOW_STEP_S + 0.001, 2),
    ],
)
async def test_only_a_step_longer_than_a_tenth_of_a_second_is_slow(
    how: str, block_s: float, told_of: int, stopwatch: Stopwatch
) -> None:
    told: list[SlowStep] = []
    spec = family(lambda: stopwatch.block(block_s))
    async with open_system(spec, on_slow_step=told.append) as system:
        await use(system, how)
    assert SLOW_STEP_S == 0.1
    assert len(told) == told_of


async def test_waiting_is_no_step_however_long(
    stopwatch: Stopwatch, autojump_clock: trio.testing.MockClock
) -> None:
    told: list[SlowStep] = []
    spec = family(lambda: stopwatch.block(1.0))
    async with open_system(spec, on_slow_step=told.append) as system:
        await trio.sleep(3600)  # on Trio's clock, which is not what is looked at
        assert told == []
        await use(system, "handler")
    assert [step.duration_s for step in told] == [1.0]


async def test_a_step_of_a_supervisor_is_told_with_its_path(stopwatch: Stopwatch) -> None:
    told: list[SlowStep] = []
    async with open_system(
        family(lambda: None),
        observer=lambda event: stopwatch.block(0.2 * (event.path == "root/inner/a")),
        on_slow_step=told.append,
    ):
        pass
    assert [step.path for step in told] == ["root/inner"]


async def test_who_blocks_the_loop_from_outside_the_tree_is_told_without_a_path(
    stopwatch: Stopwatch,
) -> None:
    told: list[SlowStep] = []
    spec = family(lambda: None)
    async with open_system(spec, on_slow_step=told.append):
        stopwatch.block(0.5)
        await trio.lowlevel.checkpoint()
    assert [(step.path, step.duration_s) for step in told] == [("", 0.5)]


async def test_a_system_beside_another_hears_of_its_steps_without_their_paths(
    stopwatch: Stopwatch,
) -> None:
    told: dict[str, list[SlowStep]] = {"first": [], "second": []}
    spec = family(lambda: stopwatch.block(0.2))  # the same names in both
    async with (
        open_system(spec, on_slow_step=told["first"].append) as system,
        open_system(spec, on_slow_step=told["second"].append),
    ):
        await use(system, "handler")
    assert [step.path for step in told["first"]] == ["root/inner/a"]
    assert [step.path for step in told["second"]] == [""]


@pytest.fixture
def instruments(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many instruments were added and removed."""
    counts = {"added": 0, "removed": 0}

    def counted(kind: str, real: Callable[[object], None], instrument: object) -> None:
        counts[kind] += 1
        real(instrument)

    for kind, name in (("added", "add_instrument"), ("removed", "remove_instrument")):
        real = getattr(trio.lowlevel, name)
        monkeypatch.setattr(trio.lowlevel, name, functools.partial(counted, kind, real))
    return counts


@pytest.mark.parametrize("is_heard", [True, False])
async def test_steps_are_watched_only_where_somebody_hears_and_only_until_the_end(
    is_heard: bool, instruments: dict[str, int]
) -> None:
    async with open_system(family(lambda: None), on_slow_step=print if is_heard else None):
        assert instruments == {"added": int(is_heard), "removed": 0}
    assert instruments == {"added": int(is_heard), "removed": int(is_heard)}


async def test_a_report_that_raises_ends_the_watch_and_nothing_else(
    stopwatch: Stopwatch, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[SlowStep] = []

    def report(step: SlowStep) -> None:
        told.append(step)
        raise ValueError("made to order")

    spec = family(lambda: stopwatch.block(0.2))
    with caplog.at_level(logging.ERROR):
        async with open_system(spec, on_slow_step=report) as system:
            for _ in range(2):
                await use(system, "handler")
    assert len(told) == 1
    assert "after_task_step" in caplog.text  # Trio's own words: it has disabled the watch


def test_a_simulated_run_does_not_look_at_real_time(
    stopwatch: Stopwatch, instruments: dict[str, int]
) -> None:
    async def play(simulation: Simulation, block_s: float) -> None:
        async with simulation.open_system(family(lambda: stopwatch.block(block_s))) as system:
            await use(system, "wait in between")

    fast, slow = (simulate(functools.partial(play, block_s=s), seed=3).trace for s in (0.0, 9.0))
    assert stopwatch.now == 1018
    assert slow == fast
    assert instruments["added"] == 0


# With debugging.


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Set when the watchdog has seen a stack."""
    event = threading.Event()
    see = slow_steps._Watchdog._see

    def see_and_say(self: slow_steps._Watchdog, began: float) -> None:
        see(self, began)
        event.set()

    monkeypatch.setattr(slow_steps._Watchdog, "_see", see_and_say)
    yield event
    assert event.is_set()


def block_until(seen: threading.Event) -> None:
    seen.clear()  # a machine under load has other slow steps
    assert seen.wait(GUARD_S)


def deep(levels: int, seen: threading.Event) -> None:
    if levels:
        deep(levels - 1, seen)
    else:
        block_until(seen)


async def test_with_debugging_the_stack_shows_where_the_step_was(seen: threading.Event) -> None:
    told: list[SlowStep] = []
    spec = family(lambda: block_until(seen))
    async with open_system(spec, on_slow_step=told.append, debug=True) as system:
        await use(system, "handler")
    step = next(step for step in told if step.stack)
    assert step.path == "root/inner/a"
    assert step.duration_s >= SLOW_STEP_S
    assert "in receive\n    self._block()" in step.stack
    assert "in block_until\n    assert seen.wait(GUARD_S)" in step.stack
    assert "unrolled_run" not in step.stack  # Trio's loop and who runs it say nothing


async def test_of_a_deep_stack_the_innermost_calls_are_shown(seen: threading.Event) -> None:
    told: list[SlowStep] = []
    spec = family(lambda: deep(200, seen))
    async with open_system(spec, on_slow_step=told.append, debug=True) as system:
        await use(system, "handler")
    stack = next(step.stack for step in told if step.stack)
    assert "in block_until" in stack
    assert "in receive" not in stack
    assert len(stack.splitlines()) <= 2 * slow_steps.FRAMES_SHOWN


async def test_a_step_that_ends_while_it_is_looked_at_has_no_stack(
    monkeypatch: pytest.MonkeyPatch, seen: threading.Event
) -> None:
    """What was seen may be of the next step already: rather none than that of another."""
    stack_of = slow_steps._stack_of
    told: list[SlowStep] = []
    watches: list[slow_steps._StepWatch] = []
    add = trio.lowlevel.add_instrument

    def add_and_keep(watch: slow_steps._StepWatch) -> None:
        watches.append(watch)
        add(watch)

    monkeypatch.setattr(trio.lowlevel, "add_instrument", add_and_keep)

    def overtaken(frame: object) -> object:
        watches[0].began += 1e-6  # another step has begun
        return stack_of(frame)  # type: ignore[arg-type]

    monkeypatch.setattr(slow_steps, "_stack_of", overtaken)
    spec = family(lambda: block_until(seen))
    async with open_system(spec, on_slow_step=told.append, debug=True) as system:
        await use(system, "handler")
    assert [step.stack for step in told if step.path == "root/inner/a"] == [""]


@pytest.mark.parametrize(
    ("under_way_s", "look_s"),
    [
        (None, 0.05),  # the loop waits
        (0.0, 0.05),
        (0.04, 0.05),
        (0.08, 0.02),  # in time for the moment at which it is slow
        (0.1, 0.05),
        (7.0, 0.05),
    ],
)
async def test_the_watchdog_looks_seldom_and_just_when_a_step_becomes_slow(
    under_way_s: float | None, look_s: float, stopwatch: Stopwatch
) -> None:
    watch = slow_steps._StepWatch(print, lambda _: "")
    watch.before_task_step(trio.lowlevel.current_task())
    if under_way_s is None:
        watch.after_task_step(trio.lowlevel.current_task())
        stopwatch.block(0.08)
    else:
        stopwatch.block(under_way_s)
    assert slow_steps._Watchdog(watch)._until_next_look() == pytest.approx(look_s)


def watchdogs() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == WATCHDOG]


@pytest.mark.parametrize("debug", [True, False])
async def test_only_with_debugging_there_is_a_thread_and_it_ends_with_the_system(
    debug: bool,
) -> None:
    before = set(threading.enumerate())
    async with open_system(family(lambda: None), on_slow_step=print, debug=debug):
        assert [thread.daemon for thread in watchdogs()] == [True] * debug
        assert set(threading.enumerate()) - before == set(watchdogs())
    assert watchdogs() == []


async def test_the_thread_ends_too_when_the_system_does_not_come_up() -> None:
    def fail() -> None:
        raise OSError("made to order")

    with pytest.raises(Exception, match="did not start"):
        async with open_system(family(fail, "setup"), on_slow_step=print, debug=True):
            pass
    assert watchdogs() == []
