from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import jsonschema  # type: ignore[import-untyped]
import pytest
import trio
import trio.testing
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from structlog.testing import capture_logs

from aegis.protocol.table import COMMANDS, TOOLS
from aegis.protocol.tool_sets import WORK, Offer
from aegis.servers.calls import OPERATOR, Identity
from aegis.servers.mcp.post_answer import OPEN_AFTER_S
from aegis.servers.mcp.tools import McpFace, error_of, tool_of

pytestmark = [
    pytest.mark.real,
    pytest.mark.every_python,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

Connect = Callable[..., Any]
ERAS = ["legacy", "auto"]
OFFERS = {
    "all": Offer(("all",)),
    "work": Offer(),
    "driven": Offer(is_driven=True),
    "core": Offer(("core",)),
    "one": Offer(("term_run",)),
}
MAX_TOOL_LIST_BYTES = {
    "operator": 18_000,
    "all": 81_200,
    "work": 16_000,
    "driven": 15_500,
    "core": 12_000,
    "one": 1_500,
}
"""The whole answer to ``tools/list``: a client puts it into the context of every conversation."""
OPERATOR_TOOLS = {entry.tool for entry in COMMANDS if entry.operator}


@pytest.fixture
def connect(daemon: Any) -> Connect:
    """``async with connect(mode, handle) as client``: the official client, on Trio."""

    @asynccontextmanager
    async def connected(mode: str, handle: str | None = None) -> AsyncIterator[Client]:
        headers = {"authorization": daemon.bearer} if handle is None else {}
        url = f"{daemon.url}/mcp" if handle is None else daemon.session_url(handle)
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            yield client

    return connected


def sentence(result: Any) -> str:
    assert result.is_error
    assert result.structured_content is None
    assert len(result.content) == 1
    text: str = result.content[0].text
    assert "\n" not in text
    assert "Traceback" not in text
    return text


@pytest.fixture(autouse=True)
def no_tracebacks_in_the_log(caplog: pytest.LogCaptureFixture) -> Any:
    """What clients do wrong is no reason for a traceback or an error in the daemon's log."""
    caplog.set_level(logging.DEBUG)
    yield
    records = caplog.get_records("call")
    bad = [record for record in records if record.exc_info or record.levelno >= logging.ERROR]
    assert bad == []


@pytest.mark.parametrize("mode", ERAS)
async def test_the_handshake_tells_name_version_and_primer(connect: Connect, mode: str) -> None:
    async with connect(mode) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        assert (client.server_info.name, client.server_info.version) == ("aegis-actors", "0")
        assert "aegis_inbox_wait" in client.instructions
        assert "You are the operator" in client.instructions
    async with connect(mode, "alice") as client:
        assert "Your handle is alice" in client.instructions


@pytest.mark.parametrize("mode", ERAS)
async def test_a_tool_call_comes_back_as_structure_and_as_the_same_text(
    daemon: Any, connect: Connect, mode: str
) -> None:
    async with connect(mode) as client:
        result = await client.call_tool("aegis_term_run", {"name": "build", "cmd": "echo hé"})
    assert not result.is_error
    assert result.structured_content["stdout"] == "echo hé"
    without_nulls = {k: v for k, v in result.structured_content.items() if v is not None}
    assert without_nulls.keys() == result.structured_content.keys() - {
        *("needs_input", "may_need_input", "new_shell_since", "cmd_reason")
    }
    assert json.loads(result.content[0].text) == without_nulls
    caller, command, arguments = daemon.port.calls[0]
    assert (caller.identity, caller.face, command) == (OPERATOR, "mcp", "term_run")
    assert arguments == {"name": "build", "cmd": "echo hé"}


@pytest.mark.parametrize("mode", ERAS)
async def test_a_tool_may_be_called_without_arguments(
    daemon: Any, connect: Connect, mode: str
) -> None:
    async with connect(mode) as client:
        result = await client.call_tool("aegis_term_list")
    assert result.structured_content == {"result": [], "of_agents": []}


@pytest.mark.parametrize("mode", ERAS)
async def test_the_operator_sees_all_tools_and_a_handle_its_own(
    daemon: Any, connect: Connect, mode: str
) -> None:
    async with connect(mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
    assert tools == [entry.tool for entry in TOOLS if entry.name in WORK]
    assert len(tools) <= 24
    daemon.port.offers.update({"alice": Offer(("all",)), None: Offer(("all",))})
    async with connect(mode) as client:
        every = {tool.name for tool in (await client.list_tools()).tools}
    assert every == {entry.tool for entry in TOOLS}
    async with connect(mode, "alice") as client:
        seen = {tool.name for tool in (await client.list_tools()).tools}
    assert seen == every - OPERATOR_TOOLS


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("aegis_term_run", {"name": "build", "cmd": "echo hi"}),
        ("aegis_term_run", {"name": "build", "cmd": "busy"}),
        ("aegis_term_run", {"name": "build", "timeout": "soon"}),
        ("aegis_queue_list", {}),
        ("shell_open", {"workspace": "w"}),
        ("aegis_down", {}),
        ("aegis_term_rum", {}),
    ],
)
async def test_a_call_through_aegis_call_is_as_one_by_its_own_name(
    daemon: Any, connect: Connect, mode: str, tool: str, arguments: dict[str, object]
) -> None:
    async with connect(mode, "alice") as client:
        direct = await client.call_tool(tool, arguments)
        inner = await client.call_tool("aegis_call", {"tool": tool, "arguments": arguments})
        text = {"tool": tool, "arguments": json.dumps(arguments)}
        as_text = await client.call_tool("aegis_call", text)
    assert inner.model_dump() == direct.model_dump() == as_text.model_dump()
    calls = [(command, given) for _, command, given in daemon.port.calls]
    assert calls == calls[: len(calls) // 3] * 3


@pytest.mark.parametrize("mode", ERAS)
async def test_a_call_through_aegis_call_reports_progress_and_is_cancelled(
    daemon: Any, connect: Connect, mode: str
) -> None:
    told: list[str] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")
        daemon.port.release.set()

    async with connect(mode, "alice") as client:
        arguments = {"tool": "aegis_term_run", "arguments": {"name": "build", "cmd": "hold"}}
        await client.call_tool("aegis_call", arguments, progress_callback=on_progress)
        assert told[0] == "line 0"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "aegis_call", {"tool": "aegis_inbox_wait"})
            await daemon.port.until(lambda: daemon.port.waiting == 1)
            nursery.cancel_scope.cancel()
        await daemon.port.until(lambda: daemon.port.cancelled == 1)
        await client.call_tool("aegis_term_list")  # so the client has read all answers


