"""``RemotePlace``: the target of a ``Ref`` in another process, with a proxy for its mailbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from actors.cell import Down
from actors.envelope import Envelope
from actors.place import Watcher
from actors.ref import Ref

if TYPE_CHECKING:
    from actors.system import System


class PeerConnection(Protocol):
    """The connection to the other process, as far as its places use it."""

    @property
    def system(self) -> System:
        """The system of this process."""
        ...

    @property
    def must_wait(self) -> bool:
        """Whether senders have to wait for room."""
        ...

    async def wait_for_room(self) -> None:
        """Wait until there is room for a message."""

    def tell(self, path: str, message: object) -> None:
        """Send a message without a reply."""

    def ask(self, path: str, envelope: Envelope) -> None:
        """Send a request."""

    def stop(self, path: str) -> None:
        """Stop the remote actor for good."""

    def monitor(self, place: RemotePlace) -> None:
        """Subscribe to the ends of incarnations at ``place``, which has its first watcher."""

    def unmonitor(self, place: RemotePlace) -> None:
        """End the subscription to ``place``, which has no watcher left."""


class RemoteMailbox:
    """The proxy for the mailbox of an actor in another process."""

    __slots__ = ("_carrier", "_path")

    def __init__(self, carrier: PeerConnection, path: str) -> None:
        self._carrier = carrier
        self._path = path

    def put(self, message: object) -> None:
        """Send a message without a reply.

        A message that does not fit the remote mailbox, or finds no room, is a dead letter there.
        Raises ``MailboxFull`` if the queue of packets is full.
        """
        self._carrier.tell(self._path, message)

    def hand_over(self, message: object) -> bool:
        """Send a message, which the receiver cannot handle in the sender's step."""
        self.put(message)
        return False

    def put_request(self, envelope: Envelope) -> None:
        """Send a request.

        Raises ``Unreachable`` without a connection, and ``ActorStopped`` if the process has ended.
        """
        self._carrier.ask(self._path, envelope)

    def must_wait(self, item: object) -> bool:
        """Return whether ``put_when_room`` would wait: the queue of packets is full."""
        return self._carrier.must_wait

    async def put_when_room(self, item: object) -> None:
        """Send a message or a request once there is room in the queue of packets."""
        await self._carrier.wait_for_room()
        if isinstance(item, Envelope):
            self.put_request(item)
        else:
            self.put(item)


class RemotePlace:
    """An address in the process that ``carrier`` leads to."""

    def __init__(self, carrier: PeerConnection, path: str) -> None:
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
        """Stop the actor in order, without a restart."""
        self._carrier.stop(self.path)

    def add_watcher(self, watcher: Watcher) -> None:
        """Notify ``watcher`` whenever an incarnation ends."""
        is_first = not self.watchers
        self.watchers[watcher.path] = watcher
        if is_first:
            self._carrier.monitor(self)

    def remove_watcher(self, path: str) -> None:
        """Stop notifying the watcher of this path."""
        if self.watchers.pop(path, None) is not None and not self.watchers:
            self._carrier.unmonitor(self)

    def notify(self, down: Down) -> None:
        """Send ``down`` to the watchers."""
        for watcher in list(self.watchers.values()):
            watcher.mailbox.put_always(down)
            if down.final:
                watcher.watched.pop(self.path, None)
        if down.final:
            self.is_final = True
            self.watchers.clear()

    def end(self, reason: str, *, crashed: bool) -> None:
        """Stop for good, and notify the watchers: the whole process has ended."""
        self.is_final = True
        self.notify(Down(self.path, 0, reason, crashed=crashed, final=True, with_node=True))
