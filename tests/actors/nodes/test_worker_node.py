"""A worker process as a child of a supervisor: its actors, its crashes, its end."""

from __future__ import annotations

import os
import signal

import pytest
import trio

from actors import (
    ActorCrashed,
    ActorStopped,
    Down,
    LifeCycleEvent,
    Node,
    Ref,
    RestartsExhausted,
    System,
    WrongMessage,
)
from actors.errors import AskError, WorkerDied
from tests.actors.nodes.hosted import Leave, Pid, open_hosting
from tests.actors.nodes.machine import GUARD_S, exists, nothing_left, until
from tests.actors.nodes.pair import Add, Chain, Do, Echo, Sum
from tests.actors.nodes.test_peer import monitor

pytestmark = pytest.mark.real

W1, W2 = "root/workers/w1", "root/workers/w2"


async def pid_of(system: System, worker: str) -> int:
    """The process of a worker that is up, waited for."""
    with trio.fail_after(GUARD_S):
        while True:
            try:
                inside: Ref[Pid] = system.ref(f"{worker}/i")
                return await inside.ask(Pid())
            except AskError:
                await trio.sleep(0.02)


@pytest.mark.long
@pytest.mark.every_python
async def test_actors_of_a_worker_are_in_another_process_and_in_one_tree() -> None:
    with nothing_left():
        async with open_hosting("w1", "w2") as system:
            pids = {os.getpid(), await pid_of(system, W1), await pid_of(system, W2)}
            assert len(pids) == 3
            x = system.ref(f"{W1}/x")
            x.tell(Add(2))
            x.tell(Add(3))
            assert await x.ask(Sum()) == 5
            assert await x.ask(Echo("deep", bytes(2_000_000))) == Echo("deep", bytes(2_000_000))
            with pytest.raises(WrongMessage):
                await x.ask(Pid())
            assert system.registry.names("inside") == [f"{W1}/i", f"{W2}/i"]
            workers = next(node for node in system.tree().children if node.name == "workers")
            assert below(workers) == {
                W1: [f"{W1}/x", f"{W1}/i"],
                W2: [f"{W2}/x", f"{W2}/i"],
            }


def below(node: Node) -> dict[str, list[str]]:
    return {each.path: [child.path for child in each.children] for each in node.children}


async def test_a_request_goes_from_worker_to_worker_through_the_root() -> None:
    async with open_hosting("w1", "w2") as system:
        path = await system.ref(f"{W1}/x").ask(Chain([f"{W2}/x", "root/a"]))
        assert path == "root/a"


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("kill", "killed by signal 9"),
        ("raise", "ValueError: told to"),
        ("return", "done"),
        ("exit", "ended with code 3"),
    ],
)
async def test_a_worker_that_ends_is_a_crash_of_its_actor_and_is_started_again(
    how: str, text: str
) -> None:
    events: list[LifeCycleEvent] = []
    with nothing_left():
        async with open_hosting("w1", "w2", events=events) as system:
            before, other = await pid_of(system, W1), await pid_of(system, W2)
            x = system.ref(f"{W1}/x")
            x.tell(Add(7))
            hanging = x.send_request(Do("defer"))
            await x.ask(Sum())
            end(system, how, before)
            with trio.fail_after(GUARD_S), pytest.raises((ActorCrashed, ActorStopped)):
                await hanging.wait()
            await until(lambda: not exists(before))
            assert await pid_of(system, W1) not in (before, other)
            assert x.is_stopped
            assert await system.ref(f"{W1}/x").ask(Sum()) == 0
            assert await pid_of(system, W2) == other
        (crash,) = [event.error for event in events if event.kind == "crashed"]
        assert isinstance(crash, WorkerDied)
        assert text in str(crash)


def end(system: System, how: str, pid: int) -> None:
    if how == "kill":
        os.kill(pid, signal.SIGKILL)
    else:
        system.ref(f"{W1}/i").tell(Leave(how))


async def test_a_monitor_hears_that_an_actor_went_down_with_its_worker() -> None:
    seen: list[Down] = []
    async with open_hosting("w1", others=monitor(f"{W1}/x", seen)) as system:
        pid = await pid_of(system, W1)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: seen)
        (down,) = seen
        assert (down.path, down.crashed, down.final, down.with_node) == (
            f"{W1}/x",
            True,
            True,
            True,
        )
        assert "killed by signal 9" in down.reason


async def test_a_worker_that_dies_more_often_than_its_budget_makes_its_supervisor_give_up() -> None:
    with nothing_left(), pytest.raises(RestartsExhausted):
        await kill_for_ever()


async def kill_for_ever() -> None:
    async with open_hosting("w1", intensity=1) as system:
        while True:
            os.kill(await pid_of(system, W1), signal.SIGKILL)
            await trio.sleep(0.02)


@pytest.mark.long
async def test_a_stopped_process_is_noticed_by_its_silence_and_replaced() -> None:
    async with open_hosting("w1") as system:
        pid = await pid_of(system, W1)
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: not exists(pid))
        assert await pid_of(system, W1) != pid
