"""The state machine of command boundaries, as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.terminals.parse.boundaries import (
    AcceptedLine,
    Boundaries,
    BoundaryEvent,
    CommandBegin,
    CommandEnd,
    LineReport,
    NoCommand,
    OutputEnded,
    OutputResumed,
    PromptShown,
    SecondaryPrompt,
    ShellPhase,
    SubmissionLost,
    exit_of_nothing,
)
from aegis.terminals.parse.osc133 import Mark

Step: TypeAlias = Callable[[Boundaries], "list[BoundaryEvent] | None"]

ANN, BOB = "human:ann", "agent:bob"


def a(number: int) -> Step:
    return lambda b: b.mark(Mark(kind="A", number=number))


def prompt(number: int) -> Step:
    return lambda b: b.mark(Mark(kind="B", number=number))


def begins(number: int, *, s: bool = False, b: int | None = None) -> Step:
    params = {} if b is None else {"b": str(b)}
    mark = Mark(kind="C", number=number, submitted=s, params=params)
    return lambda boundaries: boundaries.mark(mark)


def ends(
    number: int,
    exit_code: int | None = 0,
    *,
    s: bool = False,
    h: int | None = None,
    b: int | None = None,
) -> Step:
    params = {key: str(value) for key, value in (("h", h), ("b", b)) if value is not None}
    mark = Mark(kind="D", number=number, exit=exit_code, submitted=s, params=params)
    return lambda boundaries: boundaries.mark(mark)


def secondary(number: int, *, s: bool = False) -> Step:
    return lambda b: b.mark(Mark(kind="P", number=number, submitted=s, params={"k": "s"}))


def report(number: int, length: int, *, rearmed: bool = False) -> Step:
    params = {"k": "l", "l": str(length)} | ({"r": "1"} if rearmed else {})
    return lambda b: b.mark(Mark(kind="P", number=number, params=params))


def output_ends(number: int) -> Step:
    return lambda b: b.mark(Mark(kind="P", number=number, params={"k": "e"}))


def paste(on: bool) -> Step:
    return lambda b: b.paste_mode(on)


def submit(b: Boundaries) -> None:
    b.submitted()


def probe(b: Boundaries) -> None:
    b.probed()


def keys(data: bytes, writer: str = ANN) -> Step:
    def send(b: Boundaries) -> None:
        b.keys(writer, data)

    return send


READY: list[Step] = [ends(1), prompt(1)]


def play(steps: Sequence[Step], boundaries: Boundaries | None = None) -> list[BoundaryEvent]:
    boundaries = Boundaries() if boundaries is None else boundaries
    events: list[BoundaryEvent] = []
    for step in steps:
        events += step(boundaries) or []
    return events


def after_ready(steps: Sequence[Step]) -> tuple[Boundaries, list[BoundaryEvent]]:
    boundaries = Boundaries()
    assert play(READY, boundaries) == [PromptShown()]
    return boundaries, play(steps, boundaries)


OURS = CommandBegin(submitted=True, writer=None)


@pytest.mark.parametrize(
    ("steps", "events"),
    [
        pytest.param(
            [submit, paste(False), begins(2, s=True), ends(3, 7, s=True), a(3), prompt(3)],
            [AcceptedLine(), OURS, CommandEnd(7), PromptShown()],
            id="a submission",
        ),
        pytest.param(
            [submit, begins(2, s=True), begins(4, s=True), begins(6, s=True), ends(7, s=True)],
            [OURS, CommandEnd(0, commands=3)],
            id="several lines are one command",
        ),
        pytest.param(
            [submit, begins(2, s=True), output_ends(2), begins(3, s=True), begins(4, s=True)],
            [OURS, OutputEnded(), OutputResumed()],
            id="what is shown between two lines is no output",
        ),
        pytest.param(
            [
                *(submit, begins(2, s=True), output_ends(2), ends(3, s=True), prompt(3)),
                *(submit, begins(4, s=True), begins(5, s=True)),
            ],
            [OURS, OutputEnded(), CommandEnd(0), PromptShown(), OURS],
            id="output that ended with its command does not go on",
        ),
        pytest.param(
            [output_ends(1), submit, begins(2, s=True), output_ends(1)],
            [OURS],
            id="an end of output without a command, or of an earlier one",
        ),
        pytest.param(
            [submit, paste(False), ends(2, 2, s=True), prompt(2)],
            [AcceptedLine(), NoCommand(True, 2, 0), PromptShown()],
            id="a submission that ran nothing",
        ),
        pytest.param(
            [submit, begins(2), ends(3)], [OURS, CommandEnd(0)], id="ours though the key was lost"
        ),
        pytest.param(
            [
                submit,
                keys(b"ls\r"),
                begins(2),
                ends(3),
                prompt(3),
                begins(4, s=True),
                ends(5, s=True),
            ],
            [CommandBegin(False, ANN), CommandEnd(0), PromptShown(), OURS, CommandEnd(0)],
            id="somebody's command before ours",
        ),
        pytest.param(
            [submit, keys(b"\r"), ends(2), prompt(2), begins(3, s=True), ends(4, s=True)],
            [NoCommand(False, 0, 0), PromptShown(), OURS, CommandEnd(0)],
            id="somebody's Enter before ours",
        ),
        pytest.param(
            [keys(b"ls\r"), paste(False), begins(2), ends(3, 1, h=9), prompt(3)],
            [AcceptedLine(), CommandBegin(False, ANN), CommandEnd(1, history=9), PromptShown()],
            id="a typed command",
        ),
        pytest.param(
            [keys(b"ls\r", BOB), begins(2, s=True), ends(3, s=True)],
            [CommandBegin(False, BOB), CommandEnd(0)],
            id="the submit key pressed by hand makes nothing ours",
        ),
        pytest.param(
            [begins(2), ends(3)],
            [CommandBegin(False, None), CommandEnd(0)],
            id="nobody known typed it",
        ),
        pytest.param(
            [keys(b"\r"), ends(2, 0), prompt(2)],
            [NoCommand(False, 0, 0), PromptShown()],
            id="a bare Enter",
        ),
        pytest.param(
            [keys(b"abc\x03"), ends(2, 130), prompt(2)],
            [NoCommand(False, 130, 0), PromptShown()],
            id="Ctrl-C at the prompt",
        ),
        pytest.param(
            [begins(2), prompt(2)],
            [CommandBegin(False, None), CommandEnd(None, lost=True), PromptShown()],
            id="an end that was lost",
        ),
        pytest.param(
            [submit, begins(2, s=True, b=1), begins(4, b=3), ends(5, 7, b=3)],
            [OURS, CommandEnd(None, lost=True), CommandBegin(False, None), CommandEnd(7)],
            id="an end that a Ctrl-C has discarded, before a command",
        ),
        pytest.param(
            [begins(2, b=1), keys(b"\x03ls\r", BOB), ends(4, 130, b=3), begins(5, b=4)],
            [
                *(CommandBegin(False, None), CommandEnd(None, lost=True)),
                *(NoCommand(False, 130, 0), CommandBegin(False, BOB)),
            ],
            id="an end that a Ctrl-C has discarded, before a line that ran nothing",
        ),
        pytest.param(
            [submit, begins(2, s=True, b=1), begins(4, s=True, b=1), ends(5, b=1)],
            [OURS, CommandEnd(0, commands=2)],
            id="two lines of one submission",
        ),
        pytest.param(
            [begins(5), ends(9)],
            [CommandBegin(False, None), CommandEnd(0)],
            id="jumps forward are accepted",
        ),
        pytest.param(
            [begins(5), ends(5), ends(4), begins(5), begins(3), ends(6), ends(6), begins(6)],
            [CommandBegin(False, None), CommandEnd(0)],
            id="smaller and repeated numbers are data",
        ),
        pytest.param([prompt(1), a(1), prompt(1), prompt(0)], [], id="the prompt drawn again"),
        pytest.param(
            [begins(5), prompt(4)], [CommandBegin(False, None)], id="an old prompt closes nothing"
        ),
        pytest.param(
            [begins(2), paste(True), paste(False), paste(True), ends(3)],
            [CommandBegin(False, None), CommandEnd(0)],
            id="a program's own paste mode",
        ),
        pytest.param(
            [submit, secondary(1, s=True), ends(2, 130, s=True), prompt(2)],
            [SecondaryPrompt(True), NoCommand(True, 130, 0), PromptShown()],
            id="an incomplete submission",
        ),
        pytest.param(
            [submit, begins(2, s=True), secondary(2, s=True), ends(3, 130, s=True)],
            [OURS, SecondaryPrompt(True), CommandEnd(130)],
            id="incomplete after a first command",
        ),
        pytest.param(
            [keys(b"if true\r"), secondary(1), keys(b"then :; fi\r"), begins(2), ends(3)],
            [SecondaryPrompt(False), CommandBegin(False, ANN), CommandEnd(0, continuations=1)],
            id="a typed command over two lines",
        ),
        pytest.param(
            [submit, keys(b"cat\r"), begins(2), ends(3), prompt(3), probe, report(3, 0)],
            [
                CommandBegin(False, ANN),
                CommandEnd(0),
                PromptShown(),
                SubmissionLost(),
                LineReport(0),
            ],
            id="a submission that a program has read",
        ),
        pytest.param(
            [keys(b"ls\r"), paste(False), paste(True), prompt(1)],
            [AcceptedLine(), PromptShown()],
            id="a line that nobody reports",
        ),
        pytest.param(
            [begins(2), ends(3), paste(True), prompt(3)],
            [CommandBegin(False, None), CommandEnd(0), PromptShown()],
            id="the line editor is back before its prompt",
        ),
    ],
)
def test_what_happens(steps: list[Step], events: list[BoundaryEvent]) -> None:
    assert after_ready(steps)[1] == events


def test_before_the_first_prompt_nothing_is_a_command_and_nothing_can_be_submitted() -> None:
    boundaries = Boundaries()
    assert play([paste(True), paste(False), ends(1, 3)], boundaries) == []
    assert boundaries.phase is ShellPhase.STARTING
    assert not boundaries.can_submit()
    assert play([paste(True), prompt(1)], boundaries) == [PromptShown()]
    assert boundaries.can_submit()


def unseen(b: Boundaries) -> list[BoundaryEvent]:
    return b.prompt_unseen()


def replaced(b: Boundaries) -> list[BoundaryEvent]:
    return b.replaced()


RUNNING: list[Step] = [submit, begins(2, s=True)]
BUSY_EDITOR = LineReport(3, at_prompt=False)
LOST = CommandEnd(exit=None, lost=True)


READS_ON: list[Step] = [submit, paste(False), paste(True)]
CONTINUES = [AcceptedLine(), SecondaryPrompt(submitted=True)]


@pytest.mark.parametrize(
    ("steps", "events", "phase"),
    [
        pytest.param(READS_ON, CONTINUES, ShellPhase.SECONDARY, id="unmarked"),
        pytest.param(
            [submit, paste(False), paste(False), paste(True), secondary(1, s=True)],
            [AcceptedLine(), *CONTINUES, SecondaryPrompt(submitted=True)],
            ShellPhase.SECONDARY,
            id="marked too late",
        ),
        pytest.param(
            [*READS_ON, paste(False), ends(2, 130, s=True), prompt(2)],
            [*CONTINUES, AcceptedLine(), NoCommand(True, 130, 0), PromptShown()],
            ShellPhase.PROMPT,
            id="dropped",
        ),
        pytest.param(
            [*READS_ON, keys(b"\x03"), paste(False), prompt(1)],
            [*CONTINUES, AcceptedLine(), NoCommand(True, 130, 0), PromptShown()],
            ShellPhase.PROMPT,
            id="dropped by a Ctrl-C, and no end is reported",
        ),
        pytest.param(
            [submit, paste(False), prompt(1)],
            [AcceptedLine(), NoCommand(True, 0, 0), PromptShown()],
            ShellPhase.PROMPT,
            id="the prompt is back, and no end is reported",
        ),
        pytest.param(
            [submit, keys(b"\r"), paste(False), prompt(1)],
            [AcceptedLine(), PromptShown()],
            ShellPhase.SUBMITTED,
            id="after the line of somebody else",
        ),
    ],
)
def test_trap_4_a_secondary_prompt_without_its_mark_is_found_by_the_paste_mode(
    steps: list[Step], events: list[BoundaryEvent], phase: ShellPhase
) -> None:
    boundaries, found = after_ready(steps)
    assert (found, boundaries.phase) == (events, phase)


@pytest.mark.parametrize(
    ("steps", "events", "phase"),
    [
        pytest.param(
            [*RUNNING, report(2, 3)], [OURS, BUSY_EDITOR], ShellPhase.RUNNING, id="read -e"
        ),
        pytest.param(
            [*RUNNING, report(2, 0, rearmed=True)],
            [OURS, LOST, LineReport(0, rearmed=True, at_prompt=False)],
            ShellPhase.RETURNING,
            id="a prompt that has its marks again",
        ),
        pytest.param(
            [*RUNNING, report(2, 0, rearmed=True), ends(3, s=True), prompt(3)],
            [OURS, LOST, LineReport(0, True, False), NoCommand(False, 0, 0), PromptShown()],
            ShellPhase.PROMPT,
            id="and shows itself once more",
        ),
        pytest.param(
            [report(1, 0, rearmed=True)],
            [LineReport(0, rearmed=True)],
            ShellPhase.PROMPT,
            id="nothing was lost",
        ),
        pytest.param(
            [*RUNNING, ends(3), unseen, prompt(3)],
            [OURS, CommandEnd(0), PromptShown()],
            ShellPhase.PROMPT,
            id="a prompt that nobody sees",
        ),
        pytest.param([*RUNNING, unseen], [OURS], ShellPhase.RUNNING, id="not while a command runs"),
        pytest.param([unseen], [], ShellPhase.PROMPT, id="nor at a prompt that was seen"),
        pytest.param([*RUNNING, replaced], [OURS, LOST], ShellPhase.RUNNING, id="another shell"),
        pytest.param([replaced], [], ShellPhase.PROMPT, id="another shell, and nothing ran"),
    ],
)
def test_a_prompt_without_its_marks(
    steps: list[Step], events: list[BoundaryEvent], phase: ShellPhase
) -> None:
    boundaries, found = after_ready(steps)
    assert (found, boundaries.phase) == (events, phase)


PHASES: list[tuple[list[Step], ShellPhase]] = [
    ([], ShellPhase.PROMPT),
    ([submit], ShellPhase.SUBMITTED),
    ([submit, begins(2, s=True)], ShellPhase.RUNNING),
    ([submit, begins(2, s=True), ends(3)], ShellPhase.RETURNING),
    ([submit, begins(2, s=True), ends(3), prompt(3)], ShellPhase.PROMPT),
    ([submit, secondary(1, s=True)], ShellPhase.SECONDARY),
    ([submit, keys(b"\r"), ends(2), prompt(2)], ShellPhase.SUBMITTED),
]


@pytest.mark.parametrize(("steps", "phase"), PHASES)
def test_the_phase(steps: list[Step], phase: ShellPhase) -> None:
    boundaries, _ = after_ready(steps)
    assert boundaries.phase is phase
    assert boundaries.can_submit() is (phase is ShellPhase.PROMPT)


# Who types.


@pytest.mark.parametrize(
    ("steps", "typing", "uncertain"),
    [
        pytest.param([], None, None, id="nobody"),
        pytest.param([keys(b"")], None, None, id="no keys"),
        pytest.param([keys(b"echo ha")], ANN, None, id="half a line"),
        pytest.param([keys(b"a"), keys(b"b", BOB)], BOB, None, id="the last one of two"),
        pytest.param([keys(b"ls\r")], ANN, None, id="an Enter without its mark"),
        pytest.param([keys(b"ls\r"), begins(2), ends(3), prompt(3)], None, None, id="all is done"),
        pytest.param([keys(b"\r"), ends(2), prompt(2)], None, None, id="a bare Enter is done"),
        pytest.param([keys(b"\rabc"), ends(2), prompt(2)], ANN, None, id="half a line behind it"),
        pytest.param([keys(b"abc\x03")], None, ANN, id="a Ctrl-C without its mark"),
        pytest.param([keys(b"abc\x03"), ends(2, 130)], None, None, id="a Ctrl-C is done"),
        pytest.param([keys(b"ls\recho"), begins(2), ends(3)], None, ANN, id="typed ahead at once"),
        pytest.param([begins(2), keys(b"x"), ends(3), prompt(3)], None, ANN, id="typed ahead"),
        pytest.param([keys(b"\x0c")], None, ANN, id="the screen cleared"),
        pytest.param([keys(b"\x0c\x0cls")], ANN, ANN, id="the screen cleared, and a line begun"),
        pytest.param([keys(b"ls\x0c")], ANN, None, id="the screen cleared in a line"),
        pytest.param([keys(b"\x1b[O"), keys(b"\x1b[I")], None, ANN, id="the focus reported"),
        pytest.param([keys(b"ls"), keys(b"\x1b[I", BOB)], ANN, None, id="the focus of another"),
        pytest.param([keys(b"\x1b[Ils")], ANN, ANN, id="the focus reported, and a line begun"),
        pytest.param([keys(b"\x1b[200~\x0c")], ANN, None, id="a form feed pasted"),
        pytest.param([keys(b"\x1b[200~a\rb\r")], ANN, None, id="Enters inside a paste"),
        pytest.param(
            [keys(b"\x1b[200~a\rb\x1b[201~\r"), begins(2), ends(3)],
            None,
            None,
            id="a paste is done",
        ),
        pytest.param(
            [keys(b"\x1b[200~a\rb\x1b[20"), keys(b"1~\r"), begins(2), ends(3), prompt(3)],
            None,
            None,
            id="a paste whose end was cut in two",
        ),
        pytest.param(
            [keys(b"\x1b"), keys(b"[200~a\r")], ANN, None, id="a paste whose begin was cut in two"
        ),
        pytest.param([keys(b"if\r"), secondary(1)], ANN, None, id="a secondary prompt"),
        pytest.param(
            [keys(b"if\r"), secondary(1), keys(b"\x03"), ends(2, 130)], None, None, id="and its end"
        ),
        pytest.param(
            [begins(2), keys(b"x\r"), ends(3), prompt(3), probe, report(3, 0)],
            None,
            None,
            id="the probe finds nothing",
        ),
        pytest.param(
            [begins(2), keys(b"x"), ends(3), prompt(3), probe, report(3, 1)],
            ANN,
            None,
            id="the probe finds a line",
        ),
        pytest.param(
            [probe, report(1, 4)], "human", None, id="a line that nobody is known to type"
        ),
        pytest.param(
            [keys(b"x"), probe, keys(b"y", BOB), report(1, 0)],
            BOB,
            None,
            id="keys behind the probe",
        ),
        pytest.param(
            [keys(b"\x03"), probe, keys(b"y\r", BOB), probe, report(1, 0)],
            BOB,
            None,
            id="the report of the first of two probes",
        ),
        pytest.param(
            [keys(b"\x03"), probe, keys(b"y\r\x03", BOB), probe, report(1, 0)],
            None,
            BOB,
            id="a Ctrl-C between two probes",
        ),
        pytest.param(
            [keys(b"\x03"), probe, keys(b"\x03", BOB), probe, report(1, 0), report(1, 0)],
            None,
            None,
            id="the report of the second probe",
        ),
        pytest.param(
            [begins(2), keys(b"x"), ends(3), prompt(3), probe, keys(b"\x0c", BOB), report(3, 0)],
            None,
            BOB,
            id="a key behind the probe that leaves the line empty",
        ),
        pytest.param(
            [submit, keys(b"abc"), begins(2, s=True), ends(3, s=True), prompt(3)],
            None,
            ANN,
            id="typed behind a submission",
        ),
    ],
)
def test_who_types(steps: list[Step], typing: str | None, uncertain: str | None) -> None:
    boundaries, _ = after_ready(steps)
    assert (boundaries.typing, boundaries.uncertain) == (typing, uncertain)
    if typing or uncertain:
        assert not boundaries.can_submit()


@pytest.mark.parametrize(
    ("steps", "writers"),
    [
        ([keys(b"ls\rpwd\r"), begins(2), ends(3), begins(4), ends(5)], [ANN, ANN]),
        ([keys(b"ls"), keys(b"\r", BOB), begins(2), ends(3)], [BOB]),
        ([keys(b"a\r"), keys(b"b\r", BOB), begins(2), ends(3), begins(4), ends(5)], [ANN, BOB]),
        ([begins(2), keys(b"ls\r"), ends(3), begins(4)], [None, ANN]),
        ([begins(2), keys(b"input\r"), ends(3), keys(b"x\r", BOB), begins(4)], [None, BOB]),
        ([keys(b"\x03\r"), ends(2, 130), begins(3)], [ANN]),
        ([keys(b"\x0f"), begins(2)], [ANN]),
    ],
)
def test_a_typed_command_belongs_to_who_sent_its_enter(
    steps: list[Step], writers: list[str | None]
) -> None:
    events = after_ready(steps)[1]
    assert [each.writer for each in events if isinstance(each, CommandBegin)] == writers


def test_a_line_typed_between_two_probes_is_no_submission() -> None:
    """The answer to the first probe came late: the line typed behind it was not read yet."""
    boundaries, _ = after_ready([keys(b"\x03"), probe, keys(b"echo b\r", BOB), probe])
    assert play([report(1, 0)], boundaries) == [LineReport(0)]
    assert not boundaries.can_submit()
    events = play([begins(2), ends(3), prompt(3), report(3, 0)], boundaries)
    assert events[:2] == [CommandBegin(submitted=False, writer=BOB), CommandEnd(0)]


def test_a_submission_that_was_read_proves_that_no_earlier_probe_is_unanswered() -> None:
    """A Ctrl-C flushed the first probe, so every report would count as one probe too old."""
    boundaries, _ = after_ready([keys(b"\x03"), probe, keys(b"\x03"), ends(2, 130), prompt(2)])
    play([keys(b"\x03"), probe, report(2, 0)], boundaries)
    assert not boundaries.can_submit()
    play([probe, report(2, 0)], boundaries)
    play([submit, begins(3, s=True), ends(4, s=True), prompt(4)], boundaries)
    play([keys(b"\x03"), probe, report(4, 0)], boundaries)
    assert boundaries.can_submit()


def plain_prompt(number: int) -> Step:
    return lambda b: b.mark(Mark(kind="B", number=number, params={"e": "1"}))


@pytest.mark.parametrize(
    ("steps", "is_plain"),
    [
        ([ends(1), prompt(1)], False),
        ([ends(1), plain_prompt(1)], True),
        ([ends(1), plain_prompt(1), prompt(1)], False),
        ([ends(1), plain_prompt(1), keys(b"l")], False),
        ([keys(b"l"), ends(1), plain_prompt(1)], False),
        ([ends(1), plain_prompt(1), submit, begins(2), ends(3)], False),
        ([ends(1), plain_prompt(1), submit, begins(2), ends(3), plain_prompt(3)], True),
        # Keys that were sent while the submission was read, or while its command ran.
        ([ends(1), plain_prompt(1), submit, keys(b"l"), begins(2), ends(3)], False),
        (
            [
                *[ends(1), plain_prompt(1), submit, keys(b"l"), begins(2), ends(3)],
                *[plain_prompt(3), report(3, 0)],
            ],
            False,
        ),
        (
            [ends(1), plain_prompt(1), submit, begins(2), keys(b"\r"), ends(3), plain_prompt(3)],
            False,
        ),
        # A prompt of an earlier number is data.
        ([ends(1), prompt(1), submit, begins(2), ends(3), plain_prompt(1)], False),
    ],
)
def test_a_prompt_that_needs_no_submit_key(steps: list[Step], is_plain: bool) -> None:
    boundaries = Boundaries()
    play(steps, boundaries)
    assert boundaries.is_plain is is_plain


def test_without_the_submit_key_the_first_answer_is_ours() -> None:
    plain = [ends(1), plain_prompt(1), submit]
    events = play([*plain, begins(2)])
    assert events[-1] == OURS
    # Keys that were queued for too long come behind our text.
    events = play([*plain, keys(b"ls\r"), begins(2)])
    assert events[-1] == OURS
    events = play([*plain, ends(2, 2)])
    assert events[-1] == NoCommand(submitted=True, exit=2, previous=0)
    events = play([*plain, secondary(1)])
    assert events[-1] == SecondaryPrompt(submitted=True)


def test_numbers_that_never_came_are_counted() -> None:
    boundaries, _ = after_ready([begins(2), begins(4), ends(5), begins(8), ends(10)])
    assert boundaries.skipped == 2 + 1  # not the one that each further line leaves out


def test_a_submission_needs_an_empty_prompt() -> None:
    boundaries, _ = after_ready([keys(b"half")])
    with pytest.raises(AssertionError):
        boundaries.submitted()


@pytest.mark.parametrize(
    ("exit_code", "previous", "printed", "expected"),
    [(0, 0, False, 0), (7, 7, False, 0), (2, 0, True, 2), (2, 2, True, 2), (2, 0, False, 2)],
)
def test_the_exit_of_a_line_that_ran_nothing(
    exit_code: int, previous: int, printed: bool, expected: int
) -> None:
    nothing = NoCommand(submitted=True, exit=exit_code, previous=previous)
    assert exit_of_nothing(nothing, printed=printed) == expected


# Whatever comes.

anything = st.one_of(
    st.builds(begins, st.integers(0, 30), s=st.booleans()),
    st.builds(ends, st.integers(0, 30), st.sampled_from([None, 0, 1, 130]), s=st.booleans()),
    st.builds(prompt, st.integers(0, 30)),
    st.builds(secondary, st.integers(0, 30), s=st.booleans()),
    st.builds(report, st.integers(0, 30), st.integers(0, 3)),
    st.builds(paste, st.booleans()),
    st.builds(keys, st.binary(max_size=4), st.sampled_from([ANN, BOB])),
    st.just(probe),
    st.just(lambda b: b.submitted() if b.can_submit() else None),
)


@given(st.lists(anything, max_size=60))
def test_every_command_that_starts_ends_once_and_none_ends_that_did_not_start(
    steps: list[Step],
) -> None:
    running = False
    for event in play(steps):
        if isinstance(event, CommandBegin):
            assert not running
            running = True
        elif isinstance(event, CommandEnd):
            assert running
            running = False
        elif isinstance(event, NoCommand):
            assert not running


@given(st.lists(st.tuples(anything, st.integers(0, 1000)), max_size=40))
def test_old_marks_replayed_anywhere_change_nothing(steps: list[tuple[Step, int]]) -> None:
    seen: list[Mark] = []

    class Recording(Boundaries):
        def mark(self, mark: Mark) -> list[BoundaryEvent]:
            seen.append(mark)
            return super().mark(mark)

    replayed, plain = Recording(), Boundaries()
    for step, pick in steps:
        assert (step(replayed) or []) == (step(plain) or [])
        old = [mark for mark in seen if mark.kind in "CD"]
        if old:
            assert Boundaries.mark(replayed, old[pick % len(old)]) == []


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 300)), max_size=30))
def test_our_submissions_are_all_answered_whatever_others_type(
    lines: list[tuple[bool, int]],
) -> None:
    boundaries, number = after_ready([])[0], 1
    for typed, exit_code in lines:
        if typed:
            boundaries.keys(ANN, b"x\r")
        else:
            boundaries.submitted()
        steps = [begins(number + 1, s=not typed), ends(number + 2, exit_code, s=not typed)]
        events = play([*steps, prompt(number + 2)], boundaries)
        started = CommandBegin(submitted=not typed, writer=ANN if typed else None)
        assert events == [started, CommandEnd(exit_code), PromptShown()]
        number += 2
