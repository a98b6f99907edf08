"""``CanvasActor``: the actor of one canvas, between its writers, its file and its subscribers.

The rules decide (``rules``); this actor appends their lines, reads and exchanges the file in
threads, and has ``wakes`` notify the subscribers.
"""

from __future__ import annotations

import contextlib
import re
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio

from actors import Actor, ActorError, Reply
from aegis.canvases import events as e
from aegis.canvases import examining
from aegis.canvases.canvas_ledger import CanvasLedger
from aegis.canvases.document import BODY, PREAMBLE
from aegis.canvases.messages import CanvasReport, LookNow, SendReport, WatchFile
from aegis.canvases.opening import place_of
from aegis.canvases.rules import LOOK, Canvas
from aegis.canvases.state import HUMAN, Bound, writer_of
from aegis.canvases.views import shown_change, shown_name
from aegis.canvases.wakes import Wakes
from aegis.clock import utc_now
from aegis.errors import AegisError, InvalidRequest, StorageError, Unavailable
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import Append
from aegis.names import shorten
from aegis.path_text import is_utf8
from aegis.protocol.canvases import (
    MAX_SECTION_NAMES,
    SECTION_PATTERN,
    SECTION_RULE,
    AppendToSection,
    GetCanvasHistory,
    OpenCanvas,
    ReadCanvas,
    SubscribeCanvas,
    UnsubscribeCanvas,
    WriteSection,
)
from aegis.protocol.naming import name_key
from aegis.protocol.resources import CanvasResource
from aegis.publishing import publish_change

log = structlog.get_logger("aegis.canvases")

FIRST_WATCH_S = 1.0
POLL_S = 5.0
"""Seconds between two looks at a file that cannot be watched, and between two tries to watch it.

The first wait is shorter, and doubled each time.
"""

_SECTION = re.compile(SECTION_PATTERN)

Command = (
    OpenCanvas
    | ReadCanvas
    | WriteSection
    | AppendToSection
    | SubscribeCanvas
    | UnsubscribeCanvas
    | GetCanvasHistory
)

CanvasMessage = Command | LookNow | SendReport | e.Asked | e.Resume


