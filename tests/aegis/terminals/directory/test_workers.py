"""Terminals in workers: where they are, and what becomes of them when a worker dies."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from aegis.errors import AlreadyExists, NotFound, StorageError, Unavailable
from aegis.protocol import terminals as api
from tests.aegis.terminals.workers import Daemon, open_daemon, printed, shells, state_is

pytestmark = pytest.mark.real


async def test_an_exception_leaves_the_daemon_of_these_tests(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup):
        async with open_daemon(tmp_path, "w1"):
            raise AssertionError


async def test_terminals_spread_over_the_workers_and_work_there(tmp_path: Path) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        spawned = [await daemon.spawn(name) for name in ("a", "b", "c", "d")]
        assert [info.node for info in spawned] == ["w1", "w2", "w1", "w2"]
        assert {info.state for info in spawned} == {"idle"}
        for name in "abcd":
            assert (await daemon.run(name, "echo $AEGIS_TERMINAL")).stdout.startswith(
                f"{tmp_path}/{name}/"
            )
        assert {name: info.node for name, info in (await daemon.infos()).items()} == {
            "a": "w1", "b": "w2", "c": "w1", "d": "w2"
        }  # fmt: skip
    assert shells(daemon) == []


async def test_a_terminal_runs_where_it_is_wanted(tmp_path: Path) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        assert (await daemon.spawn("a", node="w2")).node == "w2"
        assert (await daemon.spawn("b", node="local")).node == "local"
        assert (await daemon.spawn("c", node="W2")).node == "w2"
        with pytest.raises(NotFound, match="there is no node 'w3'; there are local, w1, w2"):
            await daemon.spawn("d", node="w3")
        with pytest.raises(AlreadyExists):
            await daemon.spawn("A", node="w1")
        assert (await daemon.spawn("d")).node == "w1"
        for name in "abc":
            assert (await daemon.run(name, "echo well")).stdout == "well\n"


async def test_what_cannot_be_started_at_a_worker_is_refused_as_anywhere(tmp_path: Path) -> None:
    (tmp_path / "terminals" / "broken" / "ledger.jsonl").mkdir(parents=True)
    async with open_daemon(tmp_path, "w1") as daemon:
        refusals = []
        for node in ("w1", "local"):
            with pytest.raises(StorageError, match=r"ledger\.jsonl") as refused:
                await daemon.spawn("broken", node=node)
            refusals.append(str(refused.value))
        assert refusals[0] == refusals[1]
        assert await daemon.infos() == {}
        assert shells(daemon) == []


async def test_a_terminal_that_is_closed_leaves_its_worker_and_can_be_had_at_another(
    tmp_path: Path,
) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        await daemon.spawn("build", node="w1")
        await daemon.run("build", "setsid sleep 1000 & kept=1")
        await daemon.directory.ask(api.CloseTerminal(name="build"), timeout=60)
        assert shells(daemon) == []
        assert (await daemon.spawn("build", node="w2")).node == "w2"
        assert (await daemon.run("build", "echo [$kept]")).stdout == "[]\n"
        assert [record.seq for record in await daemon.records("build")] == [0, 1]


async def test_while_no_worker_is_up_nothing_can_be_spawned_but_here(tmp_path: Path) -> None:
    async with open_daemon(tmp_path, "w1", "w2", started=()) as daemon:
        with pytest.raises(Unavailable, match="no worker is up right now; try again in a moment"):
            await daemon.spawn("a")
        with pytest.raises(Unavailable, match="node 'w1' is down right now"):
            await daemon.spawn("a", node="w1")
        assert await daemon.infos() == {}
        assert (await daemon.spawn("a", node="local")).node == "local"
        await daemon.start_worker("w2")
        assert (await daemon.spawn("b")).node == "w2"


# What a dead worker leaves.


async def test_terminals_of_a_worker_that_dies_come_back_on_another_with_what_they_had(
    tmp_path: Path,
) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon:
        before = await daemon.spawn("build", node="w1")
        await daemon.spawn("other", node="w2")
        await daemon.run("other", "kept=$$")
        await daemon.run("build", "cd /usr; kept=1; echo one")
        await daemon.ask("build", api.Subscribe(name="build", from_handle="pm"))
        await daemon.run("build", "setsid sleep 1000 & disown")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_run_until_killed, daemon, "build")
            await printed(daemon, "build", "begun")
            await daemon.kill_worker("w1")
        one, detached, killed = await daemon.records("build")
        assert (one.stdout, detached.exit) == ("one\n", 0)
        assert (killed.seq, killed.end, killed.killed_by_restart) == (2, "killed_by_restart", True)
        assert "begun\n" in killed.stdout
        info = await state_is(daemon, "build", "idle")
        assert (info.node, info.subscribers) == ("w2", ["pm"])
        assert info.started_at == before.started_at
        after = await daemon.run("build", "echo [$kept]; pwd")
        assert (after.seq, after.stdout) == (3, "[]\n/usr\n")
        assert not [line for line in shells(daemon, "build/") if "sleep" in line]
        assert (await daemon.run("other", "[ $kept = $$ ]")).exit == 0
        assert [wake.split("/")[2] for wake in daemon.wakes] == ["1", "2", "3"]
    assert shells(daemon) == []


async def _run_until_killed(daemon: Daemon, name: str) -> None:
    with pytest.raises(Exception, match="went down with worker w1"):
        await daemon.run(name, "echo begun; sleep 1000")
