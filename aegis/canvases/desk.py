"""``CanvasDesk``: opens, finds and lists canvases.

Each canvas has an actor below a supervisor of its own, so that repeated crashes use up only its own
restarts; the next request for it starts it again. Canvases report their state to the desk, which
lists them and reports changes to streams.
"""

from __future__ import annotations

import contextlib
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import trio

from actors import Actor, ActorError, ChildSpec, Ref, Reply, Request, Restart, SupervisorSpec
from aegis.canvases import examining
from aegis.canvases.binding import (
    LEDGER,
    Bound,
    bound_already,
    bound_elsewhere,
    file_of,
    load_bound,
    place_of,
    save_bound,
)
from aegis.canvases.canvas import CanvasActor
from aegis.canvases.messages import CanvasReport, SendReport
from aegis.clock import utc_now
from aegis.errors import AegisError, InvalidRequest, NotFound, StorageError, Unavailable
from aegis.following import Followers
from aegis.journal.archive import DEFAULT_KEEP, Keep
from aegis.journal.disk import stored_names
from aegis.journal.flusher import Flusher
from aegis.names import did_you_mean
from aegis.protocol.canvases import (
    AppendToSection,
    CanvasInfo,
    CanvasList,
    GetCanvasHistory,
    ListCanvases,
    OpenCanvas,
    ReadCanvas,
    SubscribeCanvas,
    UnsubscribeCanvas,
    WriteSection,
)
from aegis.protocol.feeds import CanvasesNews, FollowCanvases, StatesPlace
from aegis.protocol.naming import is_name, name_key

log = structlog.get_logger("aegis.canvases")

MAX_CANVASES = 256

MAX_WAITING = 256
"""Requests that wait until one canvas is started."""

OnCanvas = (
    ReadCanvas
    | WriteSection
    | AppendToSection
    | SubscribeCanvas
    | UnsubscribeCanvas
    | GetCanvasHistory
)

DeskMessage = OpenCanvas | ListCanvases | FollowCanvases | CanvasReport | OnCanvas


