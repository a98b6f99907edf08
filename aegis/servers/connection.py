"""``Connection``: one client as an actor. It checks what the client says and says who it is.

Arguments become a command strictly; the identity that the transport proved is attached; the actor
that owns the command answers the client directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from actors import Actor, Ref, Registry, Request
from aegis.errors import Forbidden, Unavailable
from aegis.names import check_handle, shorten
from aegis.protocol.command import Command
from aegis.protocol.derived.wire import command_from
from aegis.protocol.entry import Entry, Owner
from aegis.protocol.naming import name_key
from aegis.protocol.table import BY_NAME
from aegis.servers.calls import Caller, Identity


@attrs.frozen(kw_only=True)
class Invoke(Request[Any]):
    """A call as it came: a command's name and its arguments, as JSON gave them."""

    command: str
    arguments: Mapping[str, object]


class Connection(Actor[Invoke]):
    """The client ``caller``, with the call it has in hand; the answer goes past it."""

    def __init__(self, *, caller: Caller, on_handle: Ref[Any], handle_seen: type[Any]) -> None:
        self._caller = caller
        self._on_handle = on_handle
        self._handle_seen = handle_seen
        self._seen: set[str] = set()

    async def receive(self, message: Invoke) -> None:
        """Make the command, attach who asks, and hand it to its owner."""
        entry = BY_NAME[message.command]
        command = with_identity(command_from(entry, message.arguments), self._caller.identity)
        self._announce(command.from_handle)
        owner = find_owner(self.context.system.registry, entry, command)
        self.pass_on(message, owner, command)

    def _announce(self, handle: str | None) -> None:
        """A handle exists once it called something."""
        if handle is not None and name_key(handle) not in self._seen:
            self._seen.add(name_key(handle))
            self._on_handle.tell(self._handle_seen(handle=handle))


def with_identity(command: Command[Any], identity: Identity) -> Command[Any]:
    """``command`` with the handle of who really asks.

    Raises ``Forbidden`` if a client bound to a handle gave another one, ``InvalidRequest`` if the
    operator gave one that is no handle.
    """
    given = command.from_handle
    if identity.handle is not None:
        if given is not None and name_key(given) != name_key(identity.handle):
            raise Forbidden(
                f"from_handle {shorten(given)!r} is not you: this connection belongs to "
                f"{identity.handle!r}; leave from_handle out"
            )
        return attrs.evolve(command, from_handle=identity.handle)
    if given is None or name_key(given) == "human":
        return attrs.evolve(command, from_handle=None)
    check_handle(given)
    return command


def find_owner(registry: Registry, entry: Entry, command: Command[Any]) -> Ref[Any]:
    """The actor that answers ``command``: a terminal's front if it is open, else the directory."""
    if entry.owner is Owner.TERMINAL:
        front = registry.find("terminal", name_key(getattr(command, "name", "")))
        if front is not None and not front.is_stopped:
            return front
    owner = registry.find("service", entry.owner.service)
    if owner is None:
        raise Unavailable(f"{entry.tool}: the daemon is starting or stopping; try again")
    return owner
