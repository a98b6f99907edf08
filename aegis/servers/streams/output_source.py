"""The stream of a terminal's output, and of the keys that its client types.

It buffers nothing, only a cursor: bytes are requested when the client has credit, and the
terminal's shell reads them from its raw log for each watcher.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any, TypeVar

import attrs
import trio

from actors import ActorCrashed, ActorStopped, AskError, Ref, Reply, Request, System
from actors.errors import Unreachable
from aegis.errors import AegisError, Forbidden, NotFound, Unavailable
from aegis.protocol.feeds import (
    ClaimSize,
    DrawScreen,
    FollowOutput,
    OutputNews,
    ReadKept,
    ReleaseSize,
    SizeAt,
    TypeBytes,
    View,
)
from aegis.protocol.naming import name_key
from aegis.protocol.nodes import unreachable
from aegis.protocol.output_streams import (
    BellItem,
    OutputStart,
    ResizedItem,
    ScreenItem,
    SizeOwner,
    SizeOwnerItem,
    StateItem,
    StreamOutput,
    TitleItem,
    TypingItem,
    WindowSize,
)
from aegis.protocol.streams import (
    Claim,
    Release,
)
from aegis.servers.streams.outlet import StreamOut
from aegis.servers.unanswered import node_of

T = TypeVar("T")

AGAIN_S = 0.05
"""Seconds before a retry where a restarted terminal ended at once."""

AWAY_S = 0.5
"""Seconds before a retry where a host is unreachable."""

STOPPING = "the daemon is starting or stopping; try again"


@attrs.frozen(kw_only=True)
class InputRights:
    """Why a client may not type into a terminal, or resize it; None: it may."""

    keys_refusal: str | None = None
    size_refusal: str | None = None


async def follow_output(
    system: System, command: StreamOutput, out: StreamOut, rights: InputRights
) -> str:
    """Send the terminal's output to ``out`` until it is closed; return a sentence that says so.

    Raises ``AegisError`` or ``AskError``.
    """
    follower = _OutputStream(system, command, out, rights)
    try:
        await follower.begin()
        await follower.send_all()
    finally:
        follower.release()
    if follower.is_at_end:
        return f"the output of terminal {command.name!r} was sent up to byte {command.end}"
    return f"terminal {command.name!r} was closed"


class _OutputStream:
    def __init__(
        self, system: System, command: StreamOutput, out: StreamOut, rights: InputRights
    ) -> None:
        self._system = system
        self._command = command
        self._name = command.name
        self._out = out
        self._rights = rights
        self._token = secrets.token_hex(8)
        self._has_claimed = False
        self._cursor = 0
        self._size: WindowSize | None = None
        self._fell_behind = False

    @property
    def is_at_end(self) -> bool:
        """Whether the output was sent up to the end that the client asked for."""
        return self._command.end is not None and self._cursor >= self._command.end

    async def begin(self) -> None:
        """Open the stream, and send the screen if the client asked for it."""
        first = FollowOutput(name=self._name, cursor=self._command.cursor, max_bytes=0)
        try:
            begun = await self._ask(self._front(), first)
        except Unreachable as error:
            raise self._away(error) from error
        self._source = self._system.ref(begun.source)
        self._cursor, self._view = begun.cursor, begun.view
        self._size = _size_of(begun.sizes[0])
        self._out.takes_input(self._type, self._send_size)
        await self._out.opened(self._start(begun, self._size))
        if self._command.screen:
            await self._out.room()
            request = DrawScreen(name=self._name, scrollback=self._command.scrollback)
            drawn = await self._ask(self._source, request)
            await self._out.item(ScreenItem(screen=drawn))
            self._cursor = drawn.cursor

    def _start(self, begun: OutputNews, size: WindowSize) -> OutputStart:
        view = begun.view
        return OutputStart(
            cursor=begun.cursor,
            cols=size.cols,
            rows=size.rows,
            state=view.state,
            alternate=begun.alternate,
            needs_input=view.needs_input,
            title=view.title,
            bells=view.bells,
            typing=view.typing,
            size_owner=self._owner(view),
        )

    async def send_all(self) -> None:
        """Send all output until the terminal is closed, across restarts and processes."""
        await self._send_printed()
        while not self.is_at_end and await self._send_kept():
            await self._follow_restarted()
            await self._send_printed()

    async def _send_printed(self) -> None:
        """Send output until the source has ended, or its last byte was sent."""
        while not self.is_at_end:
            size = await self._out.room_for_bytes()
            try:
                news = await self._ask(self._source, self._request(size))
            except ActorStopped:
                break
            except Unreachable:
                await self._send_view(
                    attrs.evolve(self._view, state="unreachable", needs_input=None)
                )
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
        await self._send_resized(begun.sizes[0])
        await self._send_view(begun.view)

    def _request(self, size: int) -> FollowOutput:
        return FollowOutput(
            name=self._name,
            cursor=self._cursor,
            max_bytes=self._at_most(size),
            seen=self._view,
            newest=self._fell_behind,
        )

    def _at_most(self, size: int) -> int:
        """Return ``size``, or the number of bytes up to the end of the stream if that is less."""
        end = self._command.end
        return size if end is None else max(1, min(size, end - self._cursor))

    async def _send_bytes(self, news: OutputNews) -> None:
        if news.dropped:
            await self._out.gap(news.dropped, news.cursor)
            self._cursor = news.cursor
        if len(news.data) > max(self._out.credit, 0):
            return  # the gap used the credit: the bytes are requested again
        for size in news.sizes:
            await self._send_part(news, size.cursor)
            await self._send_resized(size)
        await self._send_part(news, news.cursor + len(news.data))
        self._fell_behind = True

    async def _send_part(self, news: OutputNews, end: int) -> None:
        """Send the bytes of ``news`` up to the offset ``end``."""
        part = news.data[self._cursor - news.cursor : end - news.cursor]
        if part:
            await self._out.output(self._cursor, part)
            self._cursor += len(part)

    async def _send_resized(self, size: SizeAt) -> None:
        if self._size != _size_of(size):
            self._size = _size_of(size)
            # Without waiting for credit: the frame may overdraw it, and bytes follow.
            await self._out.item(ResizedItem(resized=self._size, cursor=self._cursor))

    async def _send_view(self, view: View) -> None:
        seen, self._view = self._view, view
        for item in self._changes(seen, view):
            await self._out.room()
            await self._out.item(item)

    def _changes(self, seen: View, view: View) -> Iterator[object]:
        if (seen.state, seen.needs_input) != (view.state, view.needs_input):
            yield StateItem(state=view.state, needs_input=view.needs_input)
        if seen.title != view.title:
            yield TitleItem(title=view.title)
        if seen.bells != view.bells:
            yield BellItem(bells=view.bells)
        if seen.typing != view.typing:
            yield TypingItem(typing=view.typing)
        if seen.size_owner != view.size_owner:
            yield SizeOwnerItem(size_owner=self._owner(view))

    def _owner(self, view: View) -> SizeOwner | None:
        owner = view.size_owner
        if owner is None:
            return None
        return SizeOwner(writer=owner.writer, since=owner.since, yours=owner.token == self._token)

    async def _send_kept(self) -> bool:
        """Send the rest of the output of an ended terminal, from the files that it left.

        Return True once the terminal was restarted (its worker had died), False after the last
        byte. Raises ``Unavailable`` if it ended without being closed.
        """
        directory = self._system.registry.find("service", "terminals")
        while directory is not None:
            size = self._at_most(await self._out.room_for_bytes())
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
                if self.is_at_end:
                    return False
            elif kept.failure is not None:
                raise Unavailable(kept.failure)
            else:
                return False
        raise Unavailable(STOPPING)

    def _type(self, keys: bytes) -> Reply[Any]:
        """Send keys to the terminal. Raises ``AegisError`` or ``AskError``."""
        if self._rights.keys_refusal is not None:
            raise Forbidden(self._rights.keys_refusal)
        handle = self._command.from_handle
        return self._send_input(TypeBytes(name=self._name, keys=keys, from_handle=handle))

    def _send_size(self, frame: Claim | Release) -> Reply[Any]:
        """Claim or release the terminal's size. Raises as ``_type`` does."""
        if self._rights.size_refusal is not None:
            raise Forbidden(self._rights.size_refusal)
        if isinstance(frame, Release):
            return self._send_input(ReleaseSize(name=self._name, token=self._token))
        self._has_claimed = True
        return self._send_input(
            ClaimSize(
                name=self._name,
                token=self._token,
                cols=frame.cols,
                rows=frame.rows,
                take=frame.take,
                from_handle=self._command.from_handle,
            )
        )

    def release(self) -> None:
        """End this stream's ownership of the terminal's size, if it has any."""
        if self._has_claimed:
            with contextlib.suppress(AegisError, AskError):
                self._send_input(ReleaseSize(name=self._name, token=self._token))

    def _send_input(self, request: TypeBytes | ClaimSize | ReleaseSize) -> Reply[Any]:
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


def _size_of(size: SizeAt) -> WindowSize:
    return WindowSize(cols=size.cols, rows=size.rows)
