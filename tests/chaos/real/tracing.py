"""A daemon under ``strace``, which kills it at a call, or lets the call fail.

``-f`` is needed for the threads of the flusher; ``-b execve`` detaches every child at its first
instruction, so that only the daemon itself is struck; ``-D`` leaves the daemon the process that was
started. A signal is sent when a call begins. SIGKILL ends the process before the kernel carries the
call out; any other signal is delivered after it, and a signal without a handler ends the process
then, before its next instruction: as ``kill -9`` at that moment would.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from shutil import which

import attrs

from aegis.state.root import StatePaths
from tests.chaos.real.deaths import AtCall, Failing

STRACE = ("strace", "-D", "-f", "-b", "execve", "-qqq", "-o", "/dev/null", "-e", "signal=none")

INSTEAD, AFTERWARDS = "SIGKILL", "SIGUSR2"
"""The signals that end a process before and after a call: no daemon handles the second."""

LOOK_S = 30.0

LEDGERS = ("terminals/{terminal}/ledger.jsonl", "inboxes/{handle}.jsonl")
RAW_LOGS = ("terminals/{terminal}/raw.log",)
NOTES = (
    "terminals/{terminal}/in_flight.json",
    "terminals/{terminal}/in_flight.json.next",
    "terminals/{terminal}/subscribers.json",
)
WHOLE_FILES = (
    "terminals/{terminal}/in_flight.json.new",
    "terminals/{terminal}/in_flight.json.next.new",
    "terminals/{terminal}/subscribers.json.new",
    "terminals/{terminal}/meta.json.new",
    "terminals/{terminal}/raw.base.new",
    "terminals/{terminal}/shell.json.new",
    "workspace.json.new",
    "port.new",
    "keys.json.new",
    "endpoint.json.new",
)


@attrs.frozen
class Calls:
    """System calls as strace names them, with the files to which they are confined.

    ``?`` before a name: not every processor architecture has it.
    """

    names: str
    files: tuple[str, ...] = ()


BY_KIND: Mapping[str, Calls] = {
    "write of a ledger": Calls("write", LEDGERS),
    "write of a raw log": Calls("write", RAW_LOGS),
    "write of a whole file": Calls("write", WHOLE_FILES),
    "pwrite64 of a note": Calls("pwrite64", NOTES),
    "fdatasync": Calls("fdatasync"),
    "fsync": Calls("fsync"),
    "rename": Calls("?rename,?renameat,renameat2"),
    "ftruncate": Calls("ftruncate"),
    "unlink": Calls("?unlink,unlinkat"),
    "mkdir": Calls("?mkdir,mkdirat"),
}
"""The system calls of each kind. Writes to terminals, sockets and pipes belong to none."""


def tracer_of(
    death: AtCall | Failing, state: StatePaths, terminals: Sequence[str], handles: Sequence[str]
) -> tuple[str, ...]:
    """Return the strace command for a daemon with this death or this failing disk."""
    calls = BY_KIND[death.call]
    if isinstance(death, AtCall):
        what = f"signal={AFTERWARDS if death.after else INSTEAD}:when={death.number}"
    else:
        what = f"error={death.error}:when={death.first}+{death.every}"
    confined = [
        word
        for path in _paths(calls, terminals, handles)
        for word in ("-P", str(state.directory / path))
    ]
    strike = ("-e", f"trace={calls.names}", "-e", f"inject={calls.names}:{what}")
    return (*STRACE, *strike, *confined)


def _paths(calls: Calls, terminals: Sequence[str], handles: Sequence[str]) -> Iterator[str]:
    for form in calls.files:
        if "{terminal}" in form:
            yield from (form.format(terminal=name) for name in terminals)
        elif "{handle}" in form:
            yield from (form.format(handle=name) for name in handles)
        else:
            yield form


def reason_not_to_trace() -> str | None:
    """Return the reason why nothing here can be traced; None if it can. Runs strace once."""
    if which(STRACE[0]) is None:
        return "strace is not installed"
    strike = ("-e", "trace=getpid", "-e", f"inject=getpid:signal={AFTERWARDS}:when=65535")
    done = subprocess.run(
        [*STRACE, *strike, "true"], capture_output=True, timeout=LOOK_S, check=False, text=True
    )
    return None if done.returncode == 0 else f"strace may not trace: {done.stderr.strip()[:200]}"
