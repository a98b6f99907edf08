"""Rules of the runtime that only show in a whole system: who starts whom, and what runs at rest."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from trio.lowlevel import Task

from actors import (
    Actor,
    ChildSpec,
    Request,
    Restart,
    Strategy,
    SupervisorSpec,
    System,
    open_system,
)
from tests.actors.children import NO_PAUSE, Child, Do, Life, Log, child, group, idle

requester: ContextVar[str] = ContextVar("requester", default="nobody")


class Spawns(trio.abc.Instrument):
    """Who started which task, by name, and in whose nursery."""

    def __init__(self) -> None:
        self.seen: list[tuple[Task, Task | None]] = []

    def task_spawned(self, task: Task) -> None:
        spawner = trio.lowlevel.current_task() if trio.lowlevel.in_trio_task() else None
        self.seen.append((task, spawner))


class Steps(trio.abc.Instrument):
    """How many steps each task made, by name."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()

    def after_task_step(self, task: Task) -> None:
        self.made[task.name] += 1


@contextmanager
def watched(instrument: trio.abc.Instrument) -> Iterator[None]:
    trio.lowlevel.add_instrument(instrument)
    try:
        yield
    finally:
        trio.lowlevel.remove_instrument(instrument)


async def be_busy(log: Log) -> None:
    """Starts of every kind: of the whole tree, dynamic, after a crash, of a group, of a subtree."""
    pair = group("pair", child(log, "a"), child(log, "b"), strategy=Strategy.ONE_FOR_ALL)
    inner = group("inner", pair, intensity=0)
    spec = group("root", inner, SupervisorSpec(name="pool", dynamic=True))
    async with open_system(spec) as system:
        await system.supervisor("root/pool").start_child(child(log, "c"))
        for path, crashes in (("root/pool/c", 1), ("root/inner/pair/a", 4)):
            for _ in range(crashes):
                system.ref(path).tell(Do("crash"))
                await idle()
        assert await system.ref("root/inner/pair/b").ask(Life()) == 5


async def test_only_the_task_of_a_supervisor_starts_its_children_in_its_one_nursery() -> None:
    spawns = Spawns()
    with watched(spawns):
        await be_busy(Log())
    lives = [(task, spawner) for task, spawner in spawns.seen if task.name.startswith("root/")]
    assert Counter(task.name for task, _ in lives) == {
        "root/inner": 2,
        "root/pool": 1,
        "root/pool/c": 2,
        "root/inner/pair": 2,
        "root/inner/pair/a": 5,
        "root/inner/pair/b": 5,
    }
    nurseries: dict[Task, set[trio.Nursery]] = {}
    for task, spawner in lives:
        assert spawner is not None
        assert spawner.name == task.name.rpartition("/")[0]
        assert task.parent_nursery is not None
        assert task.parent_nursery.parent_task is spawner
        nurseries.setdefault(spawner, set()).add(task.parent_nursery)
    assert {len(each) for each in nurseries.values()} == {1}


async def test_every_task_of_a_system_lies_in_its_tree_and_no_thread_is_begun() -> None:
    spawns, threads = Spawns(), set(threading.enumerate())
    me = trio.lowlevel.current_task()
    with watched(spawns):
        await be_busy(Log())
    assert len(spawns.seen) > 15
    for task, _ in spawns.seen:
        above: Task | None = task
        while above is not None and above is not me:
            above = above.parent_nursery.parent_task if above.parent_nursery else None
        assert above is me, task.name
    assert set(threading.enumerate()) <= threads


@attrs.frozen
class WhoAsks(Request[tuple[str, str]]):
    """Answered with what the set-up of this life and the handler see of the requester."""

    crash: bool = False


class Witness(Actor[WhoAsks]):
    async def setup(self) -> None:
        self._in_setup = requester.get()

    async def receive(self, message: WhoAsks) -> None:
        if message.crash:
            raise ValueError("made to order")
        self.reply(message, (self._in_setup, requester.get()))


