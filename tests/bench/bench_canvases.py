"""Canvases: writes with and without subscribers, edits of other programs, and a restart.

Each write is acknowledged once it is in the file, synced. Inboxes and their disk are real.

python tests/bench/bench_canvases.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from actors import ChildSpec, Ref, SupervisorSpec, open_system
from aegis.canvases.desk import CanvasDesk
from aegis.canvases.watcher import CanvasWatcher
from aegis.inboxes.reading import message_archive
from aegis.inboxes.router import InboxRouter
from aegis.journal.flusher import Flusher
from aegis.protocol.canvases import (
    AppendToSection,
    OpenCanvas,
    ReadCanvas,
    SubscribeCanvas,
    WriteSection,
)
from tests.bench.table import Row, print_rows

ROUNDS = 200
SUBSCRIBERS = 100
SECTIONS = 50
TEXT = "A line of a plan that several agents write together.\n" * 5


@asynccontextmanager
async def running(root: Path) -> AsyncIterator[Ref[Any]]:
    """Run the desk of canvases, the watcher and inboxes in ``root``."""
    flusher, state = Flusher(), root / ".aegis" / "state"
    tree = SupervisorSpec(
        name="root",
        children=(
            SupervisorSpec(name="inboxes", dynamic=True),
            ChildSpec.of(
                "inbox-router",
                InboxRouter,
                directory=state / "inboxes",
                archive=message_archive(state / "archive", flusher.disk),
                supervisor="root/inboxes",
                flusher=flusher,
            ),
            SupervisorSpec(name="canvases", dynamic=True),
            ChildSpec.of("canvas-watcher", CanvasWatcher, flusher=flusher),
            ChildSpec.of(
                "canvas-desk",
                CanvasDesk,
                root=str(root),
                directory=state / "canvases",
                directories=(),
                archive=state / "archive",
                supervisor="root/canvases",
                flusher=flusher,
            ),
        ),
    )
    async with open_system(tree) as system:
        yield system.ref("root/canvas-desk")


async def opened(desk: Ref[Any], root: Path, name: str) -> None:
    """Open a canvas of some sections."""
    parts = [f"## Section {number}\n\n{TEXT}\n" for number in range(SECTIONS)]
    (root / f"{name}.md").write_text("".join(parts))
    await desk.ask(OpenCanvas(name=name, file=f"{name}.md"))


async def written(desk: Ref[Any], name: str) -> list[float]:
    """Return the milliseconds of each write, one after another."""
    found = []
    for number in range(ROUNDS):
        began = time.perf_counter()
        await desk.ask(
            WriteSection(
                name=name,
                section=f"Section {number % SECTIONS}",
                content=f"{TEXT}{number}",
                force=True,
                from_handle="writer",
            )
        )
        found.append((time.perf_counter() - began) * 1_000)
    return found


async def writes(root: Path) -> list[Row]:
    """Writes with no subscriber and with many, in turns: the machine is the same for both."""
    async with running(root) as desk:
        for name in ("alone", "followed"):
            await opened(desk, root, name)
        for number in range(SUBSCRIBERS):
            await desk.ask(SubscribeCanvas(name="followed", from_handle=f"h{number}"))
        await written(desk, "followed")  # the inboxes are open
        await trio.sleep(3)
        alone, followed = [], []
        for _ in range(3):
            alone += await written(desk, "alone")
            await trio.sleep(2)
            followed += await written(desk, "followed")
            await trio.sleep(2)
        one, many = statistics.median(alone), statistics.median(followed)
        return [
            ("canvas write, acknowledged, ms", one, "p50; in the file, synced"),
            (f"  with {SUBSCRIBERS} subscribers, ms", many, "p50; their inboxes are real"),
            ("  with subscribers / without", many / one, "goal ≤ 3"),
        ]


async def edits(root: Path) -> list[Row]:
    """The time until a read has the edit of another program, and an append after it."""
    async with running(root) as desk:
        await opened(desk, root, "edited")
        found = []
        for number in range(ROUNDS // 4):
            (root / "fresh").write_text(f"## A\n\nedit {number}\n")
            (root / "fresh").replace(root / "edited.md")
            began = time.perf_counter()
            text = await desk.ask(ReadCanvas(name="edited", section="A"))
            found.append((time.perf_counter() - began) * 1_000)
            assert text.sections[0].text == f"edit {number}"
        return [("  a read after an edit, ms", statistics.median(found), "p50; recorded, synced")]


async def restart(root: Path) -> list[Row]:
    """The time until a canvas with a long ledger is there again."""
    async with running(root) as desk:
        await opened(desk, root, "long")
        for number in range(1_000):
            await desk.ask(
                AppendToSection(name="long", section=f"Section {number % SECTIONS}", text="more")
            )
    began = time.perf_counter()
    async with running(root) as desk:
        await desk.ask(ReadCanvas(name="long", section="Section 0"))
        seconds = time.perf_counter() - began
    return [("  a restart after 1,000 writes, s", seconds, "until a section is read")]


def measure() -> list[Row]:
    """Return the rows."""
    found: list[Row] = []
    for bench in (writes, edits, restart):
        with tempfile.TemporaryDirectory() as directory:
            found += trio.run(bench, Path(directory))
    return found


if __name__ == "__main__":
    print_rows(measure())
