"""The output of ``term run``, printed while the command runs. Standard library only.

One connection carries all requests: ``term_run`` until the command has started, then ``term_wait``
for its end, and at the same time one ``term_output`` after another, limited to that command.

Ctrl-C does not raise an exception here: it is counted, and handled between two answers. A command
is interrupted by its ``seq``, which the answer to ``term_run`` contains. After a Ctrl-C before that
answer, ``LiveRun`` waits ``BEGIN_S``: a command that was typed already starts in that time and is
interrupted; a command that is still queued is cancelled.
"""

from __future__ import annotations

import os
import select
import sys
import time

from aegis.cli.grammar.verb import TargetDaemon
from aegis.cli.grammar.words import in_verbs
from aegis.cli.printing.formatting import (
    EXIT_UNKNOWN,
    escaped,
    exit_code_of,
    print_notice,
    status_line,
)
from aegis.cli.printing.interrupts import Interrupts
from aegis.client.nonblocking_line import Response

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

LONGEST_S = 86_400.0
"""The longest time that one call may wait; without ``--timeout`` the call is then repeated."""

WAIT_S = 50.0
READ_BYTES = 262_144

PATIENCE_S = 1.0
"""Seconds in the queue after which a message says why the terminal is busy."""

BEGIN_S = 0.3
"""Seconds that a Ctrl-C waits for the start of a command that may have been typed already."""

ANSWER_S = 2.0
"""Seconds that the daemon may take to confirm a cancellation."""

INTERRUPTED = 130
TERMINATED = 143


