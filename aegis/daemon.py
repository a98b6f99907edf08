"""``Daemon``: the actor that speaks for the daemon as a whole: status, tree, sessions, its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from actors import Actor, Ref, Reply, count
from aegis.errors import AegisError
from aegis.names import check_handle
from aegis.protocol.daemon import (
    DaemonStatus,
    GetStatus,
    GetTree,
    NewSession,
    Session,
    StopDaemon,
    Stopping,
    tree_node,
)

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Daemon(Actor[GetStatus | GetTree | NewSession | StopDaemon]):
    """Answers for the daemon. ``url`` and ``session_url`` are asked when they are needed.

    The actor at ``handles`` (a path) is told with ``handle_seen`` who was given a session.
    """

    def __init__(
        self,
        *,
        root: Path,
        version: str,
        stop: trio.Event,
        url: Callable[[], str],
        session_url: Callable[[str], str],
        handles: str,
        handle_seen: type[Any],
    ) -> None:
        self._root = root
        self._version = version
        self._stop = stop
        self._url = url
        self._session_url = session_url
        self._handles_path = handles
        self._handle_seen = handle_seen
        self._began = trio.current_time()

    async def setup(self) -> None:
        """Be found by its name."""
        self.context.register("service", "daemon")
        self._handles: Ref[Any] = self.context.system.ref(self._handles_path)

    async def receive(self, message: GetStatus | GetTree | NewSession | StopDaemon) -> None:
        """Answer one of the daemon's own commands."""
        match message:
            case GetStatus():
                self.reply(message, self._status())
            case GetTree():
                self.reply(message, tree_node(self.context.system.tree()))
            case NewSession(handle=handle):
                check_handle(handle)
                self.context.start_soon(self._answer_session, handle, self.defer(message))
            case StopDaemon():
                self.reply(message, Stopping(pid=os.getpid()))
                self._stop.set()

    async def _answer_session(self, handle: str, reply: Reply[Session]) -> None:
        """A new session is written and synced, so in a thread."""
        try:
            url = await trio.to_thread.run_sync(self._session_url, handle)
        except AegisError as error:
            reply.fail(error)
        else:
            self._handles.tell(self._handle_seen(handle=handle))
            reply.send(Session(handle=handle, url=url))

    def _status(self) -> DaemonStatus:
        system = self.context.system
        return DaemonStatus(
            version=self._version,
            pid=os.getpid(),
            root=str(self._root),
            url=self._url(),
            uptime_s=round(trio.current_time() - self._began, 3),
            rss_bytes=resident_bytes(),
            open_files=sum(1 for _ in Path("/proc/self/fd").iterdir()),
            actors=count(system.tree()),
            terminals=len(system.registry.names("terminal")),
            handles=system.registry.names("inbox"),
            connections=len(system.supervisor("root/connections").names),
            late_replies=system.late_replies,
        )


def resident_bytes() -> int:
    """Resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES
