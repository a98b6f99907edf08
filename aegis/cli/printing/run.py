"""``LiveRun``: a command from its turn to its end, shown as it runs. Standard library only.

One connection carries it all: ``term_run`` until the command has started, then ``term_wait`` for
its end beside one ``term_output`` after the other, each for no more than that command.

Ctrl-C never raises in here: it is counted, and looked at between two answers. The command is known
by its ``seq`` as soon as ``term_run`` is answered, so a Ctrl-C before that waits a moment for the
answer: a command that was typed already begins in that time, and is then interrupted by its
``seq``. One that still waits for its turn is given up.
"""

from __future__ import annotations

import os
import select
import sys
import time

from aegis.cli.grammar.verb import Daemon
from aegis.cli.grammar.words import in_verbs
from aegis.cli.printing.formatting import (
    EXIT_UNKNOWN,
    escaped,
    exit_code_of,
    print_notice,
    status_line,
)
from aegis.cli.printing.interrupts import Interrupts
from aegis.client.nonblocking_line import Answer

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

LONGEST_S = 86_400.0
"""The longest that one call may wait; where no limit was given the next one follows."""

WAIT_S = 50.0
READ_BYTES = 262_144

PATIENCE_S = 1.0
"""After so long without a turn it is said that somebody else has the terminal."""

BEGIN_S = 0.3
"""So long a Ctrl-C waits for a command to begin that may have been typed a moment ago."""

ANSWER_S = 2.0
"""So long the daemon may take to confirm that a call was given up."""

INTERRUPTED = 130
TERMINATED = 143


