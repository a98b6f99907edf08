"""``PeerProcess``: the actors of another process, reached over one connection after another.

It is the ``Router`` of their addresses, sends messages both ways, and mirrors the names and the
tree that the other side reports. The outcomes of requests are those within a process, and one more:
``Unreachable`` while there is no connection. A ``tell`` is then dropped and counted as a dead
letter; a request that was sent before may still be carried out, and its answer is dropped.
"""

from __future__ import annotations

import itertools
import logging
import weakref
from functools import partial
from typing import Any, Protocol

import outcome
import trio

from actors.cell import Cell, Down
from actors.envelope import Envelope
from actors.errors import (
    ActorError,
    ActorStopped,
    AskError,
    CodecError,
    MailboxFull,
    MisuseError,
    NodeDied,
    NodeError,
    Unreachable,
    root_cause,
)
from actors.nodes.links import packets as p
from actors.nodes.links.outbox import SendQueue
from actors.nodes.links.parcels import Splitter, pieces
from actors.nodes.links.request_queues import RequestQueues
from actors.nodes.links.vocabulary import Vocabulary
from actors.nodes.mirror import Mirror
from actors.nodes.names import Exports, NameExchange
from actors.nodes.owed_reply import OwedReply
from actors.nodes.peer_watcher import PeerWatcher
from actors.nodes.remote_place import RemotePlace
from actors.place import RefTarget
from actors.ref import Ref
from actors.reply import Reply
from actors.system import System
from actors.tree import Change, Gap, Node, mailbox_depths

log = logging.getLogger("actors.nodes")

PACKETS_AT_ONCE = 64
"""The number of packets handled between two checkpoints."""


class MessageChannel(Protocol):
    """One connection: messages of bytes in order. Raises ``NodeError`` when it is over."""

    async def send(self, message: bytes) -> None:
        """Send a message, once there is room."""

    async def receive(self) -> bytes:
        """Return the next message."""
        ...