@pytest.mark.parametrize("mode", ERAS)
async def test_aegis_tools_lists_the_others_and_describes_those_about_a_word(
    daemon: Any, connect: Connect, mode: str
) -> None:
    daemon.port.offers["alice"] = Offer(is_driven=True)

    async def tools(**arguments: str) -> dict[str, Any]:
        result = await client.call_tool("aegis_tools", arguments)
        return {each["name"]: each for each in result.structured_content["tools"]}

    async with connect(mode, "alice") as client:
        listed = {each.name: each for each in (await client.list_tools()).tools}
        others = await tools()
        assert listed.keys() | others.keys() == {
            entry.tool
            for entry in TOOLS
            if not entry.operator and entry.name not in ("inbox_read", "inbox_wait")
        }
        assert not listed.keys() & others.keys()
        assert all(each["schema"] is None for each in others.values())
        assert len(json.dumps([*others.values()])) < 8_000
        about = await tools(word="Group")
        assert {"aegis_group_spawn", "aegis_group_status"} <= about.keys() <= others.keys()
        spawn = about["aegis_group_spawn"]
        assert "profile" in spawn["schema"]["properties"]
        assert "from_handle" not in spawn["schema"]["properties"]
        assert (await tools(word="term_run")).keys() == {"aegis_term_run"}
        none = sentence(await client.call_tool("aegis_tools", {"word": "no such thing"}))
    assert none.startswith("aegis_tools: there is no 'no such thing'; there are aegis_")


