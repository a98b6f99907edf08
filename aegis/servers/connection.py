"""``Connection``: the actor of one client.

It parses arguments strictly into a command, attaches the identity that the transport proved, and
passes the command to the actor that owns it, which answers the client directly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from actors import Actor, Ref, Registry, Request
from aegis.errors import Forbidden, Unavailable
from aegis.names import check_handle, shorten
from aegis.protocol.agents import (
    ForkAgent,
    PersonFork,
    PersonResume,
    PersonSetAgent,
    PersonSpawn,
    ResumeSession,
    SetAgent,
    SpawnAgent,
)
from aegis.protocol.command import Command
from aegis.protocol.daemon import NewSession, RevokeSession, RotateToken
from aegis.protocol.derived.wire import command_from
from aegis.protocol.entry import Entry, Owner
from aegis.protocol.inboxes import Handoff, PersonHandoff
from aegis.protocol.naming import name_key
from aegis.protocol.push import PageSubscribePush, SubscribePush
from aegis.protocol.requests import AnswerRequest, ListRequests, PersonAnswer
from aegis.protocol.table import BY_NAME
from aegis.protocol.trust import TrustProject
from aegis.servers.calls import Caller, Identity


@attrs.frozen(kw_only=True)
class Invoke(Request[Any]):
    """A call before validation: the name of a command and its arguments from JSON."""

    command: str
    arguments: Mapping[str, object]


class RightsCheck(Protocol):
    """The check of a caller's rights."""

    def __call__(
        self,
        handle: str,
        command: str,
        terminals: Sequence[str] = (),
        arguments: Mapping[str, object] | None = None,
    ) -> str | None:
        """Return why ``handle`` may not call ``command`` on ``terminals``; None if it may.

        ``arguments`` are those of a call over MCP, which a model has made; None: of another wire.
        """
        ...


def refuse_nothing(
    handle: str,
    command: str,
    terminals: Sequence[str] = (),
    arguments: Mapping[str, object] | None = None,
) -> str | None:
    """Return None, where no session has rights: a ``RightsCheck``."""
    return None


class Names(Protocol):
    """The names of agent sessions; every other handle is its own address."""

    def address_of(self, handle: str) -> str:
        """Return the immutable first handle of the session with this handle or alias."""
        ...

    def shown(self, address: str) -> str:
        """Return the current handle of the session at ``address``."""
        ...


class NoNames:
    """The names where no agents run."""

    def address_of(self, handle: str) -> str:
        return handle

    def shown(self, address: str) -> str:
        return address


NO_NAMES = NoNames()


class Connection(Actor[Invoke]):
    """The actor of the client ``caller``; answers do not pass through it.

    ``refuse`` checks the rights of a caller that is bound to a handle. ``names`` resolve the
    handles in commands.
    """

    def __init__(
        self,
        *,
        caller: Caller,
        on_handle: Ref[Any],
        handle_seen: type[Any],
        refuse: RightsCheck,
        names: Names,
    ) -> None:
        self._caller = caller
        self._refuse = refuse
        self._names = names
        self._on_handle = on_handle
        self._handle_seen = handle_seen
        self._seen: set[str] = set()

    async def receive(self, message: Invoke) -> None:
        """Build the command, attach the identity, and pass it to its owner."""
        entry = BY_NAME[message.command]
        command = command_from(entry, message.arguments)
        command = with_identity(command, self._caller.identity, self._names)
        if entry.person and not is_person(self._caller, command):
            raise Forbidden(
                f"{entry.name!r} is for a person only, who calls it from the command line, from "
                "Python or from the page, under no handle"
            )
        if is_person(self._caller, command):
            command = as_person(command, self._caller.identity.page)
        if isinstance(command, TrustProject) and command.digest is not None:
            check_person(self._caller, command)
        self._check_rights(entry, command, message.arguments)
        self._report_handle(command.from_handle)
        command = with_addresses(command, self._names)
        owner = find_owner(self.context.system.registry, entry, command)
        self.pass_on(message, owner, command)

    def _check_rights(
        self, entry: Entry, command: Command[Any], arguments: Mapping[str, object]
    ) -> None:
        handle = self._caller.identity.handle
        if handle is None:
            return
        given = arguments if self._caller.face == "mcp" else None
        refusal = self._refuse(handle, entry.name, terminals_of(entry, command), given)
        if refusal is not None:
            raise Forbidden(f"{entry.tool}: {refusal}")

    def _report_handle(self, handle: str | None) -> None:
        # A handle exists from its first call on.
        if handle is not None and name_key(handle) not in self._seen:
            self._seen.add(name_key(handle))
            self._on_handle.tell(self._handle_seen(handle=handle))


