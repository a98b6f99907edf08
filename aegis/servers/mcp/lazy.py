"""``LazyMcp``: the MCP server, whose SDK is imported in the background once the daemon listens.

The import takes as much CPU time as the rest of the start. It runs in a thread, so the daemon is
ready before it ends; an early MCP client waits for the rest of the import.
"""

from __future__ import annotations

import atexit
import errno
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import structlog
import trio

from aegis.errors import LimitReached, Unavailable
from aegis.limits import in_thread, limit_reached
from aegis.servers.calls import CallPort, Identity
from aegis.servers.gateway.http_server import Exchange
from aegis.servers.wires.port import TextWire

if TYPE_CHECKING:
    from aegis.servers.mcp.tools import McpFace

LOAD_AFTER_S = 0.1
"""Seconds after which the import begins without a request, so that READY is printed first."""

LOAD_AGAIN_S = 1.0
"""Seconds after which the import is tried again if no file descriptor was free."""

_IMPORTING = threading.Lock()

log = structlog.get_logger("aegis.servers")


class LazyMcp:
    """A proxy of ``McpFace`` that imports it in the background."""

    def __init__(self, port: CallPort, *, version: str) -> None:
        self._port = port
        self._version = version
        self._face: McpFace | None = None
        self._wanted = trio.Event()
        self._settled = trio.Event()
        self._why = ""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Import and run the server until cancelled; started at once."""
        task_status.started()
        with trio.move_on_after(LOAD_AFTER_S):
            await self._wanted.wait()
        # A stop does not wait for the import, but the exit of the process must: the interpreter
        # freezes threads at its exit, and one that has an import lock would block the exit.
        atexit.register(_wait_for_import)
        try:
            face = await self._load()
        except Exception:
            log.exception("MCP cannot be served")
            self._why = ""
            self._settled.set()
            return
        async with trio.open_nursery() as nursery:
            await nursery.start(face.run)
            self._face = face
            self._settled.set()

    async def _load(self) -> McpFace:
        """Import and make the server; wait as long as no file descriptor is free for that."""
        while True:
            try:
                make = await in_thread(_import_face, abandon_on_cancel=True)
                return make(self._port, version=self._version)
            except OSError as error:
                refusal = error
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    refusal = limit_reached("load the MCP server", error)
                if not isinstance(refusal, LimitReached):
                    raise
                log.warning("MCP is not loaded yet", why=str(refusal))
                self._refuse(str(refusal))
                await trio.sleep(LOAD_AGAIN_S)

    def _refuse(self, why: str) -> None:
        """Refuse the calls that wait for the import; later ones wait for the next try."""
        self._why = why
        self._settled.set()
        self._settled = trio.Event()

    async def handle(
        self,
        identity: Identity,
        scope: Any,
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Call ``McpFace.handle`` after the import. Raises ``Unavailable`` if the import failed."""
        await (await self._ready()).handle(identity, scope, receive, send)

    async def serve_call(
        self, identity: Identity, exchange: Exchange, document: Any, body: bytes
    ) -> bool:
        """Call ``HttpCalls.serve``; before the import, ``handle`` waits for it."""
        if self._face is None:
            return False
        return await self._face.serve_call(identity, exchange, document, body)

    async def converse(self, identity: Identity, wire: TextWire, stopping: trio.Event) -> None:
        """Call ``McpFace.converse``, after the import. Raises as ``handle`` does."""
        await (await self._ready()).converse(identity, wire, stopping)

    async def end_sessions(self, voided: frozenset[Identity]) -> None:
        """Call ``McpFace.end_sessions``; before the import there are no sessions."""
        if self._face is not None:
            await self._face.end_sessions(voided)

    def changed(self, key: str) -> None:
        """Call ``McpFace.changed``; before the import there are no subscribers."""
        if self._face is not None:
            self._face.changed(key)

    async def _ready(self) -> McpFace:
        self._wanted.set()
        await self._settled.wait()
        if self._face is None:
            raise Unavailable(
                self._why
                or "the MCP server could not be loaded: see the daemon's log, then "
                "restart the daemon"
            )
        return self._face


def _import_face() -> type[McpFace]:
    with _IMPORTING:
        # Nearly all objects that an import makes are kept. Garbage collections would take a fifth
        # of the import's time, and later a tenth of a second each.
        gc.disable()
        try:
            from aegis.servers.mcp.tools import McpFace

            gc.freeze()
        finally:
            gc.enable()
    return McpFace


def _wait_for_import() -> None:
    with _IMPORTING:
        pass
