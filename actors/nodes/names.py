"""``Names``: what two processes tell each other of who is known by which name, and who is gone."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from actors.errors import MisuseError
from actors.nodes.links import packets as p
from actors.nodes.remote_place import RemotePlace
from actors.ref import Ref
from actors.system import System

log = logging.getLogger("actors.nodes")

Exports = Callable[[str, str], bool]
"""Whether the other side is told of a name: its group, and the name."""


class Names:
    """The names of this process that the other side is told, and those that it tells.

    ``whose`` is what the other side is called; ``place`` gives its places, ``post`` tells it.
    """

    def __init__(
        self,
        system: System,
        whose: str,
        exports: Exports,
        place: Callable[[str], RemotePlace],
        post: Callable[[p.Packet], None],
    ) -> None:
        self._system = system
        self._whose = whose
        self._exports = exports
        self._place = place
        self._post = post
        self._heard: set[str] = set()
        self._unheard: set[str] = set()
        self._known_there: set[str] = set()

    def begin(self) -> None:
        """Hear of what changes here."""
        self._system.registry.listeners.append(self)

    def end(self) -> None:
        """Hear of it no more, and forget what was heard of the other side."""
        self._system.registry.listeners.remove(self)
        for path in list(self._heard):
            self._lose(path)

    # Of this process.

    def tell_all(self) -> None:
        """A connection begins: tell what there is; the other side will, too."""
        self._unheard = set(self._heard)
        for group, name, ref in self._system.registry.entries():
            self.registered(group, name, ref)

    def cut(self) -> None:
        """It has ended: what the other side knows now is told again over the next."""
        self._known_there.clear()

    def addressed(self, path: str) -> None:
        """The other side knows this address of ours."""
        self._known_there.add(path)

    def registered(self, group: str, name: str, ref: Ref[Any]) -> None:
        """An actor has this name."""
        if self._exports(group, name) and self._system.cell(ref.path) is not None:
            self.addressed(ref.path)
            self._post(p.Registered(group, name, ref.path))

    def unregistered(self, group: str, name: str, ref: Ref[Any]) -> None:
        """It has it no more: it is gone, which is told on its own."""

    def forgotten(self, path: str) -> None:
        """Nobody will be at ``path`` again."""
        if path in self._known_there:
            self._known_there.remove(path)
            self._post(p.Gone(path))

    # Of the other side.

    def heard(self, group: str, name: str, path: str) -> None:
        """An actor there has this name."""
        try:
            self._system.registry.add(group, name, self._place(path).ref)
        except MisuseError as error:
            log.warning("a name of %s is taken already: %s", self._whose, error)
            return
        self._heard.add(path)
        self._unheard.discard(path)

    def heard_all(self) -> None:
        """What was not told again went while there was no connection."""
        for path in self._unheard:
            self.heard_gone(path)
        self._unheard.clear()

    def heard_gone(self, path: str) -> None:
        """Nobody there will be at ``path`` again."""
        self._place(path).is_final = True
        self._lose(path)

    def _lose(self, path: str) -> None:
        if path in self._heard:
            self._heard.remove(path)
            self._system.registry.remove(self._place(path).ref)
