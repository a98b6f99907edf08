"""What may be typed at a shell, and when; when its line editor is asked, and what is shown then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from aegis.terminals import messages as msg
from aegis.terminals.hooks.adapter import PROBE_S, ShellAdapter
from aegis.terminals.hooks.bash import BashAdapter
from aegis.terminals.hooks.submission import PROBE_KEY
from aegis.terminals.shell.submissions import (
    ASK_AFTER_S,
    HOLD_S,
    MAX_WAIT_S,
    READING_S,
    SignalDue,
)
from tests.aegis.terminals.shell.stand_in import ADAPTER, SECRET, DrivenShell, mark

BASH = BashAdapter(secret=SECRET, argv=("bash",), directory=Path("/nonexistent"))
REPORT = mark("P;k=l", 1, ";l=0")
SHOWN_REPORT = REPORT.replace(b";n=" + SECRET, b"")
REDRAW = b"\r\x1b[K\r" + REPORT + b"\r" + mark("A", 1) + b"$ " + mark("B", 1)


@pytest.fixture
def shell() -> DrivenShell:
    """A bash at its prompt; its typed lines do not matter."""
    shell = DrivenShell(BASH)
    shell.feed(mark("D;0", 1) + mark("B", 1))
    shell.pass_time(60)
    del shell.written[:]
    shell.feed(b"x")
    shell.pass_time(60)
    shell.shown = b""
    shell.pipeline.position = 0
    return shell


def test_a_command_is_typed_at_an_empty_prompt_and_refused_everywhere_else() -> None:
    shell = DrivenShell()
    refused = []
    for feed, keys in (
        (b"", b""),
        (mark("D;0", 1) + mark("B", 1), b"half"),
        (b"", b"\x03"),
        (mark("D;130", 2) + mark("B", 2), b""),
        (mark("C", 3, ";s=1"), b""),
        (mark("D;0", 4, ";s=1"), b""),
    ):
        shell.feed(feed)
        if keys:
            shell.press(keys)
        del shell.news[:], shell.written[:]
        shell.submit(1, "make")
        is_refused = shell.of(msg.SubmissionRefused)
        refused.append(is_refused[0] if is_refused else b"make" in b"".join(shell.keys))
        shell.handle(shell.rules.withdraw(1))
    no_prompt = msg.SubmissionRefused(call=1, at_prompt=False)
    assert refused == [
        no_prompt,
        msg.SubmissionRefused(call=1, at_prompt=True),
        False,  # asked first: bash may have kept the Ctrl-C
        True,
        no_prompt,
        no_prompt,
    ]


def test_a_pending_command_may_be_withdrawn_and_a_typed_one_may_not() -> None:
    shell = DrivenShell()
    shell.feed(mark("D;0", 1) + mark("B", 1))
    shell.press(b"\x03")
    shell.submit(4, "make")
    assert shell.rules.submitted == 4
    shell.handle(shell.rules.withdraw(5))
    assert shell.of(msg.SubmissionRefused) == []
    assert [*shell.rules.withdraw(4)] == [msg.SubmissionRefused(call=4, at_prompt=True)]
    assert shell.rules.typing is None
    shell.feed(mark("P;k=l", 1, ";l=0"))
    shell.submit(5, "make")
    assert shell.rules.submitted == 5
    assert not [*shell.rules.withdraw(5)]


def test_a_probe_without_an_answer_is_sent_again() -> None:
    shell = DrivenShell()
    shell.feed(mark("D;0", 1) + mark("B", 1))
    shell.press(b"\x03")
    shell.submit(1, "make")
    shell.pass_time(2.5 * PROBE_S)
    assert shell.keys.count(PROBE_KEY) == 3


@attrs.frozen(kw_only=True)
class LineAdapter(ShellAdapter):
    """A shell whose probe is a line, which a program in the foreground would read."""

    types_probe = True


@pytest.mark.parametrize("is_in_front", [False, True])
def test_a_probe_that_is_a_line_is_sent_to_no_program(is_in_front: bool) -> None:
    shell = DrivenShell(LineAdapter(secret=SECRET, argv=("sh",), directory=Path("/nonexistent")))
    shell.feed(mark("D;0", 1) + mark("B", 1))
    shell.press(b"\x03")
    shell.is_in_front = is_in_front
    shell.submit(1, "make")
    assert (PROBE_KEY in shell.keys) is is_in_front


@attrs.frozen(kw_only=True)
class RefusedAdapter(ShellAdapter):
    """A shell that reads each command from a file, which the disk refuses."""

    def encode(self, cmd: str) -> bytes:
        raise OSError(cmd)


def test_a_command_that_the_disk_refuses_has_failed_and_the_next_one_is_tried() -> None:
    shell = DrivenShell(RefusedAdapter(secret=SECRET, argv=("sh",), directory=Path("/")))
    shell.feed(mark("D;0", 1) + mark("B", 1))
    for call in (1, 2):
        shell.submit(call, "make")
        assert shell.news[-1] == msg.SubmissionFailed(call=call, why="unwritten")
    assert shell.keys == []


def reading_shell() -> DrivenShell:
    """Return a shell that reads a command."""
    shell = DrivenShell()
    shell.feed(mark("D;0", 1) + mark("B", 1))
    shell.submit(1, "make")
    del shell.written[:]
    return shell


def type_all(shell: DrivenShell) -> msg.SendSignal:
    reply: Any = None
    request = msg.SendSignal(signal="INT", writer="human:ann")
    shell.press(b"one")
    shell.handle(shell.rules.signal(SignalDue(request, reply), shell.now))
    shell.press(b"two")
    return request


def test_keys_and_signals_wait_in_their_order_until_the_command_was_read() -> None:
    shell = reading_shell()
    request = type_all(shell)
    assert (shell.keys, shell.signalled, shell.rules.queued_bytes) == ([], [], 6)
    shell.feed(mark("C", 2, ";s=1"))
    assert (shell.keys, shell.signalled) == ([b"one", b"two"], [request])
    assert shell.rules.queued_bytes == 0
    type_all(shell)
    assert (shell.keys[2:], len(shell.signalled)) == ([b"one", b"two"], 2)


def test_keys_wait_no_longer_than_a_shell_takes_to_read() -> None:
    shell = reading_shell()
    type_all(shell)
    shell.pass_time(READING_S)
    assert shell.keys == []
    shell.pass_time(0.1)
    assert shell.keys == [b"one", b"two"]


def test_whoever_types_a_line_is_named_until_it_ends() -> None:
    shell = DrivenShell()
    shell.feed(mark("D;0", 1) + mark("B", 1))
    shell.press(b"ec", "human:ann")
    shell.press(b"ho", "human:ann")
    shell.press(b"\r", "human:ann")
    shell.feed(mark("C", 2, ";s=0"))
    told = [each.typing for each in shell.news if isinstance(each, msg.TypingChanged)]
    assert [each and each.writer for each in told] == ["human:ann", None]


# The question whether the line is empty.


def test_a_line_is_asked_about_once_after_its_keys_have_rested(shell: DrivenShell) -> None:
    shell.press(b"x")
    shell.pass_time(10)
    assert shell.keys == [b"x"]
    shell.press(b"\x7f")
    last_key = shell.now
    shell.pass_time(60)
    (asked_at, keys) = shell.written[-1]
    assert len(shell.written) == 3
    assert keys == PROBE_KEY
    assert asked_at - last_key == pytest.approx(ASK_AFTER_S)


def test_while_keys_come_there_is_one_timer_and_no_question(shell: DrivenShell) -> None:
    for _ in range(20):
        shell.press(b"x\x7f")
        assert len(shell.timers) == 1
        shell.pass_time(ASK_AFTER_S / 2)
    assert PROBE_KEY not in shell.keys


def test_a_report_of_text_is_followed_by_a_question_only_after_more_keys(
    shell: DrivenShell,
) -> None:
    shell.press(b"\x1b[A")
    shell.pass_time(1)
    shell.feed(mark("P;k=l", 1, ";l=5"))
    assert shell.rules.boundaries.typing == "human"
    shell.pass_time(60)
    assert shell.keys.count(PROBE_KEY) == 1
    shell.press(b"\x15")
    shell.pass_time(1)
    shell.feed(REDRAW)
    assert shell.keys.count(PROBE_KEY) == 2
    assert shell.rules.boundaries.typing is None


def test_an_answer_from_before_the_last_key_frees_nothing(shell: DrivenShell) -> None:
    shell.press(b"x\x7f")
    shell.pass_time(1)
    shell.press(b"\x1b[D")
    shell.feed(REDRAW)
    assert shell.rules.boundaries.typing == "human"
    shell.pass_time(1)
    assert shell.keys.count(PROBE_KEY) == 2


def test_a_shell_that_cannot_be_asked_is_looked_at_less_and_less_often(shell: DrivenShell) -> None:
    shell.waits_for_keys = False
    shell.press(b"x\x7f")
    shell.pass_time(600)
    assert PROBE_KEY not in shell.keys
    shell.waits_for_keys = True
    shell.pass_time(MAX_WAIT_S)
    assert shell.keys.count(PROBE_KEY) == 1


def test_nobody_is_asked_below_the_prompt_after_a_completion(shell: DrivenShell) -> None:
    shell.press(b"\t\t")
    shell.feed(b"\r\nDisplay all 1541 possibilities? (y or n)")
    shell.pass_time(60)
    assert PROBE_KEY not in shell.keys
    shell.feed(mark("B", 1))
    shell.pass_time(MAX_WAIT_S)
    assert shell.keys.count(PROBE_KEY) == 1


def test_what_bash_draws_on_a_question_is_not_shown_however_it_comes(shell: DrivenShell) -> None:
    for cut in range(1, len(REDRAW)):
        shell.press(b"x\x7f")
        shell.pass_time(ASK_AFTER_S)
        before = len(shell.shown)
        shell.feed(b"x\x08" + REDRAW[:cut], REDRAW[cut:] + b"y")
        assert shell.shown[before:] == b"x\x08" + SHOWN_REPORT + b"y"


def test_output_that_is_no_redraw_is_shown_after_a_moment(shell: DrivenShell) -> None:
    shell.feed(b"before")
    assert shell.shown == b"before"
    shell.press(b"x\x7f")
    shell.pass_time(ASK_AFTER_S)
    shell.feed(b"a job ")
    assert shell.shown == b"before"
    shell.pass_time(HOLD_S)
    assert shell.shown == b"beforea job "
    shell.feed(b"prints")
    assert shell.shown == b"beforea job prints"


def test_a_shell_without_a_redraw_holds_nothing_back() -> None:
    shell = DrivenShell(ADAPTER)
    shell.feed(mark("D;0", 1) + mark("B", 1))
    shell.press(b"x\x7f")
    shell.pass_time(ASK_AFTER_S)
    assert PROBE_KEY in shell.keys
    shell.feed(b"a job")
    assert shell.shown.endswith(b"a job")
