"""The line with which a connection of the Unix socket switches to MCP. Pure.

From the client:  {"type": "mcp", "version": 1, "handle": "pm"}
From the server:  {"type": "mcp", "version": 1, "server": "aegis-actors/…", "handle": "pm"}
or an error as in ``requests``, with the id null; then the connection is closed.

All later lines are MCP as on standard input and output: one JSON-RPC message is one line.
"""

from __future__ import annotations

import json

import attrs

from aegis.errors import InvalidRequest
from aegis.json_bounds import read_json
from aegis.names import check_handle
from aegis.servers.calls import OPERATOR, Identity, within

VERSION = 1
MAX_HELLO_BYTES = 4096


@attrs.frozen
class McpHello:
    """The request to speak MCP as ``identity``."""

    identity: Identity

    def of(self, process: Identity) -> Identity:
        """Return the identity for a client's process; the operator's means its own.

        Raises ``Forbidden`` if it is another handle.
        """
        return process if self.identity == OPERATOR else within(process, self.identity)


def mcp_hello(line: bytes) -> McpHello | None:
    """Parse a connection's first line as a request for MCP; None if it is another kind of line.

    Raises ``InvalidRequest`` if it asks for MCP in a way that cannot be served.
    """
    try:
        document = read_json(line)
    except (ValueError, RecursionError):  # ``requests.parse_frame`` reports the error
        return None
    if not isinstance(document, dict) or document.get("type") != "mcp":
        return None
    if document.keys() != {"type", "version", "handle"}:
        raise InvalidRequest("a hello for MCP must have 'type', 'version' and 'handle'")
    version, handle = document["version"], document["handle"]
    if version != VERSION or isinstance(version, bool):
        raise InvalidRequest(f"this server supports version {VERSION}; send that in 'version'")
    if handle is None:
        return McpHello(OPERATOR)
    if not isinstance(handle, str):
        raise InvalidRequest("'handle' must be text, or null for the operator")
    return McpHello(Identity(handle=check_handle(handle), operator=False))


def mcp_welcome(server: str, identity: Identity) -> str:
    """Return the server's answer to a hello that it accepts."""
    return json.dumps(
        {"type": "mcp", "version": VERSION, "server": server, "handle": identity.handle}
    )