class LiveRun:
    """One run of the command ``text`` on the terminal ``name``; ``timeout_s`` None: no limit."""

    def __init__(self, daemon: TargetDaemon, name: str, text: str, timeout_s: float | None) -> None:
        self._daemon = daemon
        self._name = name
        self._text = text
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._awaited: dict[int, Callable[[Response], None]] = {}
        self._timers: dict[Callable[[], None], float] = {}
        self._is_writing = False
        self._handled = 0
        self._started: dict[str, Any] | None = None
        self._final: dict[str, Any] | None = None
        self._cursor = 0
        self._reading: int | None = None
        self._has_all = False
        self._shows_live: bool | None = None if _streams_differ() else True
        self._last = ""
        self._code: int | None = None

    def run(self) -> int:
        """Run to the end and return the exit code. Raises ``ClientError``, ``BrokenPipeError``."""
        with (
            self._daemon.connect_nonblocking() as self._client,
            Interrupts(self._on_signal) as self._signals,
        ):
            seconds = LONGEST_S if self._timeout_s is None else self._timeout_s
            self._run_request = self._ask(
                self._has_started, "term_run", cmd=self._text, timeout=seconds, until="started"
            )
            self._timers[self._ask_why_busy] = time.monotonic() + PATIENCE_S
            try:
                while self._code is None:
                    self._step()
            except _LeftError:
                _drop_output()
            self._push()
            assert self._code is not None
            return self._code

    def _step(self) -> None:
        poll = select.poll()
        poll.register(self._client, self._client.events)
        poll.register(self._signals, select.POLLIN)
        poll.poll(self._time_left_ms())
        self._signals.clear()
        self._handle_signals()
        self._call_due_timers()
        for answer in self._client.exchange():
            self._awaited.pop(answer.number)(answer)

    def _push(self) -> None:
        try:  # noqa: SIM105 -- contextlib is not loaded here
            self._client.push()
        except OSError:
            pass  # the daemon is gone: the next read raises

    def _ask(self, then: Callable[[Response], None], command: str, **arguments: object) -> int:
        """Send a request whose answer goes to ``then``; return its number."""
        if command != "term_list":
            arguments["name"] = self._name
        number = self._client.send(command, self._daemon.with_handle(arguments))
        self._awaited[number] = then
        return number

    def _time_left_ms(self) -> float | None:
        if not self._timers:
            return None
        return max(0.0, min(self._timers.values()) - time.monotonic()) * 1000

    def _call_due_timers(self) -> None:
        now = time.monotonic()
        for due in [each for each, when in self._timers.items() if when <= now]:
            del self._timers[due]
            due()

    # Ctrl-C and SIGTERM.

    def _on_signal(self) -> None:
        # A signal handler. While a write blocks, the loop in `run` cannot handle the signal.
        if self._is_writing:
            self._handle_signals()
            self._push()
            if self._code is not None:
                raise _LeftError

    def _handle_signals(self) -> None:
        if self._signals.terminated:
            self._leave(TERMINATED)
        while self._handled < self._signals.interrupts and self._code is None:
            self._handled += 1
            if self._handled > 1:
                self._leave(INTERRUPTED)
            elif self._started is not None:
                self._interrupt(self._started["seq"])
            else:
                self._timers[self._give_up] = time.monotonic() + BEGIN_S

    def _interrupt(self, seq: int) -> None:
        self._ask(self._is_interrupted, "term_signal", signal="INT", seq=seq)

    def _is_interrupted(self, answer: Response) -> None:
        # Not found: the command has just ended; its end will be answered.
        if answer.error is not None and answer.error.code != "not_found":
            _print_error(str(answer.error))

    def _give_up(self) -> None:
        if self._started is None:
            self._client.cancel(self._run_request)
            self._timers[self._leave_interrupted] = time.monotonic() + ANSWER_S

    def _leave_interrupted(self) -> None:
        # The daemon did not confirm the cancellation in time.
        if self._started is None:
            self._leave(INTERRUPTED)

    def _leave(self, code: int) -> None:
        if self._started is None:
            self._client.cancel(self._run_request)
            print_notice(self._gave_up_notice())
        else:
            print_notice(
                f"aegis-actors: the command (seq {self._started['seq']}) is still running; see: "
                f"aegis-actors term output --follow {self._name}"
            )
        self._code = code

    def _gave_up_notice(self) -> str:
        return (
            "aegis-actors: gave up before the command started; if it was typed at that moment, it "
            f"is still running; see: aegis-actors term output {self._name}"
        )

    # The queue, and the start of the command.

    def _ask_why_busy(self) -> None:
        if self._started is None:
            self._ask(self._print_why_busy, "term_list")

    def _print_why_busy(self, answer: Response) -> None:
        info = self._info(answer)
        # The refusal of the run may have come with this answer: then nothing is waited for.
        if self._started is None and self._code is None and info is not None:
            print_notice(
                f"aegis-actors: waiting for {self._name}: {_why_busy(info)}; Ctrl-C gives up"
            )

    def _is_listed(self, answer: Response) -> None:
        """Learn whether the terminal keeps standard error separate."""
        if self._shows_live is not None:
            return  # the answer to a second request
        info = self._info(answer)
        self._shows_live = info is None or info.get("stderr") != "separate"
        if self._final is not None:
            self._end_with(self._final)
        else:
            self._read_on()

    def _info(self, answer: Response) -> Mapping[str, Any] | None:
        infos = answer.result.get("result", [])
        named = [info for info in infos if info["name"].lower() == self._name.lower()]
        return named[0] if named else None

    def _has_started(self, answer: Response) -> None:
        if answer.error is not None:
            self._is_refused(answer.error.code, str(answer.error))
            return
        record = self._started = answer.result
        self._cursor = record["raw_start"]
        if record["end"] is not None or record["needs_input"] is not None or record["timed_out"]:
            self._end_with(record)
            return
        self._wait()
        if self._handled:
            self._interrupt(record["seq"])
        self._begin_to_read()

    def _is_refused(self, code: str, sentence: str) -> None:
        if code == "cancelled":
            print_notice(self._gave_up_notice())
            self._code = INTERRUPTED
        else:
            _print_error(sentence)
            self._code = EXIT_UNKNOWN

    # The end of the command.

    def _wait(self) -> None:
        assert self._started is not None
        left_s = LONGEST_S if self._deadline is None else self._deadline - time.monotonic()
        seconds = max(0.01, min(left_s, LONGEST_S))
        self._ask(self._has_ended, "term_wait", seq=self._started["seq"], timeout=seconds)

    def _has_ended(self, answer: Response) -> None:
        assert self._started is not None
        record = answer.result.get("record")
        if answer.error is not None:
            _print_error(str(answer.error))
            self._code = EXIT_UNKNOWN
        elif record is not None:
            self._end_with(record)
        elif answer.result["reason"] == "timeout" and self._deadline is None:
            self._wait()
        else:
            so_far = answer.result["cursor"]
            self._end_with({**self._started, "timed_out": True, "raw_end": so_far})

    def _end_with(self, record: dict[str, Any]) -> None:
        """Finish with this record, after the output up to its end has been printed."""
        # The record of a command that ended before any output was requested contains all of it.
        self._final = record
        is_new = self._reading is None and self._cursor == record["raw_start"]
        if is_new and not record["truncated"]:
            self._shows_live = False
        if self._shows_live is False:
            self._show_recorded()
        elif self._has_all:
            self._finish()
        elif self._reading is not None and record["end"] is None:
            self._client.cancel(self._reading)  # it waits for output that does not come
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

    # The output of the command.

    def _begin_to_read(self) -> None:
        # `term_output` mixes both streams; if they have to be separate, only the record helps.
        if self._shows_live is None:
            self._ask(self._is_listed, "term_list")
        else:
            self._read_on()

    def _read_on(self) -> None:
        """Request the next output; wait for it only while the command runs."""
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

    def _has_printed(self, answer: Response) -> None:
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
        """Return whether more output may come; not if the call is over and the command runs on."""
        return is_running and (self._final is None or self._final["end"] is not None)

    def _is_up_to_the_end(self) -> bool:
        """Return whether the output is printed up to the end of the final record."""
        end = None if self._final is None else self._final["raw_end"]
        return end is not None and self._cursor >= end

    def _cannot_read(self, code: str, sentence: str) -> None:
        if self._final is None:
            return  # reading is tried again when the command has ended
        if code == "cancelled":
            self._read_on()
            return
        _print_error(sentence)
        if self._last:
            self._finish()
        else:
            self._show_recorded()

    def _write(self, text: str) -> None:
        """Write to standard output; Ctrl-C is handled even while the write blocks."""
        if not text:
            return
        self._last = text[-1]
        self._is_writing = True
        try:
            self._on_signal()  # the handler has only counted a signal that came before
            sys.stdout.write(escaped(text))
            sys.stdout.flush()
        finally:
            self._is_writing = False


