"""``PeerWatcher``: monitors actors of this process for those of another one."""

from __future__ import annotations

from collections.abc import Callable

from actors.cell import Down
from actors.nodes.links import packets as p
from actors.place import Place


class PeerWatcher:
    """Monitors places of this process for another one."""

    def __init__(self, path: str, post: Callable[[p.Packet], None]) -> None:
        self.path = path
        self.mailbox = self
        self.watched: dict[str, Place] = {}
        self._post = post

    def put_always(self, message: object) -> None:
        """Tell the other process of an end."""
        assert isinstance(message, Down)
        self._post(p.Fell(message))

    def watch(self, place: Place) -> None:
        """Hear of the ends of lives there."""
        place.add_watcher(self)
        self.watched[place.path] = place

    def forget(self, path: str) -> None:
        """Hear of them no more."""
        place = self.watched.pop(path, None)
        if place is not None:
            place.remove_watcher(self.path)

    def forget_all(self) -> None:
        """The other process cannot be told any more."""
        for path in list(self.watched):
            self.forget(path)