class LiveRun:
    """One run of ``text`` on the terminal ``name``; ``timeout_s`` None: without a limit."""

    def __init__(self, daemon: Daemon, name: str, text: str, timeout_s: float | None) -> None:
        self._daemon = daemon
        self._name = name
        self._text = text
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._awaited: dict[int, Callable[[Answer], None]] = {}
        self._timers: dict[Callable[[], None], float] = {}
        self._is_writing = False
        self._heeded = 0
        self._started: dict[str, Any] | None = None
        self._final: dict[str, Any] | None = None
        self._cursor = 0
        self._reading: int | None = None
        self._has_all = False
        self._shows_live: bool | None = None if _are_apart() else True
        self._last = ""
        self._code: int | None = None

    def run(self) -> int:
        """Run it to the end; gives the exit code. Raises ``ClientError``, ``BrokenPipeError``."""
        with self._daemon.flow() as self._flow, Interrupts(self._pressed) as self._presses:
            seconds = LONGEST_S if self._timeout_s is None else self._timeout_s
            self._turn = self._ask(
                self._has_started, "term_run", cmd=self._text, timeout=seconds, until="started"
            )
            self._timers[self._say_who_has_it] = time.monotonic() + PATIENCE_S
            try:
                while self._code is None:
                    self._turn_once()
            except _LeftError:
                _drop_output()
            self._push()
            assert self._code is not None
            return self._code

    def _turn_once(self) -> None:
        poll = select.poll()
        poll.register(self._flow, self._flow.events)
        poll.register(self._presses, select.POLLIN)
        poll.poll(self._time_left_ms())
        self._presses.clear()
        self._heed()
        self._ring()
        for answer in self._flow.exchange():
            self._awaited.pop(answer.number)(answer)

    def _push(self) -> None:
        try:  # noqa: SIM105 -- contextlib is not loaded here
            self._flow.push()
        except OSError:
            pass  # the daemon is gone: that is met when it is read

    def _ask(self, then: Callable[[Answer], None], command: str, **arguments: object) -> int:
        """Send a request whose answer goes to ``then``; gives its number."""
        if command != "term_list":
            arguments["name"] = self._name
        number = self._flow.send(command, self._daemon.with_handle(arguments))
        self._awaited[number] = then
        return number

    def _time_left_ms(self) -> float | None:
        if not self._timers:
            return None
        return max(0.0, min(self._timers.values()) - time.monotonic()) * 1000

    def _ring(self) -> None:
        now = time.monotonic()
        for due in [each for each, when in self._timers.items() if when <= now]:
            del self._timers[due]
            due()

    # Ctrl-C and SIGTERM.

    def _pressed(self) -> None:
        """It came, somewhere. While a write waits for its reader nobody else would look."""
        if self._is_writing:
            self._heed()
            self._push()
            if self._code is not None:
                raise _LeftError

    def _heed(self) -> None:
        if self._presses.terminated:
            self._leave(TERMINATED)
        while self._heeded < self._presses.interrupts and self._code is None:
            self._heeded += 1
            if self._heeded > 1:
                self._leave(INTERRUPTED)
            elif self._started is not None:
                self._interrupt(self._started["seq"])
            else:
                self._timers[self._give_up] = time.monotonic() + BEGIN_S

    def _interrupt(self, seq: int) -> None:
        self._ask(self._is_interrupted, "term_signal", signal="INT", seq=seq)

    def _is_interrupted(self, answer: Answer) -> None:
        # Not found: it ended a moment ago, and that is on its way.
        if answer.error is not None and answer.error.code != "not_found":
            _complain(str(answer.error))

    def _give_up(self) -> None:
        if self._started is None:
            self._flow.cancel(self._turn)
            self._timers[self._leave_interrupted] = time.monotonic() + ANSWER_S

    def _leave_interrupted(self) -> None:
        """The daemon does not answer."""
        if self._started is None:
            self._leave(INTERRUPTED)

    def _leave(self, code: int) -> None:
        if self._started is None:
            self._flow.cancel(self._turn)
            print_notice(self._given_up())
        else:
            print_notice(
                f"aegis-actors: the command (seq {self._started['seq']}) goes on; see: "
                f"aegis-actors term output --follow {self._name}"
            )
        self._code = code

    def _given_up(self) -> str:
        return (
            "aegis-actors: given up before it began; should it have been typed at that moment, it "
            f"goes on: aegis-actors term output {self._name}"
        )

    # Its turn, and its start.

    def _say_who_has_it(self) -> None:
        if self._started is None:
            self._ask(self._is_held, "term_list")

    def _is_held(self, answer: Answer) -> None:
        info = self._info(answer)
        if self._started is None and info is not None:
            print_notice(
                f"aegis-actors: waiting for {self._name}: {_why_busy(info)}; Ctrl-C gives up"
            )

    def _is_listed(self, answer: Answer) -> None:
        """Whether the command's standard error must be kept apart, for who tells them apart."""
        if self._shows_live is not None:
            return  # it was asked twice
        info = self._info(answer)
        self._shows_live = info is None or info.get("stderr") != "separate"
        if self._final is not None:
            self._end_with(self._final)
        else:
            self._read_on()

    def _info(self, answer: Answer) -> Mapping[str, Any] | None:
        infos = answer.result.get("result", [])
        named = [info for info in infos if info["name"].lower() == self._name.lower()]
        return named[0] if named else None

    def _has_started(self, answer: Answer) -> None:
        if answer.error is not None:
            self._is_refused(answer.error.code, str(answer.error))
            return
        record = self._started = answer.result
        self._cursor = record["raw_start"]
        if record["end"] is not None or record["needs_input"] is not None or record["timed_out"]:
            self._end_with(record)
            return
        self._wait()
        if self._heeded:
            self._interrupt(record["seq"])
        self._begin_to_read()

    def _is_refused(self, code: str, sentence: str) -> None:
        if code == "cancelled":
            print_notice(self._given_up())
            self._code = INTERRUPTED
        else:
            _complain(sentence)
            self._code = EXIT_UNKNOWN

    # Its end.

    def _wait(self) -> None:
        assert self._started is not None
        left_s = LONGEST_S if self._deadline is None else self._deadline - time.monotonic()
        seconds = max(0.01, min(left_s, LONGEST_S))
        self._ask(self._has_ended, "term_wait", seq=self._started["seq"], timeout=seconds)

    def _has_ended(self, answer: Answer) -> None:
        assert self._started is not None
        record = answer.result.get("record")
        if answer.error is not None:
            _complain(str(answer.error))
            self._code = EXIT_UNKNOWN
        elif record is not None:
            self._end_with(record)
        elif answer.result["reason"] == "timeout" and self._deadline is None:
            self._wait()
        else:
            so_far = answer.result["cursor"]
            self._end_with({**self._started, "timed_out": True, "raw_end": so_far})

    def _end_with(self, record: dict[str, Any]) -> None:
        """This is the last that is told of the command; what it printed until now is shown first.

        A command that was over before anything was asked for has all of it in its record.
        """
        self._final = record
        is_new = self._reading is None and self._cursor == record["raw_start"]
        if is_new and not record["truncated"]:
            self._shows_live = False
        if self._shows_live is False:
            self._show_recorded()
        elif self._has_all:
            self._finish()
        elif self._reading is not None and record["end"] is None:
            self._flow.cancel(self._reading)  # it waits for more than there is
        elif self._reading is None:
            self._begin_to_read()

    def _show_recorded(self) -> None:
        assert self._final is not None
        self._write(self._final["stdout"])
        self._finish()

    def _finish(self) -> None:
        assert self._final is not None
        errors = "" if self._shows_live else self._final["stderr"]
        self._code = show_end(self._name, self._final, errors=errors, last=self._last)

    # What it prints.

    def _begin_to_read(self) -> None:
        """What is read holds standard error as well: is that to be kept apart?"""
        if self._shows_live is None:
            self._ask(self._is_listed, "term_list")
        else:
            self._read_on()

    def _read_on(self) -> None:
        """Ask for what it prints next. Once the last is told of it, nothing is waited for."""
        if not self._shows_live:
            return
        assert self._started is not None
        self._reading = self._ask(
            self._has_printed,
            "term_output",
            seq=self._started["seq"],
            cursor=self._cursor,
            max_bytes=READ_BYTES,
            wait_s=WAIT_S if self._final is None else 0.0,
        )

    def _has_printed(self, answer: Answer) -> None:
        self._reading = None
        if answer.error is not None:
            self._cannot_read(answer.error.code, str(answer.error))
            return
        chunk = answer.result
        if chunk["dropped"]:
            print_notice(f"… {chunk['dropped']} bytes are no longer kept …")
        self._write(chunk["text"])
        is_new = chunk["next_cursor"] > self._cursor
        self._cursor = chunk["next_cursor"]
        if self._is_up_to_the_end() or not (is_new or self._may_come(chunk["running"])):
            self._has_all = True
            if self._final is not None:
                self._finish()
        else:
            self._read_on()

    def _may_come(self, is_running: bool) -> bool:
        """Whether more is to be waited for: not when the call is over and the command goes on."""
        return is_running and (self._final is None or self._final["end"] is not None)

    def _is_up_to_the_end(self) -> bool:
        """Whether all is shown that was printed until the last was told of the command."""
        end = None if self._final is None else self._final["raw_end"]
        return end is not None and self._cursor >= end

    def _cannot_read(self, code: str, sentence: str) -> None:
        """The output cannot be read now: it is tried once more when the command has ended."""
        if self._final is None:
            return
        if code == "cancelled":
            self._read_on()
            return
        _complain(sentence)
        if self._last:
            self._finish()
        else:
            self._show_recorded()

    def _write(self, text: str) -> None:
        """Write to standard output; while it waits for its reader Ctrl-C is heeded all the same."""
        if not text:
            return
        self._last = text[-1]
        self._is_writing = True
        try:
            sys.stdout.write(escaped(text))
            sys.stdout.flush()
        finally:
            self._is_writing = False


