"""Calls over HTTP, in both eras, whose answers do not pass the SDK."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
import trio
import trio.testing
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

pytestmark = [pytest.mark.real, pytest.mark.every_python]

RUN = {"name": "t", "cmd": "hold"}


def call(
    daemon: Any, session: str, tool: str, arguments: Mapping[str, object], **others: Any
) -> Any:
    """Return the request of a call."""
    params = {"name": tool, "arguments": arguments, **others.pop("params", {})}
    document = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **others}
    return daemon.http(json.dumps(document).encode(), mcp_session_id=session)


async def until_open(daemon: Any, stream: trio.SocketStream) -> bytes:
    """Read the head of the stream that a long call opens."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive_some()
    assert b"text/event-stream" in data
    return data


async def test_two_calls_at_once_with_one_id_are_both_answered(daemon: Any, response: Any) -> None:
    session = await daemon.open_session()
    streams = [await daemon.connect(), await daemon.connect()]
    for stream in streams:
        await stream.send_all(call(daemon, session, "aegis_term_run", RUN))
    await daemon.port.until(lambda: daemon.port.waiting == 2)
    daemon.port.release.set()
    for stream in streams:
        status, _, body = await response(stream)
        assert (status, json.loads(body)["result"]["isError"]) == (200, False)


async def test_a_cancellation_ends_the_call_with_its_id_only(daemon: Any, response: Any) -> None:
    session = await daemon.open_session()
    streams = {number: await daemon.connect() for number in (1, "1a", 2)}
    for number, stream in streams.items():
        await stream.send_all(call(daemon, session, "aegis_term_run", RUN, id=number))
    await daemon.port.until(lambda: daemon.port.waiting == 3)
    beside = await daemon.connect()
    cancelled = {"requestId": 2, "reason": "enough"}
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}
    await beside.send_all(daemon.http(json.dumps(note).encode(), mcp_session_id=session))
    assert (await response(beside))[::2] == (202, b"")
    error = json.loads((await response(streams[2]))[2])["error"]
    assert error == {"code": -32800, "message": "Request cancelled"}
    daemon.port.release.set()
    for number in (1, "1a"):
        assert json.loads((await response(streams[number]))[2])["id"] == number


async def test_the_end_of_a_session_ends_its_calls_before_its_caller(
    daemon: Any, response: Any
) -> None:
    session = await daemon.open_session()
    stream, other = await daemon.connect(), await daemon.connect()
    await stream.send_all(call(daemon, session, "aegis_inbox_wait", {}))
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    await other.send_all(daemon.http(method="DELETE", mcp_session_id=session))
    assert (await response(other))[0] == 200
    status, _, body = await response(stream)
    assert (status, json.loads(body)["id"]) == (500, None)
    await daemon.port.until(lambda: len(daemon.port.gone) == 1)
    assert daemon.port.cancelled == 1
    await other.send_all(call(daemon, session, "aegis_term_list", {}))
    assert (await response(other))[0] == 404


async def test_a_long_call_with_progress_whose_client_vanished_keeps_no_session(
    start: Any,
) -> None:
    async with start(mcp={"session_idle_s": 1.5}) as daemon:
        session = await daemon.open_session()
        stream = await daemon.connect()
        token = {"params": {"_meta": {"progressToken": 5}}}
        await stream.send_all(call(daemon, session, "aegis_inbox_wait", {}, **token))
        await until_open(daemon, stream)
        stream.socket.close()
        await daemon.port.until(lambda: len(daemon.port.gone) == 1)
        assert daemon.port.cancelled == 1


async def test_a_connection_serves_the_next_request_after_a_long_call(
    daemon: Any,
) -> None:
    session = await daemon.open_session()
    stream = await daemon.connect()
    for number in range(3):
        daemon.port.release = trio.Event()
        await stream.send_all(call(daemon, session, "aegis_term_run", RUN, id=number))
        data = await until_open(daemon, stream)
        daemon.port.release.set()
        while not data.endswith(b"0\r\n\r\n"):
            data += await stream.receive_some()
        assert b'"id":%d,' % number in data


