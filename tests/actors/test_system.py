"""Opening and closing a system: nothing is left, whatever happened in between."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
import trio.testing
from trio.lowlevel import Task

from actors import (
    Actor,
    ActorStopped,
    Backoff,
    ChildSpec,
    LifeCycleEvent,
    Request,
    RestartsExhausted,
    StartFailed,
    SupervisorSpec,
    open_system,
    root_cause,
)


@attrs.frozen
class Do(Request[str]):
    how: str = ""


class Helped(Actor[Do]):
    """Has a helper task, and ends as told."""

    def __init__(self, setup: str = "") -> None:
        self._setup = setup

    async def setup(self) -> None:
        self.context.start_soon(trio.sleep_forever)
        if self._setup == "crash":
            raise OSError("no set-up")
        if self._setup == "stop the root":
            self.context.system.ref("root").stop()

    async def receive(self, message: Do) -> None:
        match message.how:
            case "crash":
                raise ValueError("made to order")
            case "hang":
                await trio.sleep_forever()
            case "interrupt":
                raise KeyboardInterrupt
            case _:
                self.reply(message, "fine")


def helped(name: str, **arguments: Any) -> ChildSpec:
    return ChildSpec.of(name, Helped, **arguments).with_options(backoff=Backoff(first_s=1.0))


def family(*children: ChildSpec | SupervisorSpec, **options: Any) -> SupervisorSpec:
    return SupervisorSpec(name="root", children=children, **options)


class TaskCounter(trio.abc.Instrument):
    """Which tasks were started and have not ended."""

    def __init__(self) -> None:
        self.spawned = 0
        self.alive: set[Task] = set()

    def task_spawned(self, task: Task) -> None:
        self.spawned += 1
        self.alive.add(task)

    def task_exited(self, task: Task) -> None:
        self.alive.discard(task)


async def run_and_end(how: str) -> None:
    inner = SupervisorSpec(name="inner", children=(helped("b"), helped("c")))
    pool = SupervisorSpec(name="pool", dynamic=True)
    setup = "crash" if how == "fail to start" else ""
    async with open_system(family(helped("a"), inner, pool, helped("d", setup=setup))) as system:
        await system.supervisor("root/pool").start_child(helped("e"))
        match how:
            case "raise":
                raise LookupError
            case "cancel":
                trio.lowlevel.current_task().parent_nursery.cancel_scope.cancel()  # type: ignore[union-attr]
                await trio.sleep_forever()
            case "hang" | "interrupt":
                system.ref("root/inner/b").tell(Do(how))
                await trio.testing.wait_all_tasks_blocked()
            case "crash":
                system.ref("root/inner/b").tell(Do("crash"))
                await trio.testing.wait_all_tasks_blocked()
            case "give up":
                for _ in range(4):
                    system.ref("root/a").tell(Do("crash"))
                await trio.sleep_forever()


@pytest.mark.parametrize(
    "how",
    ["end", "raise", "cancel", "hang", "interrupt", "crash", "give up", "fail to start"],
)
async def test_no_task_is_left_after_a_system(
    how: str, autojump_clock: trio.testing.MockClock
) -> None:
    tasks = TaskCounter()
    endings = (LookupError, KeyboardInterrupt, RestartsExhausted, StartFailed)
    trio.lowlevel.add_instrument(tasks)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_and_end, how)
    except BaseExceptionGroup as group:
        if group.split(endings)[1] is not None:
            raise
    finally:
        trio.lowlevel.remove_instrument(tasks)
    assert tasks.spawned > 5
    assert tasks.alive == set()


async def test_the_body_starts_when_everything_is_up() -> None:
    events: list[LifeCycleEvent] = []
    inner = SupervisorSpec(name="inner", children=(helped("b"),))
    async with open_system(family(helped("a"), inner), observer=events.append):
        assert [(event.kind, event.path, event.incarnation) for event in events] == [
            ("started", "root/a", 1),
            ("started", "root/inner/b", 1),
            ("started", "root/inner", 1),
        ]


async def test_what_the_body_raises_comes_out_bare() -> None:
    with pytest.raises(LookupError):
        async with open_system(family(helped("a"))):
            raise LookupError


async def test_a_root_that_gives_up_cancels_the_body() -> None:
    events: list[LifeCycleEvent] = []
    with pytest.raises(RestartsExhausted, match="root gave up"):  # noqa: PT012
        async with open_system(family(helped("a"), intensity=0), observer=events.append) as system:
            system.ref("root/a").tell(Do("crash"))
            await trio.sleep_forever()
    assert [(event.kind, event.path) for event in events[1:]] == [
        ("crashed", "root/a"),
        ("crashed", "root"),
    ]


async def test_an_address_outlives_its_system_and_says_so() -> None:
    async with open_system(family(helped("a"))) as system:
        ref = system.ref("root/a")
    assert ref.is_stopped
    with pytest.raises(ActorStopped):
        await ref.ask(Do())
    with pytest.raises(ActorStopped, match="nothing at root/a"):
        system.ref("root/a")


async def test_a_system_whose_root_is_stopped_goes_on_empty() -> None:
    async with open_system(family(helped("a"))) as system:
        ref = system.ref("root/a")
        system.ref("root").stop()
        await trio.testing.wait_all_tasks_blocked()
        assert ref.is_stopped


async def test_a_root_that_is_stopped_before_it_is_up_is_a_failed_start() -> None:
    with pytest.raises(StartFailed, match="root was stopped before it was up"):
        async with open_system(family(helped("a", setup="stop the root"), helped("b"))):
            raise AssertionError("never up")


async def test_two_systems_live_side_by_side() -> None:
    async with open_system(family(helped("a"))) as one, open_system(family(helped("a"))) as other:
        one.ref("root/a").stop()
        await trio.testing.wait_all_tasks_blocked()
        assert await other.ref("root/a").ask(Do()) == "fine"


def test_the_root_cause_lies_below_failed_starts_and_groups() -> None:
    bottom = ValueError("bottom")
    inner, outer = StartFailed("inner"), StartFailed("outer")
    inner.__cause__ = ExceptionGroup("several", [bottom, OSError("other")])
    outer.__cause__ = inner
    assert root_cause(outer) is bottom
    assert root_cause(bottom) is bottom
    assert root_cause(StartFailed("alone")).args == ("alone",)
