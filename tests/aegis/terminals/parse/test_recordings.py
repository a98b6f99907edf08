"""The parser of marks and the text cleaner on what real programs write."""

from __future__ import annotations

import itertools
import re
import tracemalloc
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.processes.capture import CapturedOutput, OutputCapture
from aegis.processes.line import BLOCK, MAX_LINE
from aegis.processes.text import MAX_PARAMETERS, TextCleaner
from aegis.terminals.parse.osc133 import Event, Mark, MarkParser, PasteMode, Text
from tests.recordings.corpus import HERE, MAX_BYTES, Recording, recordings
from tests.recordings.private import private_words

SECRET = b"s3cretS3CRETs3cr"
OURS = b";n=" + SECRET
MARKS = [
    b"\x1b]133;A" + OURS + b";q=3\x07",
    b"\x1b]133;B" + OURS + b";q=3\x1b\\",
    b"\x1b]133;C" + OURS + b";q=4;s=1\x07",
    b"\x1b]133;D;130" + OURS + b";q=5;h=41\x07",
    b"\x1b]133;P;k=s;q=5" + OURS + b"\x1b\\",
]
LIMIT = 2_000
"""A limit below the length of most texts: both halves and the notice are there."""

ALL = recordings()
LINES = [each for each in ALL if not each.screen_only]
each_recording = pytest.mark.parametrize("recording", ALL, ids=lambda each: each.name)
CUTS = st.lists(st.integers(0, MAX_BYTES), max_size=40)


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def parsed(chunks: Iterable[bytes]) -> list[Event]:
    """The events of ``chunks``, texts that follow each other joined."""
    parser = MarkParser(SECRET)
    events: list[Event] = []
    for event in [*(each for chunk in chunks for each in parser.feed(chunk)), *parser.close()]:
        if isinstance(event, Text) and events and isinstance(events[-1], Text):
            events[-1] = Text(events[-1].data + event.data)
        else:
            events.append(event)
    return events


def stream_of(events: Iterable[Event]) -> bytes:
    return b"".join(each.visible if isinstance(each, Mark) else each.data for each in events)


def cleaned(chunks: Iterable[bytes]) -> str:
    texts: list[str] = []
    cleaner = TextCleaner(texts.append)
    for chunk in chunks:
        cleaner.feed(chunk)
    cleaner.finish()
    return "".join(texts)


def captured(chunks: Iterable[bytes]) -> CapturedOutput:
    capture = OutputCapture(LIMIT)
    for chunk in chunks:
        capture.feed(chunk)
        assert len(capture.snapshot().text.encode()) <= LIMIT
    return capture.result()


def with_marks(data: bytes, places: Sequence[int]) -> bytes:
    """``data`` with our marks put in at these places, which may lie within its own sequences."""
    chunks = cut(data, places)
    marks = [MARKS[number % len(MARKS)] for number in range(len(chunks) - 1)]
    return b"".join(part for pair in zip(chunks, [*marks, b""], strict=True) for part in pair)


# What is stored.


def test_each_file_is_described_and_each_description_has_its_file() -> None:
    assert {each.name for each in ALL} == {path.stem for path in HERE.glob("*.raw")}
    assert {each.name for each in LINES} == {path.stem for path in HERE.glob("*.txt")}
    assert len(ALL) >= 20


@each_recording
def test_no_recording_holds_a_path_a_user_or_an_address_of_a_machine(recording: Recording) -> None:
    assert private_words(recording.data) == []
    assert 0 < len(recording.data) <= MAX_BYTES


@pytest.mark.parametrize(
    "private",
    [
        b"cd /root",
        b"/home/ann/x",
        b"/work/main",
        b"root@box:~#",
        b"\x1b[32mroot\x1b[m@\x1b[32mbox",
        b"10.0.0.7:80",
        b"https://" + b"pypi" + b".org/simple",
    ],
)
def test_the_search_for_private_words_finds_them(private: bytes) -> None:
    assert private_words(b"x " + private + b" y") != []


