"""The canvases of a daemon on a simulated disk and clock, with an editor that a test directs.

The desk and the canvases are the real ones and get the commands of clients; their files are on the
disk, where another program edits them. Inboxes and the watcher of files are played: the editor
notifies a canvas, as inotify would, and inboxes sync deferred messages when they are asked to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio

from actors import Actor, ChildSpec, Reply, SupervisorSpec
from actors.faults import RUNTIME, Crash, Plan, armed
from actors.simulate import Simulation, simulate
from aegis.canvases.desk import CanvasDesk
from aegis.canvases.faults import CANVASES
from aegis.canvases.messages import LookNow, WatchFile
from aegis.errors import Busy, Unavailable
from aegis.journal.archive import DEFAULT_KEEP, Keep
from aegis.journal.faults import JOURNAL
from aegis.protocol.canvases import (
    AppendToSection,
    CanvasChange,
    CanvasInfo,
    CanvasSection,
    CanvasSubscription,
    CanvasText,
    CanvasWritten,
    GetCanvasHistory,
    ListCanvases,
    OpenCanvas,
    ReadCanvas,
    SubscribeCanvas,
    UnsubscribeCanvas,
    WriteSection,
)
from aegis.protocol.feeds import CanvasesNews, FollowCanvases
from aegis.protocol.inboxes import Deliver, Receipt, SyncInbox
from aegis.protocol.naming import name_key
from tests.aegis.simulated_daemon import SimulatedDaemon
from tests.chaos.machine.disk_model import Image, cached_image
from tests.chaos.machine.outside_editor import WRITE, OutsideEditor
from tests.chaos.machine.simulated_disk import Die, ProcessDied, SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.reproducible import reproducible

ROOT = "/project"
DIRECTORY = Path(ROOT, ".aegis", "state", "canvases")
LEDGER = DIRECTORY / "plan" / "ledger.jsonl"
ARCHIVE = DIRECTORY.parent / "archive"
FILE = f"{ROOT}/plan.md"
PLAN = "## Goals\n\n- ship\n\n## Log\n\nbegun\n"
BESIDE = f"{ROOT}/.aegis-canvas-"
DISPLACED = f"{ROOT}/displaced-"

EMPTY: Image = {
    "/": None,
    ROOT: None,
    "/notes": None,
    f"{ROOT}/.aegis": None,
    f"{ROOT}/.aegis/state": None,
    f"{ROOT}/.aegis/state/canvases": None,
}


class Inboxes:
    """The inboxes of all handles: their messages by id, of which ``unsynced`` ones may be lost.

    Handles in ``refuses`` get no messages. While ``confirms`` is false no inbox syncs.
    """

    def __init__(self) -> None:
        self.messages: dict[str, dict[str, Deliver]] = {}
        self.unsynced: list[tuple[Deliver, Reply[Receipt]]] = []
        self.refuses: set[str] = set()
        self.confirms = True
        self.tries: Counter[str] = Counter()
        self.is_over = False

    def deliver(self, message: Deliver, reply: Reply[Receipt]) -> None:
        """Put a message into its inbox, once by its id."""
        self.tries[message.id] += 1
        inbox = self.messages.setdefault(message.handle, {})
        if message.handle in self.refuses:
            reply.fail(Busy("the inbox is full"))
        elif message.after is not None and message.after not in inbox:
            reply.fail(Unavailable("the message before it is not here"))
        elif message.id in inbox and message.id not in [each.id for each, _ in self.unsynced]:
            reply.send(_receipt(message))
        else:
            inbox.setdefault(message.id, message)
            self.unsynced.append((message, reply))

    def sync(self) -> None:
        """Make all messages durable, and confirm them."""
        if self.confirms:
            unsynced, self.unsynced = self.unsynced, []
            for message, reply in unsynced:
                reply.send(_receipt(message))

    def loses_power(self) -> None:
        """Lose what was not confirmed."""
        for message, _ in self.unsynced:
            self.messages[message.handle].pop(message.id, None)


def _receipt(message: Deliver) -> Receipt:
    return Receipt(id=message.id, status="queued", position=0)


class PlayedInboxes(Actor[Deliver | SyncInbox]):
    """The router and the inboxes of all subscribers."""

    def __init__(self, *, inboxes: Inboxes) -> None:
        self._inboxes = inboxes

    async def setup(self) -> None:
        self.context.register("service", "inboxes")

    async def receive(self, message: Deliver | SyncInbox) -> None:
        if isinstance(message, SyncInbox):
            self._inboxes.sync()
            return
        if self.context.system.registry.find("inbox", name_key(message.handle)) is None:
            self.context.register("inbox", name_key(message.handle))
        self._inboxes.deliver(message, self.defer(message))


class PlayedWatcher(Actor[WatchFile]):
    """A watcher whose ``problems`` are its answers, the last of them for good."""

    def __init__(self, *, problems: list[str], asked: list[str]) -> None:
        self._problems, self._asked = problems, asked

    async def setup(self) -> None:
        self.context.register("service", "canvas-watcher")

    async def receive(self, message: WatchFile) -> None:
        self._asked.append(message.name)
        problems = self._problems
        self.reply(message, problems.pop(0) if len(problems) > 1 else problems[0])


class Office(SimulatedDaemon):
    """A daemon with canvases, another program that edits their files, and a client.

    ``faults`` are those of fault points, by the name and the number of the pass.
    """

    def __init__(
        self, simulation: Simulation, directories: Sequence[str], faults: Plan, keep: Keep
    ) -> None:
        super().__init__(simulation, "root/desk")
        self.directories, self.keep = (*directories,), keep
        self.disk = SimulatedDisk(EMPTY, self.plan)
        self.inboxes = Inboxes()
        self.faults = faults
        self.watch_problems = [""]
        self.watched: list[str] = []
        self.in_steps = False
        self._before: Callable[[str], None] = lambda _: None

    def actors(self) -> tuple[ChildSpec | SupervisorSpec, ...]:  # type: ignore[override]
        disk = self.disk
        disk.can_exchange = not self.in_steps
        disk.before_call = lambda call: self._before(call)
        desk = ChildSpec.of(
            "desk",
            CanvasDesk,
            root=ROOT,
            directory=DIRECTORY,
            directories=self.directories,
            archive=ARCHIVE,
            keep=self.keep,
            supervisor="root/canvases",
            flusher=SimulatedFlusher(disk),
        )
        return (
            ChildSpec.of("inboxes", PlayedInboxes, inboxes=self.inboxes),
            ChildSpec.of(
                "canvas-watcher",
                PlayedWatcher,
                problems=self.watch_problems,
                asked=self.watched,
            ),
            SupervisorSpec(name="canvases", dynamic=True),
            desk,
        )

    # Lives of the daemon.

    async def _live(self, task_status: trio.TaskStatus[None]) -> None:
        try:
            await super()._live(task_status)
        except* ProcessDied:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()

    async def stop(self, *, power_fails: bool = False, draws: bool = False) -> None:
        if power_fails:
            self.inboxes.loses_power()
        self.ends_faults()
        await super().stop(power_fails=power_fails, draws=draws)

    def dies(self) -> None:
        self.inboxes.unsynced.clear()

    def dies_at(self, call: str, number: int = 1) -> None:
        """Kill the daemon right before a call of the disk: the next one if the ``number`` is 1."""
        self.plan.faults[call, self.plan.hits[call] + number] = Die()
        self.disk.on_death = lambda: self._scope.cancel()

    def ends_faults(self) -> None:
        """Let the disk accept again, and nothing happen at its calls."""
        self.plan.refuses = ()
        self.plan.faults.clear()
        self._before = lambda _: None

    def crashes_at(self, point: str, number: int = 1) -> None:
        """Let the actor crash that passes this fault point: at its next pass if it is 1."""
        self.faults.faults[point, self.faults.hits[point] + number] = Crash()

    async def crashes(self, actor: str = "CanvasActor") -> None:
        """Let the canvas, or the desk, crash, and wait until it is restarted."""
        self.crashes_at(f"actor.receive.before[{actor}]")
        if actor == "CanvasActor":
            self.notify()
        else:
            self.ask_soon(ListCanvases())
        await self.passes(3)

    # Files.

    def image(self) -> dict[str, bytes | None]:
        return dict(cached_image(self.disk.model))

    def put(self, files: dict[str, bytes | None]) -> None:
        """Change files while no daemon runs; None removes one."""
        image = self.image()
        for path, data in files.items():
            if data is None:
                image.pop(path, None)
            else:
                image[path] = data
        self.disk = SimulatedDisk(image, self.plan)

    @property
    def editor(self) -> OutsideEditor:
        return OutsideEditor(self.disk.model, FILE)

    def text(self) -> str | None:
        """Return the text of the file; None if it does not exist."""
        return self.editor.text()

    def beside(self) -> list[str]:
        """Return the paths of the files that an exchange left."""
        return [path for path in self.image() if path.startswith((BESIDE, DISPLACED))]

    def edits(self, text: str | None, *, is_noticed: bool = True) -> None:
        """Let another program save the file; None removes it."""
        if text is None:
            self.disk.model.unlink(FILE)
        else:
            self.editor.replace(text)
        if is_noticed:
            self.notify()

    def replaces(self, old: str, new: str, *, is_noticed: bool = True) -> None:
        """Let another program replace a part of the text."""
        self.edits((self.text() or "").replace(old, new), is_noticed=is_noticed)

    def notify(self, *, is_lost: bool = False) -> None:
        """Notify the canvas as the watcher does."""
        canvas = self.system.registry.find("canvas", "plan")
        if canvas is not None:
            canvas.tell(LookNow(is_lost=is_lost))

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Let another program have the file open for writing inside the block."""
        model = self.disk.model
        fd = model.open(FILE, WRITE, is_outside=True)
        try:
            yield
        finally:
            model.close(fd)

    def before(self, call: str, act: Callable[[], object], *numbers: int) -> None:
        """Act right before some of the next calls of this name, the first if none is given."""
        count = 0

        def look(name: str) -> None:
            nonlocal count
            if name == call:
                count += 1
                if count in (numbers or (1,)):
                    act()

        self._before = look

    # Clients.

    async def open(self, name: str = "plan", file: str | None = None) -> CanvasInfo:
        return await self.ask(OpenCanvas(name=name, file=file))

    async def read(self, section: str | None = None, name: str = "plan") -> CanvasText:
        return await self.ask(ReadCanvas(name=name, section=section))

    async def section(self, section: str) -> CanvasSection:
        [found] = (await self.read(section)).sections
        return found

    async def rev(self, section: str) -> int:
        return (await self.section(section)).rev

    async def write(self, section: str, content: str, **fields: Any) -> CanvasWritten:
        done = await self.ask(writing(section, content, **fields))
        await self.yields()
        return done

    async def append(self, section: str, text: str, by: str | None = "ada") -> CanvasWritten:
        done = await self.ask(appending(section, text, by))
        await self.yields()
        return done

    async def subscribe(
        self, handle: str | None = "bob", sections: list[str] | None = None
    ) -> CanvasSubscription:
        return await self.ask(subscribing(handle, sections))

    async def unsubscribe(self, handle: str | None = "bob") -> CanvasSubscription:
        return await self.ask(UnsubscribeCanvas(name="plan", from_handle=handle))

    async def changes(self, section: str | None = None, name: str = "plan") -> list[CanvasChange]:
        """Return all changes, the oldest first."""
        request = GetCanvasHistory(name=name, section=section, limit=1000)
        return (await self.ask(request)).result[::-1]

    async def appended(self) -> list[str | None]:
        """Return the texts that were appended."""
        return [each.text for each in await self.changes() if each.op == "appended"]

    async def listed(self) -> list[CanvasInfo]:
        return (await self.ask(ListCanvases())).result

    async def info(self, name: str = "plan") -> CanvasInfo:
        [found] = [each for each in await self.listed() if each.name == name]
        return found

    async def news(self, after: CanvasesNews | None = None) -> CanvasesNews:
        return await self.ask(FollowCanvases(place=None if after is None else after.place))

    async def check(self) -> None:
        """Check that what clients see is in the file, and nothing beside it."""
        await self.read()
        assert self.beside() == []
        for section in (await self.read()).sections:
            assert section.text in (self.text() or "")

    def wakes(self, handle: str = "bob") -> list[Deliver]:
        """Return the messages to a subscriber, the oldest first."""
        return [*self.inboxes.messages.get(handle, {}).values()]

    def woken(self, handle: str = "bob") -> list[str]:
        """Return the last lines of the messages to a subscriber."""
        return [each.body.rpartition("\n")[2] for each in self.wakes(handle)]


