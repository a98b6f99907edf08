"""The port between the servers and the rest: who calls, what is called, how a failure reads.

Pure. The servers authenticate, frame and render; whoever implements ``CallPort`` checks the
arguments strictly, attaches the identity and asks the actor that is responsible.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Protocol

import attrs

from actors.errors import AskError, Refusal
from aegis.errors import AegisError, Forbidden, NotFound
from aegis.names import nearest, shorten
from aegis.protocol.entry import Entry
from aegis.protocol.streams import BY_STREAM, StreamEntry
from aegis.protocol.table import BY_NAME, COMMANDS

Face = Literal["mcp", "websocket", "line"]

MAX_SENTENCE_CHARS = 2000


@attrs.frozen
class Identity:
    """Who somebody is, as their key proved.

    ``handle`` None together with ``operator``: the operator, who may act under any handle.
    """

    handle: str | None
    operator: bool


OPERATOR = Identity(handle=None, operator=True)


@attrs.frozen
class Caller:
    """Who calls and through what; ``connection`` is unique to one connection or session."""

    identity: Identity
    face: Face
    connection: str


class CallPort(Protocol):
    """What the servers need from the rest of the daemon."""

    async def call(self, caller: Caller, entry: Entry, arguments: Mapping[str, object]) -> object:
        """Carry out a command; gives a reply of ``entry.reply``.

        Raises ``AegisError`` or ``AskError``, each with one sentence. Cancelled when the client
        cancels or goes away.
        """
        ...

    async def report_progress(
        self,
        caller: Caller,
        entry: Entry,
        arguments: Mapping[str, object],
        report: Callable[[str], Awaitable[None]],
    ) -> None:
        """Tell how that call of ``caller`` gets on, line by line, until cancelled.

        For a command whose ``entry.tells_progress``. Returns when there is nothing to tell (any
        more); raises what ``report`` raises.
        """
        ...

    def opened(self, caller: Caller) -> None:
        """A connection or session began; called once, before its first call."""
        ...

    def closed(self, caller: Caller) -> None:
        """A connection or session is over; called once for each ``opened``."""
        ...


@attrs.frozen
class Failure:
    """A failed call as the client sees it: a stable ``code`` and one ``sentence``."""

    code: str
    sentence: str


def visible(identity: Identity) -> tuple[Entry, ...]:
    """The commands that ``identity`` may use, in the table's order."""
    return tuple(entry for entry in COMMANDS if identity.operator or not entry.operator)


def find_entry(identity: Identity, name: str) -> Entry:
    """The command called ``name`` on the wire.

    Raises ``NotFound`` naming the nearest, ``Forbidden`` if only the operator may use it.
    """
    entry = BY_NAME.get(name)
    if entry is None:
        raise unknown_command(name, [each.name for each in visible(identity)])
    return _permitted(identity, entry, name)


def find_tool(identity: Identity, tool: str) -> Entry:
    """The command whose MCP tool is called ``tool``; raises as ``find_entry`` does."""
    entry = _BY_TOOL.get(tool)
    if entry is None:
        raise unknown_command(tool, [each.tool for each in visible(identity)])
    return _permitted(identity, entry, tool)


def find_stream(identity: Identity, name: str) -> StreamEntry:
    """The stream of this name; raises as ``find_entry`` does."""
    entry = BY_STREAM.get(name)
    if entry is None:
        raise unknown_command(name, list(BY_STREAM))
    if entry.operator and not identity.operator:
        raise Forbidden(f"{name!r} is for the operator only, and you are {identity.handle!r}")
    return entry


def unknown_command(name: str, known: list[str]) -> NotFound:
    """The error for a name that is none of ``known``."""
    close = nearest(name, known, most=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
    return NotFound(f"there is no {shorten(name)!r}; {hint}")


def failure_of(error: Exception) -> Failure | None:
    """How ``error`` reads to the client; None for an error that should not have happened."""
    if isinstance(error, AegisError):
        return Failure(error.code, one_sentence(str(error)))
    if isinstance(error, Refusal):
        return Failure(AegisError.code, one_sentence(str(error)))
    if isinstance(error, AskError):
        return Failure("unavailable", one_sentence(str(error)))
    return None


def internal_failure(name: str) -> Failure:
    """What a client is told of an error that should not have happened."""
    return Failure("internal", f"{name} failed inside the daemon; its log says why")


def one_sentence(text: str) -> str:
    """``text`` on one line, at most ``MAX_SENTENCE_CHARS`` long, in characters that can be sent."""
    sendable = text.encode("utf-8", "replace").decode()
    return shorten(" ".join(sendable.split()), MAX_SENTENCE_CHARS)


def _permitted(identity: Identity, entry: Entry, name: str) -> Entry:
    if entry.operator and not identity.operator:
        raise Forbidden(f"{name!r} is for the operator only, and you are {identity.handle!r}")
    return entry


_BY_TOOL = {entry.tool: entry for entry in COMMANDS}
