"""The session of an asynchronous client: successive connections, used as one.

When a connection is lost, calls in progress fail, except those that only read: they are repeated. A
call without a connection waits for the next one, for a limited time. Streams are opened again at
the position they had.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio

from aegis.client.calls import (
    arguments_of,
    checked_patience,
    delay_s,
    entry_of,
    failures_after,
    is_repeated,
    lost,
    refusal,
    reply_of,
)
from aegis.client.errors import ClientError, CommandFailed, ConnectionLost
from aegis.client.link import AnswerLost, FrameLink
from aegis.client.streams import Stream
from aegis.client.transport import Transport, TransportClosed
from aegis.protocol.command import Command
from aegis.protocol.entry import Entry

T = TypeVar("T")
S = TypeVar("S", bound=Stream[Any])

FAREWELL_S = 2.0
"""Seconds in which a daemon that ended its streams in order to stop closes the connection."""

DEFAULT_PATIENCE_S = 30.0
MAX_IN_FLIGHT = 64
"""Most calls that the daemon accepts at once on a connection; further calls are queued here."""

Dial = Callable[[trio.Nursery], Awaitable[Transport]]


class ClientSession:
    """Calls and streams over successive connections, while ``run`` runs.

    ``dial`` opens a connection, ``place`` is the name of the daemon in error sentences.
    ``patience_s``: seconds that a call waits for a connection. ``chance`` returns numbers from 0
    to 1.
    """

    def __init__(
        self,
        dial: Dial,
        place: str,
        *,
        token: str | None = None,
        session: str | None = None,
        handle: str | None = None,
        patience_s: float = DEFAULT_PATIENCE_S,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._dial = dial
        self._place = place
        self._token = token
        self._session = session
        self.handle = handle
        self.patience_s = checked_patience(patience_s)
        self._chance = chance
        self._numbers = itertools.count(1)
        self._slots = trio.Semaphore(MAX_IN_FLIGHT)
        self._link: FrameLink | None = None
        self._nursery: trio.Nursery | None = None
        self._streams: dict[Stream[Any], None] = {}
        self._changes = trio.lowlevel.ParkingLot()
        self._over: ClientError | None = None
        self._why: ClientError | None = None

    async def run(self) -> None:
        """Connect and reconnect until cancelled or refused by the daemon."""
        failures = 0
        try:
            while self._over is None:
                began = trio.current_time()
                self._why = await self._one_connection()
                if isinstance(self._why, CommandFailed):
                    self._end(self._why)
                    return
                self._changes.unpark_all()
                failures = failures_after(failures, trio.current_time() - began)
                await trio.sleep(delay_s(failures, self._chance()))
        finally:
            self._end(ConnectionLost("this client is closed", maybe_done=False))

    async def first(self) -> None:
        """Wait for the first connection. Raises ``ClientError`` if the first try failed."""
        while self._link is None:
            if self._why is not None:
                raise self._why
            await self._changes.park()

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""
        return self._link is not None

    async def wait_connected(self, wanted: bool) -> None:
        """Wait until there is a connection or, with False, until there is none."""
        while self.is_connected is not wanted:
            await self._changes.park()

    async def call(self, command: type[Command[T]], arguments: dict[str, object]) -> T:
        """Call ``command`` and return its reply. Raises ``ClientError``.

        A cancelled call is cancelled at the daemon too.
        """
        entry = entry_of(command)
        sent = arguments_of(command, arguments, self.handle)
        for tries in itertools.count(1):
            try:
                return reply_of(command, await self._try(entry, sent))
            except AnswerLost as error:
                if not is_repeated(entry, tries, was_sent=error.was_sent):
                    raise lost(entry, str(error)) from None
            except CommandFailed as error:
                raise refusal(entry, error.code, str(error)) from None
        raise AssertionError

    @asynccontextmanager
    async def watch(self, stream: S) -> AsyncIterator[S]:
        """Keep ``stream`` open over successive connections. Raises ``ClientError``."""
        await self._connected()
        self._streams[stream] = None
        try:
            self.reopen(stream)
            with trio.move_on_after(self.patience_s):
                await stream.wait_open()
            if not stream.is_open:
                raise self._no_connection()
            yield stream
        finally:
            del self._streams[stream]
            stream.close()

    def reopen(self, stream: Stream[Any]) -> None:
        """Open the stream on the present connection or, without one, on the next."""
        if self._link is not None and self._nursery is not None and stream in self._streams:
            self._nursery.start_soon(self._open, stream, self._link)

    def fail_unless_lost(self, stream: Stream[Any], error: ClientError) -> None:
        """Fail the stream unless the present connection ends within ``FAREWELL_S``.

        So the stream continues at the next daemon if the present one was stopped.
        """
        if self._nursery is not None:
            self._nursery.start_soon(self._fail_soon, stream, error)

    async def _fail_soon(self, stream: Stream[Any], error: ClientError) -> None:
        await trio.sleep(FAREWELL_S)
        stream.fail(error)

    async def _open(self, stream: Stream[Any], link: FrameLink) -> None:
        try:
            await stream.prepare()
            if link is self._link and stream in self._streams:
                stream.open_on(link)
                await stream.complete()
        except ConnectionLost:
            return  # the next connection opens the stream
        except ClientError as error:
            stream.fail(error)

    async def _try(self, entry: Entry, arguments: dict[str, object]) -> dict[str, Any]:
        await self._slots.acquire()
        try:
            link = await self._connected()
        except BaseException:
            self._slots.release()
            raise
        return await link.request(entry.name, arguments, self._slots.release)

    async def _connected(self) -> FrameLink:
        with trio.move_on_after(self.patience_s):
            while self._link is None:
                if self._over is not None:
                    raise self._over
                await self._changes.park()
            return self._link
        raise self._no_connection()

    def _no_connection(self) -> ConnectionLost:
        because = f" ({self._why})" if self._why is not None else ""
        return ConnectionLost(
            f"could not connect to {self._place} within {self.patience_s:g} s{because}; "
            "the call was not made",
            maybe_done=False,
            may_repeat=True,
        )

    async def _one_connection(self) -> ClientError:
        """Connect and serve until the connection ends; return the reason."""
        why: ClientError = ConnectionLost(f"the connection to {self._place} was lost")
        async with trio.open_nursery() as nursery:
            wire: Transport | None = None
            try:
                wire = await self._dial(nursery)
                link = FrameLink(wire, self._numbers)
                await link.greet(token=self._token, session=self._session)
                why = await self._serve(link, nursery)
            except TransportClosed as error:
                why = ConnectionLost(f"{self._place} closed the connection: {error}")
            except ClientError as error:
                why = error
            finally:
                if wire is not None:
                    await wire.close()
            nursery.cancel_scope.cancel()
        return why

    async def _serve(self, link: FrameLink, nursery: trio.Nursery) -> ClientError:
        self._link, self._nursery = link, nursery
        for stream in self._streams:
            self.reopen(stream)
        self._changes.unpark_all()
        try:
            return ConnectionLost(await link.run())
        finally:
            self._link = self._nursery = None

    def _end(self, error: ClientError) -> None:
        if self._over is None:
            self._over = error
        for stream in self._streams:
            stream.fail(self._over)
        self._changes.unpark_all()
