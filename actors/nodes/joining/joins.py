"""The root's side of joining: nodes are queued, for a limited time, until they are accepted.

Who calls has proved the key. It may still say anything, so what it says is judged first; and it may
call as often as it can, so few wait at once and the others are refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

import trio

from actors.errors import MisuseError, NodeError
from actors.nodes.compat.reception import CallingNode
from actors.nodes.joining.request import SAID_LIMIT, JoinAnswer, JoinRequest, judge, refusal
from actors.nodes.links.link import FrameStream, Link

MOST_WAITING = 16
"""The number of queued joins; further ones are refused."""

MOST_TALKING = 64
"""The number of refusals sent at once; beyond it the connection is closed without one."""

TAKE_WITHIN_S = 5.0
"""The time limit, in seconds, for taking a join, and then for answering it."""

HANG_UP_S = 1.0
"""The time limit for the other side to read the last frame, in seconds."""


class LateStream:
    """Frames on a stream that is opened later, if at all."""

    def __init__(self) -> None:
        self._stream: FrameStream | None = None
        self._settled = trio.Event()

    def open(self, stream: FrameStream) -> None:
        """Set the stream, and release the waiters."""
        self._stream = stream
        self._settled.set()

    def close(self) -> None:
        """Release the waiters: there will be no stream."""
        self._settled.set()

    async def send(self, frame: bytes) -> None:
        """Send one frame, once there is a stream."""
        await (await self._opened()).send(frame)

    async def receive(self) -> bytes:
        """Return the next frame, once there is a stream."""
        return await (await self._opened()).receive()

    async def _opened(self) -> FrameStream:
        await self._settled.wait()
        if self._stream is None:
            raise trio.ClosedResourceError("the join came to nothing")
        return self._stream


class Joined:
    """A node that joins, to be accepted or refused within ``TAKE_WITHIN_S``.

    ``name`` and ``hello`` are the node's own, ``address`` is the host and port of its end. ``link``
    leads to it once it is accepted: the caller of ``accept`` runs ``link.run()``, which raises
    ``LinkLost`` also if the node has left, or the time has passed, before that.
    """

    def __init__(self, caller: CallingNode, request: JoinRequest) -> None:
        self.name = request.name
        self.hello = request.hello
        self.address = caller.address
        self._stream = LateStream()
        self.link = Link(self._stream, request.beat)
        self._caller = caller
        self._verdict: JoinAnswer | None = None
        self._settled = trio.Event()
        self._is_taken = False
        self._is_answered = False

    def accept(self, answer: bytes = b"") -> None:
        """Accept the node, with ``answer`` as the data of this side for it.

        Raises ``NodeError`` if ``answer`` is longer than 64 KiB, ``MisuseError`` the second time.
        """
        if len(answer) > SAID_LIMIT:
            raise NodeError(f"An answer of {len(answer)} bytes is too long: at most {SAID_LIMIT}.")
        self._answer(JoinAnswer(is_accepted=True, said=answer))

    def refuse(self, why: str) -> None:
        """Refuse the node, with the reason. Raises ``MisuseError`` the second time."""
        self._answer(refusal(why))

    def take(self) -> None:
        """Note that the join was taken."""
        self._is_taken = True

    async def verdict(self) -> JoinAnswer | None:
        """Wait until it is accepted, refused or overdue, and return which; ``None`` if it went."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._settle_when_gone)
            nursery.start_soon(self._settle_when_overdue)
            await self._settled.wait()
            nursery.cancel_scope.cancel()
        return self._verdict

    async def converse(self) -> None:
        """Run the link until it ends."""
        async with self._caller.stream() as stream:
            self._stream.open(stream)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._end_with_connection, nursery.cancel_scope)
                await self.link.over.wait()
                nursery.cancel_scope.cancel()
            if self.link.is_done:
                await self._caller.hang_up(HANG_UP_S)

    def close(self) -> None:
        """Release the waiters: there will be no stream."""
        self._stream.close()

    def _answer(self, verdict: JoinAnswer) -> None:
        if self._is_answered:
            raise MisuseError("A join is answered once.")
        self._is_answered = True
        self._settle(verdict)

    def _settle(self, verdict: JoinAnswer | None) -> None:
        if not self._settled.is_set():
            self._verdict = verdict
            self._settled.set()

    async def _settle_when_gone(self) -> None:
        await self._caller.wait_ended()
        self._settle(None)

    async def _settle_when_overdue(self) -> None:
        await trio.sleep(TAKE_WITHIN_S)
        if self._is_taken:
            await trio.sleep(TAKE_WITHIN_S)
        self._settle(refusal(f"Nobody took the join within {TAKE_WITHIN_S:g} s: try again."))

    async def _end_with_connection(self, scope: trio.CancelScope) -> None:
        """Let the link end with its connection, after what has come; also one that nobody runs."""
        await self._caller.wait_ended()
        self._caller.end_stream()
        await trio.sleep(HANG_UP_S)
        scope.cancel()


class Joins:
    """The nodes that join a root, from the call to the end of the link.

    ``departed`` is called when one is gone.
    """

    def __init__(self, departed: Callable[[], None]) -> None:
        self._departed = departed
        self._waiting: deque[Joined] = deque()
        self._callers: set[CallingNode] = set()
        self._talking = 0
        self._changed = trio.Event()
        self._is_awaited = False

    @property
    def uids(self) -> frozenset[tuple[str, str]]:
        """Tractor's identifiers of the joined nodes."""
        return frozenset(caller.uid for caller in self._callers)

    async def next(self) -> Joined:
        """Wait for a node that joins, and return it; ``MisuseError`` while another task waits."""
        if self._is_awaited:
            raise MisuseError("One task at a time takes the nodes that join.")
        self._is_awaited = True
        try:
            while not self._waiting:
                self._changed = trio.Event()
                await self._changed.wait()
        finally:
            self._is_awaited = False
        joined = self._waiting.popleft()
        joined.take()
        return joined

    async def receive(self, caller: CallingNode, said: Mapping[str, object]) -> None:
        """Be called by a node that joins; return when it is gone."""
        self._callers.add(caller)
        try:
            await self._receive(caller, said)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return  # It disconnected during the answer.
        finally:
            caller.disconnect()
            self._callers.discard(caller)
            self._departed()

    async def _receive(self, caller: CallingNode, said: Mapping[str, object]) -> None:
        try:
            joined = Joined(caller, judge(caller.uid[0], said))
            self._must_have_room()
        except NodeError as error:
            await self._send_away(caller, refusal(str(error)))
            return
        try:
            await self._wait_and_converse(caller, joined)
        finally:
            joined.close()

    async def _wait_and_converse(self, caller: CallingNode, joined: Joined) -> None:
        self._waiting.append(joined)
        self._changed.set()
        try:
            verdict = await joined.verdict()
        finally:
            if joined in self._waiting:
                self._waiting.remove(joined)
        if verdict is not None and verdict.is_accepted:
            await caller.begin(verdict.packed())
            await joined.converse()
        elif verdict is not None:
            await self._send_away(caller, verdict)

    def _must_have_room(self) -> None:
        if len(self._waiting) >= MOST_WAITING:
            raise NodeError(f"{MOST_WAITING} nodes wait to join already: try again.")

    async def _send_away(self, caller: CallingNode, verdict: JoinAnswer) -> None:
        """Say why, and close the connection when that was read; of too many, at once."""
        if self._talking >= MOST_TALKING:
            return
        self._talking += 1
        try:
            with trio.move_on_after(HANG_UP_S):
                await caller.begin(verdict.packed())
                await caller.hang_up(HANG_UP_S)
        finally:
            self._talking -= 1
