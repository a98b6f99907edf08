"""The recordings of interactive programs: their format, and whether their truth is plausible."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from aegis.terminals.screen.choice import new_emulator
from tests.agents_real.tui.recording import (
    RECORDINGS,
    SUFFIX,
    Exited,
    Keys,
    ModelEvent,
    Output,
    Recording,
    Resized,
    Truth,
    load,
    names,
    save,
    text_of,
)
from tests.recordings.private import private_words

AGENTS = [name for name in names() if name not in ("bash", "python", "vim", "build", "download")]
LATE_S = 0.25
"""The model's server and the recorder see the same moment in different processes."""


@pytest.fixture(params=names())
def recording(request: pytest.FixtureRequest) -> Recording:
    """Each recording."""
    return load(request.param)


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> Recording:
    """Each recording of an agent."""
    return load(request.param)


def screens(recording: Recording) -> Iterator[tuple[Truth, str]]:
    """Return each change of the true state with the text of the screen at its time."""
    about = recording.about
    emulator = new_emulator(about.rows, about.cols)
    for event in recording.events:
        match event:
            case Output(data=data):
                emulator.feed(data)
            case Resized(rows=rows, cols=cols):
                emulator.resize(rows, cols)
            case Truth():
                yield event, "\n".join(emulator.screen().lines)


def spans(recording: Recording) -> list[tuple[Truth, float]]:
    """Return each true state with its duration, without the last."""
    truths = recording.truths()
    return [(a, b.t - a.t) for a, b in itertools.pairwise(truths)]


def state_at(recording: Recording, moment: float) -> str:
    """Return the true state at a moment."""
    return [each.state for each in recording.truths() if each.t <= moment][-1]


def test_a_stored_recording_is_read_as_it_was_written(recording: Recording, tmp_path: Path) -> None:
    written = save(recording, tmp_path)
    stored = RECORDINGS / f"{recording.about.name}{SUFFIX}"
    # Compressed, the same text differs between versions of zlib.
    assert gzip.decompress(written.read_bytes()) == gzip.decompress(stored.read_bytes())


def test_the_recordings_are_small() -> None:
    sizes = [each.stat().st_size for each in RECORDINGS.glob(f"*{SUFFIX}")]
    assert max(sizes) < 150_000
    assert sum(sizes) < 1_500_000


def test_the_times_of_events_never_fall(recording: Recording) -> None:
    times = [each.t for each in recording.events]
    assert times == sorted(times)


def test_a_recording_begins_with_a_working_program_and_ends_with_its_exit(
    recording: Recording,
) -> None:
    truths = recording.truths()
    assert (truths[0].state, truths[-1].state) == ("working", "exited")
    assert [each.state for each in truths].count("exited") == 1
    assert len([each for each in recording.events if isinstance(each, Exited)]) == 1


def test_the_text_of_each_prompt_is_on_the_screen_at_its_time(recording: Recording) -> None:
    missing = [truth for truth, screen in screens(recording) if truth.shown not in screen]
    assert missing == []


def test_a_program_is_asked_to_work_only_by_keystrokes(recording: Recording) -> None:
    keys = [each.t for each in recording.events if isinstance(each, Keys)]
    asked = [each for each in recording.truths()[1:] if each.state == "working"]
    assert [each for each in asked if not any(abs(each.t - t) < 0.05 for t in keys)] == []


def test_no_recording_has_private_words(recording: Recording) -> None:
    data = b"".join(getattr(event, "data", b"") for event in recording.events)
    # Loopback is no machine's own address.
    whole = (text_of(recording).encode() + data).replace(b"127.0.0.1", b"")
    assert private_words(whole) == []


def test_a_conversation_asks_the_model_only_while_its_agent_works(agent: Recording) -> None:
    asked = [
        each
        for each in agent.events
        if isinstance(each, ModelEvent) and each.event == "request" and not each.aside
    ]
    assert len(asked) >= 4
    assert {state_at(agent, each.t) for each in asked} == {"working"}


def test_an_agent_leaves_its_permission_prompt_open_for_long(agent: Recording) -> None:
    asked = [length for truth, length in spans(agent) if truth.kind == "permission"]
    assert len(asked) >= 2
    assert min(asked) >= 8 - LATE_S


def test_an_agent_thinks_for_more_than_six_seconds(agent: Recording) -> None:
    assert max(length for truth, length in spans(agent) if truth.state == "working") > 6


def ends(recording: Recording) -> list[float]:
    """Return the times at which the model had given an answer."""
    return [
        each.t
        for each in recording.events
        if isinstance(each, ModelEvent) and each.event == "end" and each.outcome == "complete"
    ]


def test_a_turn_is_over_only_after_the_model_has_answered(agent: Recording) -> None:
    over = [each.t for each in agent.truths() if each.because == "the turn is over"]
    assert len(over) == 2
    for moment in over:
        assert any(-LATE_S < moment - each < 3 for each in ends(agent))


def test_an_agent_asks_for_permission_only_after_the_model_has_called_a_tool(
    agent: Recording,
) -> None:
    asked = [each.t for each in agent.truths() if each.kind == "permission"]
    for moment in asked:
        assert any(-LATE_S < moment - each < 3 for each in ends(agent))


def test_the_asked_for_status_reports_come_only_where_the_query_was_answered() -> None:
    answered, unanswered = (
        b"".join(each.data for each in load(name).events if isinstance(each, Output))
        for name in ("claude", "claude-unanswered")
    )
    assert b"]7501;state=blocked" in answered
    assert b"]7501;?" in unanswered
    assert b"]7501;state" not in unanswered
