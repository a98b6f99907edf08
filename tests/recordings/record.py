"""Makes the recordings anew: real programs on a real PTY, driven by keys.

    python -m tests.recordings.record               all of them
    python -m tests.recordings.record vim htop      some

It needs the programs themselves, root (apt installs a package and removes it again) and the
network (pip, npm, apt). Everything happens in ``/tmp/h``, so that no path of a machine is
recorded; what holds the name of a machine, a home directory or an address is refused.

Beside a recording of lines stands the text that the cleaner makes of it. Look at it before you
commit it: the tests take it for what is right.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sys

import attrs
import trio

from aegis.processes.pty import PtyProcess, open_pty_process
from aegis.processes.text import TextCleaner
from tests.recordings.corpus import HERE, INDEX, MAX_BYTES, Recording, recordings
from tests.recordings.private import private_words
from tests.recordings.scenarios import HOME, SCENARIOS, Scenario, environment

HANG_S = 60.0
QUIET_S = 0.3
"""A program that has shown what a step waits for draws the rest within this time."""


class Session:
    """A program that is being recorded."""

    def __init__(self, process: PtyProcess) -> None:
        self._process = process
        self.data = bytearray()
        self._position = 0
        self._grew = trio.Event()
        self.ended = False

    async def pump(self) -> None:
        while data := await self._process.read():
            self.data += data
            self._announce()
        self.ended = True
        self._announce()

    def _announce(self) -> None:
        self._grew.set()
        self._grew = trio.Event()

    async def take(self, pattern: bytes, keys: bytes) -> None:
        """Wait until ``pattern`` was drawn after the last step, then send ``keys``."""
        with trio.move_on_after(HANG_S) as guard:
            while not (found := re.search(pattern, bytes(self.data[self._position :]))):
                if self.ended:
                    break
                await self._grew.wait()
        if guard.cancelled_caught or found is None:
            raise LookupError(f"{pattern!r} never came; the end is {bytes(self.data[-400:])!r}")
        await self.be_quiet()
        self._position = len(self.data)
        await self._process.write(keys)

    async def be_quiet(self) -> None:
        """Wait until the program writes nothing more for now."""
        quiet = False
        while not quiet:
            with trio.move_on_after(QUIET_S) as pause:
                await self._grew.wait()
            quiet = pause.cancelled_caught or self.ended


async def record(scenario: Scenario) -> bytes:
    """Everything that the program of ``scenario`` writes while its steps are taken."""
    process = await open_pty_process(
        scenario.argv,
        cwd=str(scenario.directory),
        env={**environment(), **scenario.env},
        rows=scenario.rows,
        cols=scenario.cols,
    )
    session = Session(process)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.pump)
            for pattern, keys in scenario.steps:
                await session.take(pattern, keys)
            with trio.fail_after(HANG_S):
                await process.wait()
            # What a child of the program still holds does not keep the PTY open.
            await session.be_quiet()
            nursery.cancel_scope.cancel()
    finally:
        process.close()
    return bytes(session.data)


def check(data: bytes) -> None:
    """Raise ``ValueError`` for what must not be handed out, or is too long."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"{len(data)} bytes are too many")
    names = [socket.gethostname(), os.environ.get("USER", "")]
    if words := private_words(data, [*filter(None, names)]):
        raise ValueError(f"it holds {', '.join(map(repr, words))}")


def cleaned(data: bytes) -> str:
    """The text that the cleaner makes of ``data``."""
    texts: list[str] = []
    cleaner = TextCleaner(texts.append)
    cleaner.feed(data)
    cleaner.finish()
    return "".join(texts)


def store(scenario: Scenario, data: bytes) -> None:
    """Write the bytes, their text if lines are what matters, and the entry of the index."""
    (HERE / f"{scenario.name}.raw").write_bytes(data)
    if not scenario.screen_only:
        (HERE / f"{scenario.name}.txt").write_text(cleaned(data), encoding="utf-8")
    entry = Recording(
        name=scenario.name,
        program=scenario.program,
        how=scenario.how,
        rows=scenario.rows,
        cols=scenario.cols,
        screen_only=scenario.screen_only,
    )
    kept = {each.name: each for each in recordings()} if INDEX.exists() else {}
    kept[scenario.name] = entry
    ordered = [attrs.asdict(kept[each.name]) for each in SCENARIOS if each.name in kept]
    INDEX.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(names: list[str]) -> int:
    """Record the scenarios of these names (all if there are none); gives the exit code."""
    failed = 0
    for scenario in SCENARIOS:
        if names and scenario.name not in names:
            continue
        shutil.rmtree(HOME, ignore_errors=True)
        HOME.mkdir()
        try:
            scenario.prepare(HOME)
            data = trio.run(record, scenario)
            check(data)
            store(scenario, data)
            sys.stdout.write(f"{scenario.name}: {len(data)} bytes\n")
        except Exception as error:
            failed = 1
            sys.stdout.write(f"{scenario.name}: not recorded: {error!r}\n")
    shutil.rmtree(HOME, ignore_errors=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