@pytest.mark.parametrize("mode", ERAS)
async def test_an_address_without_aegis_call_reaches_no_other_tool(
    daemon: Any, connect: Connect, mode: str
) -> None:
    daemon.port.offers["alice"] = Offer(("core",))
    async with connect(mode, "alice") as client:
        for tool in ("aegis_call", "aegis_tools", "aegis_spawn"):
            refused = await client.call_tool(tool, {"tool": "aegis_spawn"})
            assert "not offered at this address" in sentence(refused)
    assert daemon.port.calls == []


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("whose", MAX_TOOL_LIST_BYTES)
async def test_the_list_of_the_tools_of_each_set_is_small(
    daemon: Any, response: Any, mode: str, whose: str
) -> None:
    path, authorization = "/mcp", daemon.bearer
    if whose != "operator":
        daemon.port.offers["alice"] = OFFERS[whose]
        path, authorization = daemon.session_url("alice").removeprefix(daemon.url), ""
    stream = await daemon.connect()
    if mode == "legacy":
        session = await daemon.open_session(path, authorization=authorization)
        routing = {"mcp_protocol_version": "2025-11-25", "mcp_session_id": session}
        request = daemon.rpc("tools/list", {}, path, authorization=authorization, **routing)
    else:
        request = daemon.modern("tools/list", {}, path, authorization=authorization)
    await stream.send_all(request)
    _, _, body = await response(stream)
    assert b'"name":"aegis_term_run"' in body
    assert len(body) <= MAX_TOOL_LIST_BYTES[whose], len(body)


@pytest.mark.parametrize("mode", ERAS)
async def test_a_tool_that_an_address_does_not_offer_is_neither_listed_nor_called(
    daemon: Any, connect: Connect, mode: str
) -> None:
    daemon.port.offers["alice"] = Offer(("term_list", "handoff"))
    async with connect(mode, "alice") as client:
        assert [each.name for each in (await client.list_tools()).tools] == [
            "aegis_term_list",
            "aegis_handoff",
        ]
        refused = await client.call_tool("aegis_term_run", {"name": "build", "cmd": "ls"})
        assert "not offered at this address, whose tools are term_list, handoff" in sentence(
            refused
        )
        assert not (await client.call_tool("aegis_term_list")).is_error
        # The choice can change while the client is connected.
        daemon.port.offers["alice"] = Offer(("core",))
        allowed = await client.call_tool("aegis_term_run", {"name": "build", "cmd": "ls"})
        assert not allowed.is_error
    assert [command for _, command, _ in daemon.port.calls] == ["term_list", "term_run"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_driven_session_is_told_that_messages_are_turns(
    daemon: Any, connect: Connect, mode: str
) -> None:
    daemon.port.offers["alice"] = Offer(("all",), is_driven=True)
    async with connect(mode, "alice") as client:
        assert "arrive as turns of your conversation" in client.instructions
        assert "aegis_inbox_wait" not in client.instructions
        listed = {each.name for each in (await client.list_tools()).tools}
        assert not listed & {"aegis_inbox_read", "aegis_inbox_wait"}
        assert "aegis_handoff" in listed
    assert {each.identity.handle for each in daemon.port.listers} == {"alice"}


@pytest.mark.parametrize("mode", ERAS)
async def test_from_handle_is_shown_to_the_operator_only_and_accepted_from_its_handle(
    daemon: Any, connect: Connect, mode: str
) -> None:
    async with connect(mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "from_handle" in tools["aegis_term_run"].input_schema["properties"]
    async with connect(mode, "alice") as client:
        for tool in (await client.list_tools()).tools:
            assert "from_handle" not in tool.input_schema["properties"]
        arguments = {"name": "build", "cmd": "echo hi", "from_handle": "alice"}
        assert not (await client.call_tool("aegis_term_run", arguments)).is_error
    assert daemon.port.calls[-1][2] == arguments


@pytest.mark.parametrize("entry", TOOLS, ids=lambda entry: entry.name)
@pytest.mark.parametrize("is_bound", [True, False])
def test_each_tool_has_docs_schemas_and_hints(entry: Any, is_bound: bool) -> None:
    tool = tool_of(entry, is_bound=is_bound)
    assert tool.description == entry.doc != ""
    for schema in (tool.input_schema, tool.output_schema):
        assert schema is not None
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
    assert "from_handle" not in tool.input_schema.get("required", [])
    assert tool.annotations is not None
    assert bool(tool.annotations.read_only_hint) is entry.read_only
    if not entry.read_only:  # the other hints mean nothing for a tool that only reads
        assert tool.annotations.destructive_hint is entry.destructive
        assert bool(tool.annotations.idempotent_hint) is entry.idempotent


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        (
            "aegis_term_run",
            {"name": "t", "cmd": "busy"},
            "aegis_term_run: terminal 'build' is busy",
        ),
        ("aegis_term_run", {"name": "t", "cmd": "slow actor"}, "did not answer"),
        ("aegis_term_run", {"name": "t"}, "cmd"),
        ("aegis_term_run", {"name": "t", "cmd": "x", "colour": "red"}, "colour"),
        ("aegis_term_run", {"name": "t", "cmd": 5}, "cmd"),
        ("aegis_term_rum", {}, "did you mean 'aegis_term_run'"),
        ("no\nsuch", {}, "there are aegis_term_spawn"),
    ],
)
async def test_every_failure_is_one_sentence_that_begins_with_the_tool(
    connect: Connect, mode: str, tool: str, arguments: dict[str, object], words: str
) -> None:
    async with connect(mode) as client:
        text = sentence(await client.call_tool(tool, arguments))
    assert text.startswith(f"{' '.join(tool.split())}: ")
    assert text.count("aegis_term_run: ") <= 1
    assert words in text


