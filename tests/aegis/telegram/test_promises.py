"""What the chat of a daemon promises, through crashes, kills and a disk that refuses."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from aegis.telegram.buttons import button_data
from aegis.telegram.desk import MAX_PENDING
from aegis.telegram.store import MAX_ASKED, MAX_CLOSED, MAX_SESSIONS
from tests.aegis.telegram.office import CALL_S, LEDGER, Office, id_of, play
from tests.fakes.telegram import CHAT

RECORDINGS = Path(__file__).parents[2] / "recordings"
OLDER = "telegram_before_tables_1.jsonl"
PREVIOUS = LEDGER.with_name(f"{LEDGER.name}.1")

Ending = Callable[[Office], Awaitable[None]]


async def crash(office: Office) -> None:
    await office.crash_desk()


async def kill(office: Office) -> None:
    await office.begins_again()


async def power_loss(office: Office) -> None:
    await office.begins_again(power_fails=True)


ENDINGS = (crash, kill, power_loss)
each_ending = pytest.mark.parametrize("ends", ENDINGS)

COLOR = {"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}


def questions(*asked: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "question", "tool": "", "input": {"questions": [*asked]}}


# Orders.


@each_ending
def test_a_text_reaches_its_session_once_and_later_ones_follow_it(ends: Ending) -> None:
    async def story(office: Office) -> None:
        office.world.spawn("ann")
        await office.write("/to ann SAY first")
        await ends(office)
        await office.write("SAY second")
        assert office.texts == ["SAY first", "SAY second"]

    play(story)


@each_ending
def test_the_session_that_is_talked_to_is_the_last_one_named(ends: Ending) -> None:
    async def story(office: Office) -> None:
        for each in ("ann", "bob"):
            office.world.spawn(each)
            await office.write(f"/to {each} SAY hello")
        await office.write("/to ann")
        assert office.shows("talking to ann") == 1
        await ends(office)
        await office.write("SAY it to ann")
        targets = [each.target_handle for each in office.world.handoffs.values()]
        assert targets == ["ann", "bob", "ann"]

    play(story)


@each_ending
def test_a_command_that_may_have_begun_is_not_begun_again(ends: Ending) -> None:
    async def story(office: Office) -> None:
        office.world.holds.add("make")
        last = await office.write("/run build make")
        assert office.api.confirmed == last + 1
        await ends(office)
        office.world.release()
        await office.begins()
        assert office.shows("the daemon ended while this ran: /screen build") == 1
        assert office.world.runs in ([], ["make"])  # the terminal outlives the desk
        await ends(office)
        assert office.shows("the daemon ended while this ran") == 1

    play(story)


@each_ending
def test_a_command_is_run_once_and_said_once(ends: Ending) -> None:
    async def story(office: Office) -> None:
        await office.write("/run build make")
        assert office.shows("build $ make") == 1
        await ends(office)
        await ends(office)
        assert (office.shows("build $ make"), office.world.runs) == (1, ["make"])

    play(story)


@each_ending
def test_an_order_that_was_accepted_is_carried_out_after_the_end(ends: Ending) -> None:
    async def story(office: Office) -> None:
        office.world.holds.add("ListSessions")
        office.api.write("/list")
        office.api.write("/run build make")
        await office.begins()
        assert office.world.runs == []  # the order before it is not done
        await office.stop()
        office.world.release()
        await office.start()
        await office.begins()
        assert office.world.runs == ["make"]
        await ends(office)
        assert office.world.runs == ["make"]

    play(story)


def test_an_update_that_telegram_repeats_is_known() -> None:
    """Telegram returns an update until it is confirmed; it was accepted before that."""

    async def story(office: Office) -> None:
        last = office.api.write("/run build make")
        await office.until(lambda: office.world.runs)
        # The next poll, which confirms it, is not made.
        await office.stop()
        assert office.api.confirmed <= last
        await office.start()
        await office.begins()
        await office.write("/run build test")
        assert office.world.runs == ["make", "test"]
        assert office.api.confirmed > last

    play(story)


def test_orders_are_known_though_newer_ones_are_done_first() -> None:
    async def story(office: Office) -> None:
        office.world.holds.add("make")
        first = office.api.write("/run build make")
        await office.write("/run build test")
        await office.begins_again(power_fails=True)
        assert office.world.runs == ["test"]
        assert office.shows("the daemon ended while this ran") == 1
        await office.write("/run build more")
        await office.begins_again(power_fails=True)
        assert office.world.runs == ["test", "more"]
        assert office.api.confirmed > first

    play(story)


def test_no_more_than_the_bound_of_orders_waits_and_telegram_keeps_the_others() -> None:
    async def story(office: Office) -> None:
        office.world.holds.add("make")
        first, count = office.api.write("/run build make"), MAX_PENDING + 150
        for _ in range(count - 1):
            office.api.write("/run build make")
        await office.passes(60)
        polls = office.api.calls.count("getUpdates")
        # The last hundred were accepted; the poll that confirms them waits for room.
        assert office.api.confirmed == first + MAX_PENDING - 100
        await office.passes(60)
        assert office.api.calls.count("getUpdates") == polls
        office.world.release()
        await office.passes(3_000)
        assert (office.shows("build $ make"), len(office.world.runs)) == (count, count)
        assert office.api.confirmed == first + count

    play(story)


@each_ending
def test_a_text_that_an_app_cut_is_one_message_through_each_end(ends: Ending) -> None:
    async def story(office: Office) -> None:
        office.world.spawn("ann")
        await office.write("/to ann SAY hello")
        office.api.write("a" * 4096)
        office.api.write("b" * 10)
        await office.passes(30)
        await ends(office)
        assert office.texts == ["SAY hello", "a" * 4096 + "b" * 10]

    play(story)


def test_the_parts_of_a_text_are_done_last_first() -> None:
    """Alone again after a kill, the first part is known by its number."""

    async def story(office: Office) -> None:
        office.world.spawn("ann")
        await office.write("/to ann SAY hello")
        office.api.write("a" * 4096)
        office.api.write("b" * 10)
        await office.until(lambda: len(office.texts) == 2)
        await office.begins_again()
        await office.passes(30)
        assert office.texts == ["SAY hello", "a" * 4096 + "b" * 10]

    play(story)


def test_a_group_that_became_a_supergroup_is_served_by_its_new_id() -> None:
    async def story(office: Office) -> None:
        new = CHAT - 777
        office.api.migrate(new)
        await office.write("/run build make")
        assert office.message("build $ make")["chat_id"] == new
        await office.begins_again(power_fails=True)
        await office.write("/run build test")
        assert office.message("build $ test")["chat_id"] == new

    play(story)


# Messages to the person.


@each_ending
def test_messages_to_the_person_come_once_and_none_from_before_the_first_start(
    ends: Ending,
) -> None:
    async def story(office: Office) -> None:
        office.world.wake("one")
        office.world.wake("two")
        await office.begins()
        await ends(office)
        assert [office.shows("✉ from term:build\none"), office.shows("\ntwo")] == [1, 1]

    play(story)


def test_what_came_before_the_first_start_is_no_news_and_what_came_later_is() -> None:
    async def story(office: Office) -> None:
        await office.stop()
        office.world.wake("while down")
        await office.start()
        await office.begins()
        assert office.shows("while down") == 1

    async def fresh(office: Office) -> None:
        await office.stop()
        office.world.wake("of before")
        await office.passes(1)
        office.world.holds.add("ReadInbox")  # the inbox is not ready before the first news comes
        await office.restart_with({})
        office.world.wake("of now")
        office.world.release()
        await office.begins()
        assert (office.shows("of before"), office.shows("of now")) == (0, 1)

    play(story)
    play(fresh)


# Sessions.


@each_ending
def test_the_turns_of_a_session_come_once_and_so_do_those_of_a_time_without_daemon(
    ends: Ending,
) -> None:
    async def story(office: Office) -> None:
        ann = office.world.spawn("ann")
        office.world.turn(ann, "of before")
        await office.write("/to ann SAY hello")
        office.world.turn(ann, "good morning")
        await office.begins()
        await ends(office)
        await office.stop()
        office.world.turn(ann, "while down")
        await office.start()
        await office.begins()
        office.world.turn(ann, "good evening")
        await office.begins()
        said = ("of before", "ann: good morning", "ann: while down", "ann: good evening")
        assert [office.shows(each) for each in said] == [0, 1, 1, 1]

    play(story)


@each_ending
def test_a_turn_that_is_done_is_said_once_and_a_loss_also_where_its_texts_are(
    ends: Ending,
) -> None:
    async def story(office: Office) -> None:
        ann, bob = office.world.spawn("ann"), office.world.spawn("bob")
        await office.write("/to ann SAY hello")
        office.world.turn(ann, "good morning")
        office.world.report(ann, 1, "turn 1 of 'ann' is done: good morning")
        office.world.report(bob, 1, "turn 1 of 'bob' is done: its texts are not shown")
        await office.begins()
        await ends(office)
        office.world.report(ann, 2, "turn 2 of 'ann' failed", "error")
        office.world.close(ann)
        office.world.report(ann, 3, "turn 3 of 'ann' is done: the last one")
        await office.begins()
        said = ("good morning", "its texts are not shown", "'ann' failed", "the last one")
        assert [office.shows(each) for each in said] == [1, 1, 1, 0]

    play(story)


@each_ending
def test_a_session_keeps_its_topic(ends: Ending) -> None:
    async def story(office: Office) -> None:
        ann = office.world.spawn("ann")
        await office.begins()
        [thread] = office.api.topics
        await ends(office)
        await office.write("SAY in the topic", thread=thread)
        office.world.turn(ann, "good morning")
        await office.begins()
        assert office.texts == ["SAY in the topic"]
        assert office.message("good morning")["message_thread_id"] == thread
        assert [*office.api.topics.values()] == ["ann"]

    play(story, is_forum=True)


@each_ending
def test_a_session_with_a_topic_is_followed_before_anybody_writes_to_it(ends: Ending) -> None:
    async def story(office: Office) -> None:
        ann = office.world.spawn("ann")
        await office.begins()
        [thread] = office.api.topics
        office.world.turn(ann, "good morning")
        await office.begins()
        await ends(office)
        office.world.turn(ann, "good evening")
        await office.begins()
        for each in ("good morning", "good evening"):
            assert (office.shows(each), office.message(each)["message_thread_id"]) == (1, thread)

    play(story, is_forum=True)


@each_ending
def test_a_deleted_topic_is_replaced_and_its_requests_are_shown_again(ends: Ending) -> None:
    async def story(office: Office) -> None:
        ann = office.world.spawn("ann")
        await office.begins()
        office.world.ask(1)
        [old] = office.api.topics
        await office.write("SAY hello", thread=old)
        office.api.delete_topics()
        office.world.turn(ann, "good morning")
        await office.begins()
        await ends(office)
        [new] = office.api.topics
        assert office.message("good morning")["message_thread_id"] == new != old
        shown = office.message("permission: Bash")
        assert shown["message_thread_id"] == new
        await office.press(shown, "Allow once")
        assert [each.answer for each in office.world.answers] == ["allow"]

    play(story, is_forum=True)


def test_all_that_a_session_says_while_its_topic_is_replaced_is_in_the_new_one() -> None:
    async def story(office: Office) -> None:
        ann = office.world.spawn("ann")
        await office.begins()
        office.api.delete_topics()
        office.world.turn(ann, "good morning")
        await trio.sleep(3 * CALL_S)  # that the topic has gone is known, no other one yet
        office.world.ask(1)
        await office.begins()
        [new] = office.api.topics
        sent = [*office.api.messages.values()]
        assert [each["message_thread_id"] for each in sent] == [new] * 2

    play(story, is_forum=True)


def test_a_request_that_comes_with_its_session_is_in_the_topic_of_that() -> None:
    async def story(office: Office) -> None:
        office.world.holds.add("FollowAgents")
        office.world.spawn("ann")
        office.world.ask(1)
        await office.passes(CALL_S)
        office.world.release()
        await office.begins()
        [topic] = office.api.topics
        assert office.message("permission: Bash")["message_thread_id"] == topic

    play(story, is_forum=True)


# Requests.


@each_ending
def test_a_request_is_shown_once_and_its_buttons_stay_valid(ends: Ending) -> None:
    async def story(office: Office) -> None:
        office.world.ask(1)
        await office.begins()
        await ends(office)
        message = office.message("permission: Bash")
        await office.press(message, "Allow once")
        assert [each.answer for each in office.world.answers] == ["allow"]
        assert office.shows("permission: Bash") == 1
        assert "by human" in message["text"]
        await ends(office)
        assert office.shows("permission: Bash") == 1

    play(story)


@each_ending
def test_a_request_that_was_settled_is_edited_and_takes_no_answer(ends: Ending) -> None:
    async def story(office: Office) -> None:
        office.world.spawn("ann")
        await office.write("/to ann SAY hello")
        office.world.ask(1)
        await office.begins()
        message = office.message("permission: Bash")
        buttons = office.api.buttons(message)
        await office.stop()
        office.world.settle(1)
        await office.start()
        await office.begins()
        assert "⚪ withdrawn" in message["text"]
        await ends(office)
        office.api.press(message["message_id"], buttons["Allow once"])
        await office.write("yes", reply_to=message["message_id"])
        assert "not valid any more" in office.api.notes[-1]["text"]
        assert office.shows("this request was settled") == 1
        assert (office.world.answers, office.texts) == ([], ["SAY hello"])

    play(story)


def test_a_request_that_the_daemon_forgot_takes_no_answer() -> None:
    async def story(office: Office) -> None:
        office.world.ask(1)
        await office.begins()
        message = office.message("permission: Bash")
        await office.stop()
        office.world.requests.clear()
        await office.start()
        await office.begins()
        await office.press(message, "Allow once")
        assert "not valid any more" in office.api.notes[-1]["text"]
        await office.write("yes", reply_to=message["message_id"])
        assert office.shows("this request was settled") == 1

    play(story)


@each_ending
def test_answers_to_questions_survive_and_each_counts_once(ends: Ending) -> None:
    async def story(office: Office) -> None:
        office.world.ask(1, **questions(COLOR, {"question": "Why?"}))
        await office.begins()
        message = office.message("Which colour? (1 of 2)")
        await office.press(message, "Blue")
        assert "✓ Which colour?: Blue" in message["text"]
        await ends(office)
        await office.write("the sky", reply_to=message["message_id"])
        [answer] = office.world.answers
        assert answer.values == {"Which colour?": "Blue", "Why?": "the sky"}

    play(story)


def test_a_form_whose_answers_are_refused_begins_anew() -> None:
    async def story(office: Office) -> None:
        office.world.ask(1, **questions(COLOR))
        await office.begins()
        message = office.message("Which colour?")
        office.world.refuses = "no such colour"
        await office.press(message, "Blue")
        assert "no such colour" in office.api.notes[-1]["text"]
        await office.begins_again(power_fails=True)
        office.world.refuses = ""
        await office.press(message, "Red")
        [answer] = office.world.answers
        assert answer.values == {"Which colour?": "Red"}

    play(story)


def test_a_press_that_is_taken_again_after_a_kill_counts_once() -> None:
    sides = {"question": "Sides?", "multiSelect": True, "options": [{"label": "Rice"}]}

    async def story(office: Office) -> None:
        office.world.ask(1, **questions(sides))
        await office.begins()
        message = office.message("Sides?")
        data = office.api.buttons(message)["☐ Rice"]
        edits = office.api.calls.count("editMessageText")
        office.api.press(message["message_id"], data)
        await office.until(lambda: office.api.calls.count("editMessageText") > edits)
        await office.begins_again(power_fails=True)
        assert "☑ Rice" in office.api.buttons(message)

    play(story)


# A disk that refuses.


def test_an_update_is_confirmed_once_it_is_durable() -> None:
    async def story(office: Office) -> None:
        office.refuse()
        last = await office.write("/run build make")
        await office.passes(100)
        assert office.api.confirmed <= last
        assert (office.world.runs, office.texts) == ([], [])
        await office.accept()
        assert office.world.runs == ["make"]
        assert (office.shows("build $ make"), office.api.confirmed) == (1, last + 1)

    play(story)


def test_a_command_does_not_begin_before_that_is_durable() -> None:
    async def story(office: Office) -> None:
        office.world.holds.add("ListSessions")
        office.api.write("/list")
        await office.write("/run build make")
        office.refuse()
        office.world.release()
        await office.passes(100)
        assert office.world.runs == []
        await office.accept()
        assert office.world.runs == ["make"]
        assert office.shows("build $ make") == 1

    play(story)


def test_what_was_said_while_the_disk_refuses_is_not_said_again() -> None:
    async def story(office: Office) -> None:
        ann = office.world.spawn("ann")
        await office.write("/to ann SAY hello")
        office.refuse()
        office.world.wake("look here")
        office.world.turn(ann, "good morning")
        office.world.ask(1)
        await office.passes(100)
        await office.accept()
        said = ("look here", "ann: good morning", "permission: Bash")
        assert [office.shows(each) for each in said] == [1, 1, 1]
        await office.press(office.message("permission: Bash"), "Allow once")
        assert len(office.world.answers) == 1

    play(story)


def test_a_topic_that_was_opened_while_the_disk_refuses_is_kept() -> None:
    async def story(office: Office) -> None:
        office.refuse()
        office.world.spawn("ann")
        await office.passes(100)
        await office.accept()
        await office.begins_again(power_fails=True)
        assert [*office.api.topics.values()] == ["ann"]

    play(story, is_forum=True)


def test_a_command_that_ended_while_the_disk_refuses_is_not_said_to_be_lost() -> None:
    async def story(office: Office) -> None:
        office.world.holds.add("make")
        await office.write("/run build make")
        office.refuse()
        office.world.release()
        await office.passes(100)
        await office.accept()
        assert office.shows("build $ make") == 1
        assert office.shows("the daemon ended while this ran") == 0
        await office.begins_again(power_fails=True)
        assert office.shows("the daemon ended while this ran") == 0

    play(story)


def test_an_answer_that_the_disk_refuses_counts_once_it_accepts() -> None:
    async def story(office: Office) -> None:
        office.world.ask(1, **questions(COLOR, {"question": "Why?"}))
        await office.begins()
        message = office.message("Which colour? (1 of 2)")
        office.plan.refuse_one("write", 2)  # the line after that of the accepted press
        await office.press(message, "Blue")
        await office.accept()
        assert "✓ Which colour?: Blue" in message["text"]
        await office.begins_again(power_fails=True)
        await office.write("the sky", reply_to=message["message_id"])
        [answer] = office.world.answers
        assert answer.values == {"Which colour?": "Blue", "Why?": "the sky"}

    play(story)


@pytest.mark.parametrize("call", ["write", "fdatasync"])
@pytest.mark.parametrize("number", range(1, 9))
def test_one_refusal_of_the_disk_loses_nothing_and_does_nothing_twice(
    call: str, number: int
) -> None:
    async def story(office: Office) -> None:
        ann = office.world.spawn("ann")
        office.plan.refuse_one(call, number)
        await office.write("/to ann SAY hello")
        await office.write("/run build make")
        office.world.turn(ann, "good morning")
        office.world.wake("look here")
        office.world.ask(1)
        await office.accept()
        await office.press(office.message("permission: Bash"), "Allow once")
        await office.accept()
        await office.begins_again(power_fails=True)
        assert (office.texts, office.world.runs) == (["SAY hello"], ["make"])
        said = ("ann: good morning", "look here", "permission: Bash", "build $ make")
        assert [office.shows(each) for each in said] == [1, 1, 1, 1]
        assert len(office.world.answers) == 1

    play(story)


def test_a_ledger_that_cannot_be_opened_is_tried_again() -> None:
    async def story(office: Office) -> None:
        office.world.spawn("ann")
        await office.write("/to ann SAY hello")
        await office.stop(power_fails=True)
        office.refuse_to_open(LEDGER.name)
        await office.start()
        await office.write("SAY more")
        assert office.texts == ["SAY hello"]
        office.refuse_to_open("")
        await office.accept()
        assert office.texts == ["SAY hello", "SAY more"]

    play(story)


# Bounds, said with ledgers of the form before tables, which every version reads.


def asked(number: int) -> dict[str, Any]:
    shown = {"digest": f"{number:064x}", "message": 10_000 + number}
    return {"kind": "asked", "request": id_of(number), **shown}


def denial(number: int) -> str:
    """Return the data of a button of a request that was shown."""
    return button_data("secret", id_of(number), f"{number:064x}", "deny")


def numbered(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    first = {"kind": "secret", "secret": "secret"}
    return [{"seq": number, **each} for number, each in enumerate((first, *lines), 1)]


def test_of_the_requests_that_are_shown_the_oldest_is_forgotten() -> None:
    async def story(office: Office) -> None:
        for number in range(MAX_ASKED):
            office.world.ask(number)
        await office.restart_with({LEDGER: numbered(*map(asked, range(MAX_ASKED)))})
        office.world.ask(MAX_ASKED)
        await office.begins()
        assert office.shows("permission: Bash") == 1
        for number in (0, 1, MAX_ASKED):
            office.api.press(10_000 + number, denial(number))
            await office.begins()
        assert [each.id for each in office.world.answers] == [id_of(1), id_of(MAX_ASKED)]
        assert "not valid any more" in office.api.notes[0]["text"]

    play(story)


def test_of_the_requests_that_were_settled_the_oldest_is_forgotten() -> None:
    async def story(office: Office) -> None:
        office.world.spawn("ann")
        lines = []
        for number in range(MAX_CLOSED):
            settled = {"kind": "settled", "request": id_of(number)}
            lines += [asked(number), settled]
        office.world.ask(MAX_CLOSED)
        lines += [asked(MAX_CLOSED), {"kind": "focus", "session": "id-ann"}]
        await office.restart_with({LEDGER: numbered(*lines)})
        office.world.settle(MAX_CLOSED)
        await office.begins()
        for number in (0, 1, MAX_CLOSED):
            await office.write(f"yes to {number}", reply_to=10_000 + number)
        assert office.texts == ["yes to 0"]
        assert office.shows("this request was settled") == 2

    play(story)


def test_of_the_sessions_those_used_last_are_known() -> None:
    async def story(office: Office) -> None:
        known = [office.world.spawn(f"s{number}") for number in range(3)]
        others = [f"other{number}" for number in range(MAX_SESSIONS - 3)]
        lines = [{"kind": "told", "session": each, "entry": -1} for each in (*known, *others)]
        await office.restart_with({LEDGER: numbered(*lines, lines[0])})
        office.world.spawn("ann")
        await office.write("/to ann SAY hello")
        await office.begins_again()
        for each in known:
            office.world.turn(each, f"of {each}")
        await office.begins()
        assert [office.shows(f"of {each}") for each in known] == [1, 0, 1]

    play(story)


def test_a_line_that_is_not_understood_is_skipped() -> None:
    async def story(office: Office) -> None:
        office.world.spawn("ann")
        await office.restart_with(
            {
                LEDGER: numbered(
                    {"kind": "of a later version", "x": 1},
                    {"kind": "accepted", "press": False, "update": {"broken": 1}},
                    {"kind": "focus", "session": "id-ann"},
                )
            }
        )
        await office.write("SAY hello")
        assert office.texts == ["SAY hello"]

    play(story)


# Ledgers of the form before tables.


def recorded(name: str) -> list[dict[str, Any]]:
    return [json.loads(each) for each in (RECORDINGS / name).read_text().splitlines()]


async def goes_on_from_recording(office: Office) -> None:
    """Prepare a world in which the recorded ledger was written, without a daemon."""
    await office.stop()
    office.api.chat = CHAT - 577  # which the recording has as the newer id
    office.api.topics = {7: "ann", 8: "bob"}
    office.api.continue_after(1011)
    for handle in ("ann", "bob"):
        office.world.spawn(handle)
    office.world.turn("id-ann", "of before")
    office.world.wake("of before")
    office.world.ask(1, **questions(COLOR, {"question": "Why?"}))
    office.api.messages[5] = {"message_id": 5, "text": "the question", "reply_markup": {}}


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_ledger_of_a_version_before_tables_is_read_and_continued(*, power_fails: bool) -> None:
    async def story(office: Office) -> None:
        await goes_on_from_recording(office)
        lines = recorded("telegram_before_tables.jsonl")
        await office.restart_with({LEDGER: lines, PREVIOUS: recorded(OLDER)})
        assert office.world.runs == ["make fourth"]  # the third has begun before
        assert office.shows("the daemon ended while this ran: /screen build") == 1
        assert office.shows("of before") == 0
        assert not office.has(PREVIOUS)
        await office.begins_again(power_fails=power_fails)
        assert office.world.runs == ["make fourth"]
        office.world.wake("of now")
        office.world.turn("id-bob", "good evening")
        await office.begins()
        assert office.message("of now")["chat_id"] == office.api.chat
        assert office.message("good evening")["message_thread_id"] == 8
        await office.write("SAY to ann")
        assert [each.target_handle for each in office.world.handoffs.values()] == ["ann"]
        await office.write("the sky", reply_to=5)
        [answer] = office.world.answers
        assert answer.values == {"Which colour?": "Blue", "Why?": "the sky"}
        await office.write("yes", reply_to=7)
        assert office.shows("this request was settled") == 1
        assert (office.texts, len(office.api.topics)) == (["SAY to ann"], 2)

    play(story, is_forum=True)


def test_an_update_of_a_recorded_ledger_is_known() -> None:
    async def story(office: Office) -> None:
        await goes_on_from_recording(office)
        office.api.continue_after(1010)
        office.api.write("/run build make again")
        await office.restart_with({LEDGER: recorded("telegram_before_tables.jsonl")})
        assert office.world.runs == ["make fourth"]

    play(story, is_forum=True)


def test_an_update_before_the_first_line_of_a_recorded_file_is_known() -> None:
    async def story(office: Office) -> None:
        await office.stop()
        head = recorded(OLDER)[0]
        office.api.continue_after(head["fold"]["next_update"] - 2)
        office.api.write("/run build make again")
        await office.restart_with({LEDGER: [head]})
        await office.write("/run build make more")
        assert office.world.runs == ["make more"]

    play(story, is_forum=True)


def test_a_recorded_rotation_that_was_cut_is_completed() -> None:
    async def story(office: Office) -> None:
        await goes_on_from_recording(office)
        await office.restart_with({PREVIOUS: recorded(OLDER)})
        assert office.world.runs == []
        assert office.shows("the daemon ended while this ran: /screen build") == 1
        await office.write("the sky", reply_to=5)
        [answer] = office.world.answers
        assert answer.values == {"Which colour?": "Blue", "Why?": "the sky"}

    play(story, is_forum=True)


def test_a_transcript_is_continued_where_version_0_1_has_noted_it() -> None:
    async def story(office: Office) -> None:
        office.world.spawn("ann")
        office.world.turn("id-ann", "of before")
        office.world.turn("id-ann", "of now")
        await office.restart_with(
            {LEDGER: numbered({"kind": "told", "session": "id-ann", "seq": 2})}
        )
        assert [office.shows(each) for each in ("of before", "of now")] == [0, 1]

    play(story)
