"""The transcript of a session, as the interface shows it."""

from __future__ import annotations

from aegis.tui.model import conversation
from aegis.tui.model.conversation import Conversation
from tests.aegis.tui.examples import entry, event


def shown(talk: Conversation) -> list[tuple[str, str]]:
    return [(part.kind, "".join(each.text for each in part.segments)) for part in talk.parts]


def test_each_message_of_a_turn_is_a_letter_with_its_sender() -> None:
    talk = Conversation()
    text = "> from agent:pm · 2026-05-22T12:00:00Z\nfix it\n\n> from human · …\nand test it\n"
    talk.add(entry("turn_opened", turn=1, text=text))
    assert [(part.kind, part.title, part.copied) for part in talk.parts] == [
        ("mail", "agent:pm", "fix it"),
        ("mail", "human", "and test it"),
    ]
    assert talk.turn_began is not None


def test_the_end_of_a_turn_says_how_long_it_took() -> None:
    talk = Conversation()
    talk.add(entry("turn_opened", turn=1, text="hello"))
    talk.add(entry("turn_ended", at="2026-05-22T12:00:03.5Z", turn=1, outcome="completed"))
    assert shown(talk)[-1] == ("turn", "turn 1 completed · 3.50s")
    assert talk.turn_began is None


def test_chunks_of_one_message_are_one_part() -> None:
    talk = Conversation()
    for text in ("Hel", "lo"):
        talk.add(event("assistant_text", text=text, message="m1"))
    talk.add(event("assistant_text", text="Next", message="m2"))
    assert shown(talk) == [("text", "Hello"), ("text", "Next")]
    assert talk.parts[0].copied == "Hello"


def test_chunks_with_something_between_them_are_two_parts() -> None:
    talk = Conversation()
    talk.add(event("assistant_text", text="one", message="m1"))
    talk.add(event("tool_use", id="t", name="mcp__aegis__aegis_term_run"))
    talk.add(event("assistant_text", text="two", message="m1"))
    assert [text for _, text in shown(talk)] == ["one", "● aegis_term_run", "two"]


def test_a_tool_its_progress_and_its_result_replace_each_other() -> None:
    talk = Conversation()
    talk.add(event("tool_use", id="t", name="Bash"))
    talk.add(event("tool_use", id="t", name="Bash", title="Run the tests"))
    talk.add(event("tool_progress", id="t", text="1 of 9"))
    part = talk.add(event("tool_progress", id="t", text=""))
    assert part is talk.parts[1]
    talk.add(event("tool_result", id="t", text="all passed"))
    assert shown(talk) == [("tool", "● Run the tests (Bash)"), ("result", "all passed")]


def test_a_plan_and_the_output_of_a_terminal_are_shown_as_they_are_last() -> None:
    talk = Conversation()
    talk.add(event("plan", steps=[{"text": "a", "status": "pending"}]))
    talk.add(event("terminal_started", terminal="x", command="make"))
    talk.add(event("terminal_output", terminal="x", output="cc\n"))
    talk.add(event("plan", steps=[{"text": "a", "status": "completed"}]))
    assert shown(talk) == [("note", "☑ a"), ("result", "cc")]


def test_what_the_person_sent_is_not_shown_twice() -> None:
    talk = Conversation()
    assert talk.add(event("user_message", text="hello", origin="turn")) is None


def test_markup_of_an_agent_is_text_and_control_characters_are_shown() -> None:
    talk = Conversation()
    talk.add(event("assistant_text", text="[red]\x1b[31m\u202e"))
    assert shown(talk) == [("text", "[red]<U+001B>[31m<U+202E>")]


def test_a_refusal_of_the_profile_is_a_remark() -> None:
    talk = Conversation()
    talk.add(entry("decided", request="r", answer={"kind": "deny"}, why="read only"))
    talk.add(entry("decided", request="r", answer={"kind": "allow_once"}, why="ok"))
    assert shown(talk) == [("note", "refused by the profile: read only")]


def test_an_event_of_an_unknown_type_does_no_harm() -> None:
    talk = Conversation()
    talk.add(event("hologram", x=1))
    talk.add(entry("something_new"))
    assert [kind for kind, _ in shown(talk)] == ["note"]


def test_the_oldest_parts_are_dropped(monkeypatch: object) -> None:
    talk = Conversation()
    for number in range(conversation.MAX_PARTS + 10):
        talk.add(event("assistant_text", text=str(number)))
    assert len(talk.parts) <= conversation.MAX_PARTS
    assert shown(talk)[-1] == ("text", str(conversation.MAX_PARTS + 9))
