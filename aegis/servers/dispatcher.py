"""The ``CallPort`` of the daemon: each connection is an actor below one dynamic supervisor."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

import attrs
import structlog
import trio

from actors import (
    ActorStopped,
    AskDeadline,
    AskError,
    ChildSpec,
    MisuseError,
    NodeDied,
    Ref,
    Restart,
    System,
    describe,
)
from aegis.protocol.command import MAX_TIMEOUT_S
from aegis.protocol.derived.defaults import with_settings
from aegis.protocol.entry import Entry
from aegis.servers import progress
from aegis.servers.calls import Caller
from aegis.servers.connection import Connection, Invoke
from aegis.servers.unanswered import unanswered

log = structlog.get_logger("aegis.servers")

GRACE_S = 30.0
"""Seconds beyond a command's own timeout after which a call that got no answer is given up."""

TIME_LIMITS = ("timeout", "wait_s")
"""The arguments that say how long a call may take, in seconds."""

SHORTEST_S = 0.01
"""The least that those may be."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._:@+-]")


class Dispatcher:
    """Makes a ``Connection`` for each caller with its first call, and ends it with the caller.

    ``settings`` are the daemon's values for what callers leave out (``with_settings``).
    """

    def __init__(
        self,
        system: System,
        supervisor: str,
        make_spec: Callable[[str, Caller], ChildSpec],
        settings: Mapping[str, object],
    ) -> None:
        self._system = system
        self._supervisor = supervisor
        self._make_spec = make_spec
        self._settings = settings
        self._refs: dict[str, Ref[Invoke]] = {}
        self._starting: dict[str, trio.Event] = {}

    @property
    def count(self) -> int:
        """How many connections there are."""
        return len(self._refs)

    async def call(self, caller: Caller, entry: Entry, arguments: Mapping[str, object]) -> object:
        """Carry out a command for ``caller``. Raises what ``CallPort.call`` says."""
        connection = await self._connection(caller)
        arguments = with_settings(entry, arguments, self._settings)
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
        """Tell how a call gets on until cancelled; see ``CallPort``."""
        await progress.follow(self._system.registry, caller, entry, arguments, report)

    def opened(self, caller: Caller) -> None:
        """Nothing yet: the actor comes with the first call."""

    def closed(self, caller: Caller) -> None:
        """The caller is gone: its actor ends, as soon as it has begun."""
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
            # A start goes on without its caller, and then nobody would know of the actor.
            with trio.CancelScope(shield=True):
                ref: Ref[Invoke] = await supervisor.start_child(self._make_spec(name, caller))
        except MisuseError as error:
            raise ActorStopped(f"this connection is being ended; connect again: {error}") from error
        return ref


def connection_spec(name: str, caller: Caller, on_handle: Ref[object], seen: type) -> ChildSpec:
    """How a connection is supervised: one that crashed is gone, and the next call starts it anew.

    So it spends no restarts of the others, however often a client can make it crash.
    """
    return ChildSpec.of(
        name, Connection, caller=caller, on_handle=on_handle, handle_seen=seen
    ).with_options(restart=Restart.TEMPORARY)


async def _ask(connection: Ref[Invoke], entry: Entry, arguments: Mapping[str, object]) -> object:
    """What only looks or waits is asked again where the worker died that would have answered."""
    begun, patience_s, asked = trio.current_time(), _patience_s(arguments), arguments
    with trio.move_on_at(begun + patience_s):
        while True:
            reply = connection.send_request(Invoke(command=entry.name, arguments=asked))
            try:
                return await reply.wait()
            except NodeDied:
                if not entry.read_only:
                    raise
                asked = _later(entry, arguments, trio.current_time() - begun)
    raise AskDeadline(f"no answer within {patience_s:g} s")


def _later(entry: Entry, arguments: Mapping[str, object], passed_s: float) -> Mapping[str, object]:
    """The same call when so much of the time that it may take has passed."""
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
    """However long the command may wait by its own arguments, and some grace."""
    given = [arguments.get(name) for name in TIME_LIMITS]
    valid = [
        each for each in given if isinstance(each, (int, float)) and 0 <= each <= MAX_TIMEOUT_S
    ]
    return float(max(valid, default=GRACE_S)) + GRACE_S
