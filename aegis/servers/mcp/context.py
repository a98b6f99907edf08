"""The identity, caller and connection behind a request of the MCP SDK."""

from __future__ import annotations

from typing import Any

import attrs
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aegis.servers.calls import Caller, Failure, Identity
from aegis.servers.mcp.post_answer import PostAnswer

Context = ServerRequestContext[Any, Any]

ANSWER = "aegis.answer"
"""The key of the ``PostAnswer`` in the ASGI scope."""

STOPPING = Failure("unavailable", "the daemon is stopping")


@attrs.frozen
class PipeRequest:
    """The request object of a message over lines, where HTTP has its request."""

    caller: Caller


def user_name(identity: Identity) -> str:
    """Return the user name for the SDK; it also identifies a caller without a session."""
    return "operator" if identity.handle is None else f"handle:{identity.handle}"


def identity_of(ctx: Context) -> Identity:
    """Return the identity proved by the key of the HTTP request or the peer of the Unix socket."""
    assert ctx.request is not None
    if isinstance(ctx.request, PipeRequest):
        return ctx.request.caller.identity
    identity = ctx.request.scope["aegis"]
    assert isinstance(identity, Identity)
    return identity


def answer_of(ctx: Context) -> PostAnswer | None:
    """Return the answer to the HTTP request; None over a connection of lines."""
    if ctx.request is None or isinstance(ctx.request, PipeRequest):
        return None
    answer = ctx.request.scope[ANSWER]
    assert isinstance(answer, PostAnswer)
    return answer


def is_from_pipe(ctx: Context) -> bool:
    """Return whether the request came over lines, where one connection is one caller."""
    return isinstance(ctx.request, PipeRequest)


def is_modern(ctx: Context) -> bool:
    """Return whether the request uses a protocol version without sessions."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def caller_of(ctx: Context) -> Caller:
    """Return the caller: its identity and its session or connection."""
    if isinstance(ctx.request, PipeRequest):
        return ctx.request.caller
    identity = identity_of(ctx)
    session = None if is_modern(ctx) else connection_of(ctx).session_id
    return Caller(identity, "mcp", session or user_name(identity))


def connection_of(ctx: Context) -> Connection:
    """Return the SDK's connection, whose ``exit_stack`` is closed when the session ends."""
    # A private attribute: a low-level handler has no public access to the connection.
    connection = ctx.session._connection
    assert isinstance(connection, Connection)
    return connection