class CanvasActor(Actor[CanvasMessage]):
    """The canvas ``bound`` with the ledger ``path``.

    Its file is below ``root``, or below one of ``directories``.
    """

    def __init__(
        self,
        *,
        bound: Bound,
        path: Path,
        root: str,
        directories: tuple[str, ...],
        flusher: Flusher,
    ) -> None:
        self._bound = bound
        self._path = path
        self._root = root
        self._directories = directories
        self._flusher = flusher
        self._is_open = False
        self._callers: dict[int, Reply[Any]] = {}
        self._count = 0

    async def setup(self) -> None:
        """Register the canvas and open it. If the disk refuses, each request tries again."""
        self.context.register("canvas", name_key(self._bound.name))
        with contextlib.suppress(StorageError, Unavailable):
            await self._open()

    async def teardown(self) -> None:
        if self._is_open:
            self._ledger.close()

    async def receive(self, message: CanvasMessage) -> None:
        """Handle a message of a client, of the watcher or of a timer."""
        if not self._is_open:
            await self._open()
        match message:
            case SubscribeCanvas() | UnsubscribeCanvas():
                self._subscribe(message)
            case GetCanvasHistory():
                self.context.start_soon(self._answer_history, message, self.defer(message))
            case LookNow(is_lost=is_lost):
                if is_lost:
                    self.context.start_soon(self._watch)
                self._handle(e.Asked(job=LOOK))
            case SendReport():
                self._report()
                self._handle(e.Asked(job=LOOK))
            case e.Asked() | e.Resume():
                self._handle(message)
            case _:
                self._ask(message)

    # Clients.

    def _ask(self, message: OpenCanvas | ReadCanvas | WriteSection | AppendToSection) -> None:
        job = _job(message)
        if not is_utf8(job.text) or not is_utf8(job.section or "") or "\0" in job.text:
            raise InvalidRequest(
                "the text is not valid Unicode, or has a NUL; send it without surrogates and NULs"
            )
        caller = self._keep(self.defer(message))
        self._handle(e.Asked(job=attrs.evolve(job, caller=caller)))

    def _subscribe(self, message: SubscribeCanvas | UnsubscribeCanvas) -> None:
        handle = message.from_handle or HUMAN
        if isinstance(message, UnsubscribeCanvas):
            caller = self._keep(self.defer(message))
            self._handle(e.Unsubscribing(handle=handle, caller=caller))
            return
        sections = _checked(message.sections)
        caller = self._keep(self.defer(message))
        self._handle(e.Subscribing(handle=handle, sections=sections, caller=caller))

    async def _answer_history(self, message: GetCanvasHistory, reply: Reply[Any]) -> None:
        keys = frozenset(() if message.section is None else (message.section,))
        if BODY in keys:
            keys |= {PREAMBLE}
        try:
            found = await self._ledger.history(
                self._bound.name, keys, message.limit, self._rules.newest_done
            )
        except StorageError as error:
            reply.fail(error)
        else:
            for number, change in enumerate(found.result):
                found.result[number] = shown_change(self._rules, change)
            reply.send(found)

    def _keep(self, reply: Reply[Any]) -> int:
        self._count += 1
        self._callers[self._count] = reply
        return self._count

    # The rules.

    def _handle(self, event: e.Event) -> None:
        for action in self._rules.handle(event, trio.current_time(), utc_now()):
            self._perform(action)
        if self._rules.is_quiet and self._ledger.is_full:
            self.context.start_soon(self._ledger.rotate)

    def _perform(self, action: e.Action) -> None:
        match action:
            case Append():
                self._ledger.append(action)
            case e.Examine() | e.Compare() | e.Exchange() | e.Discard():
                self.context.start_soon(self._work, action)
            case e.Later(seconds=seconds, event=event):
                self.context.after(seconds, event)
            case e.Return() | e.Fail():
                self._answer(action)
            case e.Changed(changes=changes):
                if changes:
                    self._wakes.push()
                self._report()

    def _answer(self, action: e.Return | e.Fail) -> None:
        reply = self._callers.pop(action.caller, None)
        if reply is None:
            return
        if isinstance(action, e.Return):
            reply.send(action.value)
        else:
            reply.fail(action.error)

    async def _work(self, action: examining.Work) -> None:
        # To its end, even if this incarnation ends: the next one must not meet a late exchange.
        self._handle(await self._done(action))

    async def _done(self, action: examining.Work) -> e.Event:
        work = partial(examining.done, self._flusher.disk, self._place, action)
        return await self._flusher.call(work)

    def _report(self) -> None:
        publish_change(self.context.system, CanvasResource(self._bound.name))
        desk = self.context.system.registry.find("service", "canvases")
        if desk is not None:
            with contextlib.suppress(ActorError):  # it asks again when it is restarted
                desk.tell(CanvasReport(info=self._rules.info()))

    # The ledger and the directory.

    async def _open(self) -> None:
        """Open the ledger and look at the file. Raises ``StorageError``, ``Unavailable``."""
        try:
            self._place = place_of(self._bound, self._root, self._directories)
        except AegisError as error:
            raise Unavailable(f"canvas {self._bound.name!r} cannot be used: {error}") from None
        appender, state = await CanvasLedger.load(self._path, self._flusher)
        self._rules = Canvas(self._bound, state)
        self._ledger = CanvasLedger(
            appender,
            state,
            self._flusher,
            self.context.start_soon,
            synced=lambda number: self._handle(e.Synced(number=number)),
            refused=lambda sentence: self._handle(e.Refused(sentence=sentence)),
        )
        self._wakes = Wakes(
            self._bound,
            state,
            self.context.system,
            self.context.start_soon,
            shown=lambda change: shown_name(self._rules, change.section),
            confirmed=lambda revs: self._handle(e.Confirmed(revs=revs)),
        )
        self._is_open = True
        self._report()
        self._wakes.push()
        self.context.start_soon(self._watch)
        self._handle(e.Asked(job=LOOK))

    async def _watch(self) -> None:
        """Have the directory of the file watched; until it is, look at the file again and again."""
        delay, problem, logged = FIRST_WATCH_S, "the watcher does not run", ""
        while True:
            watcher = self.context.system.registry.find("service", "canvas-watcher")
            if watcher is not None:
                request = WatchFile(name=self._bound.name, place=self._place)
                with contextlib.suppress(ActorError):
                    problem = await watcher.ask(request)
            if not problem:
                self._handle(e.Asked(job=LOOK))  # for an edit before the watch began
                return
            if problem != logged:
                why, logged = shorten(problem), problem
                log.warning("file not watched", canvas=self._bound.name, why=why, looks_s=POLL_S)
            await trio.sleep(delay)
            self._handle(e.Asked(job=LOOK))
            delay = min(POLL_S, 2 * delay)


def _job(message: OpenCanvas | ReadCanvas | WriteSection | AppendToSection) -> e.Job:
    writer = writer_of(message.from_handle)
    match message:
        case OpenCanvas():
            return e.Job(kind="open")
        case ReadCanvas(section=section):
            return e.Job(kind="read", section=section)
        case WriteSection(section=section, content=text, if_rev=if_rev, force=force):
            return e.Job(
                kind="write",
                section=section,
                text=text,
                writer=writer,
                if_rev=if_rev,
                force=force,
            )
        case AppendToSection(section=section, text=text):
            return e.Job(kind="append", section=section, text=text, writer=writer)


def _checked(sections: list[str] | None) -> list[str] | None:
    """Return the names of sections, each once. Raises ``InvalidRequest``."""
    if sections is None:
        return None
    if not 0 < len(sections) <= MAX_SECTION_NAMES:
        raise InvalidRequest(
            f"name 1 to {MAX_SECTION_NAMES} sections, or leave sections out for all"
        )
    for each in sections:
        if _SECTION.fullmatch(each) is None or not is_utf8(each):
            raise InvalidRequest(f"a section must be {SECTION_RULE}, not {shorten(each)!r}")
    return [*dict.fromkeys(sections)]
