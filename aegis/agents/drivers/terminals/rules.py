"""The rules of one terminal of an agent, from its command's start to its release. Pure.

Moments are in seconds of one clock. Rules:

- Every question gets exactly one answer, unless it is given up. ``output`` is answered at once.
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
from typing import Any, Literal, Protocol

import attrs

from actors import Reply
from aegis.errors import Unavailable
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

Answer = Reply[dict[str, Any]]
"""The answer to a question: the fields of the protocol's result."""


@attrs.frozen(kw_only=True)
class ExitStatus:
    """How a command ended: by itself with an exit code from 0, or by a signal with this name."""

    exit_code: int | None = None
    signal: str | None = None

    def fields(self) -> dict[str, Any]:
        """Return the status as the protocol has it."""
        return {"exitCode": self.exit_code, "signal": self.signal}


KILLED = ExitStatus(signal="SIGKILL")


class TerminalActions(Protocol):
    """The actions of the actor of a terminal, which its rules call for."""

    def end_processes(self, *, at_once: bool) -> None:
        """End the command and its processes: with a TERM first, or at once, and then ``gone``."""

    def set_alarm(self, after_s: float) -> None:
        """Call ``due`` after this many seconds."""

    def show_output(self) -> None:
        """Show the output so far to people: it is new since the last time."""

    def finish(self) -> None:
        """Stop: the terminal is released, and nothing is asked any more."""


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
    """The rules of one terminal that keeps ``limit`` bytes of output."""

    def __init__(self, limit: int | None, actions: TerminalActions) -> None:
        self._tail = Tail(MAX_LIMIT if limit is None else min(limit, MAX_LIMIT))
        self._cleaner = TextCleaner(self._tail.write)
        self._actions = actions
        self._waits: list[Answer] = []
        self._kills: list[tuple[Answer, float]] = []
        self._release: tuple[Answer, float] | None = None
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

    def printed(self, data: bytes, now: float) -> None:
        """Take the output of the command, or of a process that it left behind."""
        self._cleaner.feed(data)
        if self.status is None and self._show_at == math.inf:
            after_s, self._show_at = self._show_after_s, now + self._show_after_s
            self._show_after_s = min(2 * after_s, MAX_SHOW_S)
            self._actions.set_alarm(after_s)

    def ended(self, status: ExitStatus) -> None:
        """Take the end of the command, all of whose output was taken before."""
        if self.status is not None:
            return
        self.status = status
        waits, self._waits = self._waits, []
        kills, self._kills = self._kills, []
        for reply in waits:
            _answer(reply, status.fields())
        for reply, _ in kills:
            _answer(reply, {})

    def ask(self, question: Question, reply: Answer, now: float) -> None:
        """Answer a question of the agent, at once or later."""
        self._waits = [each for each in self._waits if not each.is_settled]
        self._kills = [each for each in self._kills if not each[0].is_settled]
        if self._release is not None:
            reply.fail(Unavailable("the terminal was released"))
        elif question == "output":
            text, truncated = self.shown()
            ended = {} if self.status is None else {"exitStatus": self.status.fields()}
            reply.send({"output": text, "truncated": truncated, **ended})
        elif question == "release":
            self._release = reply, now + RELEASE_S
            self.ended(KILLED)
            self._actions.end_processes(at_once=True)
            self._actions.set_alarm(RELEASE_S)
        elif len(self._waits) + len(self._kills) >= MAX_WAITS:
            reply.fail(
                Unavailable(f"{MAX_WAITS} requests wait for the end of this terminal already")
            )
        elif self.status is not None:
            reply.send(self.status.fields() if question == "wait" else {})
        elif question == "wait":
            self._waits.append(reply)
        else:
            self._kill(reply, now)

    def _kill(self, reply: Answer, now: float) -> None:
        self._kills.append((reply, now + KILL_S))
        if not self._is_stopping:
            self._is_stopping = True
            self._actions.end_processes(at_once=False)
        self._actions.set_alarm(KILL_S)

    def due(self, now: float) -> None:
        """Do what is due: the time of an alarm has come."""
        late = [reply for reply, until in self._kills if until <= now]
        self._kills = [each for each in self._kills if each[1] > now]
        for reply in late:
            _answer(reply, {})
        if self._show_at <= now:
            self._show_at = math.inf
            if self.status is None:
                self._actions.show_output()
        if self._release is not None and self._release[1] <= now:
            self.gone()

    def gone(self) -> None:
        """Answer the release, if it is open: the processes that were ended at once are gone."""
        if self._release is not None and not self._is_finished:
            self._is_finished = True
            _answer(self._release[0], {})
            self._actions.finish()


def _answer(reply: Answer, result: dict[str, Any]) -> None:
    if not reply.is_settled:  # else it was given up
        reply.send(result)
