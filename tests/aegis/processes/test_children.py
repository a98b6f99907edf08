"""The cookies with which the daemon started its own children."""

from __future__ import annotations

import attrs
import trio
import trio.testing
from trio.testing import MockClock

from aegis.processes.children import KEPT, ChildCookies
from aegis.processes.process_table import ProcessInfo


def nobody(pid: int) -> ProcessInfo | None:
    """Return the process of an empty machine."""
    del pid
    return None


CHILD = ProcessInfo(pid=7, name="sh", state="S", session=7, threads=1, start_time=100)


def test_a_cookie_is_remembered_for_one_process_and_not_for_the_next_with_its_pid() -> None:
    children = ChildCookies()
    children.add(CHILD, "/root/build/1", nobody)
    assert children.cookie_of(CHILD) == "/root/build/1"
    later = attrs.evolve(CHILD, start_time=101)
    assert children.cookie_of(later) is None
    children.add(later, "/root/other/1", nobody)
    assert (children.cookie_of(CHILD), children.cookie_of(later)) == (None, "/root/other/1")


def test_a_child_that_has_ended_at_once_is_not_remembered() -> None:
    children = ChildCookies()
    children.add(None, "/root/build/1", nobody)
    assert children.cookie_of(CHILD) is None


def test_only_children_that_have_ended_are_forgotten() -> None:
    children = ChildCookies()
    running = {pid: attrs.evolve(CHILD, pid=pid) for pid in (1, KEPT + 2)}
    for pid in range(1, KEPT + 3):
        children.add(attrs.evolve(CHILD, pid=pid), str(pid), running.get)
    found = [children.cookie_of(attrs.evolve(CHILD, pid=pid)) for pid in (1, 2, KEPT + 2)]
    assert found == ["1", None, str(KEPT + 2)]


async def test_settled_waits_for_a_start_in_progress(autojump_clock: MockClock) -> None:
    children, settled = ChildCookies(), trio.Event()

    async def wait() -> None:
        await children.settled()
        settled.set()

    async with trio.open_nursery() as nursery:
        with children.starting():
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            assert not settled.is_set()
        await settled.wait()
    await children.settled()