async def test_requests_in_one_piece_are_answered_in_their_order(daemon: Any) -> None:
    session = await daemon.open_session()
    pings = [
        daemon.http(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode(),
            mcp_session_id=session,
        )
        for number in range(50)
    ]
    stream = await daemon.connect()
    await stream.send_all(b"".join(pings))
    data = b""
    while data.count(b'"result":{}}') < len(pings):
        data += await stream.receive_some()
    numbers = [int(each.partition(b",")[0]) for each in data.split(b'"id":')[1:]]
    assert numbers == [*range(50)]


async def test_a_body_that_comes_in_pieces_is_one_call(daemon: Any, response: Any) -> None:
    session = await daemon.open_session()
    stream = await daemon.connect()
    request = call(daemon, session, "aegis_term_list", {})
    for part in (request[:-30], request[-30:-5], request[-5:]):
        await stream.send_all(part)
        await trio.testing.wait_all_tasks_blocked()
    status, _, body = await response(stream)
    assert (status, json.loads(body)["result"]["isError"]) == (200, False)


@pytest.mark.parametrize("accept", ["application/json", "application/json, text/event-stream"])
async def test_a_sessionless_call_ends_when_its_client_goes_and_another_does_not(
    daemon: Any, response: Any, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    monkeypatch.setattr("aegis.servers.mcp.post_answer.OPEN_AFTER_S", 0.05)
    gone, stays = await daemon.connect(), await daemon.connect()
    for stream in (gone, stays):
        await stream.send_all(daemon.modern_call("aegis_term_run", RUN, accept=accept))
    await daemon.port.until(lambda: daemon.port.waiting == 2)
    await gone.send_eof()
    await daemon.port.until(lambda: daemon.port.cancelled == 1)
    assert await no_answer(gone)
    daemon.port.release.set()
    status, _, body = await response(stays)
    assert (status, b'"resultType":"complete"' in body) == (200, True)
    assert [each.connection for each in daemon.port.here] == ["operator"]


async def no_answer(stream: trio.SocketStream) -> bool:
    """Read to the end of the connection; return whether no result came."""
    data = b""
    try:
        while received := await stream.receive_some():
            data += received
    except trio.BrokenResourceError:
        pass
    return b"result" not in data


async def test_a_long_sessionless_call_reports_progress_on_its_stream(daemon: Any) -> None:
    stream = await daemon.connect()
    head, _, body = daemon.modern_call("aegis_term_run", RUN).partition(b"\r\n\r\n")
    document = json.loads(body)
    document["params"]["_meta"]["progressToken"] = "t"
    text = json.dumps(document).encode()
    head = head.replace(b"length: %d" % len(body), b"length: %d" % len(text))
    await stream.send_all(head + b"\r\n\r\n" + text)
    data = await until_open(daemon, stream)
    assert b"mcp-session-id" not in data
    while not data.endswith(b"0\r\n\r\n"):
        data += await stream.receive_some()
    events = [json.loads(each) for each in re.findall(rb"data: (.*)\r", data)]
    assert [each["params"]["message"] for each in events[:-1]] == ["line 0", "line 1", "line 2"]
    assert events[-1]["result"]["resultType"] == "complete"


async def test_a_stop_cancels_a_sessionless_call_and_closes_its_caller(daemon: Any) -> None:
    stream = await daemon.connect()
    await stream.send_all(daemon.modern_call("aegis_inbox_wait", {}))
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    daemon.stop.set()
    await daemon.ended.wait()
    assert daemon.port.gone == daemon.port.here
    assert daemon.port.cancelled == 1


async def test_a_bad_envelope_is_left_to_the_sdk_and_a_good_one_is_not(
    daemon: Any, response: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    handled = list[str]()
    handle = StreamableHTTPSessionManager.handle_request

    async def counted(self: StreamableHTTPSessionManager, *given: Any) -> None:
        handled.append(given[0]["method"])
        await handle(self, *given)

    monkeypatch.setattr(StreamableHTTPSessionManager, "handle_request", counted)
    stream = await daemon.connect()
    await stream.send_all(daemon.modern_call("aegis_term_list", {}))
    assert (await response(stream))[0] == 200
    assert handled == []
    await stream.send_all(daemon.modern_call("aegis_term_list", {}, mcp_name="aegis_term_run"))
    assert (await response(stream))[0] == 400
    assert handled == ["POST"]
