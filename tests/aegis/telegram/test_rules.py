"""The chat of Telegram without its actors: updates, orders, buttons, texts, the outbox's order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.protocol.agents import AgentTakeover, TranscriptEntry
from aegis.protocol.requests import Choice, PersonAnswer
from aegis.telegram import orders as o
from aegis.telegram.buttons import LETTERS, Pressed, button_data, read_button
from aegis.telegram.decisions import MAX_NAMED, command_of, decisions_of
from aegis.telegram.settings import ChatSettings
from aegis.telegram.talk import TurnProgress
from aegis.telegram.texts import (
    MAX_PARTS,
    is_whole,
    list_text,
    parts_of,
    queues_text,
    record_text,
    request_text,
    settled_text,
)
from aegis.telegram.updates import MAX_TEXT_CHARS, Press, TextMessage, read_update
from aegis.telegram.waiting import BURST, MAX_WAITING, WaitingCall, WaitingCalls
from tests.aegis.tui.examples import NOON, agent, queue, record, request, task, terminal

SETTINGS = ChatSettings(chat_id=-100, user_ids=(41, 42), token="7:secret")
SECRET, REQUEST, DIGEST = "s" * 64, "0123456789ab", "d" * 64


def message(**fields: Any) -> dict[str, Any]:
    plain = {"message_id": 5, "chat": {"id": -100}, "from": {"id": 41, "first_name": "Ada"}}
    return {"update_id": 9, "message": {**plain, "text": "hello", **fields}}


def press(**fields: Any) -> dict[str, Any]:
    plain = {
        "id": "q1",
        "from": {"id": 42},
        "data": "x",
        "message": {"message_id": 5, "chat": {"id": -100}},
    }
    return {"update_id": 9, "callback_query": {**plain, **fields}}


def text(content: str, **fields: Any) -> TextMessage:
    plain: dict[str, Any] = {"update": 9, "user": 41, "name": "Ada", "thread": None}
    return TextMessage(**plain | fields, text=content)


def test_what_an_allowed_person_does_is_read() -> None:
    assert read_update(message(), SETTINGS) == text("hello")
    topic = message(message_thread_id=7, is_topic_message=True)
    assert read_update(topic, SETTINGS) == text("hello", thread=7)
    # A reply outside of topics has a thread too, which is none.
    assert read_update(message(message_thread_id=7), SETTINGS) == text("hello")
    pressed = read_update(press(), SETTINGS)
    assert isinstance(pressed, Press)
    assert (pressed.callback, pressed.data, pressed.message) == ("q1", "x", 5)


@pytest.mark.parametrize(
    "update",
    [
        message(chat={"id": -101}),
        message(**{"from": {"id": 43}}),
        message(text=None),
        message(text=""),
        press(**{"from": {"id": 43}}),
        press(message={"message_id": 5, "chat": {"id": 41}}),
        press(message=None),
        {"update_id": 9, "edited_message": message(**{"from": {"id": 43}})["message"]},
        message(text=None, photo=[{"file_id": "x"}], **{"from": {"id": 43}}),
        message(text=None, new_chat_members=[{"id": 5}]),
        {"update_id": "9", "message": message()["message"]},
        {},
    ],
)
def test_everything_else_is_nothing(update: dict[str, Any]) -> None:
    assert read_update(update, SETTINGS) is None


@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        (message(text=None, voice={"file_id": "x"}), "a voice message is not taken"),
        (message(text=None, photo=[{}], caption="/run a b"), "a photo and its caption are not"),
        (message(text=None, document={"file_id": "x"}), "a file is not taken"),
        (message(text=None, sticker={"file_id": "x"}), "a sticker is not taken"),
        ({"update_id": 9, "edited_message": message()["message"]}, "send the new text as a"),
    ],
)
def test_what_is_no_text_is_answered_by_a_sentence(update: dict[str, Any], sentence: str) -> None:
    read = read_update(update, SETTINGS)
    assert isinstance(read, TextMessage)
    assert (read.text, sentence in read.unfit) == ("", True)
    assert o.read_order(read, "aegis_bot") == o.Misunderstood(read.unfit)


@pytest.mark.parametrize(
    ("content", "order"),
    [
        ("hello there", o.Talk("", "hello there")),
        ("/to ann fix it\nnow", o.Talk("ann", "fix it\nnow")),
        ("/to ann", o.Focus("ann")),
        ("/run build pytest -q", o.RunOrder("build", "pytest -q")),
        ("/run@aegis_BOT build\nmake all", o.RunOrder("build", "make all")),
        ("/run@other_bot build make all", o.ForOther()),
        ("/anything@other_bot", o.ForOther()),
        ("/screen build", o.ShowOrder("build")),
        ("/interrupt ann", o.InterruptOrder("ann")),
        ("/list", o.Lookup("list")),
        ("/start", o.Lookup("help")),
        ("/run build", o.Misunderstood("use it as: /run TERMINAL COMMAND - run a command")),
        ("/run ../x ls", o.Misunderstood("use it as: /run TERMINAL COMMAND - run a command")),
        ("/nonsense", o.Misunderstood("not understood: /help")),
        ("/etc/passwd is a path", o.Talk("", "/etc/passwd is a path")),
    ],
)
def test_a_text_is_an_order(content: str, order: o.Order) -> None:
    assert o.read_order(text(content), "aegis_bot") == order


def test_a_button_fits_and_is_read_again() -> None:
    for choice in LETTERS.values():
        data = button_data(SECRET, REQUEST, DIGEST, choice, option="0")
        assert len(data.encode()) <= 64
        pressed = read_button(SECRET, data, {REQUEST: DIGEST})
        assert pressed is not None
        assert (pressed.request, pressed.digest, pressed.choice) == (REQUEST, DIGEST, choice)


@given(st.integers(0, 52), st.characters(codec="utf-8"))
def test_a_button_that_was_changed_is_not_valid(at: int, char: str) -> None:
    data = button_data(SECRET, REQUEST, DIGEST, "deny")
    changed = data[:at] + char + data[at + 1 :]
    if changed != data:
        assert read_button(SECRET, changed, {REQUEST: DIGEST}) is None


@pytest.mark.parametrize(
    ("secret", "digests"),
    [
        ("t" * 64, {REQUEST: DIGEST}),
        (SECRET, {}),
        (SECRET, {REQUEST: "e" * 64}),
        (SECRET, {REQUEST: DIGEST[:16] + "e" * 48}),
        (SECRET, {REQUEST: ""}),
    ],
)
def test_a_button_of_another_daemon_request_or_digest_is_not_valid(
    secret: str, digests: dict[str, str]
) -> None:
    data = button_data(SECRET, REQUEST, DIGEST, "once")
    assert read_button(secret, data, digests) is None


def options(*given: tuple[str, str]) -> list[Choice]:
    """Options with the names ``(name, kind)``, and their names in lower case as ids."""
    kinds: Any = [kind for _, kind in given]
    return [
        Choice(id=name.lower(), name=name, kind=kind)
        for (name, _), kind in zip(given, kinds, strict=True)
    ]


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ({}, ["Allow once", "Allow for the session", "Deny"]),
        ({"no_session_scope": True}, ["Allow once", "Deny"]),
        ({"needs_person": True}, ["Deny"]),
        (
            {"needs_person": True, "tool_kind": "plan", "input": {"plan": "# Do", "file": "x"}},
            ["Allow once", "Allow for the session", "Deny"],
        ),
        ({"kind": "question"}, ["Deny"]),
        ({"input": {"x": "y" * 3_000}}, ["Deny"]),
        ({"options": options(("Yes", "allow_once"), ("No", "deny"))}, ["Allow once", "Deny"]),
        (
            {
                "options": options(
                    ("Here", "allow_once"), ("Deny", "allow_once"), ("Always", "allow_session")
                )
            },
            ["Allow once: Here", "Allow once: Deny", "Allow for the session: Always", "Deny"],
        ),
        (
            {"options": options(("A", "allow_session"), ("B", "allow_session"))},
            ["Allow for the session: A", "Allow for the session: B", "Deny"],
        ),
    ],
)
def test_each_decision_has_a_button_that_begins_with_its_effect(
    fields: dict[str, Any], labels: list[str]
) -> None:
    assert [each.label for each in decisions_of(request(**fields))] == labels


def test_buttons_of_named_options_are_distinct_and_bounded() -> None:
    many = [Choice(id=str(number), name="x" * 200, kind="allow_once") for number in range(300)]
    found = decisions_of(request(options=many))
    assert len(found) == MAX_NAMED + 1
    assert len({each.label for each in found}) == len(found)
    assert max(len(each.label) for each in found) < 80


def test_the_button_of_a_named_option_answers_with_it() -> None:
    asked = request(
        options=options(("No", "deny"), ("Here", "allow_session"), ("There", "allow_session"))
    )
    decision = decisions_of(asked)[1]
    data = button_data(SECRET, asked.id, DIGEST, decision.choice, option=decision.option)
    pressed = read_button(SECRET, data, {asked.id: DIGEST})
    assert pressed is not None
    assert command_of(asked, pressed) == PersonAnswer(
        id=asked.id, digest=DIGEST, answer="allow", scope="session", option="there"
    )
    assert command_of(request(), Pressed(asked.id, DIGEST, "named", option="2")) is None


@given(st.text(max_size=12_000))
def test_every_text_becomes_messages_that_telegram_takes(content: str) -> None:
    parts = parts_of(content)
    assert 1 <= len(parts) <= MAX_PARTS + 2
    for part in parts:
        assert part.strip()
        assert len(part.encode("utf-16-le", "surrogatepass")) // 2 <= MAX_TEXT_CHARS


def test_a_long_text_is_divided_at_lines_and_a_longer_one_loses_its_middle() -> None:
    lines = "\n".join(f"line {number}" for number in range(1000))
    parts = parts_of(lines)
    assert "\n".join(parts) == lines
    shortened = parts_of("🟢" * 40_000)
    assert any("left out" in each for each in shortened)


def test_a_request_is_shown_with_its_input_and_its_end() -> None:
    shown = request(tool="mcp__aegis__aegis_term_run", title="\u202eRun")
    assert request_text(shown).startswith("🟡 ann · permission: aegis_term_run\n<U+202E>Run\n{")
    assert is_whole(shown)
    assert not is_whole(request(input={"x": "y" * 3_000}))
    assert "only be denied" in request_text(request(input=None, input_bytes=9, excerpt="rm"))
    answered = request(state="answered", answer={"kind": "allow_once"}, by="human")
    assert settled_text(answered).endswith("✅ allow once by human")
    assert settled_text(request(state="withdrawn", withdrawn="done")).endswith("⚪ withdrawn: done")


def test_lists_and_records_are_short_texts() -> None:
    assert list_text([agent(state="working")], [terminal(last_exit=2)]) == (
        "🟢 ann - working\n⚪ term:build - exit 2"
    )
    assert list_text([agent(state="working", quiet_s=120.0)], []) == "🟠 ann - stalled"
    taken = AgentTakeover(terminal="takeover-ann", since=NOON)
    assert list_text([agent(state="working", taken_over=taken)], []) == (
        "⚪ ann - taken over in terminal takeover-ann"
    )
    assert list_text([], []) == "nothing is open"
    assert queues_text([queue(paused=True)]) == "▣ review: 1/2 running, 1 pending, paused"
    waiting = [task(f"01{each}", status="waiting", waits="for 01Z") for each in range(12)]
    assert queues_text([queue()], [task(), *waiting]).splitlines()[1:] == [
        *(f"⚪ 01{each} of review waits for 01Z" for each in range(10)),
        "2 more wait",
    ]
    assert record_text(record(stdout="ok\n"), "build") == "build $ make\nok\n✅ exit 0 · 4.20s"
    running = record(3, end=None, exit=None, duration_s=None)
    assert record_text(running, "build").endswith("⏳ it runs: seq 3")
    assert len(record_text(record(stdout="x" * 64_000), "build")) < MAX_TEXT_CHARS


def item(number: int, edits: int | None = None, *, spaced: bool = True) -> WaitingCall:
    return WaitingCall(number=number, method="m", arguments={}, edits=edits, spaced=spaced)


def taken(waiting: WaitingCalls, now: float) -> int | float:
    found = waiting.take(now)
    return found.number if isinstance(found, WaitingCall) else found


def test_calls_are_made_in_order_some_at_once_and_then_one_a_second() -> None:
    waiting = WaitingCalls()
    for number in range(BURST + 2):
        waiting.add(item(number))
    assert [taken(waiting, 100.0) for _ in range(BURST)] == [*range(BURST)]
    assert taken(waiting, 100.0) == pytest.approx(1.0)
    assert taken(waiting, 101.0) == BURST
    assert taken(waiting, 101.5) == pytest.approx(0.5)
    assert taken(waiting, 102.0) == BURST + 1
    assert taken(waiting, 200.0) == float("inf")


def test_a_later_edit_takes_the_place_of_one_that_waits() -> None:
    waiting = WaitingCalls()
    waiting.add(item(1, edits=7))
    waiting.add(item(2))
    assert waiting.add(item(3, edits=7)) == [1]
    assert waiting.add(item(4, edits=8)) == []
    assert [taken(waiting, 0.0) for _ in range(3)] == [3, 2, 4]


def test_retry_after_holds_for_all_and_a_failed_call_is_next_again() -> None:
    waiting = WaitingCalls()
    waiting.add(item(1))
    waiting.add(item(2, spaced=False))
    first = waiting.take(0.0)
    assert isinstance(first, WaitingCall)
    assert first.number == 2  # an answer to a press is wanted at once
    waiting.again(first)
    waiting.be_quiet(30.0)
    assert taken(waiting, 10.0) == pytest.approx(20.0)
    assert [taken(waiting, 30.0), taken(waiting, 30.0)] == [2, 1]


def test_what_waits_is_bounded() -> None:
    waiting = WaitingCalls()
    waiting.add(item(0, edits=1))
    for number in range(1, MAX_WAITING):
        assert waiting.add(item(number)) == []
    assert waiting.add(item(9_000)) == [0]  # an edit is given up first
    assert waiting.add(item(9_001)) == [9_001]
    assert len(waiting) == MAX_WAITING


def entry(kind: str, **fields: Any) -> TranscriptEntry:
    return TranscriptEntry(seq=1, kind=kind, at=NOON, fields=fields)


def event(**fields: Any) -> TranscriptEntry:
    return entry("event", event=fields)


def test_a_turn_becomes_one_text() -> None:
    turn = TurnProgress()
    assert turn.take(entry("turn_opened", turn=1)) is None
    turn.take(event(type="assistant_text", text="Hel", message="m"))
    turn.take(event(type="assistant_text", text="lo", message="m"))
    assert turn.progress == "Hello"
    turn.take(event(type="tool_use", name="mcp__aegis__aegis_term_run"))
    assert turn.progress == "aegis_term_run"
    turn.take(event(type="assistant_text", text="Done.", message="m"))
    assert turn.take(entry("turn_ended", outcome="completed")) == "Hello\n\nDone."
    assert turn.take(entry("turn_ended", outcome="interrupted", reason="crash")) == (
        "[interrupted: crash]"
    )
