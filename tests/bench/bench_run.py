"""What a command costs on a shared terminal, against what bash, PTY and disk cost alone.

The floor is one task that writes the submission to a PTY with the installed hooks and Debian's
stock ``.bashrc``, reads until the end mark, appends one record and waits for its sync: no actors,
no parser, no capture. Both are measured in turn, in one process.

python tests/bench/bench_run.py
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from actors import ChildSpec, Ref, SupervisorSpec, open_system
from aegis.inboxes.reading import message_archive
from aegis.inboxes.router import InboxRouter
from aegis.journal.appender import Appender
from aegis.journal.disk import Disk
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.pty import PtyProcess, open_pty_process
from aegis.protocol.terminals import RunCommand, SpawnTerminal
from aegis.terminals.directory.directory import TerminalDirectory
from aegis.terminals.hooks import bash
from aegis.terminals.hooks.submission import EMPTY_KEY, encode_submission
from tests.bench.table import Row, print_rows

ROUNDS = 400
WARM_UP = 40
STOCK_BASHRC = Path("/etc/skel/.bashrc")


class Floor:
    """One command with nothing around it."""

    def __init__(self, pty: PtyProcess, appender: Appender) -> None:
        self._pty = pty
        self._appender = appender
        self._seen = b""

    async def run(self) -> float:
        """Seconds from the first byte sent to the sync; then wait for the prompt."""
        begin = time.perf_counter()
        await self._pty.write(encode_submission("true", first=EMPTY_KEY))
        await self.until(b"\x1b]133;D")
        line = encode_line({"seq": 0, "cmd": "true", "writer": "human", "exit": 0, "stdout": ""})
        await self._appender.wait_synced(self._appender.append(line))
        took = time.perf_counter() - begin
        await self.until(b"\x1b]133;B")
        return took

    async def until(self, mark: bytes) -> None:
        """Read up to ``mark``."""
        while mark not in self._seen:
            self._seen += await self._pty.read()
        self._seen = self._seen.partition(mark)[2]


def _prepare(directory: Path) -> None:
    directory.mkdir(mode=0o700)
    bash.write_startup(directory)


@asynccontextmanager
async def open_floor(directory: Path) -> AsyncIterator[Floor]:
    """A bash with the hooks, and an appender beside it."""
    _prepare(directory)
    async with trio.open_nursery() as nursery:
        appender = await Appender.open(directory / "ledger.jsonl", Flusher())
        appender.start(nursery.start_soon)
        pty = await open_pty_process(
            bash.argv("/bin/bash", directory),
            cwd=str(directory),
            env={**os.environ, "TERM": "xterm-256color"},
            rows=24,
            cols=80,
        )
        floor = Floor(pty, appender)
        await floor.until(b"\x1b]133;B")
        yield floor
        pty.close()
        await pty.wait()
        appender.close()
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_terminal(root: Path, disk: Disk | None = None) -> AsyncIterator[Ref[Any]]:
    """The front of a terminal, in a tree of actors as the daemon builds it."""
    flusher = Flusher(disk)
    tree = SupervisorSpec(
        name="root",
        children=(
            SupervisorSpec(name="inboxes", dynamic=True),
            ChildSpec.of(
                "inbox-router",
                InboxRouter,
                directory=root / "inboxes",
                archive=message_archive(root / "archive", flusher.disk),
                supervisor="root/inboxes",
                flusher=flusher,
            ),
            SupervisorSpec(name="terminals", dynamic=True),
            ChildSpec.of(
                "terminal-directory",
                TerminalDirectory,
                root=root,
                directory=root / "terminals",
                workspace=root / "workspace.json",
                restore=False,
                supervisor="root/terminals",
                inboxes="root/inbox-router",
                flusher=flusher,
                shell_file_limit=1024,
                host=OsProcessHost(),
            ),
        ),
    )
    async with open_system(tree) as system:
        await system.ref("root/terminal-directory").ask(
            SpawnTerminal(name="bench", shell="/bin/bash", cwd=str(root)), timeout=30
        )
        yield system.ref("root/terminals/bench/terminal")


async def _measure(root: Path) -> tuple[float, float]:
    floors, runs = [], []
    async with open_floor(root / "floor") as floor, open_terminal(root) as front:
        for number in range(WARM_UP + ROUNDS):
            at_floor = await floor.run()
            begin = time.perf_counter()
            await front.ask(RunCommand(name="bench", cmd="true"), timeout=30)
            took = time.perf_counter() - begin
            if number >= WARM_UP:
                floors.append(at_floor)
                runs.append(took)
    return statistics.median(floors) * 1000, statistics.median(runs) * 1000


def measure() -> list[Row]:
    """Rows for the table: what, figure, and its baseline and goal."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        home = os.environ.get("HOME", "")
        if STOCK_BASHRC.exists():
            shutil.copy(STOCK_BASHRC, Path(directory) / ".bashrc")
        os.environ["HOME"] = directory
        try:
            floor, run = trio.run(_measure, Path(directory))
        finally:
            os.environ["HOME"] = home
    return [
        ("run('true') / (PTY floor + one append)", run / floor, "ratio, goal ≤ 1.5"),
        ("  run('true'), ms", run, "median"),
        ("  PTY floor + one append, ms", floor, "median"),
    ]


if __name__ == "__main__":
    print_rows(measure())
