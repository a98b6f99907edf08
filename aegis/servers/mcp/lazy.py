"""The MCP face from outside: its SDK is imported in the background, once the daemon listens.

The import takes as much CPU as the rest of the start. It runs in a thread: the daemon is ready
before, terminals continue meanwhile, and the first MCP client waits for the rest of it at most.
"""

from __future__ import annotations

import atexit
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import structlog
import trio

from aegis.errors import Unavailable
from aegis.servers.calls import CallPort, Identity
from aegis.servers.wires.port import TextWire

if TYPE_CHECKING:
    from aegis.servers.mcp.tools import McpFace

LOAD_AFTER_S = 0.1
"""When the import begins without a request. Until then the daemon says that it is ready."""

_IMPORTING = threading.Lock()

log = structlog.get_logger("aegis.servers")


class LazyMcp:
    """Stands for an ``McpFace`` until that is imported, and hands all to it from then on."""

    def __init__(self, port: CallPort, *, version: str) -> None:
        self._port = port
        self._version = version
        self._face: McpFace | None = None
        self._wanted = trio.Event()
        self._settled = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Hold the face until cancelled; started once requests can be handled."""
        task_status.started()
        with trio.move_on_after(LOAD_AFTER_S):
            await self._wanted.wait()
        try:
            # A stop does not wait for the import, but the end of the process does: the interpreter
            # freezes threads when it ends, and one that holds the lock of an import holds it up.
            atexit.register(_wait_for_import)
            make = await trio.to_thread.run_sync(_import_face, abandon_on_cancel=True)
        except Exception:
            log.exception("MCP cannot be served")
            self._settled.set()
            return
        face = make(self._port, version=self._version)
        async with trio.open_nursery() as nursery:
            await nursery.start(face.run)
            self._face = face
            self._settled.set()

    async def handle(
        self,
        identity: Identity,
        scope: Any,
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """As ``McpFace.handle``; the first ones wait for the import.

        Raises ``Unavailable`` if the SDK cannot be imported any more.
        """
        await (await self._ready()).handle(identity, scope, receive, send)

    async def converse(self, identity: Identity, wire: TextWire, stopping: trio.Event) -> None:
        """As ``McpFace.converse``; raises as ``handle`` does."""
        await (await self._ready()).converse(identity, wire, stopping)

    async def end_sessions(self, voided: frozenset[Identity]) -> None:
        """As ``McpFace.end_sessions``: before the first request there is none."""
        if self._face is not None:
            await self._face.end_sessions(voided)

    def changed(self, key: str) -> None:
        """As ``McpFace.changed``: before the first request nobody watches anything."""
        if self._face is not None:
            self._face.changed(key)

    async def _ready(self) -> McpFace:
        self._wanted.set()
        await self._settled.wait()
        if self._face is None:
            raise Unavailable(
                "the MCP server could not be loaded: see the daemon's log, then restart the daemon"
            )
        return self._face


def _import_face() -> type[McpFace]:
    with _IMPORTING:
        # Nearly all objects that an import makes are kept. To look for garbage among them takes a
        # fifth of its time, and later a tenth of a second each time.
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