class CanvasDesk(Actor[DeskMessage]):
    """The canvases of a daemon, with their state in ``directory``, below ``supervisor`` (a path).

    Their files are below ``root``, or below one of ``directories``.
    """

    def __init__(
        self,
        *,
        root: str,
        directory: Path,
        directories: tuple[str, ...],
        archive: Path,
        supervisor: str,
        flusher: Flusher,
        keep: Keep = DEFAULT_KEEP,
    ) -> None:
        self._root = root
        self._directory = directory
        self._directories = directories
        self._archive, self._keep = archive, keep
        self._supervisor = supervisor
        self._flusher = flusher
        self._bound: dict[str, Bound] = {}
        self._problems: dict[str, CanvasInfo] = {}
        self._infos: dict[str, CanvasInfo] = {}
        self._waiting: dict[str, list[tuple[Request[Any], Reply[Any]]]] = {}
        self._followers = Followers("the canvases", self._news)
        self._opening = trio.Lock()

    async def setup(self) -> None:
        """Register the desk, and start the canvases."""
        self.context.register("service", "canvases")
        for name in await self._flusher.look(self._stored):
            await self._load(name)
        for key, bound in self._bound.items():
            self._infos[key] = _unknown(bound.name, bound.file, bound.created_at)
            running = self._actor(key)
            if running is None:
                self._start(key)
            else:
                with contextlib.suppress(ActorError):  # it has stopped: the next request starts it
                    running.tell(SendReport())

    async def receive(self, message: DeskMessage) -> None:
        """Handle a message of a client or of a canvas."""
        match message:
            case OpenCanvas():
                self.context.start_soon(self._open, message, self.defer(message))
            case ListCanvases():
                self.reply(message, CanvasList(result=self._listed(None)))
            case FollowCanvases(place=place):
                self._followers.take(place, self.defer(message))
            case CanvasReport(info=info):
                self._infos[name_key(info.name)] = info
                self._changed(name_key(info.name))
            case _:
                self._pass_on(message, self.defer(message), self._key(message.name))

    # Lists.

    def _listed(self, keys: list[str] | None) -> list[CanvasInfo]:
        everything = {**self._problems, **self._infos}
        return [everything[key] for key in sorted(everything) if keys is None or key in keys]

    def _news(self, keys: list[str] | None, place: StatesPlace) -> CanvasesNews:
        return CanvasesNews(canvases=self._listed(keys), place=place, is_all=keys is None)

    def _changed(self, key: str) -> None:
        self._followers.changed(key)
        self._followers.look()

    # Opening.

    async def _open(self, message: OpenCanvas, reply: Reply[CanvasInfo]) -> None:
        """Open a canvas that may be new; then its actor answers."""
        key = name_key(message.name)
        try:
            if key in self._problems:
                raise StorageError(self._problems[key].problem)
            if key not in self._bound:
                async with self._opening:
                    await self._bind(key, message)
            self._check_file(self._bound[key], message.file)
        except AegisError as error:
            reply.fail(error)
            return
        self._pass_on(message, reply, key)

    def _check_file(self, bound: Bound, given: str | None) -> None:
        if given is not None and file_of(given, self._root, self._directories) != bound.file:
            raise bound_elsewhere(bound.name, bound.file)

    async def _bind(self, key: str, message: OpenCanvas) -> None:
        """Store the settings of a new canvas, unless it exists by now. Raises ``AegisError``."""
        if key in self._bound:
            return
        if message.file is None:
            raise NotFound(f"{self._unknown(message.name)}; to open a new canvas, give its file")
        if len(self._bound) >= MAX_CANVASES:
            raise Unavailable(f"{MAX_CANVASES} canvases exist, which is the limit")
        bound = Bound(
            name=message.name,
            file=file_of(message.file, self._root, self._directories),
            created_at=utc_now(),
            life=uuid.uuid4().hex[:12],
        )
        for other in self._bound.values():
            if other.file == bound.file:
                raise bound_already(other.name, bound.file)
        await self._check_content(bound)
        save = partial(save_bound, self._flusher.disk, self._directory / bound.name, bound)
        await self._flusher.call(save)
        self._bound[key] = bound

    async def _check_content(self, bound: Bound) -> None:
        """Raise ``InvalidRequest`` if the file cannot be a canvas."""
        place = place_of(bound, self._root, self._directories)
        examine = partial(examining.examine, self._flusher.disk, place, None)
        found = await self._flusher.call(examine)
        if found.problem:
            raise InvalidRequest(f"the file {bound.file!r} cannot be a canvas: {found.problem}")

    # Actors.

    def _key(self, name: str) -> str:
        key = name_key(name)
        if key in self._problems:
            raise StorageError(self._problems[key].problem)
        if key not in self._bound:
            raise NotFound(self._unknown(name))
        return key

    def _unknown(self, name: str) -> str:
        names = [each.name for each in self._bound.values()]
        hint = did_you_mean(name, names, "see aegis_canvas_list")
        return f"there is no canvas {name!r}; {hint}"

    def _actor(self, key: str) -> Ref[Any] | None:
        """Return the running actor of a canvas; None while it starts."""
        return None if key in self._waiting else self.context.system.registry.find("canvas", key)

    def _pass_on(self, request: Request[Any], reply: Reply[Any], key: str) -> None:
        """Let the actor of a canvas answer, once it runs."""
        running = self._actor(key)
        if running is None:
            self._start(key)
            if len(self._waiting[key]) >= MAX_WAITING:
                name = self._bound[key].name
                reply.fail(Unavailable(f"canvas {name!r} is still being opened; call again"))
            else:
                self._waiting[key].append((request, reply))
            return
        try:
            running.forward(request, reply)
        except ActorError as error:
            reply.fail(error)

    def _start(self, key: str) -> None:
        if key not in self._waiting:
            self._waiting[key] = []
            self.context.start_soon(self._start_canvas, key)

    async def _start_canvas(self, key: str) -> None:
        name = self._bound[key].name
        try:
            await self.context.system.supervisor(self._supervisor).start_child(self._spec(key))
        except ActorError:  # a bug: a canvas starts with any file and any ledger
            for _, reply in self._waiting.pop(key):
                reply.fail(
                    Unavailable(
                        f"canvas {name!r} had an internal error while it was opened; nothing is "
                        "lost: call again"
                    )
                )
            return
        canvas = self.context.system.ref(f"{self._supervisor}/{name}/canvas")
        for request, reply in self._waiting.pop(key):
            try:
                canvas.forward(request, reply)
            except ActorError as error:
                reply.fail(error)

    def _spec(self, key: str) -> SupervisorSpec:
        bound = self._bound[key]
        canvas = ChildSpec.of(
            "canvas",
            CanvasActor,
            bound=bound,
            path=self._directory / bound.name / LEDGER,
            root=self._root,
            directories=self._directories,
            archive=self._archive,
            keep=self._keep,
            flusher=self._flusher,
        )
        return SupervisorSpec(name=bound.name, children=(canvas,), restart=Restart.TEMPORARY)

    # The state.

    def _stored(self) -> list[str]:
        """Return the names of the directories of canvases. Raises ``StorageError``."""
        return list(filter(is_name, stored_names(self._flusher.disk, self._directory)))

    async def _load(self, name: str) -> None:
        key = name_key(name)
        load = partial(load_bound, self._flusher.disk, self._directory / name)
        try:
            bound = await self._flusher.look(load)
        except StorageError as error:
            log.warning("canvas not loaded", canvas=name, why=str(error))
            self._problems[key] = _unknown(name, "", "", str(error))
            return
        if bound is not None and name_key(bound.name) == key and len(self._bound) < MAX_CANVASES:
            self._bound[key] = bound


def _unknown(name: str, file: str, created_at: str, problem: str = "") -> CanvasInfo:
    """Return what is known of a canvas that has not reported yet."""
    return CanvasInfo(
        name=name,
        file=file,
        sections=[],
        created_at=created_at,
        rev=0,
        subscribers=[],
        problem=problem,
    )
