"""The scenarios of a canvas: writers with and without a revision, and other programs that edit.

The desk, the actor of the canvas and its ledger are the real ones; the file and its exchange are on
the simulated disk. Inboxes are played by one actor that loses nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import Actor, ActorError, ChildSpec, SupervisorSpec, System
from actors.faults import RUNTIME, FaultTable
from actors.simulate import Simulation, simulate
from aegis.canvases.desk import CanvasDesk
from aegis.canvases.faults import CANVASES
from aegis.canvases.messages import LookNow, WatchFile
from aegis.errors import AegisError, Busy, InvalidRequest, NotFound
from aegis.journal.faults import JOURNAL
from aegis.protocol import canvases as api
from aegis.protocol.inboxes import Deliver, Receipt, SyncInbox
from tests.chaos.checking.canvas_evidence import (
    CanvasEvidence,
    CanvasFound,
    CanvasSeen,
    CanvasWrite,
    OutsideEdit,
)
from tests.chaos.checking.canvas_rules import broken
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.outside_editor import OutsideEditor, with_line
from tests.chaos.machine.simulated_disk import ProcessDied, SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.reproducible import reproducible
from tests.faults.retrying import PAUSE_S, REFUSALS, ask_until_answered, until_done

ROOT = "/project"
DIRECTORY = Path(ROOT, ".aegis", "state", "canvases")
CANVAS, FILE = "plan", "plan.md"
PATH = f"{ROOT}/{FILE}"
FIRST = "# Plan\n\n## todo\n\n@old.0@\n"
OLD = OutsideEdit(canvas=CANVAS, token="@old.0@")
READER = "reviewer"
TRIES = 60
IMAGE: Image = {
    "/": None,
    ROOT: None,
    PATH: FIRST.encode(),
    f"{ROOT}/.aegis": None,
    f"{ROOT}/.aegis/state": None,
}


class PlayedInboxes(Actor[Deliver | SyncInbox]):
    """The inboxes of all subscribers, which keep everything."""

    async def setup(self) -> None:
        self.context.register("service", "inboxes")

    async def receive(self, message: Deliver | SyncInbox) -> None:
        if isinstance(message, Deliver):
            self.reply(message, Receipt(id=message.id, status="queued", position=0))


class PlayedWatcher(Actor[WatchFile]):
    """A watcher that is told of edits by the program that makes them."""

    async def setup(self) -> None:
        self.context.register("service", "canvas-watcher")

    async def receive(self, message: WatchFile) -> None:
        self.reply(message, "")


def tree(flusher: SimulatedFlusher) -> SupervisorSpec:
    return SupervisorSpec(
        name="root",
        children=(
            ChildSpec.of("inboxes", PlayedInboxes),
            ChildSpec.of("canvas-watcher", PlayedWatcher),
            SupervisorSpec(name="canvases", dynamic=True),
            ChildSpec.of(
                "desk",
                CanvasDesk,
                root=ROOT,
                directory=DIRECTORY,
                directories=(),
                archive=DIRECTORY.parent / "archive",
                supervisor="root/canvases",
                flusher=flusher,
            ),
        ),
    )


@attrs.frozen
class Sections:
    """Sections of one canvas, through the real desk.

    ``edits_at``: another program replaces the file right before this call of the disk, at the
    ``number``-th time. ``in_steps``: the file system cannot exchange two names.
    """

    name: str = "canvases"
    edits_at: str = ""
    number: int = 1
    in_steps: bool = False
    image: Image = attrs.field(factory=lambda: dict(IMAGE))
    tables: tuple[FaultTable, ...] = (JOURNAL, CANVASES, RUNTIME)
    subjects: tuple[str, ...] = ("CanvasDesk", "CanvasActor")
    recovers_durably: bool = False
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        world.disk.can_exchange = not self.in_steps
        world.confirm(OLD)
        editor = OutsideEditor(world.disk.model, PATH)
        if self.edits_at:
            world.disk.before_call = self._edit_in_between(world, editor)

        async def live() -> None:
            async with world.simulation.open_system(tree(world.flusher)) as system:
                await _Writers(world, system, editor).play()

        with reproducible(world.simulation.chance):
            await until_done(live)

    def _edit_in_between(self, world: World, editor: OutsideEditor) -> Callable[[str], None]:
        left = [self.number]

        def edit(call: str) -> None:
            if call != self.edits_at or not left[0]:
                return
            left[0] -= 1
            if not left[0]:
                editor.replace(with_line(editor.text(), "todo", "@between.1@"))
                world.evidence.confirmed.append(OutsideEdit(canvas=CANVAS, token="@between.1@"))

        return edit

    def recover(self, disk: SimulatedDisk) -> CanvasFound:
        disk.can_exchange = not self.in_steps
        found: list[CanvasFound] = []

        async def play(simulation: Simulation) -> None:
            with reproducible(simulation.chance):
                try:
                    async with simulation.open_system(tree(SimulatedFlusher(disk))) as system:
                        found.append(await found_by(system, disk))
                        raise disk.die()
                except* ProcessDied:
                    if not found:
                        raise

        simulate(play, seed=1)
        return found[0]

    def check(self, evidence: Evidence, found: CanvasFound, *, killed: bool) -> Iterator[str]:
        said = [*evidence.tried, *evidence.confirmed]
        known = CanvasEvidence(
            writes=tuple(each for each in said if isinstance(each, CanvasWrite)),
            edits=tuple(each for each in said if isinstance(each, OutsideEdit)),
            seen=tuple(each for each in said if isinstance(each, CanvasSeen)),
            found=(found,),
        )
        is_opened = any(each == CANVAS for each in evidence.confirmed)
        if found.changes or is_opened:
            yield from broken(known)


async def found_by(system: System, disk: SimulatedDisk) -> CanvasFound:
    """Return the canvas as its clients see it, once what an earlier life left is settled."""
    desk = system.ref("root/desk")
    file = OutsideEditor(disk.model, PATH).text() or ""
    nothing = CanvasFound(canvas=CANVAS, changes=(), sections=(), file=file)
    try:
        read = await desk.ask(api.ReadCanvas(name=CANVAS))
    except NotFound:
        return nothing
    except AegisError as error:
        return attrs.evolve(nothing, problem=str(error))
    history = await desk.ask(api.GetCanvasHistory(name=CANVAS, limit=1000))
    return CanvasFound(
        canvas=CANVAS,
        changes=tuple(attrs.evolve(each, timestamp="") for each in reversed(history.result)),
        sections=tuple(map(_seen, read.sections)),
        file=OutsideEditor(disk.model, PATH).text() or "",
        beside=tuple(
            name for name in disk.model.list_directory(ROOT) if name.startswith(".aegis-canvas")
        ),
    )


def _seen(section: api.CanvasSection) -> CanvasSeen:
    return CanvasSeen(canvas=CANVAS, section=section.section, rev=section.rev, text=section.text)


class _Writers:
    """The clients of one incarnation, and another program; each does what is not there yet."""

    def __init__(self, world: World, system: System, editor: OutsideEditor) -> None:
        self._world = world
        self._system = system
        self._desk = system.ref("root/desk")
        self._editor = editor

    async def play(self) -> None:
        await ask_until_answered(self._desk, api.OpenCanvas(name=CANVAS, file=FILE))
        self._world.confirm(CANVAS)
        await ask_until_answered(self._desk, api.SubscribeCanvas(name=CANVAS, from_handle=READER))
        await self._write("done", "@add.1@")
        await self._append("todo", "@append.2@")
        await self._edit("todo", "@edit.3@")
        await self._write("todo", "@replace.4@", after=self._stale)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._edit_slowly, "done", "@slow.5@")
            nursery.start_soon(self._append, "done", "@append.6@")
        await self._read("todo")
        await self._read("done")

    # Writers: each repeats its write until it is there.

    async def _write(
        self,
        section: str,
        token: str,
        *,
        after: Callable[[str, int | None], Awaitable[None]] | None = None,
    ) -> None:
        async def act() -> None:
            known = await self._read(section)
            if known is not None and token in known.text:
                return
            if_rev = None if known is None else known.rev
            write = CanvasWrite(canvas=CANVAS, section=section, token=token, if_rev=if_rev)
            await self._ask(
                write,
                api.WriteSection(
                    name=CANVAS, section=section, content=token, if_rev=if_rev, from_handle="ann"
                ),
            )
            if after is not None:
                await after(section, if_rev)

        await until_done(act)

    async def _stale(self, section: str, rev: int | None) -> None:
        """Write with a revision that is not the newest any more."""
        write = CanvasWrite(canvas=CANVAS, section=section, token="@stale.7@", if_rev=rev)
        request = api.WriteSection(
            name=CANVAS, section=section, content="@stale.7@", if_rev=rev, from_handle="ben"
        )
        try:
            await self._ask(write, request)
        except (Busy, InvalidRequest):
            return

    async def _append(self, section: str, token: str) -> None:
        async def act() -> None:
            known = await self._read(section)
            if known is not None and token in known.text:
                return
            write = CanvasWrite(canvas=CANVAS, section=section, token=token, is_append=True)
            request = api.AppendToSection(
                name=CANVAS, section=section, text=token, from_handle="ben"
            )
            await self._ask(write, request)

        await until_done(act)

    async def _ask(self, write: CanvasWrite, request: Any) -> None:
        self._world.tries(write)
        answer = await self._desk.ask(request)
        self._world.confirm(attrs.evolve(write, done=True, rev=answer.rev))

    async def _read(self, section: str) -> CanvasSeen | None:
        try:
            text = await ask_until_answered_or_missing(
                self._desk, api.ReadCanvas(name=CANVAS, section=section)
            )
        except NotFound:
            return None
        seen = _seen(text.sections[0])
        self._world.confirm(seen)
        return seen

    # Another program.

    async def _edit(self, section: str, token: str) -> None:
        text = self._editor.text()
        if token not in (text or "") and not self._was_made(token):
            self._editor.replace(with_line(text, section, token))
            self._made(token)
            self._has_edited()
        await trio.sleep(PAUSE_S)

    async def _edit_slowly(self, section: str, token: str) -> None:
        if self._was_made(token):
            return
        await self._editor.write_slowly(
            lambda: with_line(self._editor.text(), section, token),
            0.4,
            lambda: self._made(token),
        )
        self._has_edited()

    def _was_made(self, token: str) -> bool:
        return OutsideEdit(canvas=CANVAS, token=token) in self._world.evidence.confirmed

    def _made(self, token: str) -> None:
        # The other program outlives the daemon: its edit is made, whoever is dead.
        self._world.evidence.confirmed.append(OutsideEdit(canvas=CANVAS, token=token))

    def _has_edited(self) -> None:
        found = self._system.registry.find("canvas", CANVAS)
        if found is not None:
            try:
                found.tell(LookNow())
            except ActorError:
                return


async def ask_until_answered_or_missing(desk: Any, request: Any) -> Any:
    for _ in range(TRIES):
        try:
            return await desk.ask(request)
        except NotFound:
            raise
        except REFUSALS:
            await trio.sleep(PAUSE_S)
    raise AssertionError(f"refused {TRIES} times: {request}")
