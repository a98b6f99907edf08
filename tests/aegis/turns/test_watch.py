"""The outcome of the turn that one message began."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.protocol.agents import AgentInfo, AgentState, TranscriptEntry
from aegis.protocol.inboxes import Place
from aegis.turns.watch import FORGOTTEN, TurnOutcome, TurnWatch

MINE = "broadcast:1/ann"


def entry(kind: str, **fields: Any) -> TranscriptEntry:
    return TranscriptEntry(seq=1, kind=kind, at="", fields=fields)


def opened(turn: int, *messages: str) -> TranscriptEntry:
    return entry("turn_opened", turn=turn, messages=[{"id": each} for each in messages])


def ended(turn: int, text: str = "", outcome: str = "completed", **fields: Any) -> TranscriptEntry:
    return entry("turn_ended", turn=turn, outcome=outcome, text=text, **fields)


def info(state: AgentState, turn: int = 0, reason: str = "") -> AgentInfo:
    return AgentInfo(
        id="s1",
        handle="ann",
        profile="p",
        provider="claude",
        state=state,
        since="",
        reason=reason,
        cwd="/",
        spawned_by="human",
        model="",
        turn=turn,
        waiting=0,
        quiet_s=0.0,
        tools=[],
        blocked=None,
        limited_until=None,
        conversation=None,
    )


def outcome(*entries: TranscriptEntry, is_over: bool = False) -> TurnOutcome | None:
    watch = TurnWatch(MINE)
    watch.take(entries)
    return watch.outcome(is_over=is_over)


def test_the_last_message_of_the_turn_that_names_the_message_is_its_answer() -> None:
    found = outcome(
        opened(1, "other"),
        ended(1, "an answer to another"),
        opened(2, MINE),
        entry("event", turn=2, event={"type": "assistant_text", "text": "a chunk"}),
        ended(2, "the answer"),
        opened(3, "later"),
        ended(3, "another again"),
    )
    assert found == TurnOutcome(end="completed", text="the answer", turn=2, seq=1)


def test_a_turn_that_runs_or_was_begun_by_others_is_no_answer() -> None:
    assert outcome(opened(1, "other"), ended(1, "said")) is None
    assert outcome(opened(1, MINE)) is None
    assert outcome(opened(2, MINE), ended(1, "stale")) is None
    assert outcome(entry("turn_opened", turn=1, messages="odd"), ended(1, "said")) is None


def test_of_several_messages_in_a_turn_each_finds_its_own() -> None:
    assert outcome(opened(1, "a", MINE), ended(1, "both")) is not None


@pytest.mark.parametrize("end", ["failed", "interrupted", "cancelled", "limited"])
def test_the_end_of_a_turn_that_was_not_completed_has_its_reason(end: str) -> None:
    found = outcome(opened(1, MINE), ended(1, "said last", end, reason="the cause"))
    assert found is not None
    assert (found.end, found.text) == (end, "said last")
    assert found.reason.startswith("its turn ")
    assert found.reason.endswith(": the cause")


def test_an_outcome_of_a_later_version_counts_as_a_failure() -> None:
    found = outcome(opened(1, MINE), ended(1, "", "evaporated"))
    assert found == TurnOutcome(end="failed", reason="its turn failed", turn=1, seq=1)


def test_the_first_end_of_a_turn_is_the_one_that_counts() -> None:
    found = outcome(opened(1, MINE), ended(1, "first"), ended(1, "second"))
    assert found is not None
    assert found.text == "first"


def test_a_message_that_the_transcript_has_cut_is_marked() -> None:
    found = outcome(opened(1, MINE), ended(1, "the beginning", truncated=2_000_000))
    assert found is not None
    assert found.is_cut


def test_a_session_that_is_closed_loses_the_messages_without_a_turn() -> None:
    found = outcome(opened(1, "other"), ended(1), is_over=True)
    assert found is not None
    assert (found.end, found.turn) == ("lost", None)
    assert "was closed before it read the message" in found.reason
    assert outcome(opened(1, MINE), ended(1, "x"), is_over=True) == outcome(
        opened(1, MINE), ended(1, "x")
    )


def test_a_turn_whose_end_was_rotated_away_is_lost() -> None:
    watch = TurnWatch(MINE)
    watch.take([opened(1, MINE)])
    watch.take([opened(4, "later")], missed=20)
    found = watch.outcome(is_over=False)
    assert found == TurnOutcome(end="lost", reason=FORGOTTEN, turn=1)


@pytest.mark.parametrize(
    ("state", "place", "is_lost"),
    [
        ("error", Place(position=0), True),
        ("error", Place(is_landed=True), False),
        ("error", None, False),
        ("dormant", Place(position=0), False),
        ("blocked", Place(position=2), False),
    ],
)
def test_a_message_is_lost_if_its_session_cannot_be_used_since_it_arrived(
    state: AgentState, place: Place | None, is_lost: bool
) -> None:
    found = TurnWatch(MINE).without_turn(info(state, reason="no program"), place)
    assert found == (TurnOutcome(end="lost", reason="no program") if is_lost else None)


@pytest.mark.parametrize(
    ("had_opened", "place", "state", "is_lost"),
    [
        (False, Place(is_landed=True), "idle", True),
        (False, Place(position=1), "idle", False),
        (False, None, "idle", False),
        (True, None, "working", False),
        (True, None, "blocked", False),
        (True, None, "idle", True),
    ],
)
def test_a_turn_of_which_entries_are_gone_is_lost_unless_it_runs(
    had_opened: bool, place: Place | None, state: AgentState, is_lost: bool
) -> None:
    watch = TurnWatch(MINE)
    watch.take([opened(3, MINE)] if had_opened else [])
    watch.take([], missed=7)
    found = watch.without_turn(info(state, turn=3), place)
    assert (found is not None and found.reason == FORGOTTEN) == is_lost


def test_entries_that_were_missed_before_the_turn_opened_do_not_matter() -> None:
    watch = TurnWatch(MINE)
    watch.take([opened(3, MINE)], missed=7)
    assert not watch.has_gap
    watch.take([ended(3, "whole")])
    found = watch.outcome(is_over=False)
    assert found is not None
    assert found.text == "whole"
