"""When a shell in its line editor is asked for its hook: not while marks of it are held back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from aegis.processes.input_wait import Foreground
from aegis.processes.process_host import ProgramImage
from aegis.terminals.parse.boundaries import ShellPhase
from aegis.terminals.parse.osc133 import Mark
from aegis.terminals.parse.stderr_split import SPLIT_WAIT_S, ShellStreams
from aegis.terminals.shell.tty_watch import Rearming

PID = 7
EDITS_LINE = Foreground(group=PID, is_canonical=False, echoes=False, program="bash", reader=None)
BASH = ProgramImage(words=("bash",), address=0)
SECRET = b"abcdefgh12345678"


@attrs.define(slots=False)
class Surroundings:
    """What the care for a hook has around it: the tracker of a command, and its bash in front."""

    is_holding_back: bool
    phase: ShellPhase = ShellPhase.RUNNING
    is_pasting: bool = True
    editor_answered: bool | None = None
    pid: int = PID
    argv: tuple[str, ...] = BASH.words
    error_tty: str | None = "/dev/pts/9"
    probes: int = 0

    @property
    def rules(self) -> Surroundings:
        return self

    boundaries = adapter = rules

    def program_image(self, pid: int) -> ProgramImage:
        assert pid == PID
        return BASH

    def probe_editor(self) -> None:
        self.probes += 1

    def handle(self, events: None) -> None:
        assert events is None


@pytest.mark.parametrize(("is_holding_back", "probes"), [(False, 1), (True, 0)])
def test_marks_that_are_held_back_are_waited_for_before_the_hook_is_asked(
    is_holding_back: bool, probes: int, tmp_path: Path
) -> None:
    around: Any = Surroundings(is_holding_back)
    assert Rearming(around, around, around, around.handle, tmp_path).look(EDITS_LINE)
    assert around.probes == probes


def mark(what: str, number: int) -> bytes:
    return f"\x1b]133;{what};n={SECRET.decode()};q={number}\a".encode()


def test_an_end_that_only_one_pty_told_is_held_back_until_it_is_overdue() -> None:
    streams = ShellStreams(SECRET, split=True)
    streams.submitted()
    list(streams.feed(mark("P;k=a", 1)))
    list(streams.feed_errors(mark("C;s=1", 2)))
    waits = [streams.is_waiting]
    assert list(streams.feed(mark("D;0;s=1", 3))) == []
    waits.append(streams.is_waiting)
    assert streams.begins_to_wait(0.0)
    assert [each.kind for each in streams.overdue(SPLIT_WAIT_S) if isinstance(each, Mark)] == ["D"]
    waits.append(streams.is_waiting)
    assert waits == [False, True, False]
