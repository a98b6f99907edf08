"""A link: messages of bytes between a worker and its parent, or a node and the root it joined.

Bounded, with heartbeats, and the same on both sides. Messages come in the order in which they were
sent, and those that came before the link ended can still be received. One task writes, so that
whoever gives up sending never cuts a frame in two.
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
    BeatFrame,
    Frame,
    Message,
    Outcome,
    StopFrame,
    Taken,
    decode,
    encode,
)


class FrameStream(Protocol):
    """What carries the frames of a link."""

    async def send(self, frame: bytes) -> None:
        """Send one frame."""

    async def receive(self) -> bytes:
        """Return the next; ``trio.EndOfChannel`` when none follows."""
        ...


class Link:
    """One side of a link. Nothing moves before ``run``."""

    def __init__(self, stream: FrameStream, beat: Beat) -> None:
        self.stop_asked = trio.Event()
        """Set when the other side wants this one to end."""
        self.over = trio.Event()
        """Set when ``run`` has ended."""
        self._stream = stream
        self._pulse = Pulse(beat, trio.current_time())
        self._scope = trio.CancelScope()
        self._why_over: LinkLost | None = None
        self._outcome: Outcome | None = None
        self._sending = trio.StrictFIFOLock()
        self._changed = trio.lowlevel.ParkingLot()
        self._to_write = trio.lowlevel.ParkingLot()
        # Bounded: messages by the window; of the others at most one each, see ``_post``.
        self._outbox: deque[Frame] = deque()
        self._inbox: deque[bytes] = deque()
        self._under_way = SendWindow()
        self._coming = ReceiveWindow()

    @property
    def is_lost(self) -> bool:
        """Whether the link ended without an outcome."""
        return self._why_over is not None and self._outcome is None

    @property
    def is_done(self) -> bool:
        """Whether the link ended with an outcome."""
        return self._why_over is not None and self._outcome is not None

    async def send(self, message: bytes) -> None:
        """Send ``message`` once there is room for it.

        Raises ``LinkLost`` when the link is over, ``NodeError`` when it is longer than 1 MiB. That
        it was sent does not say that it was received.
        """
        if len(message) > MESSAGE_LIMIT:
            raise NodeError(
                f"A message of {len(message)} bytes is too long: at most {MESSAGE_LIMIT}."
            )
        async with self._sending:
            while self._why_over is None and not self._under_way.has_room(len(message)):
                await self._changed.park()
            self._must_be_up()
            self._under_way.sent(len(message))
            self._post(Message(message))

    async def receive(self) -> bytes:
        """Return the next message; ``LinkLost`` when none will come."""
        while not self._inbox:
            self._must_be_up()
            await self._changed.park()
        message = self._inbox.popleft()
        if self._coming.took(len(message)):
            self._post(self._coming.tell())
        return message

    def ask_to_stop(self) -> None:
        """Let the other side end in order."""
        self._post(StopFrame())

    async def finish(self, outcome: Outcome) -> None:
        """Send ``outcome`` as the last; return when the kernel has it, or it cannot be sent."""
        self._post(outcome)
        while self._why_over is None:
            await self._changed.park()

    async def run(self) -> Outcome:
        """Carry messages until the outcome has come, or was sent, and return it.

        Raises ``LinkLost`` when the link ends without one.
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
            self._pulse.heard(trio.current_time())
            match frame:
                case Message(data):
                    self._coming.came(len(data))
                    self._inbox.append(data)
                case Taken():
                    self._under_way.taken(frame)
                case StopFrame():
                    self.stop_asked.set()
                case Outcome():
                    self._outcome = frame
                    self._end(LinkLost("The other side has ended."))
            self._changed.unpark_all()

    async def _write(self) -> None:
        while True:
            while not self._outbox:
                await self._to_write.park()
            frame = self._outbox.popleft()
            await self._stream.send(encode(frame))
            if isinstance(frame, Outcome):
                self._outcome = frame
                self._end(LinkLost("This side has ended."))

    async def _beat(self) -> None:
        while True:
            await trio.sleep_until(self._pulse.next_at)
            if not self._pulse.tick(trio.current_time()):
                raise LinkLost("The other side was silent for too long.")
            self._post(BeatFrame())

    def _post(self, frame: Frame) -> None:
        """Let ``frame`` be written next, or after what waits already.

        A beat and a stop wait once at most; what was taken is told for at least half a window at a
        time, so of those there are never more than three.
        """
        is_said = isinstance(frame, BeatFrame | StopFrame) and frame in self._outbox
        if self._why_over is None and not is_said:
            self._outbox.append(frame)
            self._to_write.unpark_all()

    def _must_be_up(self) -> None:
        if self._why_over is not None:
            raise LinkLost(str(self._why_over))
