"""The rules of one terminal of an agent, from its command's start to its release. Pure.

``handle(input, now)`` returns the outputs in order. Rules:

- Every question gets exactly one answer, unless it is withdrawn. ``output`` is answered at once.
  ``wait`` is answered at the command's end, or at the release.
- ``kill`` is answered once the command has ended, at most ``KILL_S`` later; the terminal stays.
- ``release`` answers what is open, ends every process, and is answered after that, at most
  ``RELEASE_S`` later. Nothing is answered after it.
- While a command runs, its new output is shown: soon at first, then at longer and longer intervals,
  so that what is stored of a long command is bounded.
- The status is known only after the command's end, and never changes. A process that the command
  has left behind may print until the release.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import attrs

from aegis.processes.text import TextCleaner

KILL_S = 2.0
RELEASE_S = 2.0

SHOW_S, MAX_SHOW_S = 0.5, 30.0
"""The first and the longest interval at which new output is shown."""

MAX_WAITS = 8
"""Questions of one terminal that may wait for an answer."""

MAX_LIMIT = 1024 * 1024
"""The most bytes of output that a terminal keeps, also for a higher outputByteLimit."""

Question = Literal["output", "wait", "kill", "release"]


@attrs.frozen(kw_only=True)
class ExitStatus:
    """How a command ended: by itself with an exit code from 0, or by a signal with this name."""

    exit_code: int | None = None
    signal: str | None = None

    def fields(self) -> dict[str, Any]:
        """Return the status as the protocol has it."""
        return {"exitCode": self.exit_code, "signal": self.signal}


KILLED = ExitStatus(signal="SIGKILL")


# Inputs.


@attrs.frozen
class Printed:
    """The command, or a process that it left behind, has printed these bytes."""

    data: bytes


@attrs.frozen
class ProgramEnded:
    """The command has ended with this status; its output was reported before."""

    status: ExitStatus


@attrs.frozen
class QuestionAsked:
    """The agent asks; ``key`` is for the answer."""

    key: int
    question: Question


@attrs.frozen
class Withdrawn:
    """The agent no longer waits for the answer with this key."""

    key: int


@attrs.frozen
class ProcessesGone:
    """The processes that ``EndProcesses(at_once=True)`` was to end are gone."""


@attrs.frozen
class AlarmDue:
    """The time of an ``Alarm`` has come."""


Input = Printed | ProgramEnded | QuestionAsked | Withdrawn | ProcessesGone | AlarmDue


# Outputs.


@attrs.frozen
class AnswerQuestion:
    """Answer the question with this key."""

    key: int
    result: dict[str, Any]


@attrs.frozen
class RefuseQuestion:
    """Refuse the question with this key; ``reason`` is one sentence."""

    key: int
    reason: str


@attrs.frozen
class EndProcesses:
    """End the command and its processes: with a TERM first, or ``at_once``."""

    at_once: bool


@attrs.frozen
class Alarm:
    """Handle ``AlarmDue`` after this many seconds."""

    after_s: float


@attrs.frozen
class ShowOutput:
    """Show the output so far to people: it is new since the last time."""


@attrs.frozen
class Finish:
    """The terminal is released: nothing is asked any more."""


Output = AnswerQuestion | RefuseQuestion | EndProcesses | Alarm | ShowOutput | Finish


_SLACK = 65_536


class Tail:
    """Keeps the last ``limit`` bytes of a text in UTF-8; stores at most twice that and 64 KiB."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self.total = 0
        """The bytes that were written."""

    def write(self, text: str) -> None:
        """Append ``text``."""
        data = text.encode()
        self.total += len(data)
        self._data += data
        if len(self._data) > 2 * self._limit + _SLACK:
            del self._data[: len(self._data) - self._limit]

    def shown(self, pending: str = "") -> tuple[str, bool]:
        """Return the kept text with ``pending`` at its end, and whether its beginning was dropped.

        It begins with a whole character, so it can be some bytes shorter than the limit.
        """
        ending = pending.encode()
        total = self.total + len(ending)
        if total <= self._limit:
            return (bytes(self._data) + ending).decode(), False
        kept = (bytes(self._data[-self._limit :]) + ending)[-self._limit :] if self._limit else b""
        return _from_whole_character(kept).decode(), True

    def since(self, cursor: int, most: int) -> tuple[int, str]:
        """Return the text from ``cursor`` on, at most ``most`` bytes, and the offset of its begin.

        Offsets count the bytes that were written. The begin is later than ``cursor`` if the text
        there is no longer kept, and never after the end.
        """
        kept = bytes(self._data[-self._limit :]) if self._limit else b""
        kept_from = self.total - len(kept)
        begin = min(max(cursor, kept_from), self.total)
        left = kept[begin - kept_from :]
        whole = _from_whole_character(left)
        begin += len(left) - len(whole)
        return begin, whole[:most].decode(errors="ignore")  # ignores half of a character


def _from_whole_character(data: bytes) -> bytes:
    begin = 0
    while begin < len(data) and data[begin] & 0xC0 == 0x80:
        begin += 1
    return data[begin:]