@pytest.mark.parametrize("mode", ERAS)
async def test_a_bug_is_logged_and_told_without_details(connect: Connect, mode: str) -> None:
    with capture_logs() as logs:
        async with connect(mode) as client:
            result = await client.call_tool("aegis_term_run", {"name": "t", "cmd": "bug"})
    assert "internal detail" not in sentence(result)
    assert [entry["event"] for entry in logs] == ["a tool call failed"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_handle_may_not_call_what_is_the_operators(
    daemon: Any, connect: Connect, mode: str
) -> None:
    async with connect(mode, "alice") as client:
        for tool in OPERATOR_TOOLS:
            assert "for the operator only" in sentence(await client.call_tool(tool, {}))
        await client.call_tool("aegis_term_list")
    assert [call[1] for call in daemon.port.calls] == ["term_list"]
    assert daemon.port.calls[0][0].identity == Identity(handle="alice", operator=False)


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_cancels_cancels_the_call(
    daemon: Any, connect: Connect, mode: str
) -> None:
    async with connect(mode) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "aegis_inbox_wait", {})
            await daemon.port.until(lambda: daemon.port.waiting == 1)
            nursery.cancel_scope.cancel()
        await daemon.port.until(lambda: daemon.port.cancelled == 1)
        assert not (await client.call_tool("aegis_term_list")).is_error


@pytest.mark.parametrize("mode", ERAS)
async def test_calls_of_one_client_run_side_by_side(
    daemon: Any, connect: Connect, mode: str
) -> None:
    async with connect(mode) as client, trio.open_nursery() as nursery:
        hold = {"name": "t", "cmd": "hold"}
        nursery.start_soon(client.call_tool, "aegis_term_run", hold)
        await daemon.port.until(lambda: daemon.port.waiting == 1)
        assert not (await client.call_tool("aegis_term_list")).is_error
        daemon.port.release.set()


@pytest.fixture
def call(daemon: Any) -> Any:
    """The bytes of a tool call of an era, in a session made for it; ``**headers`` as ``http``."""

    async def made(mode: str, tool: str, arguments: dict[str, object], **headers: str) -> bytes:
        if mode == "legacy":
            session = await daemon.open_session()
            request: bytes = daemon.legacy_call(session, tool, arguments, **headers)
        else:
            request = daemon.modern_call(tool, arguments, **headers)
        return request

    return made


