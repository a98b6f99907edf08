"""The inboxes of sessions: stopped with their session, and deleted once it is dropped."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from actors import System
from aegis.errors import Unavailable
from aegis.inboxes import router as module
from aegis.inboxes.handoffs import NoSessions
from aegis.inboxes.router import HandleSeen
from aegis.protocol.inboxes import ReadInbox, ReleaseInbox
from tests.aegis.inboxes.harness import open_inboxes, router, wake


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
