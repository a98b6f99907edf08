"""A daemon in a process of its own, in the background: ``up -d`` and ``up --tui``."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, NamedTuple

from aegis.cli.grammar.verb import TargetDaemon
from aegis.cli.printing.failures import FAILED, PROGRAM
from aegis.cli.printing.formatting import escaped, escaped_line, print_lines, print_notice
from aegis.client.line import ClientError, open_connection
from aegis.state.root import LOG_TO_STATE, StatePaths

POLL_S = 0.05

LIMIT_S = 60.0
"""Seconds in which a daemon that was started must serve."""

SAID_BYTES = 65_536
"""How much of an output or of the end of a log is looked at."""


class Started(NamedTuple):
    """A daemon that was started: its process, what it printed for people, its log."""

    pid: int
    announced: str
    log: Path


class NotStarted(ClientError):
    """The daemon ended, or does not serve in time; the sentence says why. ``code`` is its own."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


def start_detached(root: Path, *, opens_page: bool) -> int:
    """Start the daemon of ``root`` in the background, wait until it serves, and report where."""
    try:
        started = ensure_daemon(root, {"-d", "--detach", "--open"})
    except NotStarted as error:
        print_notice(f"{PROGRAM}: {error}")
        return error.code
    if started is None:
        pid = serving_pid(root)
        print_notice(
            f"↳ a daemon already runs for {root} (pid {pid}); this one's options were not used"
        )
    else:
        print_lines(escaped(started.announced))
        print_notice(f"↳ it runs in the background (pid {started.pid}); its log: {started.log}")
    if opens_page:
        from aegis.cli.web import web

        web.function(TargetDaemon(str(root), None, as_json=False), prints=False)
    return 0


def ensure_daemon(root: Path, own_options: set[str]) -> Started | None:
    """Start ``up`` with the options of this command line, and return when it serves.

    ``own_options`` are left out. Returns None if a daemon served before. Raises ``NotStarted``.
    """
    if serving_pid(root) is not None:
        return None
    log = StatePaths(root).log
    words = [word for word in sys.argv if word not in own_options]
    # A file without a name until the daemon has locked the root: a checkout may have anything
    # there, and a start that is refused leaves nothing.
    with tempfile.TemporaryFile() as output:
        # A session of its own: the keys and the end of this window are no signals for it.
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, LOG_TO_STATE: "1"},
            start_new_session=True,
        )
        deadline = time.monotonic() + LIMIT_S
        while (pid := serving_pid(root)) is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(POLL_S)
                raise NotStarted(_reason(output, log, code), code if code > 0 else FAILED)
            if time.monotonic() > deadline:
                raise NotStarted(
                    f"the daemon (pid {process.pid}) does not serve after {LIMIT_S:g} s; it "
                    f"continues starting, and its log is {log}",
                    FAILED,
                )
        process.returncode = 0  # it is left running: no warning about it
        return Started(pid, _printed(output), log)


def serving_pid(root: Path) -> int | None:
    """Return the process that serves ``root``; None if none accepts a connection."""
    try:
        connected, endpoint = open_connection(root, start_limit_s=0)
    except ClientError:
        return None
    connected.close()
    pid: int = endpoint.pid
    return pid


def _printed(output: IO[bytes]) -> str:
    """Return what the daemon printed for people: it follows the file with its address."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        said = _output_of(output)
        if "stop it with" in said or time.monotonic() > deadline:
            return "\n".join(line for line in said.splitlines() if not line.startswith("{"))
        time.sleep(POLL_S)


def _output_of(output: IO[bytes]) -> str:
    # Not read(): the daemon has the same offset, and would write over its own text.
    return os.pread(output.fileno(), SAID_BYTES, 0).decode(errors="replace")


def _reason(output: IO[bytes], log: Path, code: int) -> str:
    """Return the sentence for a daemon that ended with ``code``."""
    lines = _output_of(output).strip().splitlines()
    where = ""
    if not lines and log.is_file():  # it ended later, and not by a refusal
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - SAID_BYTES))
            lines = file.read().decode(errors="replace").strip().splitlines()
        where = f"; its log is {log}"
    said = [line for line in lines if line.startswith(f"{PROGRAM}: ")] or lines[-1:]
    why = "; ".join(escaped_line(line.removeprefix(f"{PROGRAM}: ")) for line in said)
    return f"the daemon did not start (exit code {code}): {why or 'it said nothing'}{where}"
