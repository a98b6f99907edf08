"""Strategies and automatic shutdown, carried out with real lives."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from actors import (
    ActorStopped,
    AutoShutdown,
    Backoff,
    MisuseError,
    Restart,
    RestartsExhausted,
    Strategy,
    SupervisorSpec,
    open_system,
)
from tests.actors.children import Do, Life, Log, child, group, idle, states

ALL, REST = Strategy.ONE_FOR_ALL, Strategy.REST_FOR_ONE
TRANSIENT, TEMPORARY = Restart.TRANSIENT, Restart.TEMPORARY


@pytest.mark.parametrize(
    ("strategy", "crashed", "entries"),
    [
        (ALL, "b", "down b, down d, down c, down a, up a, up b, up c, up d"),
        (ALL, "d", "down d, down c, down b, down a, up a, up b, up c, up d"),
        (REST, "b", "down b, down d, down c, up b, up c, up d"),
        (REST, "d", "down d, up d"),
        (Strategy.ONE_FOR_ONE, "b", "down b, up b"),
    ],
)
async def test_a_group_stops_in_reverse_and_starts_in_order(
    strategy: Strategy, crashed: str, entries: str
) -> None:
    log = Log()
    spec = group("root", *(child(log, name) for name in "abcd"), strategy=strategy)
    async with open_system(spec) as system:
        log.take()
        system.ref(f"root/{crashed}").tell(Do("crash"))
        await idle()
        assert ", ".join(log.take()) == entries
        assert set(states(system.tree()).values()) == {"running"}


async def test_a_sibling_keeps_its_address_and_its_waiting_messages_through_the_restart() -> None:
    log = Log()
    async with open_system(group("root", child(log, "a"), child(log, "b"), strategy=ALL)) as system:
        b = system.ref("root/b")
        system.ref("root/a").tell(Do("crash"))
        await idle()
        assert await b.ask(Life()) == 2
        b.tell(Do("hang"))
        await idle()
        waiting = b.send_request(Life())
        system.ref("root/a").tell(Do("crash"))
        assert await waiting.wait() == 3


async def test_a_sibling_that_does_not_stop_is_cut_after_its_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    spec = group("root", child(log, "a"), child(log, "b", shutdown_s=3.0), strategy=ALL)
    async with open_system(spec) as system:
        system.ref("root/b").tell(Do("hang"))
        await idle()
        log.take()
        started = trio.current_time()
        system.ref("root/a").tell(Do("crash"))
        assert await system.ref("root/b").ask(Life()) == 2
        assert trio.current_time() - started == pytest.approx(3.0)
        assert log.take() == ["down a", "down b", "up a", "up b"]


async def test_the_pause_of_a_group_comes_when_all_are_down(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    pause = Backoff(first_s=2.0)
    spec = group("root", child(log, "a", backoff=pause), child(log, "b"), strategy=ALL)
    async with open_system(spec) as system:
        started = trio.current_time()
        system.ref("root/a").tell(Do("crash"))
        await idle()
        assert states(system.tree()) == {"root": "running", "root/a": "down", "root/b": "down"}
        assert await system.ref("root/b").ask(Life()) == 2
        assert trio.current_time() - started == pytest.approx(2.0)


async def test_a_group_whose_restart_fails_is_tried_again_within_the_budget(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    spec = group("root", *(child(log, name) for name in "abc"), strategy=ALL, intensity=3)
    async with open_system(spec) as system:
        log.take()
        log.failing = {"b": 2}
        system.ref("root/a").tell(Do("crash"))
        await idle()
        assert await system.ref("root/c").ask(Life()) == 2
        assert [entry for entry in log.take() if entry.startswith("up")] == [
            *["up a", "up a", "up a"],
            *["up b", "up c"],
        ]


async def test_a_group_whose_restart_keeps_failing_escalates() -> None:
    log = Log()
    spec = group("root", *(child(log, name) for name in "ab"), strategy=REST, intensity=3)
    with pytest.raises(RestartsExhausted, match="OSError: no b"):  # noqa: PT012
        async with open_system(spec) as system:
            log.failing = {"b": 100}
            system.ref("root/a").tell(Do("crash"))
            await trio.sleep_forever()
    assert log.entries.count("up a") == 2
    assert log.entries[-1] == "down a"


async def test_a_group_restart_counts_once_and_escalates_through_two_levels() -> None:
    log = Log()
    inner = group("inner", child(log, "a"), child(log, "b"), strategy=ALL, intensity=1)
    middle = group("middle", child(log, "c"), inner, strategy=ALL, intensity=1)
    async with open_system(group("root", child(log, "d"), middle, intensity=1)) as system:
        a, c = system.ref("root/middle/inner/a"), system.ref("root/middle/c")
        lives = []
        for _ in range(4):
            a.tell(Do("crash"))
            lives.append((await a.ask(Life()), await c.ask(Life())))
        assert lives == [(2, 1), (3, 2), (4, 2), (5, 3)]
        assert await system.ref("root/d").ask(Life()) == 1


async def test_a_group_takes_a_whole_subtree_along() -> None:
    log = Log()
    inner = group("inner", child(log, "b"), child(log, "c"))
    async with open_system(group("root", child(log, "a"), inner, strategy=REST)) as system:
        log.take()
        system.ref("root/a").tell(Do("crash"))
        await idle()
        assert log.take() == ["down a", "down c", "down b", "up a", "up b", "up c"]


async def test_a_group_restart_brings_back_the_finished_at_a_new_address_not_the_temporary() -> (
    None
):
    log = Log()
    spec = group(
        "root",
        child(log, "a", restart=TRANSIENT),
        child(log, "b", restart=TEMPORARY),
        child(log, "c"),
        strategy=ALL,
    )
    async with open_system(spec) as system:
        old = system.ref("root/a")
        old.tell(Do("finish"))
        await idle()
        assert states(system.tree()) == {
            "root": "running",
            "root/b": "running",
            "root/c": "running",
        }
        system.ref("root/c").tell(Do("crash"))
        await idle()
        assert states(system.tree()) == {
            "root": "running",
            "root/a": "running",
            "root/c": "running",
        }
        assert [node.name for node in system.tree().children] == ["a", "c"]
        assert old.is_stopped
        assert await system.ref("root/a").ask(Life()) == 1


async def test_a_child_that_was_stopped_during_its_groups_restart_stays_away(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    spec = group(
        "root", child(log, "a", backoff=Backoff(first_s=1.0)), child(log, "b"), strategy=ALL
    )
    async with open_system(spec) as system:
        b = system.ref("root/b")
        system.ref("root/a").tell(Do("crash"))
        await idle()
        b.stop()
        assert await system.ref("root/a").ask(Life()) == 2
        with pytest.raises(ActorStopped):
            await b.ask(Life())


async def test_a_stop_is_heard_while_a_group_waits_for_a_child_that_hangs(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    slow = child(log, "b", shutdown_s=50.0)
    inner = group("inner", child(log, "a"), slow, strategy=ALL, shutdown_s=1.0)
    async with open_system(group("root", inner)) as system:
        system.ref("root/inner/b").tell(Do("hang"))
        await idle()
        system.ref("root/inner/a").tell(Do("crash"))
        await idle()
        started = trio.current_time()
        await system.supervisor("root").stop_child("inner")
        assert trio.current_time() - started == pytest.approx(1.0)
        assert states(system.tree()) == {"root": "running"}


# Automatic shutdown.


async def test_a_supervisor_ends_with_any_significant_child() -> None:
    log = Log()
    inner = group(
        "inner",
        child(log, "a"),
        child(log, "b", restart=TRANSIENT, significant=True),
        child(log, "c"),
        auto_shutdown=AutoShutdown.ANY_SIGNIFICANT,
        restart=TRANSIENT,
    )
    async with open_system(group("root", inner)) as system:
        b = system.ref("root/inner/b")
        b.tell(Do("crash"))
        assert await b.ask(Life()) == 2
        log.take()
        b.tell(Do("finish"))
        await idle()
        assert log.take() == ["down b", "down c", "down a"]
        assert states(system.tree()) == {"root": "running"}
        assert b.is_stopped


async def test_a_permanent_supervisor_that_shut_down_comes_back() -> None:
    log = Log()
    b = child(log, "b", restart=TEMPORARY, significant=True)
    inner = group("inner", b, auto_shutdown=AutoShutdown.ALL_SIGNIFICANT)
    async with open_system(group("root", inner)) as system:
        system.ref("root/inner/b").tell(Do("crash"))
        await idle()
        assert await system.ref("root/inner/b").ask(Life()) == 1
        assert log.take() == ["up b", "down b", "up b"]


async def test_a_supervisor_ends_with_the_last_of_all_significant_children() -> None:
    log = Log()
    inner = group(
        "inner",
        *(child(log, name, restart=TEMPORARY, significant=True) for name in "ab"),
        child(log, "c"),
        auto_shutdown=AutoShutdown.ALL_SIGNIFICANT,
        restart=TEMPORARY,
    )
    async with open_system(group("root", inner)) as system:
        system.ref("root/inner/a").tell(Do("finish"))
        await idle()
        assert log.take()[-1] == "down a"
        system.ref("root/inner/b").tell(Do("crash"))
        await idle()
        assert log.take() == ["down b", "down c"]
        assert states(system.tree()) == {"root": "running"}


async def test_a_significant_child_that_somebody_stops_ends_nobody_else() -> None:
    log = Log()
    a = child(log, "a", restart=TEMPORARY, significant=True)
    spec = group("root", a, child(log, "b"), auto_shutdown=AutoShutdown.ANY_SIGNIFICANT)
    async with open_system(spec) as system:
        system.ref("root/a").stop()
        await idle()
        assert states(system.tree()) == {"root": "running", "root/b": "running"}


async def test_a_significant_supervisor_passes_the_end_on_to_the_root() -> None:
    log = Log()
    shuts_down: dict[str, Any] = {"auto_shutdown": AutoShutdown.ALL_SIGNIFICANT}
    leaf = child(log, "leaf", restart=TRANSIENT, significant=True)
    inner = group("inner", leaf, restart=TRANSIENT, significant=True, **shuts_down)
    async with open_system(group("root", child(log, "a"), inner, **shuts_down)) as system:
        system.ref("root/inner/leaf").tell(Do("finish"))
        await system.wait_stopped()
        assert log.entries[-2:] == ["down leaf", "down a"]
        assert states(system.tree()) == {"root": "stopped"}


async def test_a_dynamic_supervisor_ends_with_its_last_significant_child() -> None:
    log = Log()
    pool = SupervisorSpec(
        name="pool",
        dynamic=True,
        restart=TEMPORARY,
        auto_shutdown=AutoShutdown.ALL_SIGNIFICANT,
    )
    async with open_system(group("root", pool)) as system:
        handle = system.supervisor("root/pool")
        a, b = [
            await handle.start_child(child(log, name, restart=TEMPORARY, significant=True))
            for name in "ab"
        ]
        a.tell(Do("finish"))
        await idle()
        assert handle.names == ["b"]
        b.tell(Do("crash"))
        await idle()
        assert states(system.tree()) == {"root": "running"}


async def test_a_significant_child_is_not_started_where_it_could_end_nobody() -> None:
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        spec = child(Log(), "a", restart=TEMPORARY, significant=True)
        with pytest.raises(MisuseError, match="never shuts down by itself"):
            await system.supervisor("root").start_child(spec)
        assert system.supervisor("root").names == []
