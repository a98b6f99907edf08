"""What inboxes promise to senders and readers, over a simulated disk: each as a short history."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
import trio

from actors import ActorError, AskError
from actors.faults import RUNTIME, Crash, Plan, armed
from aegis.errors import (
    Busy,
    Forbidden,
    InvalidRequest,
    NotFound,
    StorageError,
    Unavailable,
)
from aegis.inboxes.faults import INBOXES
from aegis.journal.archive import Keep
from aegis.journal.ledger import decode_line
from aegis.protocol.feeds import FollowInbox
from aegis.protocol.inboxes import (
    Message,
    Place,
    ReadInbox,
    Receipt,
    ReleaseInbox,
    SyncInbox,
    WaitInbox,
)
from tests.aegis.inboxes.office import (
    DIRECTORY,
    TIME,
    Office,
    deferred,
    handoff,
    ids,
    limited,
    message_line,
    note,
    play,
    read_line,
    sealed,
    wake,
)

FEW = Keep(newest=2, days=0)
RECORDINGS = Path(__file__).parents[2] / "recordings"

FULL = re.compile(r"the inbox of 'pm' is full: \d+ messages wait to be read and acknowledged")


def reading(**fields: Any) -> ReadInbox:
    return ReadInbox(**({"from_handle": "pm"} | fields))


def awaiting(**fields: Any) -> WaitInbox:
    return WaitInbox(**({"from_handle": "pm"} | fields))


def following(**fields: Any) -> FollowInbox:
    return FollowInbox(**({"handle": "pm"} | fields))


# Delivering and reading.


def test_a_delivered_message_is_shown_until_it_is_acknowledged() -> None:
    async def story(office: Office) -> None:
        assert await office.deliver(note(1)) == [Receipt(id="n1", status="queued", position=0)]
        assert await office.deliver(note(2)) == [Receipt(id="n2", status="queued", position=1)]
        for _ in range(2):
            found = await office.read()
            assert (ids(found), found.next) == (["n1", "n2"], "n2")
        found = await office.read(after="n1")
        assert (ids(found), found.next) == (["n2"], "n2")
        found = await office.read(after="n2")
        assert (found.messages, found.next) == ([], None)
        assert await office.unread() == []
        assert await office.deliver(note(3)) == [Receipt(id="n3", status="queued", position=0)]

    play(story)


def test_a_message_is_shown_with_all_its_fields_and_as_text() -> None:
    async def story(office: Office) -> None:
        await office.deliver(
            note(1, "hello", task_id="01J", status="ok"),
            note(2, "", task_id="01J"),
            note(3, "lost", sender="substrate", status="error"),
        )
        head = "> from agent:ann · task#01J · ok · 2026-05-22T14:03:25Z"
        expected = Message(
            id="n1",
            sender="agent:ann",
            body="hello",
            text=f"{head}\nhello",
            timestamp=TIME,
            task_id="01J",
            status="ok",
        )
        for _ in range(2):
            found = await office.read()
            assert found.messages[0] == expected
            assert [each.text for each in found.messages[1:]] == [
                "> from agent:ann · task#01J · 2026-05-22T14:03:25Z\n",
                "> from substrate · error · 2026-05-22T14:03:25Z\nlost",
            ]
            assert (await office.read(unread=False)).messages == found.messages
            await office.restart(power_fails=True)

    play(story)


def test_the_secret_of_a_session_url_is_hidden_and_no_line_reads_as_a_header() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1, "use http://127.0.0.1:8/mcp/s/c2VjcmV0 for it\n> from human"))
        found = await office.message()
        shown = "use http://127.0.0.1:8/mcp/s/\u2039secret\u203a for it\n"
        assert found.body == f"{shown}> from human"
        assert found.text.endswith(f"Z\n{shown}| > from human")
        assert b"c2VjcmV0" not in office.data()

    play(story)


def test_at_most_so_many_messages_are_returned_oldest_first() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(60)))
        expected = [f"n{each}" for each in range(60)]
        assert await office.unread(limit=3) == expected[:3]
        assert await office.unread() == expected
        found = await office.read(limit=3, after="n9")
        assert (ids(found), found.next) == (["n10", "n11", "n12"], "n12")
        assert ids(await office.wait()) == expected[10:]

    play(story)


def test_acknowledged_messages_are_returned_to_those_who_ask_for_all() -> None:
    async def story(office: Office) -> None:
        assert await office.all() == []
        for number in range(10):
            await office.deliver(note(number))
            await office.unread(after=f"n{number}")
        for number in range(10):
            await office.unread(after=f"n{number}")
        await office.deliver(note(10))
        for _ in range(2):
            found = await office.read(unread=False, limit=3)
            assert (ids(found), found.next) == (["n8", "n9", "n10"], "n10")
            assert found.messages[0].body == "body 8"
            assert await office.all() == [f"n{number}" for number in range(11)]
            await office.restart(power_fails=True)
        found = await office.read(unread=False, after="n10")
        assert ids(found) == [f"n{number}" for number in range(11)]
        assert await office.unread() == []

    play(story)


def test_the_newest_of_all_cannot_be_acknowledged_before_an_unread_one_that_is_not_shown() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(7)))
        await office.unread(after="n1")
        found = await office.read(unread=False, limit=4)
        assert (ids(found), found.next) == (["n3", "n4", "n5", "n6"], None)
        found = await office.read(unread=False, limit=5)
        assert (ids(found), found.next) == ([f"n{each}" for each in range(2, 7)], "n6")
        await office.restart(power_fails=True)
        assert await office.unread(limit=1) == ["n2"]
        assert await office.unread(after="n6") == []
        found = await office.read(unread=False, limit=2)
        assert (ids(found), found.next) == (["n5", "n6"], "n6"), "nothing is unread"

    play(story)


def test_the_newest_messages_are_returned_within_a_bound_of_their_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1, "x" * 500), note(2, "x" * 500), note(3, "x" * 500))
        limited(monkeypatch, MAX_SHOWN_BYTES=1_500)
        assert await office.all() == ["n2", "n3"]
        limited(monkeypatch, MAX_SHOWN_BYTES=1)
        assert await office.all() == ["n3"], "one is always returned"

    play(story)


def test_each_handle_has_an_inbox_of_its_own_in_any_case_of_its_letters() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1), note(1, handle="Bob"), note(2, handle="bob"))
        assert await office.unread("PM") == ["n1"]
        assert await office.unread("BOB") == ["n1", "n2"]
        assert await office.unread("human") == []
        await office.deliver(note(3, handle="human"))
        found = await office.ask(ReadInbox())
        assert ids(found) == ["n3"], "a person is called human"
        await office.restart()
        assert await office.unread("BOB") == ["n1", "n2"]
        assert [each for each in office.files() if "ob" in each] == ["/state/inboxes/Bob.jsonl"]

    play(story)


# Acknowledging.


def test_two_readers_may_acknowledge_the_same_message_at_the_same_moment() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(5)))
        for again in range(3):
            read = ReadInbox(from_handle="pm", limit=1_000, after=f"n{again}")
            answers = [office.ask_soon(read) for _ in range(3)]
            await office.settles()
            for each in answers:
                assert ids(each.value) == [f"n{number}" for number in range(again + 1, 5)]
        await office.restart(power_fails=True)
        assert await office.unread() == ["n3", "n4"]

    play(story)


def test_acknowledging_takes_the_message_and_all_older_ones_and_twice_changes_nothing() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(5)))
        assert await office.unread(after="n2") == ["n3", "n4"]
        written = office.data()
        for cursor in ("n2", "n0", "n1"):
            assert await office.unread(after=cursor) == ["n3", "n4"]
        assert office.data() == written, "nothing new is written"
        await office.deliver(note(5))
        assert await office.unread(after="n2") == ["n3", "n4", "n5"]
        await office.restart(power_fails=True)
        assert await office.unread() == ["n3", "n4", "n5"]
        assert await office.unread(after="n1") == ["n3", "n4", "n5"]

    play(story)


def test_an_unknown_cursor_is_refused_and_acknowledges_nothing() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1))
        sentence = "after 'n2' is not the 'next' of an earlier reply of this inbox"
        error = await office.refused(reading(after="n2"))
        assert (type(error), str(error)) == (InvalidRequest, sentence)
        assert await office.refusal(awaiting(after="n2")) == sentence
        assert await office.unread() == ["n1"]

    play(story)


def test_an_acknowledgement_is_durable_when_it_is_answered() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(4)))
        for number, unread in enumerate((True, False)):
            reader = office.ask_soon(reading(after=f"n{number}", unread=unread))
            await office.yields()
            assert not reader.has_come
            await office.settles()
            assert ids(reader.value)[-1] == "n3"
            await office.restart(power_fails=True)
            assert await office.unread() == [f"n{each}" for each in range(number + 1, 4)]
        waiter = office.wait_soon(after="n2")
        await office.yields()
        assert not waiter.has_come
        await office.settles()
        assert ids(waiter.value) == ["n3"]
        await office.restart(power_fails=True)
        assert await office.unread() == ["n3"]

    play(story)


@pytest.mark.parametrize("call", ["write", "fdatasync"])
def test_an_acknowledgement_that_the_disk_refused_may_be_made_again(call: str) -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(3)))
        office.refuse(call)
        for _ in range(2):
            assert isinstance(await office.refused(reading(after="n1")), StorageError)
            assert isinstance(await office.refused(awaiting(after="n1")), StorageError)
        assert await office.unread() == ["n0", "n1", "n2"]
        office.accept()
        assert await office.unread() == ["n0", "n1", "n2"]
        assert await office.unread(after="n1") == ["n2"]
        await office.restart(power_fails=True)
        assert await office.unread() == ["n2"]

    play(story)


def test_of_several_readers_that_acknowledge_at_once_each_gets_what_is_left_then() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(5)))
        readers = [office.ask_soon(reading(after=each)) for each in ("n2", "n0", "n1")]
        await office.settles()
        assert [ids(each.value) for each in readers] == [["n3", "n4"]] * 3
        assert await office.unread() == ["n3", "n4"]

    play(story)


# A message is delivered once.


def test_a_repeated_id_is_delivered_once_while_it_is_written_and_after() -> None:
    async def story(office: Office) -> None:
        again = note(1, "another body")
        first = [office.ask_soon(each) for each in (note(1), again, again)]
        await office.settles()
        assert [each.value.id for each in first] == ["n1"] * 3
        assert await office.deliver(again) == [Receipt(id="n1", status="queued", position=0)]
        assert (await office.message()).body == "body 1"
        await office.unread(after="n1")
        await office.deliver(again)
        assert await office.unread() == []
        for power_fails in (False, True):
            await office.restart(power_fails=power_fails)
            await office.deliver(again)
            assert await office.unread() == []
        assert await office.all() == ["n1"]
        await office.crash_inbox()
        await office.deliver(again)
        assert await office.all() == ["n1"]

    play(story)


@pytest.mark.long
@pytest.mark.one_python
def test_a_hundred_thousand_ids_are_known_after_a_restart() -> None:
    async def story(office: Office) -> None:
        lines = [sealed(message_line(note(each))) for each in range(100_001)]
        start = sum(map(len, lines[:-1]))
        await office.restart_with([*lines, sealed(read_line("n100000", start))])
        assert await office.unread() == []
        await office.fill(note(each) for each in range(0, 100_001, 13))
        assert await office.unread() == []

    play(story)


@pytest.mark.parametrize("seed", range(4))
def test_an_id_that_was_known_is_known_after_a_restart(seed: int) -> None:
    async def story(office: Office) -> None:
        chance = office.chance
        for number in range(60):
            await office.deliver(note(number))
            unread = await office.unread()
            if chance.random() < 0.4:
                await office.unread(after=chance.choice(unread))
            if chance.random() < 0.3:
                await office.restart(power_fails=True)
                unread = await office.unread()
                await office.deliver(*map(note, range(number + 1)))
                assert await office.unread() == unread, "a sender sends again what it is unsure of"

    play(story, seed=seed, keep=FEW)


# Durability.


def test_a_message_is_confirmed_and_shown_once_it_is_durable() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        place = await office.follow()
        stream = office.follow_soon(place)
        sent = office.ask_soon(note(1))
        again = office.ask_soon(note(1))
        await office.yields()
        assert len(office.lines()) == 2
        assert await office.unread() == ["n0"]
        assert await office.all() == ["n0"]
        assert not any(each.has_come for each in (sent, again, stream))
        await office.settles()
        assert (sent.value.position, again.value.id, ids(stream.value)) == (1, "n1", ["n1"])
        await office.restart(power_fails=True)
        assert await office.unread() == ["n0", "n1"]

    play(story)


def test_what_was_confirmed_survives_a_loss_of_power_and_the_rest_is_not_shown_before() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        sent = office.ask_soon(note(1))
        await office.yields()
        assert not sent.has_come
        await office.restart(power_fails=True)
        assert await office.unread() == ["n0"]
        await office.deliver(note(1))
        sent = office.ask_soon(note(2))
        await office.yields()
        await office.restart()
        assert await office.unread() == ["n0", "n1", "n2"], "a kill loses nothing that is written"

    play(story)


@pytest.mark.parametrize("call", ["write", "fdatasync"])
def test_a_message_that_the_disk_refused_may_be_sent_again(call: str) -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        office.refuse(call)
        for _ in range(3):
            errors = [office.ask_soon(note(each)) for each in (1, 2, 1)]
            await office.settles()
            assert {type(each.error) for each in errors} == {StorageError}
            assert len({id(each.error) for each in errors}) == 3
            assert await office.unread() == ["n0"]
            assert await office.all() == ["n0"]
        before = office.inbox()
        office.accept()
        await office.deliver(note(2), note(1))
        assert await office.unread() == ["n0", "n2", "n1"]
        assert office.inbox() is before, "a disk that refuses is no crash"
        await office.restart(power_fails=True)
        assert await office.unread() == ["n0", "n2", "n1"]

    play(story)


@pytest.mark.parametrize("call", ["open", "pread", "size"])
def test_an_inbox_that_cannot_be_opened_is_tried_by_each_request(call: str) -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        await office.stop()
        await office.start()
        office.refuse(call)
        requests = (note(1), reading(), awaiting(), reading(unread=False))
        for each in requests:
            assert isinstance(await office.refused(each), StorageError)
        assert isinstance(await office.refused(following()), StorageError)
        before = office.inbox()
        office.accept()
        await office.deliver(note(1))
        assert await office.unread() == ["n0", "n1"]
        assert office.inbox() is before

    play(story)


def test_a_disk_that_cannot_be_read_is_reported_to_the_reader_alone() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0), note(1, "x" * 300_000), note(2))
        place = await office.follow(after="n0")
        office.refuse("pread")
        for request in (reading(), reading(limit=1), awaiting(), following(place=place.place)):
            assert isinstance(await office.refused(request), StorageError)
        office.refuse("open")
        assert isinstance(await office.refused(reading(unread=False)), StorageError)
        assert isinstance(await office.refused(reading()), StorageError), "read in a thread"
        await office.deliver(note(3))
        office.accept()
        assert await office.unread() == ["n0", "n1", "n2", "n3"]

    play(story)


def test_one_inbox_whose_file_cannot_be_opened_fails_alone() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1, handle="bob"))
        office.refuse_to_open("pm.jsonl")
        assert isinstance(await office.refused(note(1)), StorageError)
        await office.deliver(note(2, handle="bob"))
        assert await office.unread("bob") == ["n1", "n2"]

    play(story)


def test_while_the_disk_stalls_readers_get_what_is_durable() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        office.stall(100)
        sent = office.ask_soon(note(1))
        await office.settles()
        assert await office.unread() == ["n0"]
        assert not sent.has_come
        await office.passes(100)
        assert sent.value.position == 1
        assert await office.unread() == ["n0", "n1"]

    play(story)


# The order of one sender.


def test_a_message_behind_one_that_was_not_stored_is_refused() -> None:
    async def story(office: Office) -> None:
        second = note(2, after="n1")
        await office.deliver(note(0))
        office.refuse("fdatasync")
        assert isinstance(await office.refused(note(1)), StorageError)
        office.accept()
        error = await office.refused(second)
        sentence = "the previous message to 'pm' could not be stored: send both again"
        assert (type(error), str(error)) == (Unavailable, sentence)
        await office.deliver(note(1), second, note(3, after="n2"))
        assert await office.unread() == ["n0", "n1", "n2", "n3"]
        await office.unread(after="n3")
        await office.deliver(note(4, after="n3"))
        assert await office.unread() == ["n4"]

    play(story)


def test_a_message_may_be_sent_behind_one_that_is_being_written() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        before = office.syncs
        chain = [note(1), *(note(each, after=f"n{each - 1}") for each in range(2, 9))]
        sent = [office.router.send_request(each) for each in chain]
        for each in sent:
            await each.wait()
        assert office.syncs - before < 4, "they share syncs"
        assert await office.unread() == [f"n{each}" for each in range(9)]
        office.refuse("fdatasync")
        both = [office.ask_soon(each) for each in (note(9), note(10, after="n9"))]
        await office.settles()
        assert [type(each.error) for each in both] == [StorageError] * 2

    play(story)


# Deferred messages.


def test_a_deferred_message_is_written_at_once_and_confirmed_by_the_next_sync() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        before = office.syncs
        sent = await office.defer(1, 2, 3)
        await office.passes(60)
        assert len(office.lines()) == 4
        assert office.syncs == before
        assert not any(each.has_come for each in sent)
        await office.deliver(note(4))
        await office.yields()
        assert office.syncs == before + 1
        assert [each.value.id for each in sent] == ["n1", "n2", "n3"]
        assert [each.value.position for each in sent] == [1, 2, 3]

    play(story)


def test_a_reader_is_answered_once_the_deferred_messages_are_durable() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        for number, unread in ((1, True), (2, False)):
            await office.defer(number)
            reader = office.ask_soon(reading(unread=unread))
            await office.yields()
            assert not reader.has_come
            await office.settles()
            assert ids(reader.value)[-1] == f"n{number}"
            await office.restart(power_fails=True)
            assert (await office.unread())[-1] == f"n{number}"

    play(story)


def test_a_waiter_is_answered_with_a_deferred_message_at_once_by_one_sync() -> None:
    async def story(office: Office) -> None:
        await office.unread()
        waiter = office.wait_soon()
        await office.settles()
        before = office.syncs
        [sent] = await office.defer(1)
        assert ids(waiter.value) == ["n1"]
        assert sent.value == Receipt(id="n1", status="landed", position=0)
        assert office.syncs == before + 1
        assert await office.unread(after="n1") == []
        await office.defer(2)
        assert ids(await office.wait()) == ["n2"], "it was deferred before the wait"
        await office.defer(3)
        assert ids(await office.wait(after="n2")) == ["n3"]

    play(story)


def test_a_wait_that_begins_during_the_sync_of_an_acknowledgement_ends_with_later_messages() -> (
    None
):
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        office.stall(1)
        waiter = office.wait_soon(after="n0")
        await office.settles()
        [sent] = await office.defer(1)
        await office.passes(2)
        assert ids(waiter.value) == ["n1"]
        assert sent.has_come

    play(story)


def test_a_stream_gets_deferred_messages_that_came_before_it_asked_and_after() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        place = await office.follow()
        await office.defer(1)
        news = await office.follow(place)
        assert ids(news) == ["n1"]
        stream = office.follow_soon(news)
        await office.settles()
        await office.defer(2)
        assert ids(stream.value) == ["n2"]
        stream.give_up()

    play(story)


def test_after_all_readers_gave_up_deferred_messages_wait_for_a_sync() -> None:
    async def story(office: Office) -> None:
        await office.unread()
        stream, waiter = office.follow_soon(await office.follow()), office.wait_soon()
        await office.settles()
        stream.give_up()
        waiter.give_up()
        await office.settles()
        before = office.syncs
        [sent] = await office.defer(1)
        assert (office.syncs, sent.has_come) == (before, False)
        assert await office.unread() == ["n1"]
        await office.yields()
        assert sent.value.status == "queued"

    play(story)


def test_senders_may_ask_for_the_sync() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        before = office.syncs
        office.inbox().tell(SyncInbox())
        await office.settles()
        assert office.syncs == before, "there is nothing to sync"
        sent = await office.defer(1, 2)
        office.inbox().tell(SyncInbox())
        await office.settles()
        assert all(each.has_come for each in sent)
        assert office.syncs == before + 1

    play(story)


@pytest.mark.parametrize(("limit", "most"), [("MAX_DEFERRED", 3), ("MAX_DEFERRED_CHARS", 18)])
def test_a_bounded_number_of_messages_is_deferred(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    limited(monkeypatch, **{limit: most})

    async def story(office: Office) -> None:
        await office.deliver(note(0))
        for first in (1, 4):
            before = office.syncs
            sent = await office.defer(first, first + 1)
            assert office.syncs == before
            sent += await office.defer(first + 2)
            assert all(each.has_come for each in sent)

    play(story)


def test_deferred_messages_that_a_sync_took_away_are_not_shown_and_their_senders_know() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        sent = await office.defer(1, 2)
        office.plan.refuse_one("fdatasync", 1)
        assert await office.unread() == ["n0"], "a reader gets what is durable"
        await office.yields()
        assert [type(each.error) for each in sent] == [StorageError] * 2
        assert isinstance(await office.refused(deferred(3, after=2)), Unavailable)
        await office.deliver(note(1), note(2))
        assert await office.unread() == ["n0", "n1", "n2"]

    play(story)


def test_a_reader_waits_two_seconds_for_deferred_messages_and_gets_the_durable_ones() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        await office.defer(1)
        office.stall(100)
        began = trio.current_time()
        readers = [office.ask_soon(each) for each in (reading(), reading(unread=False))]
        await office.passes(1.5)
        assert not any(each.has_come for each in readers)
        await office.passes(0.5)
        assert [ids(each.value) for each in readers] == [["n0"]] * 2
        assert [round(each.at - began, 1) for each in readers] == [2.0, 2.0]
        place = await office.follow()
        stream = office.follow_soon(place)
        await office.passes(100)
        assert ids(stream.value) == ["n1"]
        assert await office.unread() == ["n0", "n1"]

    play(story)


def test_an_acknowledgement_waits_for_its_sync_however_long_it_takes() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        await office.defer(1)
        office.stall(100)
        reader = office.ask_soon(reading(after="n0"))
        await office.passes(90)
        assert not reader.has_come
        await office.passes(10)
        assert ids(reader.value) == ["n1"]

    play(story)


def test_a_deferred_message_that_is_sent_again_with_a_sync_is_synced() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        [first] = await office.defer(1)
        [again] = await office.defer(1)
        assert not any(each.has_come for each in (first, again))
        await office.deliver(note(1))
        await office.yields()
        assert first.value.id == again.value.id == "n1"
        assert await office.unread() == ["n0", "n1"]

    play(story)


# Waiting.


def test_a_wait_ends_with_the_next_message_whose_sender_knows_that_it_landed() -> None:
    async def story(office: Office) -> None:
        waiter = office.wait_soon()
        await office.settles()
        assert await office.unread() == []
        assert not waiter.has_come
        assert await office.deliver(note(1)) == [Receipt(id="n1", status="landed", position=0)]
        await office.yields()
        assert (ids(waiter.value), waiter.value.next) == (["n1"], "n1")
        assert await office.deliver(note(2)) == [Receipt(id="n2", status="queued", position=1)]
        assert ids(await office.wait()) == ["n1", "n2"], "unread ones are returned at once"

    play(story)


def test_a_wait_without_messages_ends_with_an_empty_list_in_time() -> None:
    async def story(office: Office) -> None:
        began = trio.current_time()
        waiter = office.wait_soon(timeout=20)
        await office.passes(19)
        assert not waiter.has_come
        await office.passes(1)
        assert (waiter.value.messages, waiter.value.next) == ([], None)
        assert round(waiter.at - began, 1) == 20
        assert (await office.deliver(note(1)))[0].status == "queued"

    play(story)


def test_a_newer_wait_ends_the_older_one_and_its_timeout_is_its_own() -> None:
    async def story(office: Office) -> None:
        older = office.wait_soon(timeout=20)
        await office.passes(5)
        newer = office.wait_soon("PM", timeout=40)
        await office.settles()
        assert older.value.messages == []
        await office.passes(20)
        assert not newer.has_come
        await office.deliver(note(1))
        await office.yields()
        assert ids(newer.value) == ["n1"]
        later = office.wait_soon(timeout=60, after="n1")
        await office.passes(50)
        assert not later.has_come, "the timeouts of earlier waits have passed"

    play(story)


def test_a_waiter_that_gave_up_loses_nothing() -> None:
    async def story(office: Office) -> None:
        waiter = office.wait_soon()
        await office.settles()
        waiter.give_up()
        await office.settles()
        assert (await office.deliver(note(1)))[0].status == "queued"
        assert ids(await office.wait()) == ["n1"]

    play(story)


def test_waits_end_with_an_error_when_the_daemon_stops() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1, handle="bob"))
        waiter = office.wait_soon()
        await office.settles()
        await office.end_waits()
        sentence = "aegis_inbox_wait: the daemon is stopping; messages are kept"
        assert isinstance(waiter.error, Unavailable)
        assert str(waiter.error) == sentence
        assert await office.refusal(awaiting(from_handle="bob")) == sentence
        assert await office.unread("bob") == ["n1"]

    play(story)


# Streams.


def test_a_stream_gets_each_later_message_once_in_order() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1), note(2))
        first = await office.follow()
        assert (ids(first), first.missed) == ([], 0)
        stream = office.follow_soon(first)
        await office.settles()
        assert not stream.has_come
        await office.deliver(note(3))
        await office.yields()
        assert (ids(stream.value), stream.value.missed) == (["n3"], 0)
        await office.deliver(*map(note, (4, 5, 6)))
        news = await office.follow(stream.value, limit=2)
        assert (ids(news), news.missed) == (["n4", "n5"], 0)
        news = await office.follow(news)
        assert (ids(news), news.missed) == (["n6"], 0)
        assert news.messages[0].text.endswith("Z\nbody 6")
        assert await office.unread() == [f"n{each}" for each in range(1, 7)], "none is acknowledged"

    play(story)


def test_a_stream_waits_on_through_changes_that_bring_it_no_message() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1), note(2))
        last = await office.follow()
        stream = office.follow_soon(last)
        await office.settles()
        await office.unread(after="n1")
        await office.unread(after="n2")
        assert not stream.has_come
        await office.deliver(note(3))
        await office.settles()
        assert ids(stream.value) == ["n3"]

    play(story)


def test_a_stream_may_begin_behind_a_known_message() -> None:
    async def story(office: Office) -> None:
        empty = await office.follow()
        await office.deliver(*map(note, (1, 2, 3)))
        assert ids(await office.follow(empty)) == ["n1", "n2", "n3"]
        place = await office.follow(after="n1")
        assert (ids(place), ids(await office.follow(place))) == ([], ["n2", "n3"])
        error = await office.refused(following(after="zz"))
        assert type(error) is InvalidRequest
        assert str(error) == "no message 'zz' was ever in this inbox"
        await office.unread(after="n2")
        news = await office.follow(await office.follow(after="n2"))
        assert (ids(news), news.missed) == (["n3"], 0)
        news = await office.follow(place)
        assert (ids(news), news.missed) == (["n3"], 1), "it was acknowledged meanwhile"

    play(story)


def test_messages_that_were_acknowledged_meanwhile_are_counted_as_missed() -> None:
    async def story(office: Office) -> None:
        place = await office.follow()
        await office.deliver(*map(note, (1, 2, 3, 4)))
        await office.unread(after="n2")
        news = await office.follow(place)
        assert (ids(news), news.missed) == (["n3", "n4"], 2)

    play(story)


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_stream_continues_at_its_place_after_a_crash_and_a_restart(power_fails: bool) -> None:
    async def story(office: Office) -> None:
        await office.deliver(*map(note, (1, 2)))
        place = await office.follow(after="n1")
        await office.crash_inbox()
        news = await office.follow(place)
        assert (ids(news), news.missed) == (["n2"], 0)
        await office.unread(after="n1")
        await office.restart(power_fails=power_fails)
        await office.deliver(note(3))
        assert ids(await office.follow(place)) == ["n2", "n3"]
        assert ids(await office.follow(news)) == ["n3"]

    play(story)


def test_a_bounded_number_of_streams_waits_and_those_that_gave_up_leave_their_place() -> None:
    async def story(office: Office) -> None:
        place = await office.follow()
        streams = [office.follow_soon(place) for _ in range(256)]
        await office.settles()
        error = await office.refused(following(place=place.place))
        assert type(error) is Busy
        assert str(error) == "256 streams follow this inbox already; close one first"
        for each in streams[:3]:
            each.give_up()
        await office.settles()
        streams.append(office.follow_soon(place))
        await office.settles()
        await office.deliver(note(1))
        await office.yields()
        assert all(ids(each.value) == ["n1"] for each in streams[3:])
        assert office.system.late_replies == 0

    play(story)


def test_a_stream_is_told_of_a_crash_and_asks_again() -> None:
    async def story(office: Office) -> None:
        place = await office.follow()
        stream, waiter = office.follow_soon(place), office.wait_soon()
        await office.settles()
        await office.crash_inbox()
        assert isinstance(stream.error, (ActorError, Unavailable))
        assert isinstance(waiter.error, Unavailable)
        assert str(waiter.error) == (
            "the inbox of 'pm' ended before it could answer; call again: nothing that it confirmed "
            "is lost"
        )
        stream = office.follow_soon(place)
        await office.deliver(note(1))
        await office.settles()
        assert ids(stream.value) == ["n1"]

    play(story)


# Limits.


def test_a_full_inbox_takes_no_more_and_says_why() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(10_000)))
        error = await office.refused(note(10_000))
        assert (type(error), str(error)) == (
            Unavailable,
            "the inbox of 'pm' is full: 10000 messages wait to be read and acknowledged with "
            "aegis_inbox_read",
        )
        await office.deliver(note(5), note(0, handle="bob"))
        await office.restart(power_fails=True)
        assert FULL.match(await office.refusal(note(10_000)))
        await office.read(after="n0", limit=1)
        await office.deliver(note(10_000))
        assert FULL.match(await office.refusal(note(10_001)))
        assert len(await office.all()) == 1_000

    play(story)


def test_an_inbox_is_full_by_the_size_of_its_unread_messages_too() -> None:
    async def story(office: Office) -> None:
        long = "x" * (4 * 1024 * 1024)
        await office.deliver(*(note(each, long) for each in range(8)))
        assert FULL.match(await office.refusal(note(8)))
        await office.restart()
        assert FULL.match(await office.refusal(note(8)))
        await office.read(after="n0", limit=1)
        await office.deliver(note(8, long[1:]), note(9, "x"))
        assert FULL.match(await office.refusal(note(10)))

    play(story)


def test_messages_that_wait_for_their_sync_take_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, MAX_UNREAD=3)

    async def story(office: Office) -> None:
        await office.deliver(note(0))
        sent = [office.ask_soon(note(each)) for each in (1, 2, 3)]
        await office.settles()
        assert [each.error is None for each in sent] == [True, True, False]
        assert FULL.match(str(sent[2].error))
        await office.unread(after="n2")
        limited(monkeypatch, MAX_UNREAD=10_000, MAX_UNREAD_CHARS=100)
        sent = [office.ask_soon(note(each, "x" * 60)) for each in (4, 5, 6)]
        await office.settles()
        assert [each.error is None for each in sent] == [True, True, False]
        await office.unread(after="n5")
        office.plan.refuse_one("fdatasync", 1)
        await office.refused(note(7, "x" * 100))
        await office.deliver(note(8, "x" * 100))
        assert FULL.match(await office.refusal(note(9)))

    play(story)


@pytest.mark.parametrize(("limit", "most"), [("MAX_ARRIVING", 3), ("MAX_ARRIVING_CHARS", 18)])
def test_while_the_disk_stalls_a_bounded_number_of_messages_is_taken(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    limited(monkeypatch, **{limit: most})

    async def story(office: Office) -> None:
        await office.unread()
        office.stall(10)
        sent = [office.ask_soon(note(each)) for each in (0, 1, 2)]
        await office.settles()
        again = office.ask_soon(note(1))
        sentence = "the disk is slow: 3 messages to 'pm' wait to be synced; send again later"
        error = await office.refused(note(3))
        assert (type(error), str(error)) == (Unavailable, sentence)
        assert await office.unread() == []
        await office.passes(10)
        assert all(each.value.status == "queued" for each in (*sent, again))
        await office.deliver(note(3))
        assert await office.unread() == ["n0", "n1", "n2", "n3"]

    play(story)


def test_a_bounded_number_of_requests_waits_for_an_inbox_to_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limited(monkeypatch, MAX_WAITING=2)

    async def story(office: Office) -> None:
        sent = [office.ask_soon(note(each)) for each in range(3)]
        await office.settles()
        errors = [each.error for each in sent if each.error is not None]
        assert [type(each) for each in errors] == [Unavailable]
        assert str(errors[0]) == "the inbox of 'pm' is still being opened; call again"
        await office.deliver(*map(note, range(3)))
        assert sorted(await office.unread()) == ["n0", "n1", "n2"]

    play(story)


def test_a_bounded_number_of_handles_exists_beside_those_of_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limited(monkeypatch, MAX_HANDLES=2)

    async def story(office: Office) -> None:
        office.sessions.ids |= {f"s{each}": f"id-{each}" for each in range(4)}
        await office.see("pm")
        await office.deliver(*(note(each, handle=f"s{each}") for each in range(3)))
        await office.deliver(note(1, handle="dev"))
        for _ in range(2):
            error = await office.refused(note(1, handle="more"))
            assert (type(error), str(error)) == (
                Unavailable,
                "2 handles exist, which is the limit",
            )
        await office.deliver(note(2, handle="dev"), note(1, handle="s3"))

    play(story)


# Handoffs.


def test_a_handoff_reaches_a_handle_that_was_seen_in_any_case_of_its_letters() -> None:
    async def story(office: Office) -> None:
        await office.see("ann")
        receipt = await office.ask(handoff("run pytest", "Ann"))
        assert (receipt.status, receipt.position) == ("queued", 0)
        found = await office.message(handle="ann")
        assert (found.id, found.sender, found.body) == (receipt.id, "agent:pm", "run pytest")
        when = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
        assert re.fullmatch(rf"> from agent:pm · {when}\nrun pytest", found.text)
        await office.restart()
        await office.ask(handoff(target="ann"))
        assert len(await office.unread("ann")) == 2

    play(story)


def test_a_handle_that_was_seen_is_known_after_a_restart() -> None:
    async def story(office: Office) -> None:
        await office.see("ann")
        await office.restart()
        await office.ask(handoff(target="ann"))
        assert len(await office.unread("ann")) == 1

    play(story)


def test_other_files_in_the_directory_are_no_handles() -> None:
    async def story(office: Office) -> None:
        await office.restart_with([message_line(note(1))])
        for name in ("notes.txt", "a b.jsonl", "ann"):
            fd = office.disk.open(DIRECTORY / name, os.O_WRONLY | os.O_CREAT)
            office.disk.close(fd)
        await office.restart()
        assert await office.refusal(handoff(target="zoe")) == (
            "nobody called 'zoe' has been here yet; handles seen so far: pm"
        )

    play(story)


def test_a_person_hands_off_as_human_and_gets_messages_before_the_first_call() -> None:
    async def story(office: Office) -> None:
        await office.see("ann")
        for by in (None, "human", "Human"):
            await office.ask(handoff(target="ann", by=by))
        found = await office.read("ann")
        assert [each.sender for each in found.messages] == ["human"] * 3
        assert office.sessions.checked == [], "a person may write to everybody"
        await office.ask(handoff("done", target="Human", by="ann"))
        found = await office.ask(ReadInbox(from_handle=None))
        assert [(each.sender, each.body) for each in found.messages] == [("agent:ann", "done")]

    play(story)


def test_a_handle_that_nobody_used_is_refused_with_the_nearest() -> None:
    async def story(office: Office) -> None:
        error = await office.refused(handoff(target="builder"))
        assert (type(error), str(error)) == (
            NotFound,
            "nobody called 'builder' has been here yet; handles seen so far: none",
        )
        await office.see("ann", "Bob")
        assert await office.refusal(handoff(target="zoe")) == (
            "nobody called 'zoe' has been here yet; handles seen so far: Bob, ann"
        )
        assert await office.refusal(handoff(target="an")) == (
            "nobody called 'an' has been here yet; did you mean 'ann'?"
        )
        assert await office.unread("ann") == []

    play(story)


def test_a_repeated_key_is_delivered_once_with_the_same_id() -> None:
    async def story(office: Office) -> None:
        await office.see("ann")
        first = await office.ask(handoff("run", "ann", key="k1"))
        again = await office.ask(handoff("run it again", "ann", by="PM", key="k1"))
        other = await office.ask(handoff("run", "ann", key="k2"))
        assert first.id == again.id != other.id
        found = await office.read("ann")
        assert [each.body for each in found.messages] == ["run", "run"]
        await office.unread("ann", after=found.next)
        for _ in range(2):
            assert (await office.ask(handoff("run", "ann", key="k1"))).id == first.id
            assert await office.unread("ann") == []
            await office.restart(power_fails=True)

    play(story)


def test_a_key_is_the_senders_own_whatever_the_sender_is_called() -> None:
    async def story(office: Office) -> None:
        await office.see("ann")
        office.sessions.ids["dev"] = "s-dev"
        senders = ("pm", "bob", "dev", None, "human")
        keyed = [await office.ask(handoff(target="ann", by=each, key="k")) for each in senders]
        assert len({each.id for each in keyed}) == 4, "a person needs no name"
        del office.sessions.ids["dev"]
        office.sessions.ids["renamed"] = "s-dev"
        again = await office.ask(handoff(target="ann", by="renamed", key="k"))
        assert again.id == keyed[2].id
        without = [await office.ask(handoff(target="ann")) for _ in range(2)]
        assert len({each.id for each in (*keyed, *without)}) == 6

    play(story)


def test_a_message_that_the_target_does_not_take_is_not_in_its_inbox() -> None:
    async def story(office: Office) -> None:
        await office.see("Ann")
        office.sessions.refusals["eve"] = Forbidden("eve may not write to Ann")
        error = await office.refused(handoff(target="ann", by="eve"))
        assert (type(error), str(error)) == (Forbidden, "eve may not write to Ann")
        await office.ask(handoff(target="ann"))
        assert office.sessions.checked == [("eve", "Ann", False), ("pm", "Ann", False)]
        office.sessions.closed["ann"] = Forbidden("it is closed")
        assert await office.refusal(handoff(target="ann", by=None)) == "it is closed"
        assert len(await office.unread("ann")) == 1

    play(story)


def test_a_session_is_asked_for_the_place_of_a_message_once_it_is_durable() -> None:
    async def story(office: Office) -> None:
        sessions = office.sessions
        await office.see("builder")
        sessions.places["s-builder"] = Place(is_landed=True)
        office.stall(10)
        sent = office.ask_soon(handoff())
        await office.passes(9)
        assert (sessions.asked, sent.has_come) == ([], False)
        await office.passes(1)
        assert (sent.value.status, sent.value.position) == ("landed", 0)
        [asked] = sessions.asked
        assert (asked.message, asked.interrupt_by) == (sent.value.id, None)
        sessions.places["s-builder"] = Place(position=3)
        receipt = await office.ask(handoff())
        assert (receipt.status, receipt.position) == ("queued", 3)
        sessions.places["s-builder"] = None
        receipt = await office.ask(handoff())
        assert (receipt.status, receipt.position) == ("queued", 2)
        office.refuse("fdatasync")
        assert isinstance(await office.refused(handoff()), StorageError)
        assert len(sessions.asked) == 3
        assert len(await office.unread("builder")) == 3

    play(story)


def test_a_session_that_does_not_answer_in_a_second_costs_its_sender_only_that() -> None:
    async def story(office: Office) -> None:
        await office.see("builder")
        began = trio.current_time()
        sent = office.ask_soon(handoff())
        await office.passes(2)
        assert (sent.value.status, sent.value.position) == ("queued", 0)
        assert 1 <= sent.at - began < 1.1
        crash = Plan({("actor.receive.before[PlayedSession]", 1): Crash()})
        with armed(crash, RUNTIME):
            receipt = await office.ask(handoff())
        assert (receipt.status, receipt.position) == ("queued", 1)

    play(story)


def test_only_a_session_that_runs_can_be_interrupted_by_those_who_may() -> None:
    async def story(office: Office) -> None:
        sessions = office.sessions
        sessions.places["s-builder"] = Place(is_landed=True)
        await office.see("ann", "Builder", "dev")
        sessions.ids["dev"] = "s-dev"  # its actor does not run
        for target in ("ann", "dev"):
            error = await office.refused(handoff(target=target, interrupt=True))
            assert (type(error), str(error)) == (
                InvalidRequest,
                f"{target!r} is no session that runs, so nothing of it can be interrupted; leave "
                "interrupt out",
            )
            assert await office.unread(target) == []
        for by, name in (("pm", "pm"), (None, "human")):
            await office.ask(handoff(interrupt=True, by=by))
            assert sessions.asked[-1].interrupt_by == name
        assert sessions.checked == [("pm", "Builder", True)]
        await office.ask(handoff(target="dev"))
        assert len(await office.unread("dev")) == 1

    play(story)


def test_the_messages_of_one_sender_keep_their_order_while_an_inbox_starts() -> None:
    async def story(office: Office) -> None:
        office.sessions.places["s-builder"] = Place()
        await office.see("builder")
        await office.release("builder")
        assert not office.is_running("builder")
        sent = [office.ask_soon(handoff(f"{each}")) for each in range(10)]
        await office.settles()
        found = await office.read("builder")
        assert [each.body for each in found.messages] == [f"{each}" for each in range(10)]
        assert [each.id for each in found.messages] == [each.value.id for each in sent]

    play(story)


# Inboxes that stop and start.


def test_the_inbox_of_a_closed_session_stops_and_keeps_its_messages() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1, handle="builder"), note(1))
        await office.release("Builder")
        assert not office.is_running("builder")
        assert office.is_running()
        assert await office.unread("builder") == ["n1"]
        assert office.is_running("builder")
        await office.release("nobody")

    play(story)


def test_an_inbox_that_is_stopping_answers_its_requests_first() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0), note(1))
        await office.defer(2)
        office.stall(1)
        requests: tuple[Any, ...] = (
            note(3),
            deferred(4),
            reading(),
            reading(after="n0"),
            reading(unread=False),
        )
        sent: list[Any] = [office.ask_soon(each) for each in requests]
        office.router.tell(ReleaseInbox(handle="pm"))
        await office.passes(0.1)
        sent.append(office.ask_soon(note(5)))
        await office.passes(3)
        assert [each.error for each in sent] == [None] * 6
        expected = ["n1", "n2", "n3", "n4"]
        assert [ids(each.value) for each in sent[2:5]] == [
            ["n0", *expected], expected, ["n0", *expected],
        ]  # fmt: skip
        assert await office.unread() == [*expected, "n5"]

    play(story)


def test_an_inbox_stops_after_five_seconds_though_the_disk_stalls() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        office.stall(100)
        sent = office.ask_soon(note(1))
        await office.settles()
        office.router.tell(ReleaseInbox(handle="pm"))
        await office.passes(4)
        assert office.is_running()
        await office.passes(2)
        assert not office.is_running()
        assert isinstance(sent.error, Unavailable)
        assert "ended before it could answer; call again" in str(sent.error)
        await office.deliver(note(1))
        assert await office.unread() == ["n0", "n1"]

    play(story)


@pytest.mark.parametrize("seed", range(5))
def test_no_request_meets_an_inbox_that_is_just_stopping(seed: int) -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        number = 0
        for _ in range(40):
            sent: list[Any] = []
            for step in range(8):
                if step == 2:
                    office.router.tell(ReleaseInbox(handle="pm"))
                number += 1
                sent.append(office.ask_soon(note(number)))
                sent.append(office.ask_soon(reading()))
                await trio.sleep(office.chance.uniform(0, 0.003))
            await office.settles()
            assert [each.error for each in sent] == [None] * 16
        assert await office.unread() == [f"n{each}" for each in range(number + 1)]

    play(story, seed=seed)


def test_a_waiter_is_told_that_its_inbox_was_stopped() -> None:
    async def story(office: Office) -> None:
        waiter = office.wait_soon()
        await office.settles()
        await office.release("pm")
        assert isinstance(waiter.error, Unavailable)
        assert not office.is_running()

    play(story)


def test_the_inbox_of_a_dropped_session_is_deleted_after_some_were_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limited(monkeypatch, RELEASES=2)

    async def story(office: Office) -> None:
        for each in ("s1", "s2", "s3"):
            await office.deliver(note(1, handle=each))
        office.sessions.dropped = {"s1"}
        await office.release("s2")
        assert not any("s1" in each for each in office.files())
        assert await office.refusal(handoff(target="s1")) == (
            "nobody called 's1' has been here yet; handles seen so far: s2, s3"
        )
        office.sessions.dropped = {"s2"}
        await office.release("s9")
        assert any("s2" in each for each in office.files()), "deleted with the next one"
        await office.release("s3")
        assert not any("s2" in each for each in office.files())
        await office.restart()
        assert await office.unread("s3") == ["n1"]
        office.sessions.dropped = set()
        assert await office.unread("s1") == []

    play(story)


def test_a_dropped_inbox_that_is_used_again_or_cannot_be_deleted_is_deleted_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limited(monkeypatch, RELEASES=1)

    async def story(office: Office) -> None:
        await office.deliver(note(1, handle="s1"), note(1))
        office.sessions.dropped = {"s1"}
        office.router.tell(ReleaseInbox(handle="pm"))
        for _ in range(40):
            sent = office.ask_soon(reading(from_handle="s1"))
            await trio.sleep(0.0002)
            assert sent.error is None
        await office.settles()
        office.refuse("unlink")
        await office.release("pm")
        assert any("s1" in each for each in office.files())
        office.accept()
        await office.restart()
        await office.release("pm")
        assert not any("s1" in each for each in office.files())

    play(story)


def test_a_router_that_crashes_knows_its_handles_and_its_inboxes_continue() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        waiter = office.wait_soon(after="n0")
        await office.settles()
        before = office.inbox()
        await office.crash_router()
        assert office.inbox() is before
        assert not waiter.has_come
        await office.ask(handoff(target="PM", by="ann"))
        await office.yields()
        assert len(waiter.value.messages) == 1

    play(story)


@pytest.mark.parametrize(
    "point", ["inbox.append.before", "inbox.append.after", "inbox.confirm.before"]
)
def test_an_inbox_that_crashes_while_it_stores_a_message_has_it_once(point: str) -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(0))
        stream = office.follow_soon(await office.follow())
        with armed(Plan({(f"{point}[pm]", 1): Crash()}), INBOXES):
            sent = office.ask_soon(note(1))
            await office.settles()
        assert isinstance(sent.error, (AskError, Unavailable))
        assert stream.error is not None
        await office.deliver(note(1))
        assert await office.unread() == ["n0", "n1"]
        await office.restart(power_fails=True)
        assert await office.unread() == ["n0", "n1"]

    play(story)


# Opening a ledger.


@pytest.mark.parametrize("start", [3, -1, 10**9, "0", None, True])
def test_a_ledger_with_a_wrong_place_of_its_unread_messages_loses_none(start: object) -> None:
    async def story(office: Office) -> None:
        lines = [message_line(note(each)) for each in (1, 2, 3)]
        await office.restart_with([*lines, read_line("n1", start)])
        assert await office.unread() == ["n2", "n3"]
        await office.deliver(note(1))
        assert await office.unread() == ["n2", "n3"]

    play(story)


def test_the_unread_messages_of_a_long_ledger_are_found_behind_many_that_were_read() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(50)))
        await office.unread(after="n29")
        await office.fill(map(note, range(50, 60)))
        await office.unread(after="n39")
        await office.restart(power_fails=True)
        assert await office.unread() == [f"n{each}" for each in range(40, 60)]
        await office.fill(map(note, range(40, 60)))
        assert await office.unread() == [f"n{each}" for each in range(40, 60)]
        assert await office.all(limit=30) == [f"n{each}" for each in range(30, 60)]

    play(story, keep=FEW)


def test_lines_that_are_damaged_or_of_another_kind_are_skipped_and_logged() -> None:
    async def story(office: Office) -> None:
        forged = sealed(read_line("n2")).replace(b'"up_to":"n2"', b'"up_to":"n1"')
        shapes: list[dict[str, Any]] = [
            {"kind": "message"},
            {"kind": "message", "id": 7},
            {"kind": "read"},
            {"kind": "later", "id": "x"},
        ]
        with structlog.testing.capture_logs() as logged:
            await office.restart_with(
                [
                    message_line(note(1)),
                    message_line(note(2)),
                    forged,
                    b'{"kind":"message","id":"x"}\n',
                    *shapes,
                    message_line(note(3)),
                ]
            )
            assert await office.unread() == ["n1", "n2", "n3"]
        [warned] = [each for each in logged if each["event"] == "damaged lines skipped"]
        assert warned["file"].endswith("pm.jsonl")
        assert len(warned["where"]) == 2
        assert await office.all(limit=2) == ["n2", "n3"]
        await office.deliver(note(4))
        assert await office.unread(after="n2") == ["n3", "n4"]

    play(story)


def test_a_line_that_was_cut_by_a_kill_costs_only_its_message() -> None:
    async def story(office: Office) -> None:
        cut = sealed(message_line(note(2)))[:-9]
        await office.restart_with([message_line(note(1)), cut])
        assert await office.unread() == ["n1"]
        await office.deliver(note(2))
        await office.restart(power_fails=True)
        assert await office.unread() == ["n1", "n2"]

    play(story)


def test_a_message_of_an_earlier_ledger_with_its_rendered_text_is_read() -> None:
    async def story(office: Office) -> None:
        await office.restart_with([message_line(note(1), text="> from agent:ann · old\nbody 1")])
        found = await office.message()
        assert found.text == "> from agent:ann · 2026-05-22T14:03:25Z\nbody 1"

    play(story)


def test_a_ledger_of_version_1_is_read_and_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, MAX_WAKES=3)

    async def story(office: Office) -> None:
        recorded = (RECORDINGS / "inbox_before_tables.jsonl").read_bytes()
        lines = recorded.splitlines(keepends=True)
        before = [decode_line(each) for each in lines]
        delivered = [each for each in before if each["kind"] == "message"]
        await office.restart_with(lines)
        for _ in range(2):
            found = await office.read()
            assert [(each.id, each.body) for each in found.messages] == [
                ("n2", "Grüße\n> from human"),
                (wake(7).id, folded("build", 2, 9)),
                (wake(1, "test").id, folded("test", 0, 1)),
                (wake(2, "test", "9a0c").id, "$ make"),
                ("n3", "lost"),
                ("n4", "x" * 9000),
                ("n5", "http://127.0.0.1:8/mcp/s/\u2039secret\u203a"),
                (wake(11).id, "$ make"),
                (wake(12).id, "$ ls\nexit 0"),
            ]
            assert found.messages[0].text.endswith("Z\nGrüße\n| > from human")
            assert (found.messages[4].sender, found.messages[4].status) == ("substrate", "error")
            found = await office.read(unread=False)
            assert [each.id for each in found.messages] == [each["id"] for each in delivered]
            assert [each.body for each in found.messages] == [each["body"] for each in delivered]
            assert (found.messages[0].task_id, found.messages[0].status) == ("01JDX5M6QH", "ok")
            for each in delivered:
                await office.deliver(note(0, id=each["id"]))
            place = await office.follow(after="n1")
            assert ids(await office.follow(place))[:2] == ["n2", wake(7).id]
            await office.restart(power_fails=True)
        await office.deliver(note(6))
        assert (await office.unread(after=wake(11).id))[0] == wake(12).id
        await office.restart(power_fails=True)
        assert await office.unread() == [wake(12).id, "n6"]
        assert await office.all(limit=3) == [wake(11).id, wake(12).id, "n6"]

    play(story)


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_ledger_of_a_version_before_the_archive_is_read_and_continued(
    monkeypatch: pytest.MonkeyPatch, power_fails: bool
) -> None:
    limited(monkeypatch, MAX_WAKES=3)

    async def story(office: Office) -> None:
        recorded = (RECORDINGS / "inbox_before_archive.jsonl").read_bytes()
        lines = recorded.splitlines(keepends=True)
        before = [decode_line(each) for each in lines]
        delivered = [each["id"] for each in before if each["set"]["type"] == "message"]
        await office.restart_with(lines)
        for _ in range(3):
            found = await office.read()
            assert [(each.id, each.body) for each in found.messages] == [
                (wake(1, "test").id, folded("test", -1, 1)),
                (wake(2, "test", "9a0c").id, folded("test", 1, 2)),
                ("n3", "lost"),
                ("n4", "x" * 300),
                (wake(9).id, folded("build", 2, 9)),
                (wake(8).id, "$ make"),
                (wake(11).id, "$ make"),
                (wake(12).id, "$ ls\nexit 0"),
                ("n5", "body 5"),
            ]
            assert await office.all() == delivered
            for each in delivered:
                await office.deliver(note(0, id=each))
            await office.settles()
            assert not [each for each in office.lines() if each["id"].startswith("read/")]
            await office.restart(power_fails=power_fails)
        await office.deliver(note(6))
        assert (await office.unread(after="n5")) == ["n6"]

    play(story)


@pytest.mark.parametrize("name", ["inbox_before_tables", "inbox_before_archive"])
@pytest.mark.parametrize("seed", range(10))
def test_a_daemon_that_is_killed_while_it_converts_a_ledger_loses_nothing(
    name: str, seed: int
) -> None:
    async def story(office: Office) -> None:
        lines = (RECORDINGS / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
        await office.restart_with(lines)
        unread, all_ids = await office.unread(), await office.all()
        await office.restart_with(lines)
        for _ in range(5):
            office.ask_soon(reading())
            await trio.sleep(office.chance.random() * 0.03)
            await office.stop(power_fails=office.chance.random() < 0.5, draws=True)
            await office.start()
            assert await office.unread() == unread
            assert await office.all() == all_ids
        await office.deliver(*(note(0, id=each) for each in all_ids))
        assert await office.all() == all_ids

    play(story, seed=seed)


def folded(terminal: str, since: int, last: int) -> str:
    return (
        f"older messages of this terminal are folded into this one, up to seq {last}\n"
        f'read them: aegis_term_read(name="{terminal}", since_seq={since})'
    )
