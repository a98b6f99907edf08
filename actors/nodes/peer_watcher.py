"""``PeerWatcher``: monitors of local actors on behalf of another process."""

from __future__ import annotations

from collections.abc import Callable

from actors.cell import Down
from actors.nodes.links import packets as p
from actors.place import RefTarget


class PeerWatcher:
    """The watcher of local places for another process."""

    def __init__(self, path: str, post: Callable[[p.Packet], None]) -> None:
        self.path = path
        self.mailbox = self
        self.watched: dict[str, RefTarget] = {}
        self._post = post

    def put_always(self, message: object) -> None:
        """Send a ``Down`` to the other process."""
        assert isinstance(message, Down)
        self._post(p.Fell(message))

    def watch(self, place: RefTarget) -> None:
        """Monitor ``place``."""
        place.add_watcher(self)
        self.watched[place.path] = place

    def remove(self, path: str) -> None:
        """Stop monitoring the place at ``path``."""
        place = self.watched.pop(path, None)
        if place is not None:
            place.remove_watcher(self.path)

    def remove_all(self) -> None:
        """Stop monitoring all places: the connection has ended."""
        for path in list(self.watched):
            self.remove(path)
