"""Who is in which process group: shared looks, and a real one."""

from __future__ import annotations

import os

import pytest
import trio
import trio.testing

from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_groups import GroupScan, look_at_groups
from aegis.processes.process_host import Groups
from aegis.processes.process_table import group_of


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
    assert os.getpid() in look_at_groups()[os.getpgrp()]


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
