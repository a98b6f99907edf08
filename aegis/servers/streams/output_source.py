"""The stream of a terminal's output, and of the keys that its client types.

It buffers nothing, only a cursor: bytes are requested when the client has credit, and the
terminal's shell reads them from its raw log for each watcher.
"""

from __future__ import annotations

from typing import Any, TypeVar

import attrs
import trio

from actors import ActorCrashed, ActorStopped, AskError, Ref, Reply, Request, System
from actors.errors import Unreachable
from aegis.errors import Forbidden, NotFound, Unavailable
from aegis.protocol.feeds import (
    DrawScreen,
    FollowOutput,
    OutputNews,
    ReadKept,
    TypeBytes,
    View,
)
from aegis.protocol.naming import name_key
from aegis.protocol.nodes import unreachable
from aegis.protocol.streams import (
    OutputStart,
    ResizedItem,
    ScreenItem,
    StateItem,
    StreamOutput,
    WindowSize,
)
from aegis.servers.streams.outlet import StreamOut
from aegis.servers.unanswered import node_of

T = TypeVar("T")

AGAIN_S = 0.05
"""Seconds before a retry where a restarted terminal ended at once."""

AWAY_S = 0.5
"""Seconds before a retry where a host is unreachable."""

STOPPING = "the daemon is starting or stopping; try again"


async def follow_output(
    system: System, command: StreamOutput, out: StreamOut, keys_refusal: str | None
) -> str:
    """Send the terminal's output to ``out`` until it is closed; return a sentence that says so.

    ``keys_refusal`` says why the client may not type into terminals; None if it may.
    Raises ``AegisError`` or ``AskError``.
    """
    follower = _Follower(system, command, out, keys_refusal)
    await follower.begin()
    await follower.send_all()
    return f"terminal {command.name!r} was closed"


class _Follower:
    def __init__(
        self, system: System, command: StreamOutput, out: StreamOut, keys_refusal: str | None
    ) -> None:
        self._system = system
        self._command = command
        self._name = command.name
        self._out = out
        self._keys_refusal = keys_refusal
        self._cursor = 0
        self._fell_behind = False

    async def begin(self) -> None:
        """Open the stream, and send the screen if the client asked for it."""
        first = FollowOutput(name=self._name, cursor=self._command.cursor, max_bytes=0)
        try:
            begun = await self._ask(self._front(), first)
        except Unreachable as error:
            raise self._away(error) from error
        self._source = self._system.ref(begun.source)
        self._cursor, self._view = begun.cursor, begun.view
        self._out.takes_keys(self._type)
        await self._out.opened(
            OutputStart(
                cursor=begun.cursor,
                cols=begun.view.cols,
                rows=begun.view.rows,
                state=begun.view.state,
                alternate=begun.alternate,
            )
        )
        if self._command.screen:
            await self._out.room()
            drawn = await self._ask(self._source, DrawScreen(name=self._name))
            await self._out.item(ScreenItem(screen=drawn))
            self._cursor = drawn.cursor

    async def send_all(self) -> None:
        """Send all output until the terminal is closed, across restarts and processes."""
        await self._send_printed()
        while await self._send_kept():
            await self._follow_restarted()
            await self._send_printed()

    async def _send_printed(self) -> None:
        """Send output until the source has ended, or its last byte was sent."""
        while True:
            size = await self._out.room_for_bytes()
            try:
                news = await self._ask(self._source, self._request(size))
            except ActorStopped:
                break
            except Unreachable:
                await self._send_view(attrs.evolve(self._view, state="unreachable"))
                await trio.sleep(AWAY_S)
                continue
            await self._send_bytes(news)
            if news.is_over and self._cursor == news.cursor + len(news.data):
                break
            await self._send_view(news.view)

    async def _follow_restarted(self) -> None:
        """Follow the restarted terminal, from the last byte sent."""
        request = FollowOutput(name=self._name, cursor=self._cursor, max_bytes=0)
        try:
            begun = await self._ask(self._front(), request)
        except ActorStopped:  # it has ended again: the loop asks the directory
            await trio.sleep(AGAIN_S)
            return
        self._source = self._system.ref(begun.source)
        await self._send_view(begun.view)

    def _request(self, size: int) -> FollowOutput:
        return FollowOutput(
            name=self._name,
            cursor=self._cursor,
            max_bytes=size,
            seen=self._view,
            newest=self._fell_behind,
        )

    async def _send_bytes(self, news: OutputNews) -> None:
        if news.dropped:
            await self._out.gap(news.dropped, news.cursor)
            self._cursor = news.cursor
        if len(news.data) > max(self._out.credit, 0):
            return  # the gap used the credit: the bytes are requested again
        if news.data:
            await self._out.output(news.cursor, news.data)
            self._cursor = news.cursor + len(news.data)
        self._fell_behind = True

    async def _send_view(self, view: View) -> None:
        seen, self._view = self._view, view
        if (seen.cols, seen.rows) != (view.cols, view.rows):
            await self._out.room()
            size = WindowSize(cols=view.cols, rows=view.rows)
            await self._out.item(ResizedItem(resized=size))
        if seen.state != view.state:
            await self._out.room()
            await self._out.item(StateItem(state=view.state))

    async def _send_kept(self) -> bool:
        """Send the rest of the output of an ended terminal, from the files that it left.

        Return True once the terminal was restarted (its worker had died), False after the last
        byte. Raises ``Unavailable`` if it ended without being closed.
        """
        directory = self._system.registry.find("service", "terminals")
        while directory is not None:
            size = await self._out.room_for_bytes()
            request = ReadKept(name=self._name, cursor=self._cursor, max_bytes=size)
            try:
                kept = await self._ask(directory, request)
            except NotFound:
                return False  # it was purged
            except AskError:
                break
            if kept.is_back:
                return True
            if kept.cursor > self._cursor:
                await self._out.gap(kept.cursor - self._cursor, kept.cursor)
                self._cursor = kept.cursor
            elif kept.data:
                await self._out.output(kept.cursor, kept.data)
                self._cursor += len(kept.data)
            elif kept.failure is not None:
                raise Unavailable(kept.failure)
            else:
                return False
        raise Unavailable(STOPPING)

    def _type(self, keys: bytes) -> Reply[Any]:
        """Send keys to the terminal. Raises ``AegisError`` or ``AskError``."""
        if self._keys_refusal is not None:
            raise Forbidden(self._keys_refusal)
        handle = self._command.from_handle
        request = TypeBytes(name=self._name, keys=keys, from_handle=handle)
        try:
            return self._front().send_request(request)
        except Unreachable as error:
            raise self._away(error) from error

    def _away(self, error: Unreachable) -> Unavailable:
        return Unavailable(unreachable(self._name, node_of(error.path) or "local"))

    def _front(self) -> Ref[Any]:
        registry = self._system.registry
        front = registry.find("terminal", name_key(self._name))
        if front is None or front.is_stopped:
            front = registry.find("service", "terminals")
        if front is None:
            raise Unavailable(STOPPING)
        return front

    async def _ask(self, whom: Ref[Any], request: Request[T]) -> T:
        """Return the answer; after a crash of the actor, that of its next incarnation."""
        while True:
            try:
                return await whom.send_request(request).wait()
            except ActorCrashed:
                continue
