"""Children that come and go on request, and stops at every bad moment."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from actors import (
    ActorStopped,
    MisuseError,
    Ref,
    StartFailed,
    SupervisorSpec,
    System,
    count,
    open_system,
)
from tests.actors.children import (
    NO_PAUSE,
    PAUSE,
    Do,
    Life,
    Log,
    child,
    group,
    idle,
    states,
)

# Dynamic children.


async def test_a_dynamic_child_is_started_named_found_and_stopped() -> None:
    log = Log()
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        supervisor = system.supervisor("root")
        ref = await supervisor.start_child(child(log, "a"))
        await supervisor.start_child(child(log, "b"))
        assert supervisor.names == ["a", "b"]
        assert ref == system.ref("root/a")
        await supervisor.stop_child("a")
        assert (supervisor.names, ref.is_stopped, log.of("down")) == (["b"], True, ["a"])
        with pytest.raises(ActorStopped, match="nothing at root/a"):
            system.ref("root/a")
        again = await supervisor.start_child(child(log, "a"))
        assert await again.ask(Life()) == 1


async def test_a_whole_subtree_can_be_a_dynamic_child() -> None:
    log = Log()
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        supervisor = system.supervisor("root")
        await supervisor.start_child(group("sub", child(log, "a"), child(log, "b")))
        assert count(system.tree()) == 4
        leaf = system.ref("root/sub/a")
        await supervisor.stop_child("sub")
        assert log.of("down") == ["b", "a"]
        assert leaf.is_stopped
        assert count(system.tree()) == 1


async def test_a_name_is_free_only_when_its_child_is_gone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        supervisor = system.supervisor("root")
        await supervisor.start_child(child(log, "a", linger_s=0.5))
        with pytest.raises(MisuseError, match="already has a child 'a'"):
            await supervisor.start_child(child(log, "a"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(supervisor.stop_child, "a")
            await idle()
            with pytest.raises(MisuseError):
                await supervisor.start_child(child(log, "a"))
        await supervisor.start_child(child(log, "a"))


async def test_a_dynamic_child_that_does_not_start_is_forgotten() -> None:
    log = Log()
    log.failing = {"a": math.inf}
    async with open_system(SupervisorSpec(name="root", dynamic=True, intensity=0)) as system:
        supervisor = system.supervisor("root")
        with pytest.raises(StartFailed, match="root/a did not start: OSError: no a") as caught:
            await supervisor.start_child(child(log, "a"))
        assert isinstance(caught.value.__cause__, OSError)
        assert supervisor.names == []
        log.failing = {}
        await supervisor.start_child(child(log, "a"))


async def test_a_fixed_supervisor_takes_no_children() -> None:
    async with open_system(group("root", child(Log(), "a"))) as system:
        with pytest.raises(MisuseError, match="not dynamic"):
            await system.supervisor("root").start_child(child(Log(), "b"))
        with pytest.raises(MisuseError, match="root/a is an actor"):
            system.supervisor("root/a")


async def test_stopping_nobody_is_no_error() -> None:
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        await system.supervisor("root").stop_child("nobody")


async def test_two_stops_of_one_child_both_end(autojump_clock: trio.testing.MockClock) -> None:
    log = Log()
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        supervisor = system.supervisor("root")
        await supervisor.start_child(child(log, "a", linger_s=0.5))
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(supervisor.stop_child, "a")
        assert log.of("down") == ["a"]


async def test_a_child_starts_all_the_same_when_its_caller_is_cancelled(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    log.slow = {"a"}
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        supervisor = system.supervisor("root")
        with trio.move_on_after(0.1) as scope:
            await supervisor.start_child(child(log, "a"))
        assert scope.cancelled_caught
        await trio.sleep(1)
        assert await system.ref("root/a").ask(Life()) == 1
    assert log.of("down") == ["a"]


async def test_a_start_that_is_pending_when_the_supervisor_stops_ends_with_an_error(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    log.slow = {"a"}
    spec = SupervisorSpec(name="root", children=(SupervisorSpec(name="pool", dynamic=True),))
    async with open_system(spec) as system, trio.open_nursery() as nursery:
        pool = system.supervisor("root/pool")
        outcomes: list[str] = []

        async def start(name: str) -> None:
            with pytest.raises(ActorStopped, match="root/pool is stopping"):
                await pool.start_child(child(log, name))
            outcomes.append(name)

        nursery.start_soon(start, "a")
        await idle()
        nursery.start_soon(system.supervisor("root").stop_child, "pool")
        await idle()
        nursery.start_soon(start, "b")
        await trio.sleep(1)
        assert sorted(outcomes) == ["a", "b"]
        with pytest.raises(ActorStopped, match="root/pool is not running"):
            await pool.start_child(child(log, "c"))
    assert log.of("up") == log.of("down") == ["a"]


async def test_a_stop_of_a_child_that_is_asked_for_while_its_supervisor_stops_waits_for_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    spec = SupervisorSpec(name="root", children=(SupervisorSpec(name="pool", dynamic=True),))
    async with open_system(spec) as system, trio.open_nursery() as nursery:
        pool = system.supervisor("root/pool")
        await pool.start_child(child(log, "a", linger_s=0.5))
        nursery.start_soon(system.supervisor("root").stop_child, "pool")
        await idle()
        await pool.stop_child("a")
        assert log.of("down") == ["a"]


async def test_a_dynamic_supervisor_that_gives_up_comes_back_empty() -> None:
    log = Log()
    pool = SupervisorSpec(name="pool", dynamic=True, intensity=0, backoff=NO_PAUSE)
    async with open_system(SupervisorSpec(name="root", children=(pool,))) as system:
        handle = system.supervisor("root/pool")
        a = await handle.start_child(child(log, "a"))
        b = await handle.start_child(child(log, "b"))
        a.tell(Do("crash"))
        await idle()
        assert a.is_stopped
        assert b.is_stopped
        assert handle.names == []
        again = await handle.start_child(child(log, "a"))
        assert await again.ask(Life()) == 1


async def test_the_children_of_a_dynamic_supervisor_stop_all_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        for number in range(20):
            await system.supervisor("root").start_child(child(log, f"c{number}", linger_s=0.5))
        started = trio.current_time()
    assert trio.current_time() - started == pytest.approx(0.5)
    assert len(log.of("down")) == 20


# Stopping at bad moments.


StopChild = Callable[[System, Ref[Any]], None]


@pytest.fixture(params=["Ref.stop", "stop_child"])
def stop(request: pytest.FixtureRequest, nursery: trio.Nursery) -> StopChild:
    if request.param == "Ref.stop":
        return lambda system, ref: ref.stop()

    def stop_child(system: System, ref: Ref[Any]) -> None:
        parent, name = ref.path.rsplit("/", 1)
        nursery.start_soon(system.supervisor(parent).stop_child, name)

    return stop_child


async def test_a_stop_is_for_good_whatever_the_restart_type(stop: StopChild) -> None:
    log = Log()
    async with open_system(group("root", child(log, "a"))) as system:
        ref = system.ref("root/a")
        stop(system, ref)
        await idle()
        assert ref.is_stopped
        assert log.entries == ["up a", "down a"]


async def test_a_stop_during_the_pause_before_a_restart_is_heard_at_once(
    stop: StopChild, autojump_clock: trio.testing.MockClock
) -> None:
    log = Log()
    async with open_system(group("root", child(log, "a", backoff=PAUSE))) as system:
        ref = system.ref("root/a")
        ref.tell(Do("crash"))
        await idle()
        assert states(system.tree())["root/a"] == "down"
        reply = ref.send_request(Life())
        stop(system, ref)
        with pytest.raises(ActorStopped):
            await reply.wait()
        await trio.sleep(60)
    assert log.of("up") == ["a"]


async def test_a_stop_wins_over_a_crash_of_the_same_instant(stop: StopChild) -> None:
    log = Log()
    async with open_system(group("root", child(log, "a"))) as system:
        ref = system.ref("root/a")
        ref.tell(Do("crash"))
        ref.stop()
        stop(system, ref)
        await idle()
        assert ref.is_stopped


async def test_a_stop_of_a_hanging_child_is_bounded(
    stop: StopChild, autojump_clock: trio.testing.MockClock
) -> None:
    log = Log()
    async with open_system(group("root", child(log, "a", shutdown_s=2.0))) as system:
        ref = system.ref("root/a")
        ref.tell(Do("hang"))
        await idle()
        stop(system, ref)
        await trio.sleep(2.1)
        assert ref.is_stopped


async def test_a_child_stopped_before_its_turn_is_left_out_of_the_start(
    stop: StopChild, autojump_clock: trio.testing.MockClock
) -> None:
    log = Log()
    log.slow = {"a", "b", "c"}
    spec = group("inner", *(child(log, name) for name in "abc"))
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(system.supervisor("root").start_child, spec)
            await trio.sleep(0.1)
            stop(system, system.ref("root/inner/b"))
        assert log.of("up") == ["a", "c"]
        assert states(system.tree()) == {
            "root": "running",
            "root/inner": "running",
            "root/inner/a": "running",
            "root/inner/c": "running",
        }


async def test_a_child_stopped_in_its_turn_does_not_fail_the_start(
    stop: StopChild, autojump_clock: trio.testing.MockClock
) -> None:
    log = Log()
    log.slow = {"a", "b"}
    spec = group("inner", child(log, "a", shutdown_s=0.1), child(log, "b"))
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(system.supervisor("root").start_child, spec)
            await trio.sleep(0.1)
            stop(system, system.ref("root/inner/a"))
        assert log.of("up") == ["b"]
        assert system.supervisor("root/inner").names == ["b"]


async def test_a_supervisor_stopped_during_its_start_stops_what_it_has(
    stop: StopChild, autojump_clock: trio.testing.MockClock
) -> None:
    log = Log()
    log.slow = {"b"}
    spec = group("inner", *(child(log, name) for name in "abc"))
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def start() -> None:
                with pytest.raises(StartFailed, match="root/inner did not start: stopped"):
                    await system.supervisor("root").start_child(spec)

            await trio.sleep(0.1)
            stop(system, system.ref("root/inner"))
        assert log.of("up") == ["a", "b"]
        assert log.of("down") == ["b", "a"]
        assert system.supervisor("root").names == []


async def test_the_stop_of_an_actor_that_is_gone_leaves_its_successor_alone() -> None:
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        pool, log = system.supervisor("root"), Log()
        old = await pool.start_child(child(log, "a"))
        await pool.stop_child("a")
        new = await pool.start_child(child(log, "a"))
        old.stop()
        await idle()
        assert await new.ask(Life()) == 1
        assert log.of("down") == ["a"]
