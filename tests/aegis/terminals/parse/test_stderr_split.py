"""Two streams of one shell in the right order, in whatever order they were read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.terminals.parse.osc133 import Event, Mark, PasteMode, Text
from aegis.terminals.parse.stderr_split import (
    MAX_WAITING_BYTES,
    SPLIT_WAIT_S,
    ErrorText,
    ShellStreams,
    Stage,
    StderrSplit,
)

SECRET = b"abcdefgh12345678"

PART = Mark(kind="P", number=4, params={"k": "a", "q": "4"})
INCOMPLETE = Mark(kind="P", number=4, params={"k": "s", "q": "4"})
BEGIN = Mark(kind="C", number=5, submitted=True)
END = Mark(kind="D", number=6, exit=0, submitted=True)
PROMPT = Mark(kind="B", number=6)
LET_GO = PasteMode(False, b"\x1b[?2004l")

FIRST: list[Event] = [Text(b"line"), PART, Text(b"out"), END, PROMPT, Text(b"$ ")]
SECOND: list[Event] = [Text(b"echo"), LET_GO, BEGIN, Text(b"err"), END]
IN_ORDER = [
    Text(b"line"),
    PART,
    ErrorText(b"echo"),
    LET_GO,
    BEGIN,
    Text(b"out"),
    ErrorText(b"err"),
    END,
    PROMPT,
    Text(b"$ "),
]


Script: TypeAlias = list[tuple[int, Event]]
"""Events with the stream they come on."""


def feed(split: StderrSplit, script: Iterable[tuple[int, Event]]) -> list[Event | ErrorText]:
    handled: list[Event | ErrorText] = []
    for stream, event in script:
        handled += split.feed_output([event]) if stream == 1 else split.feed_errors([event])
    return handled


@given(st.permutations([1] * len(FIRST) + [2] * len(SECOND)))
def test_a_command_is_in_order_however_the_two_were_read(turns: Sequence[int]) -> None:
    split = StderrSplit()
    split.submitted()
    streams = {1: iter(FIRST), 2: iter(SECOND)}
    handled = feed(split, [(turn, next(streams[turn])) for turn in turns])
    assert sorted(map(repr, handled)) == sorted(map(repr, IN_ORDER))
    out, err = handled.index(Text(b"out")), handled.index(ErrorText(b"err"))
    if out > err:
        handled[out], handled[err] = handled[err], handled[out]
    assert handled == IN_ORDER
    assert not split.is_waiting
    assert split.stage is Stage.MERGED


ZSH_PARTS = Mark(kind="P", number=4, params={"k": "e", "q": "4"})
ZSH_FIRST: list[Event] = [LET_GO, ZSH_PARTS, Text(b"\n"), BEGIN, Text(b"out"), END, PROMPT]
ZSH_SECOND: list[Event] = [Text(b"err"), END]


@given(st.permutations([1] * len(ZSH_FIRST) + [2] * len(ZSH_SECOND)))
def test_where_the_start_comes_on_the_first_the_second_waits_for_it(turns: Sequence[int]) -> None:
    split = StderrSplit()
    split.submitted()
    streams = {1: iter(ZSH_FIRST), 2: iter(ZSH_SECOND)}
    handled = feed(split, [(turn, next(streams[turn])) for turn in turns])
    assert [each for each in handled if each != ErrorText(b"err")] == ZSH_FIRST
    assert handled.index(BEGIN) < handled.index(ErrorText(b"err")) < handled.index(END)
    assert split.stage is Stage.MERGED


def test_where_a_line_runs_nothing_what_was_said_of_it_comes_before_its_end() -> None:
    split = StderrSplit()
    split.submitted()
    script: Script = [(2, Text(b"parse error")), (1, LET_GO), (1, ZSH_PARTS), (1, END), (2, END)]
    handled = feed(split, [*script, (1, PROMPT)])
    assert handled == [LET_GO, ZSH_PARTS, ErrorText(b"parse error"), END, PROMPT]


def test_a_line_that_runs_nothing_ends_on_both() -> None:
    split = StderrSplit()
    split.submitted()
    script: Script = [(1, PART), (1, END), (1, PROMPT), (2, LET_GO), (2, Text(b"syntax")), (2, END)]
    assert feed(split, script) == [PART, LET_GO, ErrorText(b"syntax"), END, PROMPT]


def test_a_text_that_cannot_be_read_to_its_end_says_so_on_the_second() -> None:
    split = StderrSplit()
    split.submitted()
    script: Script = [(1, PART), (2, LET_GO), (2, INCOMPLETE), (1, END), (1, PROMPT), (2, END)]
    assert feed(split, script) == [PART, LET_GO, INCOMPLETE, END, PROMPT]


def test_a_prompt_on_the_second_ends_the_command() -> None:
    """The command removed the hook from PROMPT_COMMAND: nobody put the streams together."""
    split = StderrSplit()
    split.submitted()
    begins = Mark(kind="A", number=6)
    script: Script = [(1, PART), (2, BEGIN), (2, Text(b"err")), (2, END), (2, begins), (2, PROMPT)]
    assert feed(split, script) == [PART, BEGIN, ErrorText(b"err"), END, begins, PROMPT]
    split.submitted()
    again = Mark(kind="C", number=8)
    # The prompt is drawn anew as the line is accepted, with the end that was told.
    script = [(2, END), (2, begins), (1, PART), (2, again), (1, Text(b"out"))]
    assert feed(split, script) == [PART, again, Text(b"out")]


def test_several_commands_of_one_submission_pass() -> None:
    split = StderrSplit()
    split.submitted()
    more = Mark(kind="C", number=6)
    end = Mark(kind="D", number=7, exit=1)
    script: Script = [
        (1, PART),
        (2, BEGIN),
        (1, Text(b"a")),
        (2, more),
        (1, end),
        (2, Text(b"b")),
        (2, end),
    ]
    assert feed(split, script) == [PART, BEGIN, Text(b"a"), more, ErrorText(b"b"), end]


def test_without_a_submission_nothing_waits_and_no_mark_on_the_second_counts() -> None:
    split = StderrSplit()
    script: Script = [(2, Text(b"job")), (2, BEGIN), (1, BEGIN), (2, END), (1, END), (1, PROMPT)]
    assert feed(split, script) == [ErrorText(b"job"), BEGIN, END, PROMPT]


def test_a_typed_command_before_the_submission_is_not_parted() -> None:
    split = StderrSplit()
    split.submitted()
    typed, ended = Mark(kind="C", number=3), Mark(kind="D", number=4)
    script: Script = [(1, typed), (1, Text(b"t")), (1, ended), (2, LET_GO), (2, BEGIN), (1, PART)]
    assert feed(split, script) == [typed, Text(b"t"), ended, PART, LET_GO, BEGIN]


@pytest.mark.parametrize(
    "script", [[(1, PART), (1, Text(b"a"))], [(1, PART), (2, BEGIN), (1, END)]]
)
def test_what_waits_goes_when_it_is_given_up(script: Script) -> None:
    split = StderrSplit()
    split.submitted()
    handled = feed(split, script)
    assert split.is_waiting
    handled += split.release_all()
    assert handled == [event for _, event in script]
    assert split.stage is Stage.MERGED


def test_a_line_accepted_on_the_second_before_the_hook_was_read_is_not_the_hooks() -> None:
    """The daemon typed the line that reads the hook into a shell that edits on the second PTY."""
    split = StderrSplit()
    ready: list[Event] = [Mark(kind="D", number=1, exit=0), Mark(kind="B", number=1)]
    assert feed(split, [(2, LET_GO)]) == [LET_GO]
    assert [*split.feed_output(ready)] == ready
    assert feed(split, [(2, Text(b"source"))]) == [ErrorText(b"source")]
    assert feed(split, [(2, LET_GO)]) == [ErrorText(LET_GO.data)]


def test_a_submission_that_is_late_is_still_expected_when_something_was_given_up() -> None:
    split = StderrSplit()
    split.submitted()
    assert feed(split, [(2, Text(b"job"))]) == []
    assert list(split.release_all()) == [ErrorText(b"job")]
    script: Script = [(2, LET_GO), (2, BEGIN), (1, PART), (1, Text(b"out"))]
    assert feed(split, script) == [PART, LET_GO, BEGIN, Text(b"out")]


@pytest.mark.parametrize("stream", [1, 2])
def test_more_than_a_bound_does_not_wait(stream: int) -> None:
    split = StderrSplit()
    split.submitted()
    if stream == 1:
        feed(split, [(1, PART)])
    piece = Text(b"x" * 65_536)
    handled = feed(split, itertools.repeat((stream, piece), MAX_WAITING_BYTES // 65_536 + 1))
    assert len(handled) == MAX_WAITING_BYTES // 65_536 + 1
    assert not split.is_waiting


def mark(text: bytes) -> bytes:
    return b"\x1b]133;%b\x07" % text.replace(b";", b";n=" + SECRET + b";", 1)


def test_one_stream_is_the_parser_alone() -> None:
    streams = ShellStreams(SECRET, split=False)
    streams.submitted()
    assert list(streams.feed(b"a")) == [Text(b"a")]
    assert not streams.begins_to_wait(0.0)
    assert list(streams.overdue(1e9)) == []
    assert list(streams.feed(b"\x1b]133;")) == []
    assert list(streams.close()) == [Text(b"\x1b]133;")]


def test_waiting_is_noticed_once_and_ends_in_time() -> None:
    streams = ShellStreams(SECRET, split=True)
    streams.submitted()
    assert [type(event) for event in streams.feed(mark(b"P;k=a;q=1") + b"early")] == [Mark]
    assert streams.begins_to_wait(10.0)
    assert not streams.begins_to_wait(10.1)
    assert list(streams.overdue(10.0 + SPLIT_WAIT_S / 2)) == []
    assert list(streams.overdue(10.0 + SPLIT_WAIT_S)) == [Text(b"early")]
    assert not streams.begins_to_wait(20.0)
    streams.submitted()
    assert list(streams.feed_errors(b"ahead")) == []
    assert streams.begins_to_wait(30.0)
    assert list(streams.overdue(30.0 + SPLIT_WAIT_S)) == [ErrorText(b"ahead")]


def test_the_end_of_a_shell_gives_everything_back() -> None:
    streams = ShellStreams(SECRET, split=True)
    streams.submitted()
    assert [type(event) for event in streams.feed(mark(b"P;k=a;q=1") + b"out\x1b]133;")] == [Mark]
    assert list(streams.feed_errors(b"err\x1b]133")) == [ErrorText(b"err")]
    assert list(streams.close()) == [ErrorText(b"\x1b]133"), Text(b"out"), Text(b"\x1b]133;")]
