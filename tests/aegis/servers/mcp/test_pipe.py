"""MCP over a connection of lines: its bounds, its end, and who the caller is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from aegis.json_bounds import MAX_KEYS
from aegis.servers.calls import Identity
from aegis.servers.mcp.pipe import MAX_IN_PROGRESS
from aegis.servers.requests import MAX_FRAME_BYTES
from aegis.servers.wires.conversation import MAX_STRIKES
from aegis.servers.wires.unix import MAX_SKIPPED_BYTES

pytestmark = [pytest.mark.real, pytest.mark.every_python]

HELLO = {"type": "mcp", "version": 1, "handle": "alice"}
ALICE = Identity(handle="alice", operator=False)

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}

_KEYS = b",".join(b'"k%d": 0' % each for each in range(MAX_KEYS))
MANY_KEYS = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {%b}}' % _KEYS


class McpClient:
    """Speaks MCP on a connection of lines, message by message."""

    def __init__(self, lines: Any, era: str) -> None:
        self.lines = lines
        self._era = era

    async def begin(self) -> None:
        """Ask for MCP, and do the handshake if the era has one."""
        assert (await self.lines.ask(**HELLO))["handle"] == "alice"
        if self._era == "legacy":
            params: dict[str, object] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }
            await self.send("initialize", 0, params)
            assert "alice" in (await self.lines.receive())["result"]["instructions"]
            await self.send("notifications/initialized", None, {})

    async def send(self, method: str, number: object, params: dict[str, object]) -> None:
        if self._era == "modern" and number is not None:
            params = {**params, "_meta": MODERN}
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self.lines.send({key: each for key, each in frame.items() if each is not None})

    async def call(self, number: int, tool: str, **arguments: object) -> None:
        await self.send("tools/call", number, {"name": tool, "arguments": arguments})

    async def receive(self) -> dict[str, Any]:
        answer: dict[str, Any] = await self.lines.receive()
        return answer


@pytest.fixture(params=["legacy", "modern"])
async def client(daemon: Any, request: pytest.FixtureRequest) -> McpClient:
    begun = McpClient(await daemon.line_client(), request.param)
    await begun.begin()
    return begun


async def test_a_call_is_one_of_the_handle_that_the_hello_named(
    daemon: Any, client: McpClient
) -> None:
    await client.call(7, "aegis_term_list")
    answer = await client.receive()
    assert (answer["id"], answer["result"]["structuredContent"]) == (
        7,
        {"result": [], "of_agents": []},
    )
    [(caller, command, _)] = daemon.port.calls
    assert (caller.identity, caller.face, command) == (ALICE, "mcp", "term_list")
    assert caller.connection.startswith("stdio-")


async def test_a_connection_is_one_caller_from_its_begin_to_its_end(
    daemon: Any, client: McpClient
) -> None:
    for number in (1, 2):
        await client.call(number, "aegis_term_list")
        await client.receive()
    assert len(daemon.port.here) == 1
    assert {caller for caller, _, _ in daemon.port.calls} == set(daemon.port.here)
    await client.lines.stream.send_eof()
    await daemon.port.until(lambda: daemon.port.gone == daemon.port.here)


async def test_two_connections_are_two_callers(daemon: Any, client: McpClient) -> None:
    other = McpClient(await daemon.line_client(), "modern")
    await other.begin()
    await daemon.port.until(lambda: len(set(daemon.port.here)) == 2)


async def test_an_operators_tool_is_not_there_for_a_handle(client: McpClient, daemon: Any) -> None:
    await client.call(1, "aegis_down")
    assert (await client.receive())["result"]["isError"]
    assert daemon.port.calls == []


async def test_calls_go_side_by_side_and_are_cancelled_one_by_one(
    daemon: Any, client: McpClient
) -> None:
    await client.call(1, "aegis_inbox_wait")
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    await client.call(2, "aegis_term_list")
    assert (await client.receive())["id"] == 2
    await client.send("notifications/cancelled", None, {"requestId": 1})
    await daemon.port.until(lambda: daemon.port.cancelled == 1)
    await client.call(1, "aegis_term_list")  # its number is free again
    assert "result" in await client.receive()


async def test_what_is_in_hand_when_the_client_goes_is_cancelled(
    daemon: Any, client: McpClient
) -> None:
    await client.call(1, "aegis_inbox_wait")
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    await client.lines.stream.aclose()
    await daemon.port.until(lambda: daemon.port.cancelled == 1)
    await daemon.port.until(lambda: daemon.port.gone == daemon.port.here)


async def test_at_the_end_of_input_every_request_is_answered_first(
    daemon: Any, client: McpClient
) -> None:
    await client.call(1, "aegis_term_run", name="build", cmd="hold")
    await client.call(2, "aegis_term_list")
    await client.lines.stream.send_eof()
    assert (await client.receive())["id"] == 2
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    daemon.port.release.set()
    answer = await client.receive()
    assert (answer["id"], answer["result"]["structuredContent"]["stdout"]) == (1, "hold")
    with pytest.raises(EOFError):
        await client.receive()
    await daemon.port.until(lambda: daemon.port.gone == daemon.port.here)


async def test_a_client_that_ends_its_input_and_then_goes_cancels_its_calls(
    daemon: Any, client: McpClient
) -> None:
    await client.call(1, "aegis_inbox_wait")
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    await client.lines.stream.send_eof()
    await trio.testing.wait_all_tasks_blocked()
    assert daemon.port.cancelled == 0
    await client.lines.stream.aclose()
    await daemon.port.until(lambda: daemon.port.cancelled == 1)


async def test_the_end_of_input_ends_a_subscription(daemon: Any) -> None:
    client = McpClient(await daemon.line_client(), "modern")
    await client.begin()
    await client.send("subscriptions/listen", 1, {"notifications": {}})
    assert "acknowledged" in (await client.receive())["method"]
    await client.lines.stream.send_eof()
    await daemon.port.until(lambda: daemon.port.gone == daemon.port.here)


@pytest.mark.parametrize("sent", [b"null", b"true", b"1.5", b"[1]", b"{}", b"1e400"])
async def test_a_request_with_an_id_that_is_none_is_refused(client: McpClient, sent: bytes) -> None:
    await client.lines.stream.send_all(b'{"jsonrpc": "2.0", "id": %b, "method": "ping"}\n' % sent)
    refused = await client.receive()
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert "whole number" in refused["error"]["message"]
    await client.call(1, "aegis_term_list")
    assert (await client.receive())["id"] == 1


async def test_an_id_with_a_point_is_that_whole_number(daemon: Any, client: McpClient) -> None:
    await client.send("tools/call", 1.0, {"name": "aegis_inbox_wait", "arguments": {}})
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    await client.send("tools/call", 2.0, {"name": "aegis_term_list", "arguments": {}})
    assert repr((await client.receive())["id"]) == "2"
    await client.send("notifications/cancelled", None, {"requestId": 1.0})
    await daemon.port.until(lambda: daemon.port.cancelled == 1)


async def test_a_request_whose_number_is_in_use_is_refused(daemon: Any, client: McpClient) -> None:
    await client.call(1, "aegis_term_run", name="build", cmd="hold")
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    await client.call(1, "aegis_term_list")
    refused = await client.receive()
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert "another id" in refused["error"]["message"]
    daemon.port.release.set()
    assert (await client.receive())["id"] == 1


async def test_of_too_many_requests_the_last_is_answered_at_once(
    daemon: Any, client: McpClient
) -> None:
    for number in range(1, MAX_IN_PROGRESS + 1):
        await client.call(number, "aegis_inbox_wait")
    await client.call(1000, "aegis_term_list")
    refused = await client.receive()
    assert refused["id"] == 1000
    assert "in progress already" in refused["error"]["message"]
    assert "term_list" not in [command for _, command, _ in daemon.port.calls]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"no json", -32700),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600),
        (b"[]", -32600),
        pytest.param(MANY_KEYS, -32600, id="more keys than anything needs"),
    ],
)
async def test_a_line_that_is_no_message_is_answered_and_costs_nothing_else(
    client: McpClient, line: bytes, code: int
) -> None:
    await client.lines.stream.send_all(line + b"\n\n")
    refused = await client.receive()
    assert (refused["id"], refused["error"]["code"]) == (None, code)
    await client.call(1, "aegis_term_list")
    assert (await client.receive())["id"] == 1


async def test_who_sends_only_malformed_lines_is_sent_away(client: McpClient) -> None:
    await client.lines.stream.send_all(b"x\n" * MAX_STRIKES)
    for _ in range(MAX_STRIKES):
        assert (await client.receive())["error"]["code"] == -32700
    with pytest.raises(EOFError):
        await client.receive()


async def test_a_line_beyond_the_limit_is_refused_and_the_next_one_read(client: McpClient) -> None:
    await client.lines.stream.send_all(b"x" * (MAX_FRAME_BYTES + 1))
    assert str(MAX_FRAME_BYTES) in (await client.receive())["error"]["message"]
    await client.lines.stream.send_all(b"x" * 10_000 + b"\n")
    await client.call(1, "aegis_term_list")
    assert (await client.receive())["id"] == 1


async def test_a_line_without_an_end_ends_the_connection(client: McpClient) -> None:
    with suppress(trio.BrokenResourceError):
        for _ in range(0, MAX_FRAME_BYTES + MAX_SKIPPED_BYTES + 2**20, 2**20):
            await client.lines.stream.send_all(b"x" * 2**20)
    assert "at most" in (await client.receive())["error"]["message"]
    with pytest.raises((EOFError, trio.BrokenResourceError)):
        await client.receive()


async def test_at_the_stop_what_is_in_hand_is_answered(daemon: Any, client: McpClient) -> None:
    await client.call(1, "aegis_term_run", name="build", cmd="hold")
    await client.call(2, "aegis_inbox_wait")
    await daemon.port.until(lambda: daemon.port.waiting == 2)
    with capture_logs() as logs:
        daemon.stop.set()
        daemon.port.release.set()
        answers = [await client.receive(), await client.receive()]
        assert [each["id"] for each in answers] == [1, 2]
        assert answers[0]["result"]["structuredContent"]["stdout"] == "hold"
        assert answers[1]["error"]["code"] == -32000  # it would wait for ever
        with pytest.raises(EOFError):
            await client.receive()
        await daemon.ended.wait()
    assert logs == []
    assert daemon.port.gone == daemon.port.here


async def test_an_idle_connection_does_not_hold_up_the_stop(daemon: Any, client: McpClient) -> None:
    daemon.stop.set()
    with pytest.raises(EOFError):
        await client.receive()
    await daemon.ended.wait()
    assert daemon.port.gone == daemon.port.here


async def test_a_hello_that_cannot_be_served_is_answered_by_an_error_frame(daemon: Any) -> None:
    client = await daemon.line_client()
    answer = await client.ask(type="mcp", version=1, handle="human")
    assert (answer["type"], answer["id"], answer["code"]) == ("error", None, "invalid_request")
    with pytest.raises(EOFError):
        await client.receive()
    assert daemon.port.here == []


async def test_a_client_that_stops_after_half_a_line_does_not_hold_up_the_stop(daemon: Any) -> None:
    stream = await daemon.connect_unix()
    await stream.send_all(b'{"type": "mc')
    other = await daemon.line_client()
    await other.request("term_list")
    daemon.stop.set()
    await daemon.ended.wait()


async def test_a_client_that_does_not_read_is_cut_off_alone(start: Callable[..., Any]) -> None:
    async with start(send_limit_s=0.5) as daemon:
        deaf = McpClient(await daemon.line_client(), "modern")
        await deaf.begin()
        text = "x" * 500_000
        with suppress(trio.BrokenResourceError):  # it is cut off while it still sends
            for number in range(1, 9):
                await deaf.call(number, "aegis_term_run", name="build", cmd=text)
        other = McpClient(await daemon.line_client(), "modern")
        await other.begin()
        await other.call(1, "aegis_term_list")
        assert (await other.receive())["id"] == 1
        await daemon.port.until(lambda: len(daemon.port.gone) == 1)


async def test_progress_is_told_on_the_way(client: McpClient, daemon: Any) -> None:
    token = {"progressToken": "p"}
    meta = {**MODERN, **token} if client._era == "modern" else token
    params = {"name": "aegis_term_run", "arguments": {"name": "b", "cmd": "hold"}, "_meta": meta}
    frame = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
    await client.lines.send(frame)
    told = [await client.receive() for _ in range(3)]
    assert [each["params"]["message"] for each in told] == ["line 0", "line 1", "line 2"]
    assert {each["params"]["progressToken"] for each in told} == {"p"}
    assert (await client.receive())["id"] == 5
