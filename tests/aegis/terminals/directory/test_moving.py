"""What becomes of terminals whose worker dies: alone, two at once, again and again, at the end."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from actors import ActorCrashed, AskError, NodeDied, Request
from actors.faults import RUNTIME, Crash, Delay, Plan, armed
from aegis.errors import AlreadyExists, Unavailable
from aegis.protocol import output as out
from aegis.protocol import terminals as api
from aegis.protocol.broadcast import Broadcast
from aegis.protocol.feeds import TypeBytes
from aegis.terminals.directory import moving, placed_subtrees
from aegis.terminals.faults import TERMINALS
from tests.aegis.terminals.workers import Daemon, open_daemon, printed, shells, state_is
from tests.e2e.harness import GUARD_S

pytestmark = pytest.mark.real


async def run_until_lost(daemon: Daemon, name: str, cmd: str) -> None:
    with pytest.raises(NodeDied, match="went down with worker"):
        await daemon.run(name, cmd)


async def test_while_no_worker_is_up_its_terminals_are_starting_and_say_why(
    tmp_path: Path,
) -> None:
    async with open_daemon(tmp_path, "w1") as daemon:
        await daemon.spawn("build")
        await daemon.run("build", "echo one")
        await daemon.kill_worker("w1")
        info = (await daemon.infos())["build"]
        assert (info.state, info.node, info.pid) == ("starting", "w1", None)
        requests: tuple[Request[Any], ...] = (
            api.RunCommand(name="build", cmd="true"),
            api.SendKeys(name="build", keys="x"),
            TypeBytes(name="build", keys=b"x", from_handle=None),
            api.Subscribe(name="build", from_handle="pm"),
        )
        for request in requests:
            with pytest.raises(Unavailable) as refused:
                await daemon.ask("build", request)
            assert str(refused.value) == (
                "terminal 'build' cannot be used right now: its worker died; it is being started "
                "again: try again in a moment"
            )
        with pytest.raises(AlreadyExists, match="is open already"):
            await daemon.spawn("build")
        await daemon.start_worker("w1")
        assert [each.stdout for each in await daemon.records("build")] == ["one\n"]
        assert (await daemon.run("build", "echo two")).seq == 1


async def test_who_reads_or_waits_while_a_terminal_comes_back_is_answered_by_it(
    tmp_path: Path,
) -> None:
    async with open_daemon(tmp_path, "w1") as daemon:
        await daemon.spawn("build")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_until_lost, daemon, "build", "echo begun; sleep 1000")
            await printed(daemon, "build", "begun")
            await daemon.kill_worker("w1")
        records = daemon.directory.send_request(api.ReadRecords(name="build"))
        ended = daemon.directory.send_request(out.WaitTerminal(name="build"))
        await trio.testing.wait_all_tasks_blocked()
        assert not records.is_settled
        assert not ended.is_settled
        await daemon.start_worker("w1")
        [record] = (await records.wait()).result
        outcome = await ended.wait()
        assert (outcome.reason, outcome.record) == ("ended", record)
        assert (record.end, record.stdout) == ("killed_by_restart", "begun\n")


async def test_a_terminal_for_which_no_worker_comes_up_has_failed_until_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "WAIT_UP_S", 0.0)
    monkeypatch.setattr(placed_subtrees, "WAIT_UP_S", 0.0)
    async with open_daemon(tmp_path, "w1") as daemon:
        await daemon.spawn("build")
        await daemon.ask("build", api.Subscribe(name="build", from_handle="pm"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_until_lost, daemon, "build", "echo begun; sleep 1000")
            await printed(daemon, "build", "begun")
            await daemon.kill_worker("w1")
        await state_is(daemon, "build", "failed")
        with pytest.raises(Unavailable) as refused:
            await daemon.run("build", "true")
        assert str(refused.value) == (
            "terminal 'build' has failed: it could not be started, and the daemon keeps retrying: "
            "no worker is up right now; try again in a moment"
        )
        [record] = await daemon.records("build")
        assert record.end == "killed_by_restart"
        assert [wake.split("/")[2] for wake in daemon.wakes] == ["0"]
        await daemon.start_worker("w1")
        info = await state_is(daemon, "build", "idle")
        assert (info.node, info.subscribers) == ("w1", ["pm"])
        assert (await daemon.run("build", "true")).seq == 1


async def test_two_workers_that_die_at_once_lose_no_terminal(tmp_path: Path) -> None:
    async with open_daemon(tmp_path, "w1", "w2", "w3") as daemon:
        names = [f"t{number}" for number in range(9)]
        for name in names:
            await daemon.spawn(name)
            await daemon.run(name, "kept=1; echo one")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(daemon.kill_worker, "w1")
            nursery.start_soon(daemon.kill_worker, "w2")
        for name in names:
            assert [record.stdout for record in await daemon.records(name)] == ["one\n"]
        with trio.fail_after(GUARD_S):  # one that was moved to the other dying worker tries again
            while {info.node for info in (await daemon.infos()).values()} != {"w3"}:
                await trio.testing.wait_all_tasks_blocked(0.01)
        for number, name in enumerate(names):
            kept = "" if number % 3 < 2 else "1"
            after = await daemon.run(name, "echo [$kept]")
            assert (after.seq, after.stdout) == (1, f"[{kept}]\n")
    assert shells(daemon) == []


async def test_a_worker_that_dies_while_it_starts_a_terminal_leaves_it_to_another(
    tmp_path: Path,
) -> None:
    plan = Plan({("shell.start.after[build]", 1): Delay(1000)})
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        with armed(plan, TERMINALS):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(daemon.spawn, "build")
                with trio.fail_after(GUARD_S):
                    while not shells(daemon, "build/"):
                        await trio.testing.wait_all_tasks_blocked(0.01)
                await daemon.kill_worker("w1")
        assert (await daemon.infos())["build"].node == "w2"
        record = await daemon.run("build", "echo $$")
        assert [line.split()[0] for line in shells(daemon, "build/")] == [record.stdout.strip()]


async def test_a_terminal_can_be_closed_while_it_waits_for_a_worker(tmp_path: Path) -> None:
    async with open_daemon(tmp_path, "w1") as daemon:
        await daemon.spawn("build")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                run_until_lost, daemon, "build", "setsid sleep 1000 & echo begun; sleep 1000"
            )
            await printed(daemon, "build", "begun")
            await daemon.kill_worker("w1")
        closed = await daemon.directory.ask(api.CloseTerminal(name="build"), timeout=GUARD_S)
        assert closed.leftover == []
        assert await daemon.infos() == {}
        assert shells(daemon) == []
        [record] = await daemon.records("build")
        assert record.end == "killed_by_restart"
        await daemon.start_worker("w1")
        assert await daemon.infos() == {}
        assert (await daemon.spawn("build")).node == "w1"
        assert (await daemon.run("build", "true")).seq == 1


async def test_a_terminal_that_is_being_closed_when_its_worker_dies_is_closed(
    tmp_path: Path,
) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        await daemon.spawn("build", node="w1")
        await daemon.run("build", "trap '' HUP TERM; setsid sleep 1000 &")
        close = daemon.directory.send_request(api.CloseTerminal(name="build"))
        await trio.testing.wait_all_tasks_blocked()
        await daemon.kill_worker("w1")
        assert (await close.wait()).leftover == []
        assert await daemon.infos() == {}
        assert shells(daemon) == []


@pytest.mark.parametrize("left", [(), ("w2",)])
async def test_a_daemon_that_stops_while_terminals_come_back_leaves_nothing_and_has_them_again(
    tmp_path: Path, left: tuple[str, ...]
) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        for name in ("one", "two"):
            await daemon.spawn(name, node="w1")
            await daemon.run(name, "setsid sleep 1000 & true")
        for worker in {"w1", "w2"} - set(left):
            await daemon.kill_worker(worker)
    assert shells(daemon) == []
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        infos = await daemon.infos()
        assert (sorted(infos), sorted(each.node for each in infos.values())) == (
            ["one", "two"],
            ["w1", "w2"],
        )
        assert (await daemon.run("one", "true")).seq == 1


async def test_a_terminal_that_loses_its_workers_again_and_again_has_failed(
    tmp_path: Path,
) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        await daemon.spawn("build")
        await daemon.spawn("other", node="local")
        for _ in range(moving.LOSSES.intensity):
            node = (await daemon.infos())["build"].node
            await daemon.kill_worker(node)
            await daemon.start_worker(node)
            await daemon.records("build")
        await daemon.kill_worker((await daemon.infos())["build"].node)
        await state_is(daemon, "build", "failed")
        with pytest.raises(Unavailable) as refused:
            await daemon.run("build", "true")
        assert str(refused.value) == (
            "terminal 'build' has failed: its worker died 6 times within 60 s; close it and spawn "
            "it anew"
        )
        assert (await daemon.run("other", "true")).seq == 0
        await daemon.directory.ask(api.CloseTerminal(name="build"), timeout=GUARD_S)
        await daemon.spawn("build")
        assert (await daemon.run("build", "true")).seq == 0


async def test_a_directory_that_crashed_knows_what_is_where_and_hears_of_deaths(
    tmp_path: Path,
) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        for name, node in (("one", "w1"), ("two", "w2"), ("here", "local")):
            await daemon.spawn(name, node=node)
            await daemon.run(name, "kept=$$")
        crash = Plan({("actor.receive.before[TerminalDirectory]", 1): Crash()})
        with armed(crash, RUNTIME), pytest.raises(ActorCrashed):
            await daemon.infos()
        for name in ("one", "two", "here"):
            assert (await daemon.run(name, "[ $kept = $$ ]")).exit == 0
        infos = await daemon.infos()
        assert {name: info.node for name, info in infos.items()} == {
            "one": "w1",
            "two": "w2",
            "here": "local",
        }
        await daemon.kill_worker("w1")
        assert len(await daemon.records("one")) == 2
        assert (await daemon.infos())["one"].node == "w2"
        assert (await daemon.run("one", "echo [$kept]")).stdout == "[]\n"
        await daemon.directory.ask(api.CloseTerminal(name="two"), timeout=GUARD_S)
        assert shells(daemon, "two/") == []


async def test_a_host_that_crashed_goes_on_with_its_terminals(tmp_path: Path) -> None:
    async with open_daemon(tmp_path, "w1") as daemon:
        await daemon.spawn("one")
        await daemon.run("one", "kept=$$")
        with armed(Plan({("actor.receive.before[TerminalHost]", 1): Crash()}), RUNTIME):
            await daemon.spawn("two")
        assert (await daemon.run("one", "[ $kept = $$ ]")).exit == 0
        assert (await daemon.run("two", "echo well")).stdout == "well\n"
        await daemon.directory.ask(api.CloseTerminal(name="one"), timeout=GUARD_S)
        assert shells(daemon, "one/") == []


async def test_what_is_restored_spreads_and_waits_for_workers_that_are_not_up(
    tmp_path: Path,
) -> None:
    async with open_daemon(tmp_path, "w1") as daemon:
        for name in "abcd":
            await daemon.spawn(name)
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        nodes = [info.node for info in (await daemon.infos()).values()]
        assert sorted(nodes) == ["w1", "w1", "w2", "w2"]
    async with open_daemon(tmp_path, "w1", "w2", started=()) as daemon:
        assert {info.state for info in (await daemon.infos()).values()} == {"failed"}
        await daemon.start_worker("w2")
        for name in "abcd":
            assert (await state_is(daemon, name, "idle")).node == "w2"


async def test_a_subtree_that_gives_up_in_a_worker_has_failed_and_does_not_move(
    tmp_path: Path,
) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        await daemon.spawn("build")
        passes = {("actor.receive.before[Terminal]", number): Crash() for number in range(1, 5)}
        with armed(Plan(passes), RUNTIME):
            while (await daemon.infos())["build"].state != "failed":
                try:
                    await daemon.ask("build", api.SendKeys(name="build", keys=" "))
                except (AskError, Unavailable):
                    await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Unavailable, match="its actors crashed too often"):
            await daemon.run("build", "true")
        assert shells(daemon) == []


async def test_a_broadcast_tells_of_each_that_lost_its_worker_and_runs_on_the_others(
    tmp_path: Path,
) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        await daemon.spawn("lost", node="w1")
        await daemon.spawn("well", node="w2")
        names, cmd = (
            ["lost", "well"],
            "echo begun; case $AEGIS_TERMINAL in */lost/*) sleep 1000; esac",
        )
        broadcast = daemon.directory.send_request(Broadcast(names=names, cmd=cmd, timeout=GUARD_S))
        await printed(daemon, "lost", "begun")
        await daemon.kill_worker("w1")
        lost, well = (await broadcast.wait()).result
        assert well.record is not None
        assert (well.record.exit, well.record.stdout) == (0, "begun\n")
        assert lost.error == (
            "terminal 'lost' lost its worker, and is being started again; if your command was "
            "typed it was killed: look for its record with aegis_term_read before you run it again"
        )


async def test_calls_of_many_end_when_the_worker_dies(tmp_path: Path) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        for name in "abc":
            await daemon.spawn(name, node="w1")
        async with trio.open_nursery() as nursery:
            for name in "abc":
                run = partial(run_until_lost, daemon, name, "echo begun; sleep 1000")
                nursery.start_soon(run)
            for name in "abc":
                await printed(daemon, name, "begun")
            await daemon.kill_worker("w1")
        for name in "abc":
            [record] = await daemon.records(name)
            assert record.killed_by_restart
