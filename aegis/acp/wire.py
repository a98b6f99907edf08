"""``EditorWire``: JSON-RPC over a stream of lines, with limits in both directions."""

from __future__ import annotations

import itertools
import json
import traceback
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
import trio

from aegis.agents.drivers.acp.frames import (
    AcpReply,
    Id,
    error_response,
    notification,
    reply_in,
    request,
    response,
)
from aegis.client.errors import ClientError

MAX_LINE_BYTES = 16 * 1024 * 1024
"""The longest line of an editor; a longer one is refused, and the lines after it are read."""

READ_BYTES = 64 * 1024

MAX_QUEUED = 32
"""Frames that wait for a slow editor; the sender of a further one waits."""

DRAIN_S = 1.0
"""Seconds in which the queued frames are written at the end of the input."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600


class AcpRefused(Exception):
    """A call that is answered with an error: its ``code``, and a sentence."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


@attrs.define(eq=False)
class EditorCall:
    """A call of a method of the editor, and its answer."""

    answered: trio.Event = attrs.field(factory=trio.Event)
    reply: AcpReply | None = None


class EditorWire:
    """The connection to an editor over two streams.

    Any task may send: frames are queued, and written whole and in order by ``write``.
    """

    def __init__(self, source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
        self._source = source
        self._sink = sink
        self._queue, self._queued = trio.open_memory_channel[bytes](MAX_QUEUED)
        self._numbers = itertools.count(1)
        self._calls: dict[Id, EditorCall] = {}
        self._written = trio.Event()

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Yield the lines of the editor; None: it was too long."""
        line, is_dropped = bytearray(), False
        while data := await self._source.receive_some(READ_BYTES):
            *ends, rest = data.split(b"\n")
            for end in ends:
                line += end
                is_dropped |= len(line) > MAX_LINE_BYTES
                yield None if is_dropped else bytes(line)
                line, is_dropped = bytearray(), False
            line += rest
            if len(line) > MAX_LINE_BYTES:
                line, is_dropped = bytearray(), True
        if line:
            yield bytes(line)

    async def write(self) -> None:
        """Write the queued frames until the stream of the editor breaks."""
        async for line in self._queued:
            await self._sink.send_all(line)
        self._written.set()

    async def drain(self) -> None:
        """Take no more frames, and wait until all are written, at most ``DRAIN_S``."""
        self._queue.close()
        with trio.move_on_after(DRAIN_S):
            await self._written.wait()

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        await self._send(notification(method, params))

    async def respond(self, id_: Id, result: Mapping[str, Any]) -> None:
        """Answer a call of the editor."""
        await self._send(response(id_, result))

    async def refuse(self, id_: Id | None, error: AcpRefused) -> None:
        """Answer a call of the editor with an error; None: it had no valid id."""
        frame = error_response(id_ if id_ is not None else "", error.code, str(error))
        await self._send(frame if id_ is not None else {**frame, "id": None})

    async def call(self, method: str, params: Mapping[str, Any]) -> AcpReply:
        """Call a method of the editor. If this is cancelled, a late answer is dropped."""
        id_ = next(self._numbers)
        call = self._calls[id_] = EditorCall()
        try:
            await self._send(request(id_, method, params))
            await call.answered.wait()
        except trio.Cancelled:
            # Not every editor knows it: then its dialog stays, and the answer to it is dropped.
            with trio.CancelScope(shield=True), trio.move_on_after(DRAIN_S):
                await self.notify("$/cancel_request", {"requestId": id_})
            raise
        finally:
            del self._calls[id_]
        assert call.reply is not None
        return call.reply

    def take_reply(self, frame: dict[str, Any]) -> None:
        """Take an answer of the editor; one that nobody waits for is dropped."""
        id_ = frame.get("id")
        call = self._calls.get(id_) if type(id_) is int else None
        if call is not None and not call.answered.is_set():
            call.reply = reply_in(frame)
            call.answered.set()

    async def _send(self, frame: Mapping[str, Any]) -> None:
        await self._queue.send(encoded(frame))


def encoded(frame: Mapping[str, Any]) -> bytes:
    """Return a frame as a line.

    Half of a surrogate pair becomes a question mark, and NaN null: strict parsers refuse both.
    """
    try:
        text = json.dumps(frame, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        plain = json.loads(json.dumps(frame), parse_constant=lambda _: None)
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


@contextmanager
def contained() -> Iterator[None]:
    """Print a defect to standard error: the other threads and calls of the editor continue."""
    try:
        yield
    except (AcpRefused, ClientError):
        raise
    except Exception:
        traceback.print_exc()
