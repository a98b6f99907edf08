"""The check of the daemon of a root: it runs, answers, and has this version."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from aegis.client.line import ClientError, NoDaemon, connect
from aegis.doctor.finding import Finding, ok, problem, warning
from aegis.processes.environment import handed_on
from aegis.state.root import StatePaths

LOCKS = Path("/proc/locks")


def examine_daemon(state: StatePaths, version: str) -> Iterator[Finding]:
    """Call the daemon and compare its version with this program's ``version``."""
    held = is_held(state)
    try:
        with connect(state.root) as client:
            status = client.call("status", {})
    except NoDaemon as error:
        if held:
            sentence = f"a process holds the root, but cannot be reached: {error}"
            yield problem(
                "daemon", sentence, "if it is starting or stopping, wait; else end the process"
            )
        else:
            yield ok("daemon", "none runs for this root")
            yield from _judge_environment("a daemon started from here", handed_on(os.environ)[1])
    except ClientError as error:
        remedy = "read its log, then: aegis-actors down, aegis-actors up"
        yield problem("daemon", f"it does not answer: {error}", remedy)
    else:
        yield _judge(status["version"], status["pid"], status["url"], version)
        # An older daemon reports none, and leaves none out.
        yield from _judge_environment("the daemon", status.get("left_out", ()))


def _judge_environment(starter: str, left_out: Collection[str]) -> Iterator[Finding]:
    facts = ", ".join(sorted({*left_out} - {"SHELL"}))
    if facts:
        what = f"what {starter} starts does not get these facts about its place of start"
        yield ok("environment", f"{what}: {facts}")
    else:
        yield ok("environment", f"all variables of {starter} reach what it starts")
    if "SHELL" in left_out:
        sentence = f"the one of {starter} runs no commands: bash is used in its place"
        yield warning("SHELL", sentence, "set SHELL to a shell and restart it, if you want another")


def _judge(running: str, pid: int, url: str, version: str) -> Finding:
    sentence = f"version {running} runs (pid {pid}) at {url}"
    if running != version:
        remedy = "restart it: aegis-actors down, aegis-actors up"
        return warning("daemon", f"{sentence}, and this program is {version}", remedy)
    return ok("daemon", sentence)


def is_held(state: StatePaths) -> bool:
    """Return whether a process holds the lock of the root (proc(5), /proc/locks)."""
    # Taking the lock to test it would make a daemon fail that is starting at that moment.
    try:
        found = state.lock.stat()
        locks = LOCKS.read_text()
    except OSError:
        return False
    major, minor = os.major(found.st_dev), os.minor(found.st_dev)
    wanted = f"{major:02x}:{minor:02x}:{found.st_ino}"
    rows = (line.split() for line in locks.splitlines())
    return any("FLOCK" in row and wanted in row for row in rows)
