"""A way from one system to another in the same process, which can be cut."""

from __future__ import annotations

from actors import Node, System
from actors.errors import ActorStopped, Unreachable
from actors.place import Inlet, PlaceSystem, RefTarget, Watcher


class Linked:
    """The way to ``other``, by the paths there. Cut, whoever asks gets ``Unreachable``."""

    def __init__(self, other: System) -> None:
        self.other = other
        self.is_cut = False

    def place(self, path: str) -> RefTarget:
        """The place at ``path``."""
        cell = self.other.cell(path)
        if cell is None:
            raise ActorStopped(f"there is nothing at {path}")
        return LinkedPlace(cell, self)

    def nodes(self) -> list[Node]:
        return []

    async def refresh(self) -> None:
        return

    def forgotten(self, path: str) -> None:
        return


class LinkedPlace:
    """A place of the other system, as long as the way there is not cut."""

    def __init__(self, place: RefTarget, way: Linked) -> None:
        self._place = place
        self._way = way

    @property
    def path(self) -> str:
        return self._place.path

    @property
    def is_final(self) -> bool:
        return self._place.is_final

    @property
    def mailbox(self) -> Inlet:
        if self._way.is_cut:
            raise Unreachable(f"the link to {self.path} is cut", path=self.path)
        return self._place.mailbox

    @property
    def system(self) -> PlaceSystem:
        return self._place.system

    def stop_for_good(self) -> None:
        self._place.stop_for_good()

    def add_watcher(self, watcher: Watcher) -> None:
        self._place.add_watcher(watcher)

    def remove_watcher(self, path: str) -> None:
        self._place.remove_watcher(path)
