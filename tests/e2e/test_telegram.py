"""A daemon in a chat of Telegram, against a local server that speaks the Bot API."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.harness import GUARD_S, DaemonProcess, contents_of
from tests.e2e.test_agents import STAND_IN, Team, open_request
from tests.fakes.telegram import CHAT, STRANGER, TOKEN, USER, BotApi, bot_api
from tests.resources.waiting import until

pytestmark = pytest.mark.real

ACP = {
    "provider": "acp",
    "permission": "ask",
    "command": [sys.executable, str(STAND_IN), "acp"],
    "asking_mode": "default",
}
"""A profile whose agent offers several options of one kind."""

KILLS = int(os.environ.get("AEGIS_CHAT_KILLS", "20"))
"""Kills of the long test: a second each."""


class ChatDaemon(DaemonProcess):
    """A daemon whose environment has the token."""

    @property
    def variables(self) -> dict[str, str]:
        return {"AEGIS_TELEGRAM_TOKEN": TOKEN}

    @variables.setter
    def variables(self, _: object) -> None:
        pass


class Chat(Team):
    """A team whose daemon is in a chat."""

    def __init__(self, daemon: DaemonProcess, api: BotApi) -> None:
        self.api = api
        super().__init__(daemon, more={"acp": ACP})
        self.daemon.stop()
        path = daemon.root / ".aegis.yaml"
        section = {
            "chat_id": CHAT,
            "user_ids": [USER],
            "api": f"http://127.0.0.1:{api.port}",
        }
        configuration: dict[str, Any] = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({**configuration, "telegram": section}))
        self.start()

    def start(self) -> None:
        self.daemon.start("--port", "0", "--trust")

    def shows(self, part: str) -> dict[str, Any]:
        until(lambda: self.api.find(part) is not None, f"the chat shows {part!r}")
        found = self.api.find(part)
        assert found is not None
        return found


@pytest.fixture
def api() -> Iterator[BotApi]:
    with bot_api() as served:
        yield served


@pytest.fixture
def chat(tmp_path: Path, api: BotApi) -> Iterator[Chat]:
    daemon = ChatDaemon(tmp_path)
    yield Chat(daemon, api)
    if daemon.is_running:
        daemon.stop()


def test_orders_are_carried_out_and_answered(chat: Chat, api: BotApi) -> None:
    chat.daemon.terminal("build")
    api.write("/run build echo he''llo; (exit 3)")
    assert chat.shows("exit 3")["text"].startswith("build $ echo he''llo; (exit 3)\nhello\n🔴")
    api.write("/list")
    assert "term:build - exit 3" in chat.shows("term:build")["text"]
    api.write("/queues")
    chat.shows("there is no queue")
    api.write("/screen build")
    chat.shows("$ echo he''llo")
    api.write("/run build")
    chat.shows("use it as: /run TERMINAL COMMAND")
    api.write("/help")
    chat.shows("/interrupt HANDLE")
    records = chat.call("term_read", name="build")["result"]
    assert [each["writer"] for each in records] == ["human"]


def test_a_session_is_talked_to_and_its_answer_comes_back(chat: Chat, api: BotApi) -> None:
    chat.spawn(handle="ann")
    api.write("/to ann SAY good morning")
    chat.shows("ann: > from human")
    assert "good morning" in chat.shows("good morning")["text"]
    api.write("SAY and again")
    chat.shows("and again")
    chat.has_outcomes("ann", "completed", "completed")
    api.write("/to nobody hello")
    chat.shows("there is no session 'nobody'")


def test_a_request_is_answered_by_a_button_and_the_message_is_edited(
    chat: Chat, api: BotApi
) -> None:
    chat.spawn("ASK touch x\nSAY done", handle="ann")
    message = chat.shows("ann · permission: Bash")
    assert '"command": "touch x"' in message["text"]
    buttons = api.buttons(message)
    assert {"Allow once", "Deny"} <= set(buttons)
    api.press(message["message_id"], buttons["Allow once"])
    chat.has_outcomes("ann", "completed")
    until(lambda: "✅ allow once by human" in message["text"], "the message says who answered")
    assert api.buttons(message) == {}
    until(lambda: len(api.notes) == 1, "the press is answered")


def test_each_of_several_options_of_one_kind_has_a_button(chat: Chat, api: BotApi) -> None:
    chat.spawn("CHOOSE touch x", handle="ann", profile="acp")
    message = chat.shows("ann · permission")
    buttons = api.buttons(message)
    assert [*buttons] == ["Allow once: Run it here", "Allow once: Run it in a sandbox", "Deny"]
    api.press(message["message_id"], buttons["Allow once: Run it in a sandbox"])
    chat.has_outcomes("ann", "completed")
    until(lambda: "✅ allow once by human" in message["text"], "the message says who answered")
    entries = chat.call("session_read", handle="ann")["result"]
    said = "".join(each["fields"]["event"].get("text", "") for each in entries if says(each))
    assert said.endswith("chose sandbox")


def says(entry: dict[str, Any]) -> bool:
    return bool(entry["kind"] == "event" and entry["fields"]["event"]["type"] == "assistant_text")


COLOR = {"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}
SIDES = {
    "question": "Which sides?",
    "options": [{"label": "Rice"}, {"label": "Beans"}],
    "multiSelect": True,
}


def question(*asked: dict[str, Any]) -> str:
    return f"QUESTION {json.dumps({'questions': asked})}"


def shows_next(message: dict[str, Any], part: str) -> None:
    until(lambda: part in message["text"], f"the message shows {part!r}: {message['text']}")


def test_an_answer_that_comes_before_its_message_is_known_counts(chat: Chat, api: BotApi) -> None:
    """People see a message before the call that has sent it returns."""

    def taken(update: int) -> None:
        until(lambda: api.confirmed > update, "the daemon has the update")
        api.release()

    api.held = "Which colour?"
    chat.spawn(question(COLOR), handle="ann")
    message = chat.shows("Which colour?")
    taken(api.press(message["message_id"], api.buttons(message)["Blue"]))
    chat.has_outcomes("ann", "completed")
    api.held = "Why?"
    chat.spawn(question({"question": "Why?"}), handle="bob")
    taken(api.write("because", reply_to=chat.shows("Why?")["message_id"]))
    chat.has_outcomes("bob", "completed")
    assert "not valid any more" not in str(api.notes)


def test_questions_are_answered_by_buttons_and_replies(chat: Chat, api: BotApi) -> None:
    chat.spawn(question(COLOR, {"question": "Why?"}, SIDES), handle="ann")
    message = chat.shows("Which colour? (1 of 3)")
    blue = api.buttons(message)["Blue"]
    api.press(message["message_id"], blue)
    shows_next(message, "✓ Which colour?: Blue\n❓ Why? (2 of 3)")
    assert [*api.buttons(message)] == ["Deny"]
    api.write("because of the sky", reply_to=message["message_id"])
    shows_next(message, "Which sides? (3 of 3)")
    api.press(message["message_id"], blue)  # of a step that was answered
    until(lambda: len(api.notes) == 2, "the late press is answered")
    assert "not valid any more" in api.notes[1]["text"]
    for label, following in (("☐ Rice", "☑ Rice"), ("☐ Beans", "☑ Beans")):
        api.press(message["message_id"], api.buttons(message)[label])
        until(lambda following=following: following in api.buttons(message), following)  # type: ignore[misc]
    api.press(message["message_id"], api.buttons(message)["Done"])
    chat.has_outcomes("ann", "completed")
    assert chat.texts("ann") == [
        'answered {"Which colour?": "Blue", "Which sides?": "Rice, Beans", '
        '"Why?": "because of the sky"}'
    ]
    shows_next(message, "by human")
    assert api.buttons(message) == {}


def test_a_form_is_filled_in_step_by_step_and_sent_by_a_press(chat: Chat, api: BotApi) -> None:
    fields = {"count": {"type": "integer"}, "sure": {"type": "boolean"}, "note": {"type": "string"}}
    schema = {"type": "object", "properties": fields, "required": ["count", "sure"]}
    chat.spawn(f"FORM {json.dumps(schema)}", handle="ann")
    message = chat.shows("❓ count (1 of 3)")
    api.write("many", reply_to=message["message_id"])
    chat.shows("count takes a number")
    api.write("42", reply_to=message["message_id"])
    shows_next(message, "❓ sure (2 of 3)")
    api.press(message["message_id"], api.buttons(message)["Yes"])
    shows_next(message, "❓ note (3 of 3)")
    api.press(message["message_id"], api.buttons(message)["Skip"])
    shows_next(message, "✓ count: 42\n✓ sure: True\n❓ Send these answers?")
    api.press(message["message_id"], api.buttons(message)["Send"])
    chat.has_outcomes("ann", "completed")
    assert chat.texts("ann") == ['answered {"count": 42, "sure": true}']


def test_answers_of_strangers_and_after_the_end_reach_nobody(chat: Chat, api: BotApi) -> None:
    chat.spawn(question(COLOR, {"question": "Why?"}), handle="ann")
    message = chat.shows("Which colour?")
    blue = api.buttons(message)["Blue"]
    api.press(message["message_id"], blue, user=STRANGER)
    api.write("Red", user=STRANGER, reply_to=message["message_id"])
    api.press(message["message_id"], f"{blue[:29]}0000{blue[33:]}")  # another option, same token
    until(lambda: len(api.notes) == 1, "the forged press is answered")
    assert "not valid any more" in api.notes[0]["text"]
    assert "(1 of 2)" in message["text"]
    chat.call("close", handle="ann")
    shows_next(message, "⚪ withdrawn")
    api.press(message["message_id"], blue)
    until(lambda: len(api.notes) == 2, "the press after the withdrawal is answered")
    assert "not valid any more" in api.notes[1]["text"]
    chat.spawn(handle="bob")
    api.write("/to bob SAY hello")
    chat.has_turns("bob", 1)
    api.write("Red", reply_to=message["message_id"])
    chat.shows("this request was settled")
    # It is no message to the session that is talked to either.
    assert len(chat.outcomes("bob")) == 1
    api.write("because", reply_to=chat_permission(chat, api))
    chat.shows("a reply answers a question only")


def chat_permission(chat: Chat, api: BotApi) -> int:
    """The message of a permission request."""
    chat.spawn("ASK touch x", handle="cid")
    number: int = chat.shows("touch x")["message_id"]
    return number


def test_what_was_answered_elsewhere_or_withdrawn_is_edited(chat: Chat, api: BotApi) -> None:
    chat.spawn("ASK touch x\nASK touch y", handle="ann")
    first = chat.shows("touch x")
    buttons = api.buttons(first)
    request = open_request(chat)
    named = {"id": request["id"], "digest": request["digest"]}
    chat.call("request_answer", **named, answer="deny")
    until(lambda: "🔴 deny once by human" in first["text"] or "deny" in first["text"], "edited")
    second = chat.shows("touch y")
    # The answer after it was settled acts on nothing, and says so.
    api.press(first["message_id"], buttons["Allow once"])
    until(lambda: len(api.notes) == 1, "the late press is answered")
    assert "not valid any more" in api.notes[0]["text"]
    chat.call("close", handle="ann")
    until(lambda: "⚪ withdrawn" in second["text"], "withdrawn is shown")


def test_strangers_and_forged_buttons_do_nothing(chat: Chat, api: BotApi) -> None:
    chat.daemon.terminal("build")
    chat.spawn("ASK touch x\nSAY done", handle="ann")
    message = chat.shows("touch x")
    genuine = api.buttons(message)["Allow once"]
    calls = len([each for each in api.calls if each == "sendMessage"])
    api.write("/run build touch stolen", user=STRANGER)
    api.write("/run build touch stolen", chat=12345)
    api.press(message["message_id"], genuine, user=STRANGER)
    request = open_request(chat)
    for forged in (
        genuine[:-1] + ("0" if genuine[-1] != "0" else "1"),
        "s" + genuine[1:],
        f"o{request['id']}{request['digest'][:16]}{'0' * 24}",
        "x",
    ):
        api.press(message["message_id"], forged)
    last = api.write("/help")
    chat.shows("/interrupt HANDLE")
    until(lambda: api.confirmed > last, "all of it was taken")
    assert [each["text"] for each in api.notes] == ["This button is not valid any more."] * 4
    assert open_request(chat)["id"] == request["id"]
    assert len([each for each in api.calls if each == "sendMessage"]) == calls + 1
    assert chat.call("term_read", name="build")["result"] == []


def test_wakes_of_the_person_come_once_and_nothing_from_before(chat: Chat, api: BotApi) -> None:
    terminal = chat.daemon.terminal("build")
    chat.call("term_subscribe", name="build")
    terminal.run("echo by ann", from_handle="ann")
    chat.shows("✉ from term:build")
    # What the daemon does not know to be sent is sent again: it takes the answers in order.
    api.write("/help")
    chat.shows("/interrupt HANDLE")
    chat.daemon.stop()
    chat.start()
    terminal = chat.daemon.terminal("build")
    terminal.run("echo la''ter", from_handle="ann")
    chat.shows("la''ter")
    assert len([each for each in api.texts() if "echo by ann" in each]) == 1


def test_429_409_and_cut_connections_delay_and_lose_nothing(chat: Chat, api: BotApi) -> None:
    chat.daemon.terminal("build")
    api.trouble.extend(["cut", "429", "cut"])
    api.sending_trouble.extend(["429", "cut"])
    api.write("/run build echo on''ce")
    message = chat.shows("once")
    assert "exit 0" in message["text"]
    assert len(chat.call("term_read", name="build")["result"]) == 1
    api.trouble.extend(["409"] * 3)
    until(lambda: "another program polls this bot" in doctor(chat), "doctor names it")
    api.trouble.clear()
    until(lambda: "another program polls this bot" not in doctor(chat), "and that it is over")


def doctor(chat: Chat) -> str:
    return str(chat.daemon.examine().get("telegram"))


def test_the_token_is_nowhere_where_others_see_it(chat: Chat, api: BotApi) -> None:
    terminal = chat.daemon.terminal("build")
    assert TOKEN not in terminal.run("env")["stdout"]
    api.trouble.extend(["cut", "429"])
    api.write("/list")
    chat.shows("term:build")
    state = contents_of(chat.daemon.root / ".aegis")
    assert [path for path, content in state.items() if TOKEN.encode() in content] == []
    assert TOKEN not in chat.daemon.log


def test_a_session_has_a_topic_where_the_chat_has_topics(tmp_path: Path) -> None:
    with bot_api(is_forum=True) as api:
        chat = Chat(ChatDaemon(tmp_path), api)
        chat.spawn(handle="ann")
        until(lambda: "ann" in api.topics.values(), "it has a topic")
        [thread] = api.topics
        api.write("SAY in the topic", thread=thread)
        message = chat.shows("in the topic")
        assert message["message_thread_id"] == thread
        chat.daemon.stop()
        chat.start()
        api.write("SAY after the restart", thread=thread)
        assert chat.shows("after the restart")["message_thread_id"] == thread
        assert [*api.topics.values()] == ["ann"]
        chat.daemon.stop()


def test_a_deleted_topic_is_replaced_and_what_waits_is_shown_again(tmp_path: Path) -> None:
    with bot_api(is_forum=True) as api:
        chat = Chat(ChatDaemon(tmp_path), api)
        chat.spawn("SAY hello\nASK touch x\nSAY all is done", handle="ann")
        first = chat.shows("touch x")
        api.delete_topics()
        chat.send("ann", "SAY queued\nASK touch y\nSAY the end")
        request = open_request(chat)
        allow = {"answer": "allow", "scope": "once", "digest": request["digest"]}
        chat.call("request_answer", id=request["id"], **allow)
        message = chat.shows("all is done")
        assert message["message_thread_id"] != first["message_thread_id"]
        shown = chat.shows("touch y")
        assert api.topics == {shown["message_thread_id"]: "ann"}
        api.delete_topics()
        chat.spawn("ASK touch z", handle="bob")  # its topic is not that of the deleted one
        chat.shows("touch z")
        chat.send("bob", "SAY nothing")
        api.press(shown["message_id"], api.buttons(shown)["Allow once"])
        chat.shows("the end")
        chat.daemon.stop()


def test_a_group_that_becomes_a_supergroup_is_still_served(chat: Chat, api: BotApi) -> None:
    new = -100777
    chat.daemon.terminal("build")
    api.write("/run build echo be''fore")
    chat.shows("before")
    api.migrate(new)
    api.write("/run build echo af''ter")
    assert chat.shows("\nafter")["chat_id"] == new
    chat.daemon.stop()
    chat.start()
    api.write("/run build echo ag''ain")
    assert chat.shows("\nagain")["chat_id"] == new
    found = chat.daemon.examine()["telegram"]
    assert f"write {new} in telegram.chat_id" in found.remedy


def test_a_group_that_moved_while_the_daemon_was_down_is_served(chat: Chat, api: BotApi) -> None:
    chat.daemon.terminal("build")
    chat.daemon.stop()
    api.chat = -100777  # the message about it is lost
    chat.start()
    api.write("/run build echo ag''ain")
    chat.shows("\nagain")


def test_a_text_that_an_app_cut_is_one_message_and_a_command_is_not_run(
    chat: Chat, api: BotApi
) -> None:
    chat.daemon.terminal("build")
    chat.spawn(handle="ann")
    api.write("/to ann SAY first")
    chat.shows("first")
    lines = [f"SAY part {number:04}" for number in range(600)]
    for at in range(0, len(lines), 290):  # Telegram removes the end of the line at the cut
        api.write("\n".join(lines[at : at + 290]))
    api.write("/list")  # behind it, and no part of it
    chat.shows("term:build")
    until(lambda: len(turns_of(chat, "ann")) > 1, "the text begins a turn")
    [_, turn] = turns_of(chat, "ann")
    assert [line for line in turn["text"].split("\n") if line.startswith("SAY ")] == lines
    whole = "/run build true\n" + "echo x >> made.txt\n" * 400
    api.write(whole[:4_096])
    api.write(whole[4_096:])
    chat.shows("not run: the app has cut this command")
    assert len(turns_of(chat, "ann")) == 2
    assert chat.daemon.terminal("build").records() == []
    assert not (chat.daemon.root / "made.txt").exists()


def test_what_is_no_text_or_for_another_bot_is_no_order(chat: Chat, api: BotApi) -> None:
    chat.daemon.terminal("build")
    api.send(photo=[{"file_id": "x"}], caption="/run build touch made.txt")
    chat.shows("a photo and its caption are not taken")
    api.send(voice={"file_id": "x"})
    chat.shows("a voice message is not taken")
    api.send(text="/run build touch made.txt", edits=True)
    chat.shows("an edited message is not read again")
    api.write("/run@other_bot build touch made.txt")
    api.write("/run@aegis_bot build echo he''re")
    chat.shows("\nhere")
    assert [each["cmd"] for each in chat.daemon.terminal("build").records()] == ["echo he''re"]


def turns_of(chat: Chat, handle: str) -> list[dict[str, Any]]:
    """The beginnings of all turns of a session, from its whole transcript."""
    found: list[dict[str, Any]] = []
    since = 0
    while entries := chat.call("session_read", handle=handle, since=since)["result"]:
        since = entries[-1]["seq"]
        found += [each["fields"] for each in entries if each["kind"] == "turn_opened"]
    return found


def said_to(chat: Chat, handle: str) -> list[str]:
    """The orders in the messages that a session got; several may begin one turn."""
    texts = [each["text"] for each in turns_of(chat, handle)]
    return [line for text in texts for line in text.splitlines() if line.startswith("SAY ")]


def kill_under_load(chat: Chat, api: BotApi, kills: int, seed: int) -> None:
    """Kill the daemon at random moments while orders come; each is done once."""
    chance = random.Random(seed)
    chat.spawn(handle="ann")
    chat.call("term_spawn", name="build")
    api.write("/to ann SAY first")
    written, runs = 1, 0
    for _ in range(kills):
        for _ in range(chance.randrange(3)):
            if chance.random() < 0.7:
                written += 1
                api.write(f"SAY number {written}")
            else:
                runs += 1
                api.write(f"/run build echo {runs} >> runs.txt")
        time.sleep(chance.random() * 0.3)
        chat.daemon.kill()
        chat.start()
    api.write("/help")
    # A message a second is what Telegram takes.
    deadline = time.monotonic() + GUARD_S + 3 * (written + runs)
    while api.find("/interrupt HANDLE") is None:
        assert time.monotonic() < deadline, api.texts()[-5:]
        time.sleep(0.2)
    # A message waits for the turn before it, and no order waits for the end of a command.
    until(lambda: len(said_to(chat, "ann")) >= written, "each message has a turn")
    assert sorted(said_to(chat, "ann")) == sorted(
        ["SAY first", *(f"SAY number {number}" for number in range(2, written + 1))]
    )
    path = chat.daemon.root / "runs.txt"

    def done() -> list[str]:
        return path.read_text().split() if path.exists() else []

    def reported() -> int:
        return len([each for each in api.texts() if "the daemon ended while this ran" in each])

    until(lambda: runs - len(done()) <= reported(), "no command is lost in silence")
    assert len(done()) == len(set(done())), "a command was run twice"


@pytest.mark.long
def test_kills_of_the_daemon_lose_nothing_and_do_nothing_twice(chat: Chat, api: BotApi) -> None:
    kill_under_load(chat, api, kills=KILLS, seed=int(os.environ.get("AEGIS_CHAT_SEED", "1")))
