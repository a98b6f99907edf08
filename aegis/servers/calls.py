"""The port between the servers and the daemon: callers, commands, failures.

The servers authenticate, frame and render. The implementation of ``CallPort`` checks the arguments
strictly, attaches the identity and asks the actor that owns the command. Pure.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Protocol

import attrs

from actors.errors import AskError, Refusal
from aegis.errors import AegisError, Forbidden, NotFound
from aegis.names import nearest, shorten
from aegis.protocol.entry import Entry
from aegis.protocol.naming import name_key
from aegis.protocol.stream_table import BY_STREAM, StreamEntry
from aegis.protocol.table import BY_NAME, BY_TOOL, COMMANDS, TOOLS
from aegis.protocol.tool_sets import Offer

Face = Literal["mcp", "websocket", "line"]

MAX_SENTENCE_CHARS = 2000


@attrs.frozen
class Identity:
    """The identity of a client, as its key proved.

    ``operator`` with ``handle`` None: the operator, who may act under any handle. ``view``: a
    client of a read-only link, which may see ``terminal:NAME`` or ``agent:HANDLE`` and change
    nothing. ``page`` is the id of the web page, None for other clients.
    """

    handle: str | None
    operator: bool
    view: str | None = None
    page: str | None = None


OPERATOR = Identity(handle=None, operator=True)


@attrs.frozen
class Caller:
    """The origin of a call. ``connection`` is unique to one connection or session."""

    identity: Identity
    face: Face
    connection: str


class CallPort(Protocol):
    """The calls that the servers make into the daemon."""

    async def call(self, caller: Caller, entry: Entry, arguments: Mapping[str, object]) -> object:
        """Carry out a command and return a reply of class ``entry.reply``.

        Raises ``AegisError`` or ``AskError``, each with one sentence. Cancelled when the client
        cancels or disconnects.
        """
        ...

    async def report_progress(
        self,
        caller: Caller,
        entry: Entry,
        arguments: Mapping[str, object],
        report: Callable[[str], Awaitable[None]],
    ) -> None:
        """Pass each line of progress of this call to ``report``, until cancelled.

        For a command with ``entry.tells_progress``. Returns when there is no more progress; raises
        the errors of ``report``.
        """
        ...

    def offer(self, identity: Identity) -> Offer:
        """Return the tools that the MCP address of this identity offers."""
        ...

    def opened(self, caller: Caller) -> None:
        """Note that a connection or session began. Called once, before its first call."""
        ...

    def listed(self, caller: Caller) -> None:
        """Note that an MCP client has listed its tools: it can call them now."""
        ...

    def closed(self, caller: Caller) -> None:
        """Note that a connection or session ended. Called once for each ``opened``."""
        ...


@attrs.frozen
class Failure:
    """A failed call as the client sees it: a stable ``code`` and one ``sentence``."""

    code: str
    sentence: str


def within(own: Identity, shown: Identity) -> Identity:
    """Return the identity that a client showed, if its process may have it.

    ``own`` is the identity of the process. Raises ``Forbidden`` if that is another handle.
    """
    own_key = name_key(own.handle or "")
    if own.operator or (shown.handle is not None and name_key(shown.handle) == own_key):
        return shown
    raise Forbidden(
        f"this process runs for {own.handle!r} and cannot act as "
        f"{shown.handle or 'the operator'!r}: connect without a key or a handle"
    )


def visible(identity: Identity, entries: tuple[Entry, ...] = COMMANDS) -> tuple[Entry, ...]:
    """Return those of ``entries`` that ``identity`` may use, in their order."""
    return tuple(
        entry
        for entry in entries
        if (identity.operator or not entry.operator) and not _is_outside(identity, entry.name)
    )


def find_entry(identity: Identity, name: str) -> Entry:
    """Return the entry of the command called ``name`` on the wire.

    Raises ``NotFound`` with the nearest name, ``Forbidden`` if only the operator may use it.
    """
    entry = BY_NAME.get(name)
    if entry is None:
        raise unknown_command(name, [each.name for each in visible(identity)])
    return _permitted(identity, entry, name)


def find_tool(identity: Identity, tool: str) -> Entry:
    """Return the entry of the MCP tool ``tool``; raises as ``find_entry`` does."""
    entry = BY_TOOL.get(tool)
    if entry is None:
        raise unknown_command(tool, [each.tool for each in visible(identity, TOOLS)])
    return _permitted(identity, entry, tool)


def find_stream(identity: Identity, name: str) -> StreamEntry:
    """Return the stream of this name; raises as ``find_entry`` does."""
    entry = BY_STREAM.get(name)
    if entry is None:
        raise unknown_command(name, list(BY_STREAM))
    if _is_outside(identity, name):
        raise Forbidden(f"{name!r} is not open to a read-only link")
    if entry.operator and not identity.operator:
        raise Forbidden(f"{name!r} is for the operator only, and you are {identity.handle!r}")
    return entry


def unknown_command(name: str, known: list[str]) -> NotFound:
    """Return the error for a name that is not in ``known``."""
    close = nearest(name, known, most=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
    return NotFound(f"there is no {shorten(name)!r}; {hint}")


def failure_of(error: Exception) -> Failure | None:
    """Return the failure that the client sees; None for an unexpected error."""
    if isinstance(error, AegisError):
        return Failure(error.code, one_sentence(str(error)))
    if isinstance(error, Refusal):
        return Failure(AegisError.code, one_sentence(str(error)))
    if isinstance(error, AskError):
        return Failure("unavailable", one_sentence(str(error)))
    return None


def internal_failure(name: str) -> Failure:
    """Return the failure that the client sees of an unexpected error."""
    return Failure("internal", f"{name} failed with an internal error; see the daemon's log")


def one_sentence(text: str) -> str:
    """Return ``text`` on one line of at most ``MAX_SENTENCE_CHARS`` characters in valid UTF-8."""
    sendable = text.encode("utf-8", "replace").decode()
    return shorten(" ".join(sendable.split()), MAX_SENTENCE_CHARS)


_OF_VIEWS = {
    "terminal": ("term_read", "term_screen", "terminal_output"),
    "agent": ("session_read", "session"),
}
"""The commands and streams that are open to read-only links, by the kind of their view."""


def _is_outside(identity: Identity, name: str) -> bool:
    """Return whether a read-only link may not use this command or stream at all."""
    if identity.view is None:
        return False
    return name not in _OF_VIEWS.get(identity.view.partition(":")[0], ())


def _permitted(identity: Identity, entry: Entry, name: str) -> Entry:
    if _is_outside(identity, name):
        raise Forbidden(f"{name!r} is not open to a read-only link")
    if entry.operator and not identity.operator:
        raise Forbidden(f"{name!r} is for the operator only, and you are {identity.handle!r}")
    return entry
