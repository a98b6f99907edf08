"""The line with which a connection asks for MCP."""

from __future__ import annotations

import json

import pytest

from aegis.errors import InvalidRequest
from aegis.servers.calls import OPERATOR, Identity
from aegis.servers.wires.unix import McpHello, mcp_hello, mcp_welcome


def test_it_names_the_handle_under_which_the_client_acts() -> None:
    hello = mcp_hello(b'{"type": "mcp", "version": 1, "handle": "pm"}')
    assert hello == McpHello(Identity(handle="pm", operator=False))
    assert mcp_hello(b'{"handle":null,"version":1,"type":"mcp"}') == McpHello(OPERATOR)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b'"mcp"',
        b'{"type": "hello", "version": 1}',
        b'{"type": "request", "id": 1, "command": "term_list"}',
        b'{"type": ["mcp"]}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_another_first_line_is_left_to_the_frames(line: bytes) -> None:
    assert mcp_hello(line) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 2}, "supports version 1"),
        ({"version": True}, "supports version 1"),
        ({"handle": 7}, "must be text"),
        ({"handle": "a b"}, "is not a name"),
        ({"handle": "Human"}, "is reserved"),
        ({"handle": "../x"}, "is not a name"),
        ({"token": "x"}, "must have 'type'"),
    ],
)
def test_a_hello_that_cannot_be_served_is_refused(changes: dict[str, object], reason: str) -> None:
    line = json.dumps({"type": "mcp", "version": 1, "handle": "pm"} | changes).encode()
    with pytest.raises(InvalidRequest, match=reason):
        mcp_hello(line)


def test_a_hello_without_a_handle_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="must have 'type'"):
        mcp_hello(b'{"type": "mcp", "version": 1}')


def test_the_answer_says_who_the_client_is() -> None:
    welcome = json.loads(mcp_welcome("aegis-actors/0", Identity(handle="pm", operator=False)))
    assert welcome == {"type": "mcp", "version": 1, "server": "aegis-actors/0", "handle": "pm"}
    assert json.loads(mcp_welcome("aegis-actors/0", OPERATOR))["handle"] is None
