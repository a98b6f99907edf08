"""The log of stand-ins for tests that compare it with the daemon's state: a JSON object a line.

It is written to the file that ``AGENT_WITNESS`` names; without it nothing is. Moments are those of
``time.monotonic_ns``, which all processes of the machine share.
"""

from __future__ import annotations

import json
import os
import time

VARIABLE = "AGENT_WITNESS"
COOKIE = "AEGIS_TERMINAL"


class Witness:
    """The log of one process."""

    def __init__(self) -> None:
        self._path = os.environ.get(VARIABLE, "")

    @property
    def is_on(self) -> bool:
        """Whether anything is logged."""
        return bool(self._path)

    def note(self, kind: str, **fields: object) -> None:
        """Write one line, whole even if the process is killed next."""
        if not self._path:
            return
        session = os.environ.get(COOKIE, "").rsplit("/", 2)[-2:][0]
        known = {"kind": kind, "pid": os.getpid(), "session": session}
        line = json.dumps({**known, "moment": time.monotonic_ns(), **fields})
        log = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(log, line.encode() + b"\n")
        os.close(log)

    def begin(self, resumes: str | None, *, is_person: bool = False) -> None:
        """Log the start, with the other processes of the same session."""
        if self.is_on:
            self.note("begun", resumes=resumes, beside=_others(), person=is_person)


def _others() -> list[str]:
    """Return the processes of this session but this one and its guard."""
    cookie = f"{COOKIE}={os.environ.get(COOKIE, '').rpartition('/')[0]}/".encode()
    own = {os.getpid(), os.getppid()}
    return [
        f"{pid} {_read(pid, 'cmdline').replace(bytes(1), b' ').decode()}"
        for pid in os.listdir("/proc")
        if pid.isdigit() and int(pid) not in own
        if any(each.startswith(cookie) for each in _read(pid, "environ").split(bytes(1)))
    ]


def _read(pid: str, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""
