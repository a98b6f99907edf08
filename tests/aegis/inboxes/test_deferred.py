"""Deliveries whose sender lets the sync wait: written at once, shown and answered once synced."""

from __future__ import annotations

import errno
import tracemalloc
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import Ref, Reply, System
from aegis.errors import StorageError, Unavailable
from aegis.inboxes import inbox as inbox_module
from aegis.inboxes import state as state_module
from aegis.protocol.feeds import FollowInbox
from aegis.protocol.inboxes import Deliver, MessageList, ReadInbox, Receipt, SyncInbox, WaitInbox
from tests.aegis.inboxes.harness import open_inboxes, router, wake
from tests.fakes.faulty_disk import FaultyDisk


def deferred(number: int, after: int | None = None) -> Deliver:
    before = None if after is None else wake(after).id
    return attrs.evolve(wake(number), defer_sync=True, after=before)


def inbox_of_pm(system: System) -> Ref[Any]:
    found = system.registry.find("inbox", "pm")
    assert found is not None
    return found


async def opened_inbox(system: System) -> Ref[Any]:
    """The inbox of pm with one message, that is synced."""
    await router(system).ask(wake(0))
    return inbox_of_pm(system)


async def defer_some(inbox: Ref[Any], *numbers: int) -> list[Reply[Receipt]]:
    """Send them; they are written when this returns."""
    replies = [inbox.send_request(deferred(each)) for each in numbers]
    await trio.testing.wait_all_tasks_blocked()
    return replies


def ids(got: MessageList) -> list[str]:
    return [each.id for each in got.messages]


async def test_a_deferred_message_is_answered_by_the_next_sync_whatever_causes_it(
    tmp_path: Path,
) -> None:
    disk = FaultyDisk()
    async with open_inboxes(tmp_path, disk) as system:
        inbox = await opened_inbox(system)
        before = disk.calls["fdatasync"]
        replies = await defer_some(inbox, 1, 2, 3)
        assert (tmp_path / "pm.jsonl").read_bytes().count(b"\n") == 4
        assert disk.calls["fdatasync"] == before
        assert not any(each.is_settled for each in replies)
        await router(system).ask(wake(4))
        assert disk.calls["fdatasync"] == before + 1
        assert [(await each.wait()).id for each in replies] == ["w1", "w2", "w3"]


async def test_a_reader_is_answered_once_what_it_is_shown_is_synced(tmp_path: Path) -> None:
    disk = FaultyDisk()
    async with open_inboxes(tmp_path, disk) as system:
        inbox = await opened_inbox(system)
        for unread in (True, False):
            await defer_some(inbox, 1 + unread)
            disk.hold("fdatasync")
            reading = inbox.send_request(ReadInbox(from_handle="pm", unread=unread))
            await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
            assert not reading.is_settled
            disk.release("fdatasync")
            assert ids(await reading.wait())[-1] == f"w{1 + unread}"


async def test_a_waiter_is_woken_at_once_and_costs_one_sync(tmp_path: Path) -> None:
    disk = FaultyDisk()
    async with open_inboxes(tmp_path, disk) as system:
        inbox = await opened_inbox(system)
        await inbox.ask(ReadInbox(from_handle="pm", after="w0"))
        waiting = inbox.send_request(WaitInbox(from_handle="pm", timeout=30))
        before = disk.calls["fdatasync"]
        (reply,) = await defer_some(inbox, 1)
        assert ids(await waiting.wait()) == ["w1"]
        assert (await reply.wait()).status == "landed"
        assert disk.calls["fdatasync"] == before + 1


