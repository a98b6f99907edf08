"""``Place``: what a ``Ref`` points to, here (``Cell``) or in another process (``RemotePlace``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from actors.envelope import Envelope

if TYPE_CHECKING:
    from actors.ref import Ref
    from actors.system import System


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
    def system(self) -> System:
        """The system of this process."""
        ...

    @property
    def ref(self) -> Ref[Any]:
        """Its address."""
        ...

    def stop_for_good(self) -> None:
        """End the life there, and let none follow."""

    def add_watcher(self, watcher: Watcher) -> None:
        """Let ``watcher`` hear of the ends of lives there."""

    def remove_watcher(self, path: str) -> None:
        """Let the watcher of this path hear no more."""


class Route(Protocol):
    """The way to the places of another process."""

    def place(self, path: str) -> Place:
        """The place at ``path``, whether or not anybody is there."""
        ...
