"""Who is behind a request that the MCP SDK hands on."""

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
"""Under this key the scope of an HTTP request has its ``PostAnswer``."""

STOPPING = Failure("unavailable", "the daemon is stopping")


@attrs.frozen
class PipeRequest:
    """What a message over a connection of lines has in the place of an HTTP request."""

    caller: Caller


def user_name(identity: Identity) -> str:
    """What the SDK tells users apart by, and what a caller without a session is known by."""
    return "operator" if identity.handle is None else f"handle:{identity.handle}"


def identity_of(ctx: Context) -> Identity:
    """Who asks, as the key of the HTTP request, or the peer of the Unix socket, proved."""
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
    """Whether it came over a connection of lines, which is one caller from its begin to its end."""
    return isinstance(ctx.request, PipeRequest)


def is_modern(ctx: Context) -> bool:
    """Whether the request is of the era without sessions."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def caller_of(ctx: Context) -> Caller:
    """Who asks, and through which session or connection."""
    if isinstance(ctx.request, PipeRequest):
        return ctx.request.caller
    identity = identity_of(ctx)
    session = None if is_modern(ctx) else connection_of(ctx).session_id
    return Caller(identity, "mcp", session or user_name(identity))


def connection_of(ctx: Context) -> Connection:
    """The SDK's connection: its ``exit_stack`` is how one learns that a session ended.

    The SDK has no public way to it from a low-level handler.
    """
    connection = ctx.session._connection
    assert isinstance(connection, Connection)
    return connection
