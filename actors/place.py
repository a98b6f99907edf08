"""``Place``: what a ``Ref`` points to, here (``Cell``) or in another process (``RemotePlace``)."""

from __future__ import annotations

from typing import Protocol

from actors.deadlines import Deadlines
from actors.envelope import Envelope


class PlaceSystem(Protocol):
    """The system of this process, as far as a ``Ref`` uses it."""

    dead_letters: int
    late_replies: int

    @property
    def deadlines(self) -> Deadlines:
        """The time limits of all requests."""
        ...


class Inlet(Protocol):
    """Where messages to a place are put; ``Mailbox`` says what each may raise."""

    def put(self, message: object) -> None:
        """Take a message that nobody waits for."""

    def put_request(self, envelope: Envelope) -> None:
        """Take a request."""

    def must_wait(self, item: object) -> bool:
        """Whether a sender that can wait must."""
        ...

    async def put_when_room(self, item: object) -> None:
        """Take either, once there is room."""


class NewsInlet(Protocol):
    """Where news of the runtime is put."""

    def put_always(self, message: object) -> None:
        """Take news, though there is no room."""


class Watcher(Protocol):
    """Who monitors places."""

    @property
    def path(self) -> str:
        """Its address, or another name that no other watcher has."""
        ...

    @property
    def mailbox(self) -> NewsInlet:
        """Where its ``Down`` goes."""
        ...

    @property
    def watched(self) -> dict[str, Place]:
        """What it monitors, by path."""
        ...


class Place(Protocol):
    """One address of the tree."""

    @property
    def path(self) -> str:
        """Where in the whole tree it is."""
        ...

    @property
    def is_final(self) -> bool:
        """Whether no life will ever follow there."""
        ...

    @property
    def mailbox(self) -> Inlet:
        """Where messages to it are put."""
        ...

    @property
    def system(self) -> PlaceSystem:
        """The system of this process."""
        ...

    def stop_for_good(self) -> None:
        """End the life there, and let none follow."""

    def add_watcher(self, watcher: Watcher) -> None:
        """Let ``watcher`` hear of the ends of lives there."""

    def remove_watcher(self, path: str) -> None:
        """Let the watcher of this path hear no more."""
