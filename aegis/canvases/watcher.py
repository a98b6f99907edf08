"""``CanvasWatcher``: notices changes that other programs make to the files of canvases.

It watches the directories, as editors write a new file and rename it. One descriptor of inotify
serves all canvases, and Trio waits for it: there is no thread. Edits on other hosts, of a network
file system, are not seen by inotify; they are noticed at the next call.
"""

from __future__ import annotations

import contextlib
import os
from functools import partial

import attrs
import structlog
import trio
from inotify_simple import INotify, flags

from actors import Actor, ActorError
from aegis.canvases.messages import LookNow, WatchFile
from aegis.journal.file_content import FilePlace
from aegis.journal.flusher import Flusher
from aegis.journal.shared_directory import open_directory_of
from aegis.protocol.naming import name_key

log = structlog.get_logger("aegis.canvases")

# Not MODIFY: a text that is still being written is no edit yet; its end is CLOSE_WRITE.
_NAMES = flags.CLOSE_WRITE | flags.MOVED_TO | flags.MOVED_FROM | flags.DELETE | flags.CREATE
_ITSELF = flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR
_GONE = flags.IGNORED | flags.DELETE_SELF | flags.MOVE_SELF | flags.UNMOUNT


@attrs.frozen
class _Watched:
    """A canvas and the name of its file in the watched directory."""

    canvas: str
    file: str


class CanvasWatcher(Actor[WatchFile]):
    """The actor that watches the files of all canvases."""

    def __init__(self, *, flusher: Flusher) -> None:
        self._flusher = flusher
        self._inotify: INotify | None = None
        self._watched: dict[int, set[_Watched]] = {}

    async def setup(self) -> None:
        """Register the watcher."""
        self.context.register("service", "canvas-watcher")
        # After a crash: the watches of the incarnation before are gone.
        for name in self.context.system.registry.names("canvas"):
            self._tell(name, LookNow(is_lost=True))

    async def teardown(self) -> None:
        if self._inotify is not None:
            self._inotify.close()

    async def receive(self, message: WatchFile) -> None:
        """Watch the directory of a file."""
        try:
            if self._inotify is None:
                # In a thread: the library runs a program to find the C library.
                self._inotify = await self._flusher.look(_new_inotify)
                self.context.start_soon(self._read, self._inotify)
            number = await self._flusher.call(partial(_watch, self._inotify, message.place))
        except OSError as error:
            self.reply(message, f"{error.strerror}")
            return
        watched = _Watched(name_key(message.name), os.fsdecode(message.place.name))
        self._watched.setdefault(number, set()).add(watched)
        self.reply(message, "")

    async def _read(self, inotify: INotify) -> None:
        while True:
            await trio.lowlevel.wait_readable(inotify.fileno())
            changed: dict[str, LookNow] = {}
            for event in inotify.read(timeout=0):
                changed |= self._changed_by(event.wd, event.mask, event.name)
            for canvas, message in changed.items():
                self._tell(canvas, message)

    def _changed_by(self, number: int, mask: int, name: str) -> dict[str, LookNow]:
        """Return the canvases that an event is about."""
        if mask & flags.Q_OVERFLOW:
            everything = [each for watched in self._watched.values() for each in watched]
            return {each.canvas: LookNow() for each in everything}
        if mask & _GONE:
            gone = self._watched.pop(number, set())
            if mask & flags.MOVE_SELF and self._inotify is not None:
                with contextlib.suppress(OSError):
                    self._inotify.rm_watch(number)
            return {each.canvas: LookNow(is_lost=True) for each in gone}
        watched = self._watched.get(number, set())
        return {each.canvas: LookNow() for each in watched if each.file == name}

    def _tell(self, canvas: str, message: LookNow) -> None:
        found = self.context.system.registry.find("canvas", canvas)
        if found is not None:
            with contextlib.suppress(ActorError):  # one that is full looks at its file anyway
                found.tell(message)


def _new_inotify() -> INotify:
    return INotify(nonblocking=True)


def _watch(inotify: INotify, place: FilePlace) -> int:
    """Watch the directory of the file; return the number of the watch. Raises ``OSError``."""
    with open_directory_of(place) as directory:
        # By its descriptor: the path may lead to another file by now.
        number: int = inotify.add_watch(f"/proc/self/fd/{directory}", _NAMES | _ITSELF)
    return number