def writing(section: str, content: str, *, by: str | None = "ada", **fields: Any) -> WriteSection:
    given = {"name": "plan", "section": section, "content": content, "from_handle": by, **fields}
    return WriteSection(**given)


def appending(section: str, text: str, by: str | None = "ada") -> AppendToSection:
    return AppendToSection(name="plan", section=section, text=text, from_handle=by)


def subscribing(handle: str | None = "bob", sections: list[str] | None = None) -> SubscribeCanvas:
    return SubscribeCanvas(name="plan", sections=sections, from_handle=handle)


Story = Callable[[Office], Awaitable[None]]


def play(
    story: Story,
    *,
    text: str | None = PLAN,
    in_steps: bool = False,
    directories: Sequence[str] = (),
    keep: Keep = DEFAULT_KEEP,
    seed: int = 1,
) -> None:
    """Run a story of the canvas ``plan``, whose file has this text; None: it is not opened."""
    faults = Plan()

    async def run(simulation: Simulation) -> None:
        office = Office(simulation, directories, faults, keep)
        office.in_steps = in_steps
        if text is not None:
            office.put({FILE: text.encode()})
        with reproducible(simulation.chance), armed(faults, CANVASES, JOURNAL, RUNTIME):
            async with office.opened():
                if text is not None:
                    await office.open(file="plan.md")
                    await office.settles()
                await story(office)

    simulate(run, seed=seed)