@pytest.mark.parametrize("dynamic", [False, True])
async def test_no_life_sees_the_context_variables_of_who_asks_starts_or_crashes_it(
    dynamic: bool,
) -> None:
    witness = ChildSpec.of("witness", Witness).with_options(backoff=NO_PAUSE)
    children = () if dynamic else (witness,)
    spec = SupervisorSpec(name="root", dynamic=dynamic, children=children)
    async with open_system(spec) as system:
        requester.set("somebody")
        if dynamic:
            await system.supervisor("root").start_child(witness)
        ref = system.ref("root/witness")
        assert await ref.ask(WhoAsks()) == ("nobody", "nobody")
        ref.tell(WhoAsks(crash=True))
        await idle()
        assert await ref.ask(WhoAsks()) == ("nobody", "nobody")
        assert system.tree().children[0].restarts == 1


async def stop_by_ref(system: System) -> None:
    system.ref("root/inner/a").stop()


async def stop_by_supervisor(system: System) -> None:
    await system.supervisor("root/inner").stop_child("a")


async def stop_all(system: System) -> None:
    system.ref("root").stop()


@pytest.mark.parametrize("stop", [stop_by_ref, stop_by_supervisor, stop_all])
async def test_a_stop_is_heard_while_restarts_fail_one_after_the_other_without_a_pause(
    stop: Any,
) -> None:
    """Each failed restart is the next event; the stop is one too, and has its turn among them."""
    log = Log()
    inner = group("inner", dynamic=True, intensity=10**9)
    async with open_system(group("root", inner)) as system:
        a = await system.supervisor("root/inner").start_child(child(log, "a"))
        log.failing = {"a": float("inf")}
        a.tell(Do("crash"))
        while log.failures < 10:  # each try lets others run
            await trio.lowlevel.checkpoint()
        await stop(system)
        await idle()
        failures = log.failures
        assert a.is_stopped
        assert failures < 30
        await idle()
        assert log.failures == failures


class Deadly(Actor[Do]):
    """Raises what passes through everything, in its handler or in a helper task."""

    async def receive(self, message: Do) -> None:
        if message.how.startswith("helper"):
            self.context.start_soon(self._die, message.how)
        else:
            await self._die(message.how)

    async def _die(self, how: str) -> None:
        raise KeyboardInterrupt if how.endswith("interrupt") else SystemExit


@pytest.mark.parametrize("how", ["interrupt", "exit", "helper interrupt", "helper exit"])
async def test_an_interrupt_tears_the_whole_tree_down_and_restarts_nobody(how: str) -> None:
    log = Log()
    deadly = ChildSpec.of("deadly", Deadly).with_options(backoff=NO_PAUSE)
    deep = group("deep", child(log, "a"), group("deeper", child(log, "b"), deadly))
    pool = SupervisorSpec(name="pool", dynamic=True)
    with pytest.raises(BaseExceptionGroup) as caught:  # noqa: PT012 - the body tells it
        async with open_system(group("root", deep, pool, child(log, "c"))) as system:
            await system.supervisor("root/pool").start_child(child(log, "d"))
            system.ref("root/deep/deeper/deadly").tell(Do(how))
            await trio.sleep_forever()
    error = KeyboardInterrupt if how.endswith("interrupt") else SystemExit
    assert caught.value.split(error)[1] is None
    assert sorted(log.of("up")) == sorted(log.of("down")) == ["a", "b", "c", "d"]


class Waiting(Child):
    """Has a helper task that waits, and a timer that is far away."""

    async def setup(self) -> None:
        await super().setup()
        self.context.start_soon(trio.sleep_forever)
        self.context.after(10**6, Life())


async def test_a_system_at_rest_does_not_run(autojump_clock: trio.testing.MockClock) -> None:
    log = Log()
    waiting = ChildSpec.of("a", Waiting, log=log)
    temporary = child(log, "b", restart=Restart.TEMPORARY)
    async with open_system(group("root", group("inner", waiting, temporary))) as system:
        assert await system.ref("root/inner/a").ask(Life(), timeout=3600) == 1
        await trio.sleep(7200)  # the time of that ask is over too
        steps = Steps()
        with watched(steps):
            await trio.sleep(3600)
        assert steps.made.total() <= 2, steps.made  # of this task alone
        assert not any(name.startswith("root") for name in steps.made)