class _LeftError(Exception):
    """The user left while a write was blocked."""


def _print_error(sentence: str) -> None:
    """Print an error of the daemon, with verbs in place of tools."""
    print_notice(f"aegis-actors: {in_verbs(sentence)}")


def _drop_output() -> None:
    """Redirect standard output to the null device: its reader takes nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _streams_differ() -> bool:
    """Return whether standard output and standard error are different files."""
    try:
        return not os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except OSError:
        return False


def _why_busy(info: Mapping[str, Any]) -> str:
    if info["state"] == "running":
        return "a command is running there"
    return "a line is being typed there" if info["state"] == "idle" else f"it is {info['state']}"


def show_end(name: str, record: Mapping[str, Any], *, errors: str, last: str) -> int:
    """Print the end of a run on standard error; return the exit code.

    ``errors`` is the part of the command's standard error that is not printed yet, ``last`` the
    last character that was written to standard output.
    """
    sys.stderr.write(escaped(errors))
    if sys.stderr.isatty() and (errors or last)[-1:] not in ("", "\n"):
        sys.stderr.write("\n")
    print_notice(status_line(record))
    return exit_code(name, record)


def exit_code(name: str, record: Mapping[str, Any]) -> int:
    """Return the command's exit code; if it is not known, print why and return 125."""
    if record["exit"] is None:
        print_notice(f"aegis-actors: {_why_unknown(record)}; {_what_to_do(name, record)}")
    return exit_code_of(record)


def _why_unknown(record: Mapping[str, Any]) -> str:
    command = f"the command (seq {record['seq']})"
    needs, may = record["needs_input"], record.get("may_need_input")
    if record["end"] is not None:
        return f"the exit code of {command} is not known: {record['end'].replace('_', ' ')}"
    if needs is not None:
        return f"{command} is still running: {needs['program']} waits for {_what(needs)}"
    late = f"{command} is still running: the time for the call ran out"
    return late if may is None else f"{late}, and {may['program']} may wait for {_what(may)}"


def _what(needs: Mapping[str, Any]) -> str:
    return "a secret" if needs["kind"] == "secret" else "input"


def _what_to_do(name: str, record: Mapping[str, Any]) -> str:
    if record["needs_input"] is not None:
        return (
            f"answer with: aegis-actors term keys {name} 'TEXT\\r'; "
            f"see: aegis-actors term screen {name}"
        )
    return f"see: aegis-actors term read {name}"
