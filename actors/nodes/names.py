"""``NameExchange``: the registered names and stopped actors that two processes exchange."""

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
"""Return whether a name, given its group and itself, is exported to the other side."""


class NameExchange:
    """The names that this process exports to the other side, and those imported from it.

    ``whose`` is the display name of the other side, ``place`` returns its places, and ``post``
    sends a packet to it.
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
        self._remote: set[str] = set()
        self._unconfirmed: set[str] = set()
        self._known_to_peer: set[str] = set()

    def begin(self) -> None:
        """Start listening to the registry."""
        self._system.registry.listeners.append(self)

    def end(self) -> None:
        """Stop listening, and remove the other side's names."""
        self._system.registry.listeners.remove(self)
        for path in list(self._remote):
            self._lose(path)

    # The names of this process.

    def send_all(self) -> None:
        """Send all names over a new connection; the other side does the same."""
        self._unconfirmed = set(self._remote)
        for group, name, ref in self._system.registry.entries():
            self.registered(group, name, ref)

    def connection_lost(self) -> None:
        """Note the end of the connection: all names are sent again over the next one."""
        self._known_to_peer.clear()

    def mark_known(self, path: str) -> None:
        """Note that the other side knows this local path."""
        self._known_to_peer.add(path)

    def registered(self, group: str, name: str, ref: Ref[Any]) -> None:
        """Send a new name if it is exported."""
        if self._exports(group, name) and self._system.cell(ref.path) is not None:
            self.mark_known(ref.path)
            self._post(p.Registered(group, name, ref.path))

    def unregistered(self, group: str, name: str, ref: Ref[Any]) -> None:
        """Send nothing: the stop of the actor is sent by ``forgotten``."""

    def forgotten(self, path: str) -> None:
        """Send that the actor at ``path`` has stopped for good, if the other side knows it."""
        if path in self._known_to_peer:
            self._known_to_peer.remove(path)
            self._post(p.ActorGone(path))

    # The names of the other side.

    def add(self, group: str, name: str, path: str) -> None:
        """Register a name of the other side; log it if the name is already taken."""
        try:
            self._system.registry.add(group, name, self._place(path).ref)
        except MisuseError as error:
            log.warning("a name of %s is taken already: %s", self._whose, error)
            return
        self._remote.add(path)
        self._unconfirmed.discard(path)

    def drop_unconfirmed(self) -> None:
        """Remove the names that the other side did not send again after a reconnect."""
        for path in self._unconfirmed:
            self.drop(path)
        self._unconfirmed.clear()

    def drop(self, path: str) -> None:
        """Remove the remote actor at ``path``, which has stopped for good."""
        self._place(path).is_final = True
        self._lose(path)

    def _lose(self, path: str) -> None:
        if path in self._remote:
            self._remote.remove(path)
            self._system.registry.remove(self._place(path).ref)