class _LeftError(Exception):
    """Somebody left while a write was waiting for its reader."""


def _complain(sentence: str) -> None:
    """Say what the daemon said, with verbs where it names tools."""
    print_notice(f"aegis-actors: {in_verbs(sentence)}")


def _drop_output() -> None:
    """Nobody reads it, and nobody waits for it any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _are_apart() -> bool:
    """Whether standard output and standard error go to different places."""
    try:
        return not os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except OSError:
        return False


def _why_busy(info: Mapping[str, Any]) -> str:
    if info["state"] == "running":
        return "a command runs there"
    return "somebody types a line there" if info["state"] == "idle" else f"it is {info['state']}"


def show_end(name: str, record: Mapping[str, Any], *, errors: str, last: str) -> int:
    """Print the end of a run on standard error; gives the exit code.

    ``errors`` is what is still to be shown of the command's standard error, and ``last`` the last
    character that standard output has got.
    """
    sys.stderr.write(escaped(errors))
    if sys.stderr.isatty() and (errors or last)[-1:] not in ("", "\n"):
        sys.stderr.write("\n")
    print_notice(status_line(record))
    return exit_code(name, record)


def exit_code(name: str, record: Mapping[str, Any]) -> int:
    """The command's own exit code; if it is not known, the reason is said."""
    if record["exit"] is None:
        print_notice(f"aegis-actors: {_why_unknown(record)}; {_what_to_do(name, record)}")
    return exit_code_of(record)


def _why_unknown(record: Mapping[str, Any]) -> str:
    command = f"the command (seq {record['seq']})"
    needs = record["needs_input"]
    if record["end"] is not None:
        return f"the exit code of {command} is not known: {record['end'].replace('_', ' ')}"
    if needs is not None:
        what = "a secret" if needs["kind"] == "secret" else "input"
        return f"{command} goes on: {needs['program']} waits for {what}"
    return f"{command} goes on: the time for the call ran out"


def _what_to_do(name: str, record: Mapping[str, Any]) -> str:
    if record["needs_input"] is not None:
        return (
            f"answer with: aegis-actors term keys {name} 'TEXT\\r'; "
            f"see: aegis-actors term screen {name}"
        )
    return f"see: aegis-actors term read {name}"
