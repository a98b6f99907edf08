"""Scans of all processes and of their groups: their results, and that callers share them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
import trio
import trio.testing

from aegis.processes.os_processes import OsProcessHost, read_groups
from aegis.processes.process_host import Groups
from aegis.processes.process_scan import GroupScan, ProcessScan, ProcessSnapshot
from aegis.processes.process_table import CookiesOf, OwnedProcess, ProcessInfo, group_of


def owned(pid: int, session: int, cookie: str | None) -> OwnedProcess:
    process = ProcessInfo(
        pid=pid, name="sleep", state="S", session=session, threads=1, start_time=pid
    )
    return OwnedProcess(process, cookie)


SHELL = owned(10, 10, "/srv/build/a.1")
CHILD = owned(11, 10, "/srv/build/a.1")
DETACHED = owned(12, 12, "/srv/build/a.1")
UNMARKED = owned(13, 10, None)
OTHER = owned(20, 20, "/srv/tests/b.1")
FOREIGN = owned(30, 30, None)
ALL = [SHELL, CHILD, DETACHED, UNMARKED, OTHER, FOREIGN]


def pids(found: Sequence[ProcessInfo]) -> list[int]:
    return sorted(each.pid for each in found)


def test_processes_are_found_by_session_or_cookie_each_once() -> None:
    seen = ProcessSnapshot(ALL)
    assert pids(seen.of([10], ["/srv/build/a.1"])) == [10, 11, 12, 13]
    assert pids(seen.of([10], [])) == [10, 11, 13]
    assert pids(seen.of([], ["/srv/build/a.1"])) == [10, 11, 12]
    assert pids(seen.of([20, 30], ["/srv/build/a.2"])) == [20, 30]
    assert seen.of([], []) == []


def test_a_rule_in_the_place_of_a_list_finds_the_same() -> None:
    seen = ProcessSnapshot(ALL)
    assert pids(seen.of([10], CookiesOf(root="/srv", name="build"))) == [10, 11, 12, 13]
    assert pids(seen.of(range(12, 31), [])) == [12, 20, 30]
    assert pids(seen.of([], CookiesOf(root="/srv"))) == [10, 11, 12, 20]


async def test_who_asks_while_a_look_runs_shares_the_next_one() -> None:
    looks: list[int] = []
    under_way, may_end = trio.Event(), trio.Event()

    class SlowHost(OsProcessHost):
        async def all_processes(self) -> Sequence[OwnedProcess]:
            looks.append(len(looks))
            under_way.set()
            await may_end.wait()
            return ALL

    scan = ProcessScan(SlowHost())
    answers: list[ProcessSnapshot] = []

    async def ask() -> None:
        answers.append(await scan.processes())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await under_way.wait()
        for _ in range(10):
            nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        may_end.set()
    assert looks == [0, 1]
    assert [pids(each.of([20], [])) for each in answers] == [[20]] * 11


@pytest.mark.parametrize(
    ("stat", "group"),
    [
        (b"7 (cat) S 1 42 7 34816 42 4194304", 42),
        (b"7 (a) b (c) S 1 42 7", 42),
        (b"7 (two\nlines) S 1 42 7", 42),
    ],
)
def test_the_group_is_read_from_stat(stat: bytes, group: int) -> None:
    assert group_of(stat) == group


@pytest.mark.parametrize("stat", [b"", b"7 (cat) S 1", b"7 (cat) S 1 x 7"])
def test_what_is_no_stat_has_no_group(stat: bytes) -> None:
    with pytest.raises(ValueError, match=r"group|invalid"):
        group_of(stat)


@pytest.mark.real
@pytest.mark.every_python
def test_a_real_look_finds_this_process_in_its_group() -> None:
    assert os.getpid() in read_groups()[os.getpgrp()]


class SlowHost(OsProcessHost):
    """A machine on which a look takes a tenth of a second; each finds one process more."""

    def __init__(self) -> None:
        self.looks = 0

    async def groups(self) -> Groups:
        await trio.sleep(0.1)
        self.looks += 1
        return {5: list(range(self.looks))}


async def test_who_asks_while_a_look_is_under_way_shares_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    host = SlowHost()
    scan = GroupScan(host)
    found: list[object] = []

    async def ask() -> None:
        found.append(await scan.members(5))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(ask)
    assert found == [[0]] * 20
    assert host.looks == 1


async def test_a_look_is_used_for_nine_times_as_long_as_it_took(
    autojump_clock: trio.testing.MockClock,
) -> None:
    scan = GroupScan(SlowHost())
    assert await scan.members(5) == [0]
    await trio.sleep(0.85)
    assert await scan.members(5) == [0]
    assert await scan.members(6) == ()
    await trio.sleep(0.1)
    assert await scan.members(5) == [0, 1]
