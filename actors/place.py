"""``RefTarget``: the target of a ``Ref``, here (a ``Cell``) or remote (a ``RemotePlace``)."""

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
    """The receiving end of a place; the errors are those of ``Mailbox``."""

    def put(self, message: object) -> None:
        """Queue a message that is not a request."""

    def hand_over(self, message: object) -> bool:
        """Let an idle receiver handle a message at once, or queue it; return whether it did."""
        ...

    def put_request(self, envelope: Envelope) -> None:
        """Queue a request."""

    def must_wait(self, item: object) -> bool:
        """Return whether ``put_when_room`` would wait."""
        ...

    async def put_when_room(self, item: object) -> None:
        """Queue a message or a request, once there is room."""


class NotificationInlet(Protocol):
    """The receiver of the runtime's notifications."""

    def put_always(self, message: object) -> None:
        """Queue a notification, even if there is no room."""


class Watcher(Protocol):
    """The monitoring side of a monitor."""

    @property
    def path(self) -> str:
        """The watcher's path, or another name that is unique among watchers."""
        ...

    @property
    def mailbox(self) -> NotificationInlet:
        """The receiver of each ``Down``."""
        ...

    @property
    def watched(self) -> dict[str, RefTarget]:
        """The monitored places, by path."""
        ...


class RefTarget(Protocol):
    """One address of the tree."""

    @property
    def path(self) -> str:
        """The path in the whole tree."""
        ...

    @property
    def is_final(self) -> bool:
        """Whether the place is stopped for good."""
        ...

    @property
    def mailbox(self) -> Inlet:
        """The receiving end."""
        ...

    @property
    def system(self) -> PlaceSystem:
        """The system of this process."""
        ...

    def stop_for_good(self) -> None:
        """Stop the actor in order, without a restart."""

    def add_watcher(self, watcher: Watcher) -> None:
        """Notify ``watcher`` whenever an incarnation ends."""

    def remove_watcher(self, path: str) -> None:
        """Stop notifying the watcher of this path."""