class Reader:
    """What comes on a connection, in parts."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._data = b""

    async def until(self, end: bytes) -> bytes:
        while end not in self._data:
            data = await self._stream.receive_some()
            assert data, self._data
            self._data += data
        found, _, self._data = self._data.partition(end)
        return found


@pytest.mark.parametrize("mode", ERAS)
async def test_a_call_that_ends_soon_is_answered_in_json(
    daemon: Any, response: Any, call: Any, mode: str
) -> None:
    stream = await daemon.connect()
    await stream.send_all(await call(mode, "aegis_term_list", {}))
    status, headers, body = await response(stream)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body)["result"]["structuredContent"]["result"] == []


@pytest.mark.parametrize("mode", ERAS)
async def test_a_call_that_takes_long_is_answered_on_a_stream_of_events(
    daemon: Any, call: Any, mode: str
) -> None:
    stream = await daemon.connect()
    await stream.send_all(await call(mode, "aegis_term_run", {"name": "t", "cmd": "hold"}))
    reader = Reader(stream)
    head = await reader.until(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"content-type: text/event-stream" in head
    assert (b"mcp-session-id: " in head) is (mode == "legacy")
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    daemon.port.release.set()
    await reader.until(b"event: message\r\ndata: ")
    result = json.loads(await reader.until(b"\r\n"))["result"]
    assert result["structuredContent"]["stdout"] == "hold"
    await reader.until(b"\r\n0\r\n\r\n")


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_takes_no_stream_gets_json_after_any_time(
    daemon: Any, response: Any, call: Any, mode: str
) -> None:
    stream = await daemon.connect()
    arguments = {"name": "t", "cmd": "hold"}
    request = await call(mode, "aegis_term_run", arguments, accept="application/json")
    await stream.send_all(request)
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    await trio.sleep(2 * OPEN_AFTER_S)  # a stream would have been opened by now
    daemon.port.release.set()
    status, headers, body = await response(stream)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body)["result"]["structuredContent"]["stdout"] == "hold"


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("accept", ["text/event-stream", "*/*", "", "text/*", "application/*"])
async def test_a_client_is_served_in_the_form_that_it_accepts(
    daemon: Any, response: Any, call: Any, mode: str, accept: str
) -> None:
    stream = await daemon.connect()
    await stream.send_all(await call(mode, "aegis_term_list", {}, accept=accept))
    status, headers, body = await response(stream)
    is_stream = accept.startswith("text/")
    kind = "text/event-stream" if is_stream else "application/json"
    assert (status, headers["content-type"]) == (200, kind)
    document = body.partition(b"data: ")[2].partition(b"\r\n")[0] if is_stream else body
    assert json.loads(document)["result"]["structuredContent"] == {"result": [], "of_agents": []}


@pytest.mark.parametrize("accept", ["text/event-stream", ""])
async def test_a_handshake_has_its_session_in_the_head_of_any_form(
    daemon: Any, response: Any, accept: str
) -> None:
    session = await daemon.open_session(accept=accept)
    stream = await daemon.connect()
    await stream.send_all(daemon.legacy_call(session, "aegis_term_list", {}, accept=accept))
    assert (await response(stream))[0] == 200


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_accepts_no_answer_of_mcp_is_refused(
    daemon: Any, response: Any, call: Any, mode: str
) -> None:
    stream = await daemon.connect()
    await stream.send_all(await call(mode, "aegis_term_list", {}, accept="text/html"))
    assert (await response(stream))[0] == 406
    assert daemon.port.calls == []


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("sent", ["null", "true", "1.5", "[1]"])
async def test_a_request_with_an_id_that_is_none_is_refused(
    daemon: Any, response: Any, call: Any, mode: str, sent: str
) -> None:
    stream = await daemon.connect()
    whole = await call(mode, "aegis_term_list", {})
    head, _, body = whole.partition(b"\r\n\r\n")
    odd = body.replace(b'"id": 1', f'"id": {sent}'.encode())
    head = head.replace(f"length: {len(body)}".encode(), f"length: {len(odd)}".encode())
    await stream.send_all(head + b"\r\n\r\n" + odd)
    status, _, answer = await response(stream)
    refused = json.loads(answer)
    assert (status, refused["id"], refused["error"]["code"]) == (400, None, -32600)
    assert daemon.port.calls == []


@pytest.mark.parametrize("mode", ERAS)
async def test_an_id_with_a_point_is_answered_as_that_whole_number(
    daemon: Any, response: Any, call: Any, mode: str
) -> None:
    stream = await daemon.connect()
    whole = await call(mode, "aegis_term_list", {})
    head, _, body = whole.partition(b"\r\n\r\n")
    odd = body.replace(b'"id": 1', b'"id": 1.0')
    head = head.replace(f"length: {len(body)}".encode(), f"length: {len(odd)}".encode())
    await stream.send_all(head + b"\r\n\r\n" + odd)
    status, _, answer = await response(stream)
    assert (status, repr(json.loads(answer)["id"])) == (200, "1")


@pytest.mark.parametrize("mode", ERAS)
async def test_a_refusal_has_its_status_however_late_it_is(
    daemon: Any, response: Any, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr("aegis.servers.mcp.post_answer.OPEN_AFTER_S", 0.0)
    stream = await daemon.connect()
    if mode == "legacy":
        await stream.send_all(daemon.legacy_call("0" * 32, "aegis_term_list", {}))
    else:
        await stream.send_all(daemon.modern("no/such", {}))
    assert (await response(stream))[0] == 404


async def test_the_session_of_a_client_that_vanished_during_a_long_call_is_left_idle(
    start: Any,
) -> None:
    # The call must come while the session is not idle yet: on a busy machine that takes a while.
    async with start(mcp={"session_idle_s": 1.5}) as daemon:
        session = await daemon.open_session()
        stream = await daemon.connect()
        await stream.send_all(daemon.legacy_call(session, "aegis_inbox_wait", {}))
        await Reader(stream).until(b"text/event-stream")
        stream.socket.close()
        await daemon.port.until(lambda: daemon.port.gone == daemon.port.here)
        assert daemon.port.cancelled == 1


async def test_a_session_that_ends_during_a_long_call_ends_its_stream(daemon: Any) -> None:
    session = await daemon.open_session()
    stream = await daemon.connect()
    await stream.send_all(daemon.legacy_call(session, "aegis_inbox_wait", {}))
    reader = Reader(stream)
    await reader.until(b"text/event-stream")
    other = await daemon.connect()
    await other.send_all(daemon.http(method="DELETE", mcp_session_id=session))
    await reader.until(b"\r\n0\r\n\r\n")
    await daemon.port.until(lambda: daemon.port.cancelled == 1)


async def test_a_sessionless_client_that_vanishes_cancels_its_call(daemon: Any) -> None:
    stream = await daemon.connect()
    await stream.send_all(daemon.modern_call("aegis_inbox_wait", {}))
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    stream.socket.close()
    await daemon.port.until(lambda: daemon.port.cancelled == 1)


async def test_a_client_with_a_session_that_vanishes_leaves_its_call_until_it_deletes_the_session(
    daemon: Any, response: Any
) -> None:
    session = await daemon.open_session()
    stream = await daemon.connect()
    await stream.send_all(daemon.legacy_call(session, "aegis_inbox_wait", {}))
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    stream.socket.close()
    await trio.testing.wait_all_tasks_blocked()
    assert daemon.port.waiting == 1
    other = await daemon.connect()
    await other.send_all(daemon.http(method="DELETE", mcp_session_id=session))
    assert (await response(other))[0] == 200
    await daemon.port.until(lambda: daemon.port.cancelled == 1)
    await daemon.port.until(lambda: daemon.port.gone == daemon.port.here)


async def test_a_session_is_told_open_and_closed_once(daemon: Any, connect: Connect) -> None:
    async with connect("legacy", "alice") as client:
        await client.call_tool("aegis_term_list")
        await client.call_tool("aegis_term_list")
        assert daemon.port.gone == []
    await daemon.port.until(lambda: len(daemon.port.gone) == 1)
    (caller,) = daemon.port.here
    assert daemon.port.gone == [caller]
    assert caller.identity == Identity(handle="alice", operator=False)
    assert [call[0] for call in daemon.port.calls] == [caller, caller]


async def test_a_second_handshake_in_a_session_opens_nothing_more(daemon: Any) -> None:
    session = await daemon.open_session()
    again = await daemon.open_session(mcp_session_id=session)
    assert again == session
    assert [caller.connection for caller in daemon.port.here] == [session]


async def test_two_sessions_of_a_handle_are_two_callers(daemon: Any, connect: Connect) -> None:
    async with connect("legacy", "alice"), connect("legacy", "alice"):
        await daemon.port.until(lambda: len(daemon.port.here) == 2)
        first, second = daemon.port.here
        assert first.identity == second.identity
        assert first.connection != second.connection


async def test_a_session_left_idle_ends(start: Any) -> None:
    async with start(mcp={"session_idle_s": 0.1}) as daemon:
        session = await daemon.open_session()
        await daemon.port.until(lambda: len(daemon.port.gone) == 1)
        assert daemon.port.here[0].connection == session


async def test_without_sessions_a_handle_is_one_caller_until_it_is_idle(
    start: Any,
) -> None:
    async with start(mcp={"session_idle_s": 0.1}) as daemon:
        waiting, stream = await daemon.connect(), await daemon.connect()
        # The first call keeps the caller from being idle, however late the second one comes.
        await waiting.send_all(
            daemon.modern_call("aegis_inbox_wait", {}, authorization=daemon.bearer)
        )
        await daemon.port.until(lambda: daemon.port.waiting == 1)
        await stream.send_all(
            daemon.modern_call("aegis_term_list", {}, authorization=daemon.bearer)
        )
        await Reader(stream).until(b" 200 OK\r\n")
        assert [caller.connection for caller in daemon.port.here] == ["operator"]
        await waiting.aclose()
        await daemon.port.until(lambda: daemon.port.gone == daemon.port.here)


async def test_without_sessions_two_clients_of_a_handle_are_the_same_caller(
    daemon: Any, connect: Connect
) -> None:
    async with connect("auto", "alice") as one, connect("auto", "alice") as two:
        await one.call_tool("aegis_term_list")
        await two.call_tool("aegis_term_list")
    assert [caller.connection for caller in daemon.port.here] == ["handle:alice"]
    assert {call[0] for call in daemon.port.calls} == set(daemon.port.here)


async def test_stopping_tells_every_caller_closed(daemon: Any, connect: Connect) -> None:
    await daemon.open_session()
    async with connect("auto") as client:
        await client.call_tool("aegis_term_list")
    daemon.stop.set()
    await daemon.ended.wait()
    assert len(daemon.port.here) == 2
    assert sorted(daemon.port.gone, key=str) == sorted(daemon.port.here, key=str)


@pytest.mark.parametrize("how", ["in order", "cancelled"])
async def test_a_call_in_flight_in_a_session_does_not_hold_up_the_end(
    daemon: Any, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    session = await daemon.open_session()
    stream = await daemon.connect()
    await stream.send_all(daemon.legacy_call(session, "aegis_inbox_wait", {}))
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    if how == "in order":
        daemon.stop.set()
    else:
        daemon.scope.cancel()
    await daemon.ended.wait()
    assert daemon.port.cancelled == 1
    # What the SDK says after the second that it waits for a write nobody takes.
    assert [record for record in caplog.records if "gave up" in record.getMessage()] == []


@pytest.mark.parametrize("whose", ["another handle's", "the operator's"])
async def test_the_session_of_one_cannot_be_used_with_the_key_of_another(
    daemon: Any, response: Any, whose: str
) -> None:
    alice = f"/mcp/s/{daemon.keys.session_secret('alice')}"
    bob = f"/mcp/s/{daemon.keys.session_secret('bob')}"
    session = await daemon.open_session(alice, authorization="")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    path = bob if whose == "another handle's" else "/mcp"
    for method in ("POST", "GET", "DELETE"):
        stream = await daemon.connect()
        await stream.send_all(daemon.http(body, path, method=method, mcp_session_id=session))
        assert (method, (await response(stream))[0]) == (method, 404)
    assert daemon.port.gone == []


async def test_a_session_that_ends_under_a_request_leaves_no_traceback_but_a_bug_does(
    daemon: Any, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("mcp.server.streamable_http")
    for error in (anyio.ClosedResourceError(), anyio.BrokenResourceError(), ValueError("a bug")):
        logger.error("Error handling POST request", exc_info=error)
    shown = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert [type(error) for error in shown] == [ValueError]
    caplog.clear()


async def test_a_session_that_does_not_exist_is_not_found(daemon: Any, response: Any) -> None:
    stream = await daemon.connect()
    await stream.send_all(daemon.legacy_call("0" * 32, "aegis_term_list", {}))
    assert (await response(stream))[0] == 404


async def test_a_session_id_sent_by_a_sessionless_client_names_nobody_else(
    daemon: Any, response: Any
) -> None:
    session = await daemon.open_session()
    stream = await daemon.connect()
    await stream.send_all(daemon.modern_call("aegis_term_list", {}, mcp_session_id=session))
    assert (await response(stream))[0] == 200
    assert daemon.port.calls[0][0].connection == "operator"


async def test_a_handshake_without_a_key_opens_nothing(daemon: Any, response: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}).encode()
    stream = await daemon.connect()
    await stream.send_all(daemon.http(body, authorization=""))
    assert (await response(stream))[0] == 401
    assert daemon.port.here == []


async def test_a_malformed_handshake_opens_nothing(daemon: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}).encode()
    stream = await daemon.connect()
    await stream.send_all(daemon.http(body))
    await stream.receive_some()
    await trio.testing.wait_all_tasks_blocked()
    assert daemon.port.here == []


async def test_both_eras_and_another_client_at_once_disturb_each_other_in_nothing(
    daemon: Any, connect: Connect
) -> None:
    async with (
        connect("legacy") as one,
        connect("auto", "alice") as two,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(one.call_tool, "aegis_inbox_wait", {})
        await daemon.port.until(lambda: daemon.port.waiting == 1)
        for _ in range(5):
            assert not (await two.call_tool("aegis_term_list")).is_error
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await daemon.port.until(lambda: daemon.port.cancelled == 1)
            await one.call_tool("aegis_term_list")  # so the client has read all answers


@pytest.mark.parametrize("mode", ERAS)
async def test_an_error_with_characters_that_cannot_be_sent_is_still_an_answer(
    daemon: Any, response: Any, mode: str
) -> None:
    stream = await daemon.connect()
    bad = {"name": "\ud800", "cmd": "x"}
    if mode == "legacy":
        session = await daemon.open_session()
        await stream.send_all(daemon.legacy_call(session, "aegis_term_run", bad))
    else:
        await stream.send_all(daemon.modern_call("aegis_term_run", bad))
    assert (await stream.receive_some()).startswith((b"HTTP/1.1 200", b"HTTP/1.1 400"))


@pytest.mark.parametrize("steps", range(12))
async def test_a_server_that_is_cancelled_while_it_starts_ends(daemon: Any, steps: int) -> None:
    face = McpFace(daemon.port, version="0")
    scope = trio.CancelScope()

    async def live() -> None:
        with scope:
            async with trio.open_nursery() as inner:
                await inner.start(face.run)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(live)
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        left = [*nursery.child_tasks]
        face._holding.cancel()  # so that a failure ends
        assert left == []


def test_the_name_of_a_tool_is_said_once_and_bounded() -> None:
    from aegis.servers.calls import Failure

    def text(tool: str, said: str) -> str:
        return error_of(tool, Failure("code", said)).texts[0]

    assert text("aegis_x", "aegis_x: bad") == text("aegis_x", "bad") == "aegis_x: bad"
    assert len(text("x" * 1000, "bad")) < 100
