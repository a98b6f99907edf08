"""The Python client on Trio, as a guest of Textual's event loop.

Both loops run in one thread, so a Trio task may call widgets, and a widget may start a Trio task.
Trio is asked for readiness of sockets by its own thread, which is Trio's guest mode.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio
from outcome import Outcome

from aegis.client.client import Client, connect
from aegis.client.errors import ClientError, CommandFailed

PATIENCE_S = 5.0
"""Seconds that a call of the person waits for a connection."""

RETRY_S = 0.5

Report = Callable[[str], None]


class DaemonLink:
    """The client of the daemon at ``root``, under ``handle``.

    ``report`` gets one sentence for each failed call. ``feeds`` are tasks that run while there is
    a client, each called with it. Failures that are no ``ClientError`` end ``run`` with them.
    """

    def __init__(
        self,
        root: str | Path,
        handle: str | None,
        *,
        report: Report,
        feeds: Callable[[Client, trio.Nursery], None],
    ) -> None:
        self._root = Path(root)
        self._handle = handle
        self._report = report
        self._feeds = feeds
        self._nursery: trio.Nursery | None = None
        self._all: trio.CancelScope | None = None
        self._client: Client | None = None
        self._ended: asyncio.Future[None] | None = None
        self._context: contextvars.Context | None = None

    def start(self) -> asyncio.Future[None]:
        """Start the guest in the running event loop; the future ends with it."""
        loop = asyncio.get_running_loop()
        ended = self._ended = loop.create_future()

        def done(result: Outcome[None]) -> None:
            try:
                result.unwrap()
            except Exception as error:
                ended.set_exception(error)
            else:
                ended.set_result(None)

        trio.lowlevel.start_guest_run(
            self._run,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            run_sync_soon_not_threadsafe=loop.call_soon,
            host_uses_signal_set_wakeup_fd=True,
            done_callback=done,
        )
        return ended

    async def stop(self) -> None:
        """End the guest, and wait for its end. Must be called before the event loop ends."""
        if self._all is not None:
            self._all.cancel()
        if self._ended is not None:
            await asyncio.wait([self._ended])

    @property
    def client(self) -> Client | None:
        """The client; None before the first connection."""
        return self._client

    def call(self, work: Callable[[Client], Awaitable[Any]], *, what: str = "") -> None:
        """Run ``work`` with the client in a task; report a failure as one sentence.

        ``what`` begins the sentence.
        """
        if self._nursery is None or self._client is None:
            self._report(f"{what}there is no connection to the daemon".strip())
            return
        self._nursery.start_soon(self._call, work, what)

    async def _call(self, work: Callable[[Client], Awaitable[Any]], what: str) -> None:
        assert self._client is not None
        try:
            await work(self._client)
        except ClientError as error:
            self._report(f"{what}{error}")

    async def _run(self) -> None:
        with trio.CancelScope() as self._all:
            while True:
                try:
                    await self._serve()
                except CommandFailed:
                    raise  # the key is not valid
                except ClientError:
                    await trio.sleep(RETRY_S)

    async def _serve(self) -> None:
        async with connect(self._root, handle=self._handle, patience_s=PATIENCE_S) as client:
            self._client = client
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                try:
                    self._feeds(client, nursery)
                    await trio.sleep_forever()
                finally:
                    self._nursery = None


async def keep(
    client: Client, name: str, follow: Callable[[], Awaitable[None]], report: Report
) -> None:
    """Repeat ``follow`` for ever: a stream that ended or failed is opened again.

    ``name`` is the subject in the sentence about a failure that stays.
    """
    failures = 0
    while True:
        await client.wait_connected(True)
        try:
            await follow()
            failures = 0
        except CommandFailed as error:
            failures += 1
            if failures == 3:
                report(f"{name}: {error}")
        except ClientError:
            failures = 0
        await trio.sleep(min(RETRY_S * (1 + failures), 10))
