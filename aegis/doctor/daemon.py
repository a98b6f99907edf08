"""The daemon of a root: whether one holds it, answers, and is of this version."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from aegis.client.line import ClientError, NoDaemon, connect
from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.state.root import State

LOCKS = Path("/proc/locks")


def examine_daemon(state: State, version: str) -> Iterator[Finding]:
    """Ask the daemon who it is; ``version`` is that of this program."""
    held = is_held(state)
    try:
        with connect(state.root) as client:
            status = client.call("status", {})
    except NoDaemon as error:
        if held:
            sentence = f"one holds the root, but cannot be reached: {error}"
            yield problem("daemon", sentence, "wait if it starts or stops; else end its process")
        else:
            yield ok("daemon", "none runs for this root")
    except ClientError as error:
        remedy = "look into its log; aegis-actors down, then up"
        yield problem("daemon", f"it does not answer: {error}", remedy)
    else:
        yield _judge(status["version"], status["pid"], status["url"], version)


def _judge(running: str, pid: int, url: str, version: str) -> Finding:
    sentence = f"version {running} runs (pid {pid}) at {url}"
    if running != version:
        remedy = "aegis-actors down, then up"
        return warning("daemon", f"{sentence}, and this program is {version}", remedy)
    return ok("daemon", sentence)


def is_held(state: State) -> bool:
    """Whether a process holds the lock of the root (proc(5), /proc/locks).

    It is only looked at: to try the lock would turn away a daemon that starts just then.
    """
    try:
        found = state.lock.stat()
        locks = LOCKS.read_text()
    except OSError:
        return False
    major, minor = os.major(found.st_dev), os.minor(found.st_dev)
    wanted = f"{major:02x}:{minor:02x}:{found.st_ino}"
    rows = (line.split() for line in locks.splitlines())
    return any("FLOCK" in row and wanted in row for row in rows)