class TerminalRules:
    """The machine of one terminal that keeps ``limit`` bytes of output."""

    def __init__(self, limit: int | None) -> None:
        self._tail = Tail(MAX_LIMIT if limit is None else min(limit, MAX_LIMIT))
        self._cleaner = TextCleaner(self._tail.write)
        self._waits: list[int] = []
        self._kills: dict[int, float] = {}
        self._release: tuple[int, float] | None = None
        self._is_stopping = self._is_finished = False
        self._show_after_s, self._show_at = SHOW_S, math.inf
        self.status: ExitStatus | None = None
        """None while the command runs."""

    def shown(self) -> tuple[str, bool]:
        """Return the output so far, and whether its beginning was dropped."""
        return self._tail.shown(self._cleaner.pending)

    def since(self, cursor: int, most: int) -> tuple[int, str]:
        """Return finished text from ``cursor`` on; see ``Tail.since``."""
        return self._tail.since(cursor, most)

    @property
    def printed_bytes(self) -> int:
        """The bytes of the output so far, as text: those that are no longer kept count too."""
        return self._tail.total + len(self._cleaner.pending.encode())

    @property
    def line(self) -> str:
        """The last line, which is not finished: a program may still change it."""
        return self._cleaner.pending

    def handle(self, step: Input, now: float) -> list[Output]:
        """Take an input at the moment ``now``, in seconds; return the outputs."""
        match step:
            case Printed(data):
                self._cleaner.feed(data)
                return self._note_output(now)
            case ProgramEnded(status):
                return self._ended(status)
            case QuestionAsked(key, question):
                return self._asked(key, question, now)
            case Withdrawn(key):
                return self._withdrawn(key)
            case ProcessesGone():
                return self._finish()
            case AlarmDue():
                return self._due(now)

    def _note_output(self, now: float) -> list[Output]:
        if self.status is not None or self._show_at < math.inf:
            return []
        after_s, self._show_at = self._show_after_s, now + self._show_after_s
        self._show_after_s = min(2 * after_s, MAX_SHOW_S)
        return [Alarm(after_s)]

    def _asked(self, key: int, question: Question, now: float) -> list[Output]:
        if self._release is not None:
            return [RefuseQuestion(key, "the terminal was released")]
        if question in ("wait", "kill") and len(self._waits) + len(self._kills) >= MAX_WAITS:
            return [
                RefuseQuestion(
                    key, f"{MAX_WAITS} requests wait for the end of this terminal already"
                )
            ]
        ask: dict[Question, Callable[[int, float], list[Output]]] = {
            "output": self._output,
            "wait": self._wait,
            "kill": self._kill,
            "release": self._released,
        }
        return ask[question](key, now)

    def _output(self, key: int, _: float) -> list[Output]:
        text, truncated = self.shown()
        result: dict[str, Any] = {"output": text, "truncated": truncated}
        if self.status is not None:
            result["exitStatus"] = self.status.fields()
        return [AnswerQuestion(key, result)]

    def _wait(self, key: int, _: float) -> list[Output]:
        if self.status is not None:
            return [AnswerQuestion(key, self.status.fields())]
        self._waits.append(key)
        return []

    def _withdrawn(self, key: int) -> list[Output]:
        self._waits = [each for each in self._waits if each != key]
        self._kills.pop(key, None)
        return []

    def _kill(self, key: int, now: float) -> list[Output]:
        if self.status is not None:
            return [AnswerQuestion(key, {})]
        self._kills[key] = now + KILL_S
        is_stopping, self._is_stopping = self._is_stopping, True
        return [Alarm(KILL_S)] if is_stopping else [EndProcesses(at_once=False), Alarm(KILL_S)]

    def _released(self, key: int, now: float) -> list[Output]:
        self._release = key, now + RELEASE_S
        answers = self._ended(KILLED)
        return [*answers, EndProcesses(at_once=True), Alarm(RELEASE_S)]

    def _ended(self, status: ExitStatus) -> list[Output]:
        if self.status is not None:
            return []
        self.status = status
        waits, self._waits = self._waits, []
        kills, self._kills = self._kills, {}
        waited: list[Output] = [AnswerQuestion(key, status.fields()) for key in waits]
        return [*waited, *(AnswerQuestion(key, {}) for key in kills)]

    def _due(self, now: float) -> list[Output]:
        late = [key for key, until in self._kills.items() if until <= now]
        for key in late:
            del self._kills[key]
        answers: list[Output] = [AnswerQuestion(key, {}) for key in late]
        if self._show_at <= now:
            self._show_at = math.inf
            answers += [] if self.status is not None else [ShowOutput()]
        if self._release is not None and self._release[1] <= now:
            return [*answers, *self._finish()]
        return answers

    def _finish(self) -> list[Output]:
        if self._release is None or self._is_finished:
            return []
        self._is_finished = True
        return [AnswerQuestion(self._release[0], {}), Finish()]