def test_the_search_for_private_words_knows_names_and_lets_versions_pass() -> None:
    assert private_words(b"on \x1b[1mbox\x1b[m now", ["box"]) == ["box"]
    assert private_words(b"boxes 2.4.6 and /tmp/h/venv/bin, ann@example.org", ["box"]) == []


# The parser.


@each_recording
def test_a_recording_without_our_marks_passes_unchanged(recording: Recording) -> None:
    events = parsed([recording.data])
    assert stream_of(events) == recording.data
    assert not any(isinstance(each, Mark) for each in events)
    assert parsed(bytewise(recording.data)) == events


@each_recording
@settings(max_examples=15)
@given(cuts=CUTS)
def test_its_events_are_the_same_however_it_is_cut(recording: Recording, cuts: list[int]) -> None:
    assert parsed(cut(recording.data, cuts)) == parsed([recording.data])


@each_recording
@settings(max_examples=15)
@given(places=CUTS, cuts=CUTS)
def test_marks_anywhere_in_it_are_found_and_their_secret_stays_inside(
    recording: Recording, places: list[int], cuts: list[int]
) -> None:
    data = with_marks(recording.data, places)
    events = parsed([data])
    assert stream_of(events) == data.replace(OURS, b"")
    assert parsed(cut(data, cuts)) == events
    expected = [MARKS[number % len(MARKS)].replace(OURS, b"") for number in range(len(places))]
    assert [each.visible for each in events if isinstance(each, Mark)] == expected


def test_the_line_editors_come_and_go_in_the_recordings_of_shells() -> None:
    for recording in ALL:
        switches = [each.on for each in parsed([recording.data]) if isinstance(each, PasteMode)]
        if recording.name in ("bash", "zsh"):
            assert True in switches
            assert False in switches


# The text.


@pytest.mark.parametrize("recording", LINES, ids=lambda each: each.name)
def test_the_text_of_a_recording_is_what_a_reader_wants(recording: Recording) -> None:
    assert cleaned([recording.data]) == recording.text


@each_recording
def test_its_text_is_the_same_byte_by_byte(recording: Recording) -> None:
    chunks = bytewise(recording.data)
    assert cleaned(chunks) == cleaned([recording.data])
    assert captured(chunks[:3_000]) == captured([recording.data[:3_000]])


@each_recording
@settings(max_examples=15)
@given(cuts=CUTS)
def test_its_text_is_the_same_however_it_is_cut(recording: Recording, cuts: list[int]) -> None:
    chunks = cut(recording.data, cuts)
    assert cleaned(chunks) == cleaned([recording.data])
    assert captured(chunks) == captured([recording.data])


@each_recording
def test_its_text_holds_no_escape_sequence(recording: Recording) -> None:
    text = cleaned([recording.data])
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text) is None


@pytest.mark.parametrize("name", ["vim", "htop", "man", "textual", "tmux", "git-log-less"])
def test_of_a_program_on_the_alternate_screen_nothing_is_left(name: str) -> None:
    [recording] = [each for each in ALL if each.name == name]
    assert len(cleaned([recording.data]).strip()) < 100


@each_recording
def test_what_is_held_back_is_bounded_after_each_byte(recording: Recording) -> None:
    cleaner = TextCleaner(lambda text: None)
    for byte in bytewise(recording.data):
        cleaner.feed(byte)
        assert len(cleaner.pending) <= MAX_LINE + BLOCK
        assert len(cleaner._incomplete) <= MAX_PARAMETERS + 2


def test_memory_does_not_grow_when_all_of_them_come_again_and_again() -> None:
    capture, parser = OutputCapture(LIMIT), MarkParser(SECRET)
    everything = b"".join(each.data for each in ALL)

    def feed() -> None:
        for chunk in (everything[at : at + 4_096] for at in range(0, len(everything), 4_096)):
            parser.feed(chunk)
            capture.feed(chunk)

    feed()
    tracemalloc.start()
    feed()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(5):
        feed()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 50_000
