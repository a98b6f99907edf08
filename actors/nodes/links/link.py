"""A link: messages of bytes between a worker and its parent, or a node and the root it joined.

A link is bounded, has heartbeats, and works the same on both sides. Messages arrive in order, and
those that arrived before the end of the link can still be received. Only one task writes, so that a
cancelled ``send`` never leaves half a frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

import trio

from actors.errors import LinkLost, NodeError
from actors.nodes.links.heartbeat import Beat, Pulse
from actors.nodes.links.window import MESSAGE_LIMIT, ReceiveWindow, SendWindow
from actors.nodes.links.wire import (
    AckFrame,
    BeatFrame,
    Frame,
    MessageFrame,
    OutcomeFrame,
    StopFrame,
    decode,
    encode,
)


class FrameStream(Protocol):
    """The transport of the frames of a link."""

    async def send(self, frame: bytes) -> None:
        """Send one frame."""

    async def receive(self) -> bytes:
        """Return the next frame. Raises ``trio.EndOfChannel`` at the end."""
        ...


class Link:
    """One side of a link. Nothing is sent or received before ``run``."""

    def __init__(self, stream: FrameStream, beat: Beat) -> None:
        self.stop_asked = trio.Event()
        """Set when the other side asks this one to end."""
        self.over = trio.Event()
        """Set when ``run`` has ended."""
        self._stream = stream
        self._pulse = Pulse(beat, trio.current_time())
        self._scope = trio.CancelScope()
        self._why_over: LinkLost | None = None
        self._outcome: OutcomeFrame | None = None
        self._sending = trio.StrictFIFOLock()
        self._changed = trio.lowlevel.ParkingLot()
        self._to_write = trio.lowlevel.ParkingLot()
        # Bounded: messages by the window; of the others at most one each, see ``_post``.
        self._outbox: deque[Frame] = deque()
        self._inbox: deque[bytes] = deque()
        self._in_flight = SendWindow()
        self._incoming = ReceiveWindow()

    @property
    def is_lost(self) -> bool:
        """Whether the link ended without an outcome."""
        return self._why_over is not None and self._outcome is None

    @property
    def is_done(self) -> bool:
        """Whether the link ended with an outcome."""
        return self._why_over is not None and self._outcome is not None

    async def send(self, message: bytes) -> None:
        """Send ``message`` once there is room in the window.

        A return does not mean that the other side has received it. Raises ``LinkLost`` if the link
        has ended, ``NodeError`` if the message is longer than 1 MiB.
        """
        if len(message) > MESSAGE_LIMIT:
            raise NodeError(
                f"A message of {len(message)} bytes is too long: at most {MESSAGE_LIMIT}."
            )
        async with self._sending:
            while self._why_over is None and not self._in_flight.has_room(len(message)):
                await self._changed.park()
            self._must_be_up()
            self._in_flight.sent(len(message))
            self._post(MessageFrame(message))

    async def receive(self) -> bytes:
        """Return the next message. Raises ``LinkLost`` if the link has ended."""
        while not self._inbox:
            self._must_be_up()
            await self._changed.park()
        message = self._inbox.popleft()
        if self._incoming.took(len(message)):
            self._post(self._incoming.acknowledge())
        return message

    def ask_to_stop(self) -> None:
        """Ask the other side to end in order."""
        self._post(StopFrame())

    async def finish(self, outcome: OutcomeFrame) -> None:
        """Send ``outcome`` as the last frame; return when it is written or cannot be."""
        self._post(outcome)
        while self._why_over is None:
            await self._changed.park()

    async def run(self) -> OutcomeFrame:
        """Exchange frames until an outcome was sent or received, and return it.

        Raises ``LinkLost`` if the link ends without an outcome.
        """
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    for task in (self._read, self._write, self._beat):
                        nursery.start_soon(self._guard, task)
        finally:
            self._end(LinkLost("The link was closed."))
            self.over.set()
        if self._outcome is not None:
            return self._outcome
        assert self._why_over is not None
        raise self._why_over

    async def _guard(self, task: Callable[[], Awaitable[None]]) -> None:
        try:
            await task()
        except LinkLost as error:
            self._end(error)
        except Exception as error:
            self._end(LinkLost(f"The connection ended ({type(error).__name__})."))

    def _end(self, why: LinkLost) -> None:
        if self._why_over is None:
            self._why_over = why
        self._scope.cancel()
        self._changed.unpark_all()

    async def _read(self) -> None:
        while True:
            frame = decode(await self._stream.receive())
            self._pulse.seen(trio.current_time())
            match frame:
                case MessageFrame(data):
                    self._incoming.received(len(data))
                    self._inbox.append(data)
                case AckFrame():
                    self._in_flight.taken(frame)
                case StopFrame():
                    self.stop_asked.set()
                case OutcomeFrame():
                    self._outcome = frame
                    self._end(LinkLost("The other side has ended."))
            self._changed.unpark_all()

    async def _write(self) -> None:
        while True:
            while not self._outbox:
                await self._to_write.park()
            frame = self._outbox.popleft()
            await self._stream.send(encode(frame))
            if isinstance(frame, OutcomeFrame):
                self._outcome = frame
                self._end(LinkLost("This side has ended."))

    async def _beat(self) -> None:
        while True:
            await trio.sleep_until(self._pulse.next_at)
            if not self._pulse.tick(trio.current_time()):
                raise LinkLost("The other side was silent for too long.")
            self._post(BeatFrame())

    def _post(self, frame: Frame) -> None:
        # The queue stays bounded: at most one heartbeat and one stop are queued, and at most three
        # acknowledgements, since each covers at least half a window.
        is_queued = isinstance(frame, BeatFrame | StopFrame) and frame in self._outbox
        if self._why_over is None and not is_queued:
            self._outbox.append(frame)
            self._to_write.unpark_all()

    def _must_be_up(self) -> None:
        if self._why_over is not None:
            raise LinkLost(str(self._why_over))
