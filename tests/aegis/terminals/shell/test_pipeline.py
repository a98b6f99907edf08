"""What the bytes of a shell mean, with what is typed at it meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.terminals import messages as msg
from aegis.terminals.hooks.adapter import Rearmed, ShellAdapter
from aegis.terminals.hooks.bash import BashAdapter
from aegis.terminals.hooks.submission import INTERRUPT_LINE, PROBE_KEY
from aegis.terminals.parse.control_sequences import Osc
from aegis.terminals.parse.osc133 import Event
from aegis.terminals.parse.stderr_split import SPLIT_WAIT_S, ErrorText
from aegis.terminals.shell.pipeline import PromptReached
from aegis.terminals.shell.submissions import SignalDue
from tests.aegis.terminals.shell.stand_in import ADAPTER, SECRET, DrivenShell, mark

ECHO = PROBE_KEY.replace(b"\x1b", b"^[")
PROMPT = mark("D;0", 1) + mark("A", 1) + b"$ " + mark("B", 1)


@pytest.fixture
def shell() -> DrivenShell:
    return DrivenShell()


def ended(shell: DrivenShell) -> msg.CommandEnded:
    """Return the newest end of a command."""
    return cast(msg.CommandEnded, shell.of(msg.CommandEnded)[-1])


def test_the_echo_of_a_probe_is_in_no_output_of_a_line_typed_ahead(shell: DrivenShell) -> None:
    """The shell had begun the typed line when the probe key came, so the tty echoed the key."""
    shell.feed(mark("D;0", 1) + mark("B", 1) + mark("C", 2, ";s=0"))
    shell.press(b"echo typed\r")
    shell.feed(mark("D;0", 3) + mark("B", 3))
    shell.submit(1, "make")
    assert shell.keys[-1] == PROBE_KEY
    shell.feed(mark("C", 4) + ECHO + b"typed\r\n" + mark("D;0", 5) + mark("B", 5))
    assert ended(shell).output.text == "typed\n"
    shell.feed(mark("P;k=l", 5, ";l=0"))
    assert b"make" in shell.keys[-1]
    shell.feed(mark("C", 6, ";s=1") + ECHO + mark("D;0", 7, ";s=1"))
    assert ended(shell).output.text == ECHO.decode(), "a program may print such text"


def test_a_late_report_does_not_submit_behind_a_line_typed_since(shell: DrivenShell) -> None:
    shell.feed(mark("D;0", 1) + mark("B", 1))
    shell.press(b"\x03", "human:ann")
    shell.submit(1, "make")
    shell.press(b"echo bob\r", "agent:bob")
    shell.look()
    assert shell.keys == [b"\x03", PROBE_KEY, b"echo bob\r", PROBE_KEY]
    shell.feed(mark("P;k=l", 1, ";l=0"))
    assert shell.news[-1] == msg.SubmissionRefused(call=1, at_prompt=True)
    assert shell.keys[-1] == PROBE_KEY, "nothing was submitted"
    shell.feed(mark("C", 2, ";s=0") + b"bob\r\n" + mark("D;0", 3, ";s=0") + mark("B", 3))
    [begun] = shell.of(msg.CommandStarted)
    assert isinstance(begun, msg.CommandStarted)
    assert (begun.call, begun.writer) == (None, "agent:bob")


def test_a_ctrl_c_behind_the_probe_costs_another_probe_and_no_refusal(shell: DrivenShell) -> None:
    shell.feed(mark("D;0", 1) + mark("B", 1))
    shell.press(b"\x03", "human:ann")
    shell.submit(1, "make")
    shell.press(b"\x03", "agent:bob")
    shell.feed(mark("P;k=l", 1, ";l=0"))
    assert shell.keys[-1] == PROBE_KEY
    shell.feed(mark("P;k=l", 1, ";l=0"))
    assert b"make" in shell.keys[-1]
    assert shell.of(msg.SubmissionRefused) == []


def test_a_prompt_behind_a_ctrl_c_needs_no_answer_to_its_probe(shell: DrivenShell) -> None:
    shell.feed(PROMPT)
    shell.press(b"\x03")
    shell.submit(1, "make")
    assert shell.keys[-1] == PROBE_KEY
    shell.feed(mark("D;130", 2) + mark("B", 2))
    assert b"make" in shell.keys[-1]


def test_an_interrupt_of_a_command_that_has_just_ended_may_have_dropped_a_line(
    shell: DrivenShell,
) -> None:
    """Without a probe a line typed meanwhile could be taken for the submission."""
    shell.feed(mark("D;0", 1) + mark("B", 1) + mark("C", 2, ";s=0"))
    reply: Any = None
    due = SignalDue(msg.SendSignal(signal="INT", writer="human:ann"), reply)
    shell.handle(shell.rules.signal(due, shell.now))
    assert shell.signalled == [due.request]
    shell.feed(mark("D;0", 3) + mark("B", 3))
    shell.press(b"echo bob\r", "agent:bob")
    shell.feed(mark("D;130", 4) + mark("B", 4))
    shell.submit(1, "make")
    assert shell.keys[-1] == PROBE_KEY


def test_a_command_is_one_record_with_its_cursors_and_its_text(shell: DrivenShell) -> None:
    shell.cwd = "/srv"
    shell.feed(PROMPT)
    shell.submit(7, "echo hi")
    shell.cwd = "/later"
    shell.feed(b"\x1b[?2004l\r", mark("C", 2, ";s=1"), b"hi\r\n", mark("D;3", 3, ";s=1"), b"$ ")
    [begun] = shell.of(msg.CommandStarted)
    done = ended(shell)
    assert isinstance(begun, msg.CommandStarted)
    assert (begun.call, begun.cmd, begun.writer, begun.cwd) == (7, "echo hi", "agent:ada", "/srv")
    assert done.raw_start == begun.raw_start
    assert shell.shown[done.raw_start : done.raw_end] == b"hi\r\n"
    assert (done.exit, done.end, done.output.text, done.incomplete) == (3, "exited", "hi\n", False)
    assert SECRET not in shell.shown


def test_modes_that_a_command_left_on_are_switched_off_behind_its_end(shell: DrivenShell) -> None:
    shell.feed(PROMPT)
    shell.submit(1, "vim")
    shell.feed(mark("C", 2, ";s=1") + b"\x1b[?1049h\x1b[?1000h" + mark("D;0", 3, ";s=1"))
    shown = shell.shown[ended(shell).raw_end :]
    assert b"\x1b[?1049l" in shown
    assert b"\x1b[?1000l" in shown
    assert shell.pipeline.modes.now.private == frozenset()


def test_a_text_that_began_nothing_is_answered_with_what_the_shell_printed(
    shell: DrivenShell,
) -> None:
    shell.feed(PROMPT)
    for number, (printed, exit_code, told) in enumerate([(b"", 0, 0), (b"\r\nbad\r\n", 2, 2)], 2):
        shell.submit(number, "# nothing")
        shell.feed(b"\x1b[?2004l" + printed + mark(f"D;{exit_code}", number, ";s=1"))
        shell.feed(mark("B", number))
        nothing = shell.of(msg.NothingRan)[-1]
        assert isinstance(nothing, msg.NothingRan)
        assert (nothing.call, nothing.exit) == (number, told)
        assert nothing.output.text == printed.decode().replace("\r\n", "\n").lstrip("\n")


def test_a_text_that_cannot_be_read_to_its_end_is_dropped_and_has_failed(
    shell: DrivenShell,
) -> None:
    shell.feed(PROMPT)
    shell.submit(1, "echo 'open")
    shell.feed(b"\x1b[?2004l" + mark("P;k=s", 1, ";s=1"))
    assert shell.keys[-1] == INTERRUPT_LINE
    shell.press(b"later", "human:ann")
    assert shell.keys[-1] == INTERRUPT_LINE, "keys wait until the text was dropped"
    shell.pass_time(0.6)
    assert shell.keys[-1] == INTERRUPT_LINE
    assert len(shell.keys) == 3
    shell.feed(mark("D;130", 2, ";s=1"))
    assert shell.of(msg.SubmissionFailed) == [msg.SubmissionFailed(call=1, why="incomplete")]
    assert shell.keys[-1] == b"later"


def test_a_prompt_is_reported_once_and_first_once(shell: DrivenShell) -> None:
    shell.feed(PROMPT, mark("B", 1), mark("C", 2, ";s=0"), mark("D;0", 3) + mark("B", 3))
    assert shell.of(PromptReached) == [PromptReached(is_first=True), PromptReached(is_first=False)]
    assert shell.pipeline.at_prompt


def test_a_query_is_passed_on_where_it_stands_before_what_follows_it(shell: DrivenShell) -> None:
    shell.feed(PROMPT + b"\x1b]7;file://host/srv\x07" + b"\x1b[c" + mark("C", 2, ";s=0"))
    [report, query] = [each for each in shell.sequences if shell.shown[: each.end].count(b"$")]
    assert isinstance(report, Osc)
    assert shell.shown[: query.end].endswith(b"\x1b[c")


def test_a_hook_that_is_read_again_ends_the_open_command_as_lost(shell: DrivenShell) -> None:
    shell.feed(PROMPT)
    shell.submit(1, "exec bash")
    shell.feed(mark("C", 2, ";s=1") + b"line\r\nnew$ ")
    rearmed = Rearmed(adapter=attrs.evolve(ADAPTER, secret=b"fedcba9876543210"), keys=b". hook\r")
    shell.handle(shell.pipeline.rearm(rearmed, shell.now, is_replaced=True))
    assert shell.keys[-1] == b". hook\r"
    shell.feed(mark("D;0", 3))
    assert shell.of(msg.CommandEnded) == [], "a mark of the old hook"
    shell.feed(b"\x1b]133;D;0;n=fedcba9876543210;q=1\x07")
    assert (ended(shell).end, ended(shell).exit, ended(shell).output.text) == (
        "lost",
        None,
        "line\n",
    )
    changed = msg.IntegrationChanged(integration="osc133", is_replaced=True)
    assert shell.of(msg.IntegrationChanged) == [changed]
    shell.feed(b"\x1b]133;B;n=fedcba9876543210;q=1\x07")
    assert shell.of(PromptReached)[-1] == PromptReached(is_first=True)


def test_a_shell_that_does_not_read_its_hook_is_followed_like_one_without(
    shell: DrivenShell,
) -> None:
    shell.handle(shell.pipeline.fell_back())
    assert shell.news == [msg.IntegrationChanged(integration="fallback")]
    assert shell.rules.adapter.integration == "fallback"


def test_an_end_on_one_pty_is_held_back_until_it_is_overdue() -> None:
    shell = DrivenShell(attrs.evolve(ADAPTER, error_tty="/dev/pts/9"))
    shell.feed(PROMPT)
    shell.submit(1, "make")
    shell.feed(mark("P;k=a", 1))
    shell.feed_errors(mark("C;s=1", 2) + b"warning\r\n")
    shell.feed(b"made\r\n" + mark("D;0", 3, ";s=1"))
    holds = [shell.pipeline.is_holding_back]
    assert shell.of(msg.CommandEnded) == []
    shell.pass_time(SPLIT_WAIT_S)
    holds.append(shell.pipeline.is_holding_back)
    assert holds == [True, False]
    assert (ended(shell).output.text, ended(shell).output.errors) == ("made\n", "warning\n")


def test_what_is_left_in_the_parsers_is_shown_at_the_end(shell: DrivenShell) -> None:
    shell.feed(b"text\x1b]133;C")
    assert shell.shown == b"text"
    shell.handle(shell.pipeline.close(shell.now))
    assert shell.shown == b"text\x1b]133;C"


Deed = bytes | Callable[[DrivenShell], None]

STORY: list[Deed] = [
    b"welcome\r\n\x1b[?2004h" + PROMPT,
    lambda shell: shell.submit(1, "printf"),
    b"\x1b[?2004l\r"
    + mark("C", 2, ";s=1")
    + b"a\xc3\xa4\r\n\x1b[6n\x1b[?1000h\x1b]7;file:///x\x07b",
    lambda shell: shell.press(b"ahead\r", "human:ann"),
    b"ahead\r\n" + mark("D;1", 3, ";s=1") + b"\x1b[?2004h" + PROMPT[-30:] + mark("B", 3),
    lambda shell: shell.submit(2, "second"),
    mark("C", 4, ";s=0") + b"out\x1b]133;D;0;q=5;n=forgedforged1234\x07" + mark("D;0", 5, ";h=3"),
    b"\x1b[?2004h" + mark("B", 5) + mark("P;k=l", 5, ";l=0"),
    b"\x1b[?2004l" + mark("P;k=s", 5, ";s=1") + b"> ",
    mark("D;130", 6, ";s=1") + mark("B", 6) + b"\x1b[31mred\x1b[0m\x1b]133;A",
]


def told(cuts: list[int]) -> tuple[list[object], bytes, list[bytes], list[object]]:
    """Return all that follows from the story, whose output is cut at these places."""
    shell = DrivenShell()
    for deed in STORY:
        if isinstance(deed, bytes):
            edges = [0, *sorted(each % (len(deed) + 1) for each in cuts), len(deed)]
            shell.feed(*(deed[start:end] for start, end in itertools.pairwise(edges)))
        else:
            deed(shell)
    shell.handle(shell.pipeline.close(shell.now))
    return shell.news, shell.shown, shell.keys, [*shell.sequences]


WHOLE = told([])


def test_the_story_has_all_kinds_of_events() -> None:
    kinds = {type(each) for each in WHOLE[0]}
    assert kinds >= {msg.CommandStarted, msg.CommandEnded, msg.SubmissionFailed, PromptReached}
    assert len(WHOLE[3]) > 2


@given(st.lists(st.integers(0, 300), max_size=12))
def test_the_events_do_not_depend_on_how_the_stream_is_cut(cuts: list[int]) -> None:
    assert told(cuts) == WHOLE


def test_nor_on_its_being_read_byte_by_byte() -> None:
    assert told([*range(300)]) == WHOLE


PIECES = st.sampled_from(
    [
        *[
            b"line\r\n",
            b"line\n",
            b"half",
            b"\r",
            b"\n",
            b"\x07",
            b"\x18",
            b"50%\r60%\r",
            b"x\x08y",
        ],
        *["\N{LATIN SMALL LETTER E WITH ACUTE}\N{SNOWMAN}".encode(), b"\xff", b"\x00"],
        *[b"\x1b", b"\x1b]", b"\x1b]133;", b"\x1b]133;D;0;n=", b"\x1b]7;file:///tmp", b"\x1b\\"],
        *[b"\x1b[31mred\x1b[m", b"\x1b[c", b"\x1b]11;?\x07", b"\x1b]2;title\x07", b"\x1b]2;tit"],
        *[b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?2004h", b"\x1b[?2004l\r", b"\x1b[?25l", b"\x1bc"],
        ECHO,
        *(
            mark(kind, number, rest)
            for number in range(2, 9)
            for kind, rest in (("C", ";s=1"), ("D;0", ";s=1"), ("A", ""), ("B", ""), ("P;k=s", ""))
        ),
        mark("P;k=l", 1, ";l=0"),
        mark("P;k=l", 1, ";l=3"),
        mark("B", 1, ";e=1"),
        mark("P;k=a", 2),
    ]
)
TYPED = st.sampled_from(["run", "key", "enter", "interrupt", "wait", "errors", "close"])
ADAPTERS = {
    "one PTY": ADAPTER,
    "a split standard error": attrs.evolve(ADAPTER, error_tty="/dev/pts/9"),
    "a redraw": BashAdapter(secret=SECRET, argv=("bash",), directory=Path("/nonexistent")),
}


def played(
    steps: list[bytes | str], adapter: ShellAdapter, *, parses_all: bool
) -> tuple[object, ...]:
    """Return all that comes of it; ``parses_all``: no chunk passes the parsers."""
    shell = DrivenShell(adapter)
    if parses_all:
        shell.pipeline._is_passing = lambda: False  # type: ignore[method-assign]
    shell.feed(PROMPT)
    for number, step in enumerate(steps):
        match step:
            case bytes():
                shell.feed(step)
            case "run":
                shell.submit(number, "make")
            case "key" | "enter" | "interrupt":
                shell.press({"key": b"l", "enter": b"\r", "interrupt": b"\x03"}[step])
            case "wait":
                shell.pass_time(0.45)
            case "errors":
                shell.feed_errors(b"error\n")
            case _:
                shell.handle(shell.pipeline.close(shell.now))
    pipeline = shell.pipeline
    return (
        *(shell.news, shell.shown, shell.sequences, shell.written, shell.timers),
        *(pipeline.printed.snapshot(), pipeline.position, pipeline.modes.now),
        *(pipeline.rules.is_below_prompt, pipeline.rules.boundaries.phase, pipeline.is_pasting),
    )


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)
@settings(max_examples=300)
@given(stream=st.lists(PIECES, max_size=30), data=st.data())
def test_a_chunk_that_passes_the_parsers_means_what_they_say(
    adapter: ShellAdapter, stream: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(stream)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=40)))
    steps: list[bytes | str] = []
    for start, end in itertools.pairwise([0, *cuts, len(whole)]):
        steps.append(whole[start:end])
        if data.draw(st.booleans()):
            steps.append(data.draw(TYPED))
    expected = played(steps, adapter, parses_all=True)
    assert played(steps, adapter, parses_all=False) == expected


CUT_SEQUENCES = [
    *[b"\x1b[?1049h", b"\x1b[?25l", b"\x1b[?2004h", b"\x1b[c", b"\x1bc", b"\x1b=", b"\x1b(0"],
    *[b"\x1b]7;file:///tmp\x07", b"\x1b]11;?\x07", mark("C", 2, ";s=1"), mark("D;0", 2)],
]


@pytest.mark.parametrize("sequence", CUT_SEQUENCES)
def test_no_part_of_a_cut_sequence_passes_the_parsers(sequence: bytes) -> None:
    for cut in range(1, len(sequence)):
        steps: list[bytes | str] = [b"a\n", sequence[:cut], sequence[cut:] + b"b\r\n", b"c\n"]
        expected = played(steps, ADAPTER, parses_all=True)
        assert played(steps, ADAPTER, parses_all=False) == expected
        assert played([b"a\n", sequence + b"b\r\n", b"c\n"], ADAPTER, parses_all=False) == expected


def test_no_output_passes_that_waits_for_standard_error() -> None:
    split = ADAPTERS["a split standard error"]
    steps: list[bytes | str] = [mark("P;k=a", 1), b"waits\n", "errors", b"too\n", mark("C", 2)]
    whole = played(steps, split, parses_all=True)
    assert played(steps, split, parses_all=False) == whole
    shell = DrivenShell(split)
    shell.feed(PROMPT, mark("P;k=a", 1))
    before = shell.shown
    shell.feed(b"waits\n")
    assert shell.shown == before


def test_no_echo_of_a_probe_passes(shell: DrivenShell) -> None:
    shell.feed(PROMPT)
    shell.press(b"\x03")
    shell.submit(1, "make")
    assert shell.keys[-1] == PROBE_KEY
    before = shell.shown
    shell.feed(ECHO + b"text\n")
    assert shell.shown == before + b"text\n"


def test_a_flood_passes_the_parsers(shell: DrivenShell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.feed(PROMPT)
    shell.submit(1, "make")
    shell.feed(mark("C", 2, ";s=1"), b"\x1b[31m")
    parsed: list[bytes] = []
    parse = shell.pipeline._streams.feed

    def noted(data: bytes) -> Iterable[Event | ErrorText]:
        parsed.append(data)
        return parse(data)

    monkeypatch.setattr(shell.pipeline._streams, "feed", noted)
    shell.feed(b"line\r\n", b"half \xc3", b"\xa9\r", b"\n", b"cut \x1b", b"[m", b"line\r\n")
    assert parsed == [b"cut \x1b", b"[m"]
    shell.feed(mark("D;0", 3, ";s=1"))
    assert ended(shell).output.text == "line\nhalf \N{LATIN SMALL LETTER E WITH ACUTE}\ncut line\n"
