"""``Dispatcher``: the daemon's ``CallPort``; each caller has an actor below one supervisor."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Awaitable, Callable, Mapping

import attrs
import structlog
import trio

from actors import (
    ActorStopped,
    AskError,
    ChildSpec,
    MailboxFull,
    MisuseError,
    NodeDied,
    Ref,
    Restart,
    System,
    describe,
)
from aegis.protocol.agents import ToolsListed
from aegis.protocol.command import MAX_TIMEOUT_S
from aegis.protocol.derived.defaults import with_settings
from aegis.protocol.derived.wire import without_absent
from aegis.protocol.entry import Entry
from aegis.protocol.tool_sets import Offer
from aegis.servers import progress
from aegis.servers.call_limit import TIME_LIMITS, within_limit
from aegis.servers.calls import Caller, Identity
from aegis.servers.connection import NO_NAMES, Connection, Invoke, Names, RightsCheck
from aegis.servers.unanswered import unanswered

log = structlog.get_logger("aegis.servers")

GRACE_S = 30.0
"""Seconds beyond a command's own timeout after which a call without an answer fails."""

SHORTEST_S = 0.01
"""The smallest value that a retried call gets for these arguments."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._:@+-]")


class Dispatcher:
    """Starts a ``Connection`` at the first call of a caller, and stops it when the caller closes.

    ``settings`` are the daemon's defaults for arguments that callers omit (``with_settings``).
    ``offer`` returns the tools of a caller's MCP address.
    """

    def __init__(
        self,
        system: System,
        supervisor: str,
        make_spec: Callable[[str, Caller], ChildSpec],
        settings: Mapping[str, object],
        offer: Callable[[Identity], Offer] = lambda identity: Offer(),
    ) -> None:
        self._system = system
        self._supervisor = supervisor
        self._make_spec = make_spec
        self._settings = settings
        self._offer = offer
        self._refs: dict[str, Ref[Invoke]] = {}
        self._starting: dict[str, trio.Event] = {}

    @property
    def count(self) -> int:
        """The number of connection actors."""
        return len(self._refs)

    async def call(self, caller: Caller, entry: Entry, arguments: Mapping[str, object]) -> object:
        """Carry out a command for ``caller``. Raises what ``CallPort.call`` says."""
        connection = await self._connection(caller)
        given = without_absent(entry.command, arguments)
        arguments = with_settings(entry, given, self._settings)
        if caller.face == "mcp":
            limit_s = self.offer(caller.identity).call_limit_s
            arguments = within_limit(entry, arguments, limit_s)
        try:
            return await _ask(connection, entry, arguments)
        except AskError as error:
            log.warning("call not answered", command=entry.name, why=describe(error))
            raise unanswered(error, entry, arguments, connection.path) from error

    async def report_progress(
        self,
        caller: Caller,
        entry: Entry,
        arguments: Mapping[str, object],
        report: Callable[[str], Awaitable[None]],
    ) -> None:
        """Report the progress of a call until cancelled; see ``CallPort``."""
        await progress.follow(self._system.registry, caller, entry, arguments, report)

    def offer(self, identity: Identity) -> Offer:
        """Return the tools of the caller's MCP address."""
        return self._offer(identity)

    def opened(self, caller: Caller) -> None:
        """Do nothing: the actor starts with the first call."""

    def listed(self, caller: Caller) -> None:
        """Notify the directory of sessions, if the caller is bound to a handle."""
        sessions = self._system.registry.find("service", "sessions")
        if caller.identity.handle is not None and sessions is not None:
            # The client lists its tools again when it connects again, and a directory that is so
            # far behind has other worries.
            with contextlib.suppress(MailboxFull):
                sessions.tell(ToolsListed(caller.identity.handle))

    def closed(self, caller: Caller) -> None:
        """Stop the caller's actor, or have it stopped as soon as it has started."""
        starting = self._starting.pop(caller.connection, None)
        if starting is not None:
            starting.set()
        ref = self._refs.pop(caller.connection, None)
        if ref is not None:
            ref.stop()

    async def _connection(self, caller: Caller) -> Ref[Invoke]:
        while (starting := self._starting.get(caller.connection)) is not None:
            await starting.wait()
        ref = self._refs.get(caller.connection)
        return await self._start(caller) if ref is None or ref.is_stopped else ref

    async def _start(self, caller: Caller) -> Ref[Invoke]:
        done = self._starting[caller.connection] = trio.Event()
        try:
            ref = await self._start_actor(caller)
            if self._starting.get(caller.connection) is not done:  # closed meanwhile
                ref.stop()
                raise ActorStopped("this connection was closed")
            self._refs[caller.connection] = ref
            return ref
        finally:
            if self._starting.get(caller.connection) is done:
                del self._starting[caller.connection]
            done.set()

    async def _start_actor(self, caller: Caller) -> Ref[Invoke]:
        name = _UNSAFE.sub("_", f"{caller.face}:{caller.connection}")[:128]
        supervisor = self._system.supervisor(self._supervisor)
        try:
            # A start continues if its caller is cancelled, and the actor would never be stopped.
            with trio.CancelScope(shield=True):
                ref: Ref[Invoke] = await supervisor.start_child(self._make_spec(name, caller))
        except MisuseError as error:
            raise ActorStopped(f"this connection is being ended; connect again: {error}") from error
        return ref


def connection_spec(
    name: str,
    caller: Caller,
    on_handle: Ref[object],
    seen: type,
    refuse: RightsCheck,
    names: Names = NO_NAMES,
) -> ChildSpec:
    """Return the spec of a connection's actor."""
    # Temporary: the next call starts a crashed one anew. A client that makes its actor crash again
    # and again uses up no restarts of the supervisor.
    return ChildSpec.of(
        name,
        Connection,
        caller=caller,
        on_handle=on_handle,
        handle_seen=seen,
        refuse=refuse,
        names=names,
    ).with_options(restart=Restart.TEMPORARY)


async def _ask(connection: Ref[Invoke], entry: Entry, arguments: Mapping[str, object]) -> object:
    """Ask the connection; retry a read-only command if the worker that had it died."""
    begun, left_s, asked = trio.current_time(), _patience_s(arguments), arguments
    while True:
        try:
            return await connection.ask(
                Invoke(command=entry.name, arguments=asked), timeout=max(0, left_s)
            )
        except NodeDied:
            if not entry.read_only:
                raise
            passed_s = trio.current_time() - begun
            left_s = _patience_s(arguments) - passed_s
            asked = _later(entry, arguments, passed_s)


def _later(entry: Entry, arguments: Mapping[str, object], passed_s: float) -> Mapping[str, object]:
    """Return the arguments with their time limits reduced by ``passed_s``."""
    fields = attrs.fields_dict(entry.command)
    limits = {
        name: arguments.get(name, fields[name].default) for name in TIME_LIMITS if name in fields
    }
    left = {
        name: max(SHORTEST_S, limit - passed_s)
        for name, limit in limits.items()
        if isinstance(limit, int | float) and limit
    }
    return {**arguments, **left}


def _patience_s(arguments: Mapping[str, object]) -> float:
    """Return the longest duration that the arguments allow, plus ``GRACE_S``."""
    given = [arguments.get(name) for name in TIME_LIMITS]
    valid = [
        each for each in given if isinstance(each, (int, float)) and 0 <= each <= MAX_TIMEOUT_S
    ]
    return float(max(valid, default=GRACE_S)) + GRACE_S
