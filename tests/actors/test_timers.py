"""Timers: order, cancelling, the end of a life."""

from __future__ import annotations

import math

import attrs
import pytest
import trio
import trio.testing

from actors import Actor, ChildSpec, Request, SupervisorSpec, Timer, WrongMessage, open_system
from actors.incarnation import BATCH
from actors.timers import SWEEP_AT, Timers


@attrs.frozen
class Tick:
    name: str


@attrs.frozen
class Arm:
    seconds: float
    name: str


@attrs.frozen
class ArmByHelper:
    seconds: float
    name: str


@attrs.frozen
class Ticks(Request[list[tuple[float, str]]]):
    pass


@attrs.frozen
class Crash:
    pass


class Clock(Actor[Tick | Arm | ArmByHelper | Ticks | Crash]):
    def __init__(self) -> None:
        self.seen: list[tuple[float, str]] = []

    async def receive(self, message: Tick | Arm | ArmByHelper | Ticks | Crash) -> None:
        match message:
            case Tick(name=name):
                self.seen.append((round(trio.current_time(), 6), name))
            case Arm(seconds=seconds, name=name):
                self.context.after(seconds, Tick(name))
            case ArmByHelper():
                self.context.start_soon(self._arm_later, message)
            case Ticks():
                self.reply(message, self.seen)
            case Crash():
                raise RuntimeError

    async def _arm_later(self, message: ArmByHelper) -> None:
        await trio.testing.wait_all_tasks_blocked()
        self.context.after(message.seconds, Tick(message.name))


CLOCK = SupervisorSpec(name="root", children=(ChildSpec.of("clock", Clock),))


async def test_due_timers_come_earliest_first(autojump_clock: trio.testing.MockClock) -> None:
    async with open_system(CLOCK) as system:
        clock = system.ref("root/clock")
        start = trio.current_time()
        for seconds, name in [(3.0, "c"), (1.0, "a"), (2.0, "b")]:
            clock.tell(Arm(seconds, name))
        await trio.sleep(10)
        seen = await clock.ask(Ticks())
    assert [(time - start, name) for time, name in seen] == [(1.0, "a"), (2.0, "b"), (3.0, "c")]


async def test_timers_of_one_instant_keep_their_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(CLOCK) as system:
        clock = system.ref("root/clock")
        for name in "dbca":
            clock.tell(Arm(1.0, name))
        await trio.sleep(2)
        assert [name for _, name in await clock.ask(Ticks())] == ["d", "b", "c", "a"]


async def test_a_timer_set_by_a_helper_task_wakes_the_actor_in_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(CLOCK) as system:
        clock = system.ref("root/clock")
        start = trio.current_time()
        clock.tell(Arm(50.0, "late"))
        clock.tell(ArmByHelper(1.0, "soon"))
        await trio.sleep(10)
        assert await clock.ask(Ticks()) == [(start + 1.0, "soon")]


async def test_an_actor_without_timers_has_no_task_for_them(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(CLOCK) as system:
        clock = system.ref("root/clock")
        await clock.ask(Ticks())
        idle = trio.lowlevel.current_statistics().tasks_living
        for _ in range(3):
            clock.tell(Arm(1.0, "x"))
            await trio.testing.wait_all_tasks_blocked()
            assert trio.lowlevel.current_statistics().tasks_living == idle + 1
            await trio.sleep(2)
            assert trio.lowlevel.current_statistics().tasks_living == idle
        seen = await clock.ask(Ticks())
        assert len(seen) == 3


async def test_a_flood_of_messages_does_not_starve_a_timer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(CLOCK) as system:
        clock = system.ref("root/clock")
        clock.tell(Arm(0.0, "due"))
        for number in range(200):
            clock.tell(Arm(1000.0, str(number)))
        assert [name for _, name in await clock.ask(Ticks())] == ["due"]


async def test_a_timer_does_not_outlive_the_life_that_set_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(CLOCK) as system:
        clock = system.ref("root/clock")
        clock.tell(Arm(1.0, "of the first life"))
        clock.tell(Crash())
        clock.tell(Arm(2.0, "of the second life"))
        await trio.sleep(5)
        assert [name for _, name in await clock.ask(Ticks())] == ["of the second life"]


async def test_a_timer_of_a_class_that_the_actor_does_not_accept_crashes_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    crashes: list[BaseException | None] = []
    spec = SupervisorSpec(name="root", children=(ChildSpec.of("wrong", Wrong),))
    async with open_system(
        spec, observer=lambda event: crashes.append(event.error) if event.error else None
    ) as system:
        system.ref("root/wrong").tell(Arm(1.0, "x"))
        await trio.sleep(2)
    assert [type(error) for error in crashes] == [WrongMessage]


class Wrong(Actor[Arm]):
    async def receive(self, message: Arm) -> None:
        self.context.after(message.seconds, Tick(message.name))


class Late(Actor[Tick | Arm | Crash]):
    """Is busy while its timer comes due, and cancels it then."""

    def __init__(self, seen: list[str]) -> None:
        self._seen = seen

    async def receive(self, message: Tick | Arm | Crash) -> None:
        match message:
            case Tick(name=name):
                self._seen.append(name)
            case Arm(seconds=seconds, name=name):
                self._timer = self.context.after(seconds, Tick(name))
            case Crash():
                self._timer.cancel()
                raise RuntimeError


async def test_a_timer_that_lies_in_the_mailbox_is_a_message_like_any_other(
    autojump_clock: trio.testing.MockClock,
) -> None:
    seen: list[str] = []
    spec = ChildSpec.of("late", Late, seen=seen)
    async with open_system(SupervisorSpec(name="root", children=(spec,))) as system:
        late = system.ref("root/late")
        late.tell(Arm(0.0, "due"))
        for _ in range(BATCH - 1):
            late.tell(Arm(1000.0, "never"))
        late.tell(Crash())
        await trio.sleep(1)
    assert seen == ["due"]


def due_names(timers: Timers) -> list[object]:
    return [message.name for message in timers.take_due() if isinstance(message, Tick)]


async def test_a_cancelled_timer_does_not_come(autojump_clock: trio.testing.MockClock) -> None:
    timers = Timers()
    kept, gone = timers.after(1.0, Tick("kept")), timers.after(0.5, Tick("gone"))
    gone.cancel()
    assert (kept.is_cancelled, gone.is_cancelled) == (False, True)
    assert timers.next_deadline() == kept.deadline
    await trio.sleep(2)
    assert due_names(timers) == ["kept"]
    assert timers.next_deadline() == math.inf


async def test_a_negative_time_is_now(autojump_clock: trio.testing.MockClock) -> None:
    timers = Timers()
    timers.after(-5.0, Tick("now"))
    assert due_names(timers) == ["now"]


async def test_cancelled_timers_do_not_pile_up(autojump_clock: trio.testing.MockClock) -> None:
    timers = Timers()
    kept: list[Timer] = []
    for number in range(10_000):
        timer = timers.after(3600.0, Tick(str(number)))
        if number % 1000 == 0:
            kept.append(timer)
        else:
            timer.cancel()
    assert len(timers) <= 2 * SWEEP_AT
    await trio.sleep(3601)
    assert due_names(timers) == [
        timer.message.name for timer in kept if isinstance(timer.message, Tick)
    ]


@pytest.mark.parametrize("seconds", [0.0, 1.0])
async def test_an_empty_heap_has_nothing_due(
    autojump_clock: trio.testing.MockClock, seconds: float
) -> None:
    await trio.sleep(seconds)
    assert Timers().take_due() == []
