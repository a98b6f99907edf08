"""Inboxes as actors, on real files: delivery, reading, waiting, handing off, restarting."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio

from aegis.errors import InvalidRequest, NotFound, StorageError, Unavailable
from aegis.inboxes import inbox
from aegis.inboxes import router as inbox_router
from aegis.inboxes.router import HandleSeen
from aegis.protocol.inboxes import Handoff, ReadInbox, WaitInbox
from tests.aegis.inboxes.harness import open_inboxes, router, stall_syncs, wake


async def test_a_delivered_message_is_read_until_it_is_acknowledged(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        receipt = await ref.ask(wake(1))
        assert (receipt.id, receipt.status) == ("w1", "queued")
        for _ in range(2):
            got = await ref.ask(ReadInbox(from_handle="pm"))
            assert [each.id for each in got.messages] == ["w1"]
        assert (await ref.ask(ReadInbox(from_handle="pm", after=got.next))).messages == []
        assert (await ref.ask(ReadInbox(from_handle="pm"))).messages == []


async def test_what_was_acknowledged_is_still_there_when_asked_for_all(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        for number in range(4):
            await ref.ask(wake(number))
            await ref.ask(ReadInbox(from_handle="pm", after=f"w{number}"))
        got = await ref.ask(ReadInbox(from_handle="pm", unread=False, limit=3))
        assert [each.id for each in got.messages] == ["w1", "w2", "w3"]


async def test_an_id_delivered_twice_is_there_once(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(ref.ask, wake(1))
        assert len((await ref.ask(ReadInbox(from_handle="pm"))).messages) == 1


async def test_messages_and_acknowledgements_survive_a_restart(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        for number in range(3):
            await router(system).ask(wake(number))
        await router(system).ask(ReadInbox(from_handle="pm", after="w0"))
    async with open_inboxes(tmp_path) as system:
        got = await router(system).ask(ReadInbox(from_handle="pm"))
        assert [each.id for each in got.messages] == ["w1", "w2"]
        await router(system).ask(wake(0))
        got = await router(system).ask(ReadInbox(from_handle="pm"))
        assert [each.id for each in got.messages] == ["w1", "w2"], "a known id came again"


async def test_all_that_came_is_shown_however_many_times_it_was_acknowledged(
    tmp_path: Path,
) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        for number in range(10):
            await ref.ask(wake(number))
        for number in range(10):
            await ref.ask(ReadInbox(from_handle="pm", after=f"w{number}"))
        got = await ref.ask(ReadInbox(from_handle="pm", unread=False, limit=3))
        assert [each.id for each in got.messages] == ["w7", "w8", "w9"]


async def test_a_wait_ends_with_the_next_message(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        waiting = ref.send_request(WaitInbox(from_handle="pm", timeout=20))
        assert (await ref.ask(ReadInbox(from_handle="pm"))).messages == []
        receipt = await ref.ask(wake(1))
        assert receipt.status == "landed"
        got = await waiting.wait()
        assert [each.text for each in got.messages] == [
            "> from term:build · 2026-05-22T14:03:25Z\nbody 1"
        ]


async def test_a_wait_answers_at_once_when_something_is_unread(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        await ref.ask(wake(1))
        got = await ref.ask(WaitInbox(from_handle="pm", timeout=20))
        assert [each.id for each in got.messages] == ["w1"]
        await ref.ask(wake(2))
        got = await ref.ask(WaitInbox(from_handle="pm", after="w1", timeout=20))
        assert [each.id for each in got.messages] == ["w2"]


async def test_a_wait_without_news_ends_with_an_empty_list(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        got = await router(system).ask(WaitInbox(from_handle="pm", timeout=0.05))
        assert (got.messages, got.next) == ([], None)


async def test_a_newer_wait_ends_the_older_with_an_empty_list(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        older = ref.send_request(WaitInbox(from_handle="pm", timeout=20))
        newer = ref.send_request(WaitInbox(from_handle="PM", timeout=20))
        assert (await older.wait()).messages == []
        await ref.ask(wake(1))
        assert len((await newer.wait()).messages) == 1


async def test_a_waiter_that_went_away_loses_nothing(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        with trio.move_on_after(0.1):
            await ref.ask(WaitInbox(from_handle="pm", timeout=20), timeout=20)
        receipt = await ref.ask(wake(1))
        assert receipt.status == "queued", "nobody was there to take it"
        assert len((await ref.ask(WaitInbox(from_handle="pm", timeout=5))).messages) == 1


async def test_a_handoff_reaches_a_handle_that_was_seen(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        ref.tell(HandleSeen(handle="builder"))
        handoff = Handoff(from_handle="pm", target_handle="Builder", context="run pytest")
        await ref.ask(handoff)
        got = await ref.ask(ReadInbox(from_handle="builder"))
        assert re.fullmatch(
            r"> from agent:pm · \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\nrun pytest", got.messages[0].text
        )


async def test_a_person_hands_off_as_human(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        ref.tell(HandleSeen(handle="builder"))
        await ref.ask(Handoff(target_handle="builder", context="stop"))
        got = await ref.ask(ReadInbox(from_handle="builder"))
        assert got.messages[0].sender == "human"


async def test_a_person_who_has_called_nothing_yet_gets_messages_of_agents(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        await ref.ask(Handoff(from_handle="pm", target_handle="Human", context="done"))
        [message] = (await ref.ask(ReadInbox(from_handle=None))).messages
        assert (message.sender, message.body) == ("agent:pm", "done")


async def test_a_handle_nobody_used_is_refused_with_the_nearest(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        ref.tell(HandleSeen(handle="builder"))
        with pytest.raises(NotFound, match="did you mean 'builder'"):
            await ref.ask(Handoff(from_handle="pm", target_handle="bulider", context="x"))


async def test_a_handle_once_seen_is_known_after_a_restart(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        await router(system).ask(ReadInbox(from_handle="builder"))
    async with open_inboxes(tmp_path) as system:
        await router(system).ask(Handoff(from_handle="pm", target_handle="builder", context="x"))


async def test_a_wrong_cursor_is_refused_and_the_inbox_goes_on(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        with pytest.raises(InvalidRequest):
            await ref.ask(ReadInbox(from_handle="pm", after="never"))
        await ref.ask(wake(1))
        assert len((await ref.ask(ReadInbox(from_handle="pm"))).messages) == 1


async def test_an_inbox_that_cannot_be_opened_fails_alone(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").mkdir()
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        with pytest.raises(StorageError):
            await ref.ask(ReadInbox(from_handle="broken"))
        await ref.ask(wake(1))
        assert len((await ref.ask(ReadInbox(from_handle="pm"))).messages) == 1


async def test_many_senders_share_syncs_and_lose_nothing(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        await ref.ask(wake(0))
        async with trio.open_nursery() as nursery:
            for number in range(1, 201):
                nursery.start_soon(ref.ask, wake(number))
        got = await ref.ask(ReadInbox(from_handle="pm", limit=1000))
        assert {each.id for each in got.messages} == {f"w{number}" for number in range(201)}


@pytest.fixture
def stalled_disk(monkeypatch: pytest.MonkeyPatch) -> trio.Event:
    return stall_syncs(monkeypatch)


@pytest.mark.parametrize(("limit", "most"), [("MAX_ARRIVING", 3), ("MAX_ARRIVING_CHARS", 15)])
async def test_while_the_disk_stalls_only_so_much_is_taken_and_the_rest_is_told(
    tmp_path: Path,
    stalled_disk: trio.Event,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    most: int,
) -> None:
    monkeypatch.setattr(inbox, limit, most)
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        await ref.ask(ReadInbox(from_handle="pm"))
        replies = [ref.send_request(wake(number)) for number in range(3)]
        with pytest.raises(Unavailable, match="3 messages to 'pm' wait to be synced; send again"):
            await ref.ask(wake(3))
        assert (await ref.ask(ReadInbox(from_handle="pm"))).messages == []
        stalled_disk.set()
        for reply in replies:
            await reply.wait()
        await ref.ask(wake(3))
        got = await ref.ask(ReadInbox(from_handle="pm"))
        assert [each.id for each in got.messages] == ["w0", "w1", "w2", "w3"]


async def test_only_so_many_wait_for_an_inbox_to_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_router, "MAX_WAITING", 2)
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        replies = [ref.send_request(wake(number)) for number in range(3)]
        with pytest.raises(Unavailable, match="the inbox of 'pm' is still being opened"):
            await replies[2].wait()
        for reply in replies[:2]:
            await reply.wait()
        await ref.ask(wake(2))
        assert len((await ref.ask(ReadInbox(from_handle="pm"))).messages) == 3
