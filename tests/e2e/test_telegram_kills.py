"""The chat of Telegram under crashes of its actors, and ``kill -9`` at each of its fault points."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aegis.client.line import ClientError
from aegis.telegram import faults
from tests.e2e.harness import GUARD_S
from tests.e2e.test_telegram import COLOR, Chat, ChatDaemon, question, said_to
from tests.fakes.telegram import BotApi, bot_api
from tests.resources.waiting import until

pytestmark = pytest.mark.real

LINES = ("accepted", "begun", "done", "asked", "drafted", "settled", "woken", "told", "focus")
METHODS = ("sendMessage", "editMessageText", "answerCallbackQuery")
APPENDS = (faults.APPEND_BEFORE, faults.APPEND_AFTER)
SENDS = (faults.SEND_BEFORE, faults.SEND_AFTER)

PLACES = (
    *(f"{point.name}[{kind}]" for point in APPENDS for kind in LINES),
    *(f"{point.name}[{method}]" for point in SENDS for method in METHODS),
)
"""Each point, at each kind of line and each method: ``secret`` and ``topic`` are written once."""


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


class Story:
    """Orders, a message for the person, and a question, while the daemon may be killed."""

    def __init__(self, chat: Chat, api: BotApi) -> None:
        self.chat = chat
        self.api = api
        self.pressed: set[str] = set()
        chat.spawn(handle="ann")
        chat.call("term_spawn", name="build")

    def tell(self, fault: str) -> None:
        """Tell it until the fault has ended the daemon."""
        daemon = self.chat.daemon
        daemon.stop()
        daemon.launch("--port", "0", "--trust", faults=fault)
        self.api.write("/to ann SAY first")
        self.api.write("/run build echo once >> runs.txt")
        self.api.write("SAY second")
        if daemon.wait_ready():
            prompt = question(COLOR, {"question": "Why?"})
            self.ask(self.wake)
            self.ask(lambda: self.chat.spawn(prompt, handle="bob"))
        until(self.is_over, f"{fault} has ended the daemon")
        daemon.kill()

    def ask(self, call: Callable[[], object]) -> None:
        """Call until it succeeds or the daemon has ended: just after a start it may refuse."""
        deadline = time.monotonic() + GUARD_S
        while self.chat.daemon.is_running and time.monotonic() < deadline:
            with suppress(ClientError, OSError, ValueError):
                call()
                return
            time.sleep(0.1)

    def wake(self) -> None:
        named = {"target_handle": "human", "from_handle": "ann", "key": "k1"}
        self.chat.call("handoff", context="look here", **named)

    def is_over(self) -> bool:
        """Answer what is asked in the chat; return whether the daemon has ended."""
        for message in messages_with(self.api, "❓ Which colour?"):
            self.press(message, "Blue")
        for message in messages_with(self.api, "❓ Why?"):
            if "why" not in self.pressed:
                self.pressed.add("why")
                self.api.write("so", reply_to=message["message_id"])
        return not self.chat.daemon.is_running

    def is_settled(self) -> bool:
        """Answer as before: a turn that had not begun at the kill asks after the next start."""
        self.is_over()
        return not self.chat.call("request_list")["requests"]

    def press(self, message: dict[str, Any], label: str) -> bool:
        """Press a button once; return whether that was done: it may not be shown any more."""
        data = self.api.buttons(message).get(label)
        if data is None or data in self.pressed:
            return False
        self.pressed.add(data)
        self.api.press(message["message_id"], data)
        return True

    def has_run(self) -> bool:
        """Whether the command has run, or the chat says that this is not known."""
        is_told = self.api.find("the daemon ended while this ran") is not None
        return is_told or bool(self.done())

    def done(self) -> list[str]:
        runs = self.chat.daemon.root / "runs.txt"
        return runs.read_text().split() if runs.exists() else []

    def check(self) -> None:
        """Everything was done once, and what is said of it is true."""
        chat, api = self.chat, self.api
        self.ask(self.wake)
        last = api.write("/help")
        for part in ("look here", "/interrupt HANDLE"):
            chat.shows(part)
        # A turn in which the daemon ended is not done again: the chat has its answer or that.
        lost = "of 'ann', which your message began, was interrupted"
        until(
            lambda: any(api.find(each) is not None for each in ("second", lost)),
            "the chat shows the second answer",
        )
        until(lambda: api.confirmed > last, "all updates were confirmed")
        until(lambda: len(said_to(chat, "ann")) >= 2, "both messages arrive")
        assert sorted(said_to(chat, "ann")) == ["SAY first", "SAY second"]
        until(self.has_run, "the command has run")  # no other order waits for its end
        done = self.done()
        assert done == ["once"] or (done == [] and api.find("the daemon ended while this ran"))
        # No question is open any more: every button that is still shown says so.
        until(self.is_settled, "each question was answered or withdrawn")
        for message in messages_with(api, "❓ Which colour?"):
            known = len(api.notes)
            if not self.press(message, "Deny"):
                continue  # it was edited meanwhile
            until(lambda known=known: len(api.notes) > known, "the press is answered")  # type: ignore[misc]
            # The message may not be edited yet: then the desk of requests refuses.
            note = api.notes[-1]["text"]
            assert "not valid any more" in note or "was withdrawn" in note


def messages_with(api: BotApi, part: str) -> list[dict[str, Any]]:
    with api.lock:
        return [each for each in api.messages.values() if part in each["text"]]


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_a_kill_at_each_point_loses_nothing_and_does_nothing_twice(
    chat: Chat, api: BotApi, place: str
) -> None:
    story = Story(chat, api)
    story.tell(f"{place}@1=kill")
    chat.start()
    story.check()


def test_a_crash_of_the_desk_or_the_outbox_delays_the_chat_only(chat: Chat, api: BotApi) -> None:
    chat.daemon.stop()
    places = ("actor.receive.before[TelegramDesk]@1", "actor.receive.before[Outbox]@3")
    chat.daemon.start("--port", "0", "--trust", faults=",".join(f"{each}=crash" for each in places))
    chat.call("term_spawn", name="build")
    for number in range(4):
        api.write(f"/run build echo number {number}")
    for number in range(4):
        chat.shows(f"build $ echo number {number}\nnumber {number}\n✅")
    tree = chat.call("tree")
    restarts = {each["path"]: each["restarts"] for each in flat(tree) if each["restarts"]}
    assert restarts == {"root/telegram": 1, "root/telegram-outbox": 1}
    records = chat.call("term_read", name="build", last_n=10)["result"]
    assert [each["cmd"] for each in records] == [f"echo number {each}" for each in range(4)]


def flat(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from flat(child)