def as_person(command: Command[Any], page: str | None = None) -> Command[Any]:
    """Return a command that a person has given, from the web page with the id ``page``."""
    match command:
        case SubscribePush():
            return PageSubscribePush(**attrs.asdict(command, recurse=False), page=page)
        case Handoff():
            return PersonHandoff(**attrs.asdict(command, recurse=False))
        case AnswerRequest():
            return PersonAnswer(**attrs.asdict(command, recurse=False))
        case SetAgent():
            return PersonSetAgent(**attrs.asdict(command, recurse=False))
        case SpawnAgent():
            return PersonSpawn(**attrs.asdict(command, recurse=False))
        case ForkAgent():
            return PersonFork(**attrs.asdict(command, recurse=False))
        case ResumeSession():
            return PersonResume(**attrs.asdict(command, recurse=False))
    return command


def is_person(caller: Caller, command: Command[Any]) -> bool:
    """Return whether a person calls from a face of their own.

    A call over MCP is that of a program, also at the operator's URL, where a missing handle reads
    ``human``.
    """
    is_own = caller.face != "mcp" and caller.identity.operator and caller.identity.handle is None
    return is_own and command.from_handle is None


def check_person(caller: Caller, command: TrustProject) -> None:
    """Raise ``Forbidden`` unless a person trusts the settings of a project."""
    if not is_person(caller, command):
        raise Forbidden(
            "aegis_agent_trust: only a person trusts the settings of a project, not over MCP and "
            "under no handle: aegis-actors agent trust"
        )


def with_identity(
    command: Command[Any], identity: Identity, names: Names = NO_NAMES
) -> Command[Any]:
    """Return ``command`` with the address of the handle that the identity allows.

    Raises ``Forbidden`` if a client bound to a handle gave another one, ``InvalidRequest`` if the
    operator gave an invalid handle.
    """
    given = command.from_handle
    if identity.view is not None:
        return _within_view(command, identity.view, names)
    if identity.handle is not None:
        own = names.address_of(identity.handle)
        if given is not None and name_key(names.address_of(given)) != name_key(own):
            raise Forbidden(
                f"from_handle {shorten(given)!r} is not you: this connection belongs to "
                f"{names.shown(own)!r}; leave from_handle out"
            )
        return attrs.evolve(command, from_handle=own)
    if given is None or name_key(given) == "human":
        return attrs.evolve(command, from_handle=None)
    address = names.address_of(check_handle(given))
    return command if address == given else attrs.evolve(command, from_handle=address)


def _within_view(command: Command[Any], view: str, names: Names) -> Command[Any]:
    """Return ``command`` of a read-only link. Raises ``Forbidden`` if it is about another subject.

    ``find_entry`` has refused commands that change anything.
    """
    kind, _, subject = view.partition(":")
    if kind == "terminal":
        is_inside = name_key(getattr(command, "name", "")) == name_key(subject)
    else:
        handle = getattr(command, "handle", "")
        is_inside = name_key(names.address_of(handle)) == name_key(names.address_of(subject))
    if not is_inside:
        raise Forbidden(f"this read-only link shows the {kind} {subject!r} and nothing else")
    if command.from_handle is not None:
        raise Forbidden("a read-only link has no handle: leave from_handle out")
    return command


def with_addresses(command: Command[Any], names: Names) -> Command[Any]:
    """Return ``command`` with the names that its owner expects in place of other handles.

    Addresses for inboxes and keys, and current handles for what is shown.
    """
    match command:
        case Handoff():
            sender = command.from_handle
            target = names.address_of(command.target_handle)
            shown = None if sender is None else names.shown(sender)
            return attrs.evolve(command, target_handle=target, from_handle=shown)
        case NewSession() | RevokeSession():
            return attrs.evolve(command, handle=names.address_of(command.handle))
        case RotateToken(session=str(session)):
            return attrs.evolve(command, session=names.address_of(session))
        case ListRequests(handle=str(handle)):
            return attrs.evolve(command, handle=names.shown(names.address_of(handle)))
    return command


def terminals_of(entry: Entry, command: Command[Any]) -> Sequence[str]:
    """Return the names of the terminals that a command is about."""
    if not entry.name.startswith("term_"):
        return ()
    name = getattr(command, "name", None)
    return getattr(command, "names", ()) if name is None else (name,)


def find_owner(registry: Registry, entry: Entry, command: Command[Any]) -> Ref[Any]:
    """Return the actor that answers ``command``: an open terminal's front, else the directory."""
    if entry.owner is Owner.TERMINAL:
        front = registry.find("terminal", name_key(getattr(command, "name", "")))
        if front is not None and not front.is_stopped:
            return front
    owner = registry.find("service", entry.owner.service)
    if owner is None:
        raise Unavailable(f"{entry.tool}: the daemon is starting or stopping; try again")
    return owner
