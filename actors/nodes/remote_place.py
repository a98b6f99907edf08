"""``RemotePlace``: an address in another process, with what stands for its mailbox here.

It is to a ``Ref`` what a ``Cell`` is for an actor of this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from actors.cell import Down
from actors.envelope import Envelope
from actors.place import Watcher
from actors.ref import Ref

if TYPE_CHECKING:
    from actors.system import System


class Carrier(Protocol):
    """The connection to the other process, as its places need it."""

    @property
    def system(self) -> System:
        """The system of this process."""
        ...

    @property
    def must_wait(self) -> bool:
        """Whether a sender that can wait must."""
        ...

    async def wait_for_room(self) -> None:
        """Wait until there is room for a message."""

    def tell(self, path: str, message: object) -> None:
        """Carry a message that nobody waits for."""

    def ask(self, path: str, envelope: Envelope) -> None:
        """Carry a request."""

    def stop(self, path: str) -> None:
        """Have the actor there ended for good."""

    def monitor(self, place: RemotePlace) -> None:
        """Have the ends of lives there told; ``place`` has its first watcher."""

    def unmonitor(self, place: RemotePlace) -> None:
        """Have them told no more: it has none any more."""


class RemoteMailbox:
    """What stands for the mailbox of an actor in another process."""

    __slots__ = ("_carrier", "_path")

    def __init__(self, carrier: Carrier, path: str) -> None:
        self._carrier = carrier
        self._path = path

    def put(self, message: object) -> None:
        """Send a message that nobody waits for.

        Whether the mailbox there takes it is not known here: one that does not fit or finds no room
        is a dead letter there. Raises ``MailboxFull`` if too much waits to be carried.
        """
        self._carrier.tell(self._path, message)

    def put_request(self, envelope: Envelope) -> None:
        """Send a request; raises ``Unreachable``, or ``ActorStopped`` of a process that ended."""
        self._carrier.ask(self._path, envelope)

    def must_wait(self, item: object) -> bool:
        """Whether a sender that can wait must: too much waits to be carried."""
        return self._carrier.must_wait

    async def put_when_room(self, item: object) -> None:
        """Send either, once it can be carried."""
        await self._carrier.wait_for_room()
        if isinstance(item, Envelope):
            self.put_request(item)
        else:
            self.put(item)


class RemotePlace:
    """An address in the process that ``carrier`` leads to."""

    def __init__(self, carrier: Carrier, path: str) -> None:
        self._carrier = carrier
        self.path = path
        self.is_final = False
        self.mailbox = RemoteMailbox(carrier, path)
        self.watchers: dict[str, Watcher] = {}
        self.ref: Ref[Any] = Ref(self)

    @property
    def system(self) -> System:
        """The system of this process."""
        return self._carrier.system

    def stop_for_good(self) -> None:
        """End the life there, and let none follow."""
        self._carrier.stop(self.path)

    def add_watcher(self, watcher: Watcher) -> None:
        """Let ``watcher`` hear of the ends of lives there."""
        is_first = not self.watchers
        self.watchers[watcher.path] = watcher
        if is_first:
            self._carrier.monitor(self)

    def remove_watcher(self, path: str) -> None:
        """Let the watcher of this path hear no more."""
        if self.watchers.pop(path, None) is not None and not self.watchers:
            self._carrier.unmonitor(self)

    def fell(self, down: Down) -> None:
        """Tell the watchers."""
        for watcher in list(self.watchers.values()):
            watcher.mailbox.put_always(down)
            if down.final:
                watcher.watched.pop(self.path, None)
        if down.final:
            self.is_final = True
            self.watchers.clear()

    def lost(self, reason: str, *, crashed: bool) -> None:
        """The whole process has ended."""
        self.is_final = True
        self.fell(Down(self.path, 0, reason, crashed=crashed, final=True, with_node=True))
