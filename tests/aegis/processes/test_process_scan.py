"""What one look at all processes tells, and that those who ask at once share it."""

from __future__ import annotations

from collections.abc import Sequence

import trio
import trio.testing

from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_scan import ProcessScan, Seen
from aegis.processes.process_table import CookiesOf, OwnedProcess, ProcessInfo


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
    seen = Seen(ALL)
    assert pids(seen.of([10], ["/srv/build/a.1"])) == [10, 11, 12, 13]
    assert pids(seen.of([10], [])) == [10, 11, 13]
    assert pids(seen.of([], ["/srv/build/a.1"])) == [10, 11, 12]
    assert pids(seen.of([20, 30], ["/srv/build/a.2"])) == [20, 30]
    assert seen.of([], []) == []


def test_a_rule_in_the_place_of_a_list_finds_the_same() -> None:
    seen = Seen(ALL)
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
    answers: list[Seen] = []

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