async def test_a_wait_that_comes_behind_a_deferred_message_ends_with_it(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        inbox = await opened_inbox(system)
        await inbox.ask(ReadInbox(from_handle="pm", after="w0"))
        await defer_some(inbox, 1)
        assert ids(await inbox.ask(WaitInbox(from_handle="pm", timeout=30))) == ["w1"]
        await defer_some(inbox, 2)
        got = await inbox.ask(WaitInbox(from_handle="pm", timeout=30, after="w1"))
        assert ids(got) == ["w2"]


async def test_a_stream_shows_deferred_messages_that_came_before_it_asked_and_after(
    tmp_path: Path,
) -> None:
    async with open_inboxes(tmp_path) as system:
        inbox = await opened_inbox(system)
        place = (await inbox.ask(FollowInbox(handle="pm"))).place
        await defer_some(inbox, 1)
        news = await inbox.ask(FollowInbox(handle="pm", place=place))
        assert [each.id for each in news.messages] == ["w1"]
        waiting = inbox.send_request(FollowInbox(handle="pm", place=news.place))
        await defer_some(inbox, 2)
        assert [each.id for each in (await waiting.wait()).messages] == ["w2"]


async def test_a_sync_may_be_asked_for(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        inbox = await opened_inbox(system)
        replies = await defer_some(inbox, 1, 2)
        inbox.tell(SyncInbox())
        for reply in replies:
            await reply.wait()


@pytest.mark.parametrize(("limit", "most"), [("MAX_DEFERRED", 3), ("MAX_DEFERRED_CHARS", 15)])
async def test_only_so_much_is_deferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(inbox_module, limit, most)
    disk = FaultyDisk()
    async with open_inboxes(tmp_path, disk) as system:
        inbox = await opened_inbox(system)
        before = disk.calls["fdatasync"]
        await defer_some(inbox, 1, 2)
        assert disk.calls["fdatasync"] == before
        for reply in await defer_some(inbox, 3):
            await reply.wait()


async def test_what_a_refused_sync_took_away_is_not_shown_and_is_told_to_its_sender(
    tmp_path: Path,
) -> None:
    disk = FaultyDisk()
    async with open_inboxes(tmp_path, disk) as system:
        inbox = await opened_inbox(system)
        replies = await defer_some(inbox, 1, 2)
        disk.fail("fdatasync", errno.EIO)
        assert ids(await inbox.ask(ReadInbox(from_handle="pm"))) == ["w0"]
        for reply in replies:
            with pytest.raises(StorageError):
                await reply.wait()
        with pytest.raises(Unavailable, match="the previous message to"):
            await inbox.ask(deferred(3, after=2))
        for number in (1, 2):
            await inbox.ask(wake(number))
        assert ids(await inbox.ask(ReadInbox(from_handle="pm"))) == ["w0", "w1", "w2"]


async def test_a_sync_that_hangs_does_not_keep_a_reader_from_what_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_module, "SYNC_PATIENCE_S", 0.05)
    disk = FaultyDisk()
    async with open_inboxes(tmp_path, disk) as system:
        inbox = await opened_inbox(system)
        await defer_some(inbox, 1)
        disk.hold("fdatasync")
        assert ids(await inbox.ask(ReadInbox(from_handle="pm"))) == ["w0"]
        disk.release("fdatasync")
        assert ids(await inbox.ask(ReadInbox(from_handle="pm"))) == ["w0", "w1"]


async def test_a_deferred_message_sent_again_with_a_sync_is_synced_and_there_once(
    tmp_path: Path,
) -> None:
    async with open_inboxes(tmp_path) as system:
        inbox = await opened_inbox(system)
        (first,) = await defer_some(inbox, 1)
        await inbox.ask(wake(1))
        await first.wait()
        assert ids(await inbox.ask(ReadInbox(from_handle="pm"))) == ["w0", "w1"]


async def test_messages_that_wait_for_their_sync_count_against_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "MAX_UNREAD", 3)
    disk = FaultyDisk()
    async with open_inboxes(tmp_path, disk) as system:
        inbox = await opened_inbox(system)
        disk.hold("fdatasync")
        replies = [inbox.send_request(wake(number)) for number in (1, 2)]
        with pytest.raises(Unavailable, match="the inbox of 'pm' is full: 3 messages wait"):
            await inbox.ask(wake(3))
        disk.release("fdatasync")
        for reply in replies:
            await reply.wait()


async def test_the_bodies_of_unread_messages_are_not_kept_in_memory(tmp_path: Path) -> None:
    body = "x" * 100_000
    async with open_inboxes(tmp_path) as system:
        inbox = await opened_inbox(system)
        tracemalloc.start()
        try:
            for number in range(1, 51):
                await inbox.ask(attrs.evolve(wake(number), body=f"{number} {body}"))
            lengths = await lengths_of_bodies(inbox)
            # The thread that read them may still hold its result for a moment.
            while tracemalloc.get_traced_memory()[0] > 10 * len(body):  # noqa: ASYNC110
                await trio.sleep(0.01)
        finally:
            tracemalloc.stop()
        assert lengths == [6, *[100_002] * 9, *[100_003] * 41]


async def lengths_of_bodies(inbox: Ref[Any]) -> list[int]:
    got: MessageList = await inbox.ask(ReadInbox(from_handle="pm", limit=100))
    return [len(each.body) for each in got.messages]


@pytest.mark.parametrize("size", [10, 300_000], ids=["on the loop", "in a thread"])
async def test_a_message_whose_line_was_damaged_since_is_replaced_by_one_that_says_so(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "pm.jsonl"
    async with open_inboxes(tmp_path) as system:
        inbox = await opened_inbox(system)
        await inbox.ask(attrs.evolve(wake(1), body="y" * size))
        await inbox.ask(wake(2))
        path.write_bytes(path.read_bytes().replace(b"yyyy", b"yyyz", 1))
        got = await inbox.ask(ReadInbox(from_handle="pm"))
        assert ids(got) == ["w0", "w1", "w2"]
        damaged = got.messages[1]
        assert damaged.sender == "substrate"
        assert "cannot be read" in damaged.text
        assert "its checksum does not match" in damaged.text
        assert ids(await inbox.ask(ReadInbox(from_handle="pm", after="w1"))) == ["w2"]


async def test_messages_that_were_cut_off_the_file_are_replaced_by_ones_that_say_so(
    tmp_path: Path,
) -> None:
    path = tmp_path / "pm.jsonl"
    async with open_inboxes(tmp_path) as system:
        inbox = await opened_inbox(system)
        await inbox.ask(wake(1))
        path.write_bytes(path.read_bytes()[:-20])
        got = await inbox.ask(ReadInbox(from_handle="pm"))
        assert [each.sender for each in got.messages] == ["term:build", "substrate"]
        assert "the file ends before" in got.messages[1].body