class PeerProcess:
    """The process whose places are below the path ``root``; empty for all that are not local.

    ``name`` is its display name. ``shows_tree``: send it the tree of this process.
    ``outlives_connection``: a lost connection may be followed by another one.
    """

    def __init__(
        self,
        system: System,
        *,
        name: str,
        root: str,
        vocabulary: Vocabulary,
        exports: Exports,
        shows_tree: bool = False,
        outlives_connection: bool = True,
    ) -> None:
        self.system = system
        self.name = name
        self.ready = trio.Event()
        """Set when the other side has sent all its names; another event on the next connection."""
        self.mirror = Mirror(root, system.views.publish)
        self._root = root
        self._words = vocabulary
        self._shows_tree = shows_tree
        self._outlives_connection = outlives_connection
        self._outbox = SendQueue()
        self._is_up = False
        self._end: str | None = None
        self._filled = trio.Event()
        self._numbers = itertools.count(1)
        self._pending: dict[int, tuple[str, Reply[Any]]] = {}
        self._owed: dict[int, OwedReply] = {}
        self._requests = RequestQueues()
        self._places: weakref.WeakValueDictionary[str, RemotePlace] = weakref.WeakValueDictionary()
        self._monitored: dict[str, RemotePlace] = {}
        self._names = NameExchange(system, name, exports, self.place, self._post)
        self._watcher = PeerWatcher(f"@{root or 'above'}", self._post)

    # Beginning and end.

    def begin(self) -> None:
        """Start routing to its places, and show its tree below ``root``."""
        self.system.routers.add(self._root, self)
        self._names.begin()

    def end(self, why: str, *, crashed: bool) -> None:
        """Note that the other process has ended; callers and watchers get the reason ``why``."""
        if self._end is not None:
            return
        self._end = why
        self._disconnect(NodeDied if crashed else ActorStopped)
        self.system.routers.remove(self._root, self)
        self._names.end()
        for place in list(self._places.values()):
            place.end(why, crashed=crashed)
        self._monitored.clear()
        self.mirror.clear()

    def connection_lost(self) -> None:
        """Note that the connection was lost, and that another one may follow."""
        self.ready = trio.Event()
        self._disconnect(Unreachable)
        self.mirror.mark_unreachable()

    async def carry(self, wire: MessageChannel, *, is_ready: bool = True) -> str:
        """Exchange packets over ``wire`` until the connection ends, and return the reason.

        Call ``end`` or ``connection_lost`` afterwards. If this system is not fully up yet, pass a
        false ``is_ready``, and call ``send_ready`` when it is.
        """
        why = ""
        self._outbox.clear()
        self._is_up = True
        self._send_all()
        if is_ready:
            self.send_ready()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, wire)
                nursery.start_soon(self._requests.run)
                if self._shows_tree:
                    nursery.start_soon(self._show_tree)
                await self._read(wire)
        except* NodeError as group:
            why = str(root_cause(group))
        finally:
            # Otherwise end() follows at once, and fails the requests that are sent until then.
            self._is_up = not self._outlives_connection
        return why

    def _send_all(self) -> None:
        self._names.send_all()
        for path in self._monitored:
            self._post(p.Monitored(path))

    def send_ready(self) -> None:
        """Send that this system is up and that all its names have been sent."""
        self._post(p.NamesSent())

    def _disconnect(self, error: type[AskError]) -> None:
        self._is_up = False
        self._filled.set()
        self._outbox.clear()
        pending, self._pending = self._pending, {}
        for path, reply in pending.values():
            reply.give_up(self._failure(error, path))
        owed, self._owed = self._owed, {}
        for each in owed.values():
            each.abandon()
        self._watcher.remove_all()
        self._names.connection_lost()

    def _failure(self, error: type[AskError], path: str) -> AskError:
        if self._end is not None:
            return error(f"{path} went down with {self.name}: {self._end}", path=path)
        return error(f"{self.name} cannot be reached: {path} may go on there", path=path)

    def nodes(self) -> list[Node]:
        """Return that process's part of the tree as last reported."""
        return self.mirror.nodes()

    def forgotten(self, path: str) -> None:
        """Report an actor of this process that has stopped for good."""
        self._names.forgotten(path)

    async def refresh(self) -> None:
        """Request the depths of its mailboxes, and wait for them. No effect while disconnected."""
        if self._is_up:
            self._filled = trio.Event()
            self._post(p.DepthsWanted())
            await self._filled.wait()

    # Its places.

    def place(self, path: str) -> RemotePlace:
        """Return the place at ``path``, whether or not there is an actor."""
        place = self._places.get(path)
        if place is None or place.is_final:
            place = self._places[path] = RemotePlace(self, path)
            place.is_final = self._end is not None
        return place

    @property
    def must_wait(self) -> bool:
        """Whether senders have to wait: the queue of packets is full."""
        return self._is_up and not self._outbox.has_room

    async def wait_for_room(self) -> None:
        """Wait until the queue of packets has room."""
        while self.must_wait:
            await self._outbox.wait_for_room()

    def tell(self, path: str, message: object) -> None:
        """Send a message; without a connection it is dropped and counted."""
        body = self._words.body_of(message)
        if not self._is_up:
            self.system.dead_letters += 1
            return
        self._check_room(path)
        self._post(p.Tell(path, body))

    def ask(self, path: str, envelope: Envelope) -> None:
        """Send a request; its reply is settled by the answer or by the end of the connection."""
        if not self._is_up:
            raise self._failure(ActorStopped if self._end is not None else Unreachable, path)
        if envelope.reply is None:
            self.tell(path, envelope.message)
            return
        body = self._words.body_of(envelope.message)
        self._check_room(path)
        number = next(self._numbers)
        askers = [asker.handler.path for asker in envelope.chain if asker.is_waiting]
        self._pending[number] = (path, envelope.reply)
        self._post(p.Ask(number, path, body, askers))
        envelope.reply.on_abandon(partial(self._abandon, number))

    def stop(self, path: str) -> None:
        """Stop the remote actor for good."""
        self._post(p.Stopped(path))

    def monitor(self, place: RemotePlace) -> None:
        """Subscribe to the ends of incarnations at ``place``."""
        self._monitored[place.path] = place
        self._post(p.Monitored(place.path))

    def unmonitor(self, place: RemotePlace) -> None:
        """End the subscription to ``place``."""
        self._monitored.pop(place.path, None)
        self._post(p.Unmonitored(place.path))

    def _check_room(self, path: str) -> None:
        if not self._outbox.has_room:
            raise MailboxFull(f"too much waits to be carried to {self.name}; try later", path=path)

    def _abandon(self, number: int) -> None:
        if self._pending.pop(number, None) is not None:
            self._post(p.Abandoned(number))

    def _post(self, packet: p.Packet) -> None:
        if self._is_up:
            self._outbox.put(p.encode(packet))

    # Packets to the other process.

    def answer(self, number: int, result: outcome.Outcome[Any]) -> None:
        """Send the answer to request ``number`` of the other side."""
        if self._owed.pop(number, None) is None:
            return
        if isinstance(result, outcome.Error):
            assert isinstance(result.error, Exception)
            self._post(p.AskFailure(number, *self._words.failure_of(result.error)))
            return
        try:
            self._post(p.AskAnswer(number, self._words.body_of(result.unwrap())))
        except MisuseError as error:
            self._post(p.AskFailure(number, *self._words.failure_of(error)))

    async def _show_tree(self) -> None:
        with self.system.watch_tree() as watch:
            async for view in watch:
                await self._outbox.wait_for_room()
                match view:
                    case Node():
                        self._post(p.TreeShown(view))
                    case Change():
                        self._post(p.TreeChanged(view))
                    case Gap():
                        pass  # the whole tree follows

    # Packets from the other process.

    async def _write(self, wire: MessageChannel) -> None:
        while True:
            for piece in pieces(await self._outbox.take()):
                await wire.send(piece)

    async def _read(self, wire: MessageChannel) -> None:
        splitter = Splitter()
        handled = 0
        while True:
            for packet in splitter.feed(await wire.receive()):
                self._handle(p.decode(packet))
                handled += 1
                if handled % PACKETS_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()

    def _handle(self, packet: p.Packet) -> None:  # noqa: C901 - one line per packet
        match packet:
            case p.Tell(path, body):
                self._receive_message(path, body)
            case p.Ask():
                self._receive_request(packet)
            case p.AskAnswer(number, body):
                self._receive_answer(number, body)
            case p.AskFailure(number, kind, text, path):
                _, reply = self._pending.pop(number, (path, None))
                if reply is not None:
                    reply.fail(self._words.error_of(kind, text, path))
            case p.Abandoned(number):
                owed = self._owed.pop(number, None)
                if owed is not None:
                    owed.abandon()
            case p.Monitored(path):
                self._watch(path)
            case p.Unmonitored(path):
                self._watcher.remove(path)
            case p.Fell(down):
                self._receive_down(down)
            case p.Stopped(path):
                self._stop_local(path)
            case p.ActorGone(path):
                self._names.drop(path)
            case p.Registered(group, name, path):
                self._names.add(group, name, path)
            case p.TreeShown(tree):
                self.mirror.show(tree)
            case p.TreeChanged(change):
                self.mirror.change(change)
            case p.DepthsWanted():
                self._post(p.DepthsShown(mailbox_depths(self.system.tree())))
            case p.DepthsShown(depths):
                self.mirror.fill(depths)
                self._filled.set()
            case p.NamesSent():
                self._names.drop_unconfirmed()
                self.ready.set()

    def _local(self, path: str) -> RefTarget:
        """Return the place at ``path``, perhaps in a third process. Raises ``ActorStopped``."""
        place = self.system.place(path)
        if isinstance(place, Cell):
            self._names.mark_known(path)
        return place

    def _receive_message(self, path: str, body: p.Body) -> None:
        try:
            Ref(self._local(path)).tell(self._words.message_of(body))
        except (CodecError, MisuseError) as error:
            log.warning("a message of %s to %s is dropped: %s", self.name, path, error)
            self.system.dead_letters += 1
        except AskError:
            self.system.dead_letters += 1

    def _receive_request(self, asked: p.Ask) -> None:
        reply = self._owed[asked.number] = OwedReply(self, asked.number)
        try:
            message = self._words.message_of(asked.body)
            place = self._local(asked.path)
            if place.is_final:
                raise ActorStopped(f"{place.path} has stopped; it cannot answer", path=place.path)
            self._requests.put(place, Envelope(message, reply, reply.chain(asked.askers)))
        except ActorError as error:
            reply.fail(error)

    def _receive_answer(self, number: int, body: p.Body) -> None:
        path, reply = self._pending.pop(number, ("", None))
        if reply is None:
            self.system.late_replies += 1
            return
        try:
            reply.send(self._words.message_of(body))
        except CodecError as error:
            reply.fail(ActorStopped(f"{path} answered what cannot be read: {error}", path=path))

    def _watch(self, path: str) -> None:
        try:
            self._watcher.watch(self._local(path))
        except ActorStopped as error:
            self._post(p.Fell(Down(path, 0, str(error), crashed=False, final=True)))

    def _stop_local(self, path: str) -> None:
        try:
            self._local(path).stop_for_good()
        except ActorStopped:
            return

    def _receive_down(self, down: Down) -> None:
        place = self._monitored.get(down.path)
        if down.final:
            self._monitored.pop(down.path, None)
        if place is not None:
            place.notify(down)
