"""The inboxes of sessions: stopped with their session, and deleted once it is dropped."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from actors import System
from aegis.errors import Unavailable
from aegis.inboxes import router as module
from aegis.inboxes.handoffs import NoSessions
from aegis.inboxes.router import HandleSeen
from aegis.protocol.inboxes import ReadInbox, Receipt, ReleaseInbox
from tests.aegis.inboxes.harness import open_inboxes, router, stall_syncs, wake


class Known(NoSessions):
    """Every handle that begins with ``build`` is a session's; some of these are dropped."""

    def __init__(self) -> None:
        self.dropped: set[str] = set()

    def has(self, handle: str) -> bool:
        return handle.startswith("build")

    def was_dropped(self, handle: str) -> bool:
        return handle in self.dropped


def is_running(system: System, handle: str) -> bool:
    return system.registry.find("inbox", handle) is not None


async def has_stopped(system: System, handle: str) -> None:
    while is_running(system, handle):  # noqa: ASYNC110 - the registry has no event
        await trio.sleep(0.001)


async def test_the_inbox_of_a_closed_session_stops_and_keeps_its_messages(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path, sessions=Known()) as system:
        ref = router(system)
        await ref.ask(wake(1, "build-1"))
        await ref.ask(wake(1, "pm"))
        ref.tell(ReleaseInbox(handle="build-1"))
        await has_stopped(system, "build-1")
        assert is_running(system, "pm")
        found = await ref.ask(ReadInbox(from_handle="build-1"))
        assert [each.id for each in found.messages] == ["w1"]


async def test_no_request_meets_an_inbox_that_is_just_stopping(tmp_path: Path) -> None:
    """Neither before the stop was asked for, nor meanwhile, nor after: nobody is told to retry."""
    async with open_inboxes(tmp_path, sessions=Known()) as system:
        ref = router(system)
        await ref.ask(wake(0, "build-1"))
        for turns in range(40):
            receipts: list[Receipt] = []

            async def send(number: int) -> None:
                receipts.append(await ref.ask(wake(number, "build-1")))  # noqa: B023

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send, 2 * turns + 1)
                ref.tell(ReleaseInbox(handle="build-1"))
                for _ in range(turns):
                    await trio.lowlevel.checkpoint()
                nursery.start_soon(send, 2 * turns + 2)
            assert len(receipts) == 2
        found = await ref.ask(ReadInbox(from_handle="build-1", limit=100))
        assert {each.id for each in found.messages} == {f"w{number}" for number in range(81)}


async def test_an_inbox_that_is_stopping_still_answers_its_senders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their messages are written and not synced yet when the session is closed."""
    async with open_inboxes(tmp_path, sessions=Known()) as system:
        ref = router(system)
        await ref.ask(wake(0, "build-1"))
        synced = stall_syncs(monkeypatch)
        deferred = attrs.evolve(wake(2, "build-1"), defer_sync=True)
        replies = [ref.send_request(each) for each in (wake(1, "build-1"), deferred)]
        ref.tell(ReleaseInbox(handle="build-1"))
        await trio.testing.wait_all_tasks_blocked()
        synced.set()
        await has_stopped(system, "build-1")
        assert [(await each.wait()).status for each in replies] == ["queued", "queued"]


async def test_the_inbox_of_a_dropped_session_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RELEASES", 2)
    known = Known()
    async with open_inboxes(tmp_path, sessions=known) as system:
        ref = router(system)
        for number in (1, 2, 3):
            await ref.ask(wake(number, f"build-{number}"))
        known.dropped = {"build-1"}
        ref.tell(ReleaseInbox(handle="build-2"))
        path = tmp_path / "build-1.jsonl"
        while path.exists():  # noqa: ASYNC110 - it is a file
            await trio.sleep(0.001)
        await has_stopped(system, "build-2")
        assert all((tmp_path / f"build-{number}.jsonl").exists() for number in (2, 3))
        known.dropped = {"build-2"}
        ref.tell(ReleaseInbox(handle="build-9"))  # one that never had an inbox
        ref.tell(ReleaseInbox(handle="build-3"))
        await has_stopped(system, "build-3")
    async with open_inboxes(tmp_path, sessions=known) as system:
        assert (await router(system).ask(ReadInbox(from_handle="build-3"))).messages


async def test_handles_of_sessions_do_not_count_for_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_HANDLES", 2)
    async with open_inboxes(tmp_path, sessions=Known()) as system:
        ref = router(system)
        ref.tell(HandleSeen(handle="pm"))
        for number in range(3):
            await ref.ask(wake(number, f"build-{number}"))
        await ref.ask(wake(1, "dev"))
        with pytest.raises(Unavailable, match="2 handles exist, which is the limit"):
            await ref.ask(wake(1, "one-more"))
        await ref.ask(wake(1, "build-9"))
