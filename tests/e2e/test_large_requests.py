"""A request over the limit of a frame: each face answers with a sentence that names the limit."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import trio
from trio_websocket import ConnectionClosed, wrap_client_stream

import aegis
from aegis.client.errors import CommandFailed
from aegis.client.line import connect
from aegis.client.sizes import MAX_FRAME_BYTES
from aegis.servers import requests
from aegis.servers.gateway.http_app import MAX_BODY_BYTES
from tests.e2e.conftest import Connect
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.mcp_client import command_of

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

LARGE = "x" * 10_000_000
LIMIT = str(MAX_FRAME_BYTES)

CALLS: dict[str, dict[str, object]] = {
    "enqueue": {"queue": "build", "payload": LARGE},
    "delegate": {"queue": "build", "payload": LARGE},
    "run_workflow": {"name": "release", "kwargs": {"text": LARGE}},
    "canvas_write_section": {"name": "plan", "section": "Goals", "content": LARGE},
    "canvas_append_to_section": {"name": "plan", "section": "Goals", "text": LARGE},
    "group_broadcast": {"group": "committee", "objective": LARGE},
    "handoff": {"target_handle": "pm", "context": LARGE},
}

each_call = pytest.mark.parametrize("command", CALLS)


@pytest.fixture(autouse=True)
def nothing_is_left_behind(daemon: DaemonProcess) -> Iterator[None]:
    """No file and no actor is left, and the daemon answers."""
    if daemon.call("canvas_list")["result"] == []:
        daemon.call("canvas_open", name="plan", file="plan.md")
        daemon.call("inbox_read", from_handle="pm")
    before = left(daemon)
    yield
    assert left(daemon) == before
    assert not (daemon.root / "plan.md").exists()
    assert daemon.failures() == []


def left(daemon: DaemonProcess) -> dict[str, Any]:
    return {
        "files": sorted(daemon.state.directory.rglob("*")),
        "tasks": daemon.call("task_list")["result"],
        "workflows": daemon.call("workflow_list")["result"],
        "inbox": daemon.call("inbox_read", from_handle="pm")["messages"],
    }


def check(sentence: str) -> None:
    assert LIMIT in sentence
    assert "\n" not in sentence
    assert len(sentence) <= 400


def test_client_and_daemon_have_the_same_limit() -> None:
    assert MAX_FRAME_BYTES == requests.MAX_FRAME_BYTES == MAX_BODY_BYTES


@each_call
def test_the_unix_socket_answers_and_reads_the_next_line(
    daemon: DaemonProcess, command: str
) -> None:
    """The client sends everything before it reads, as a simple one does."""
    large = {"type": "request", "id": 1, "command": command, "arguments": CALLS[command]}
    small = {"type": "request", "id": 2, "command": "term_list", "arguments": {}}
    with socket.socket(socket.AF_UNIX) as connected, connected.makefile("rb") as answers:
        connected.settimeout(GUARD_S)
        connected.connect(daemon.endpoint.socket_path)
        connected.sendall(json.dumps(large).encode() + b"\n" + json.dumps(small).encode() + b"\n")
        refused, listed = json.loads(answers.readline()), json.loads(answers.readline())
    assert (refused["type"], refused["id"], refused["code"]) == ("error", None, "invalid_request")
    check(refused["message"])
    assert (listed["type"], listed["id"]) == ("reply", 2)


@each_call
async def test_a_websocket_is_closed_with_the_sentence(daemon: DaemonProcess, command: str) -> None:
    endpoint = daemon.endpoint
    headers = [(b"authorization", f"Bearer {endpoint.token}".encode())]
    large = {"type": "request", "id": 1, "command": command, "arguments": CALLS[command]}
    address = urlsplit(endpoint.ws)
    assert address.hostname is not None
    with trio.fail_after(GUARD_S):
        # The client does not close its socket after this end: it is closed here.
        async with (
            await trio.open_tcp_stream(address.hostname, address.port or 0) as stream,
            trio.open_nursery() as nursery,
        ):
            connection = await wrap_client_stream(
                nursery, stream, address.netloc, address.path, extra_headers=headers
            )
            with suppress(ConnectionClosed):
                await connection.send_message(json.dumps(large))
            with pytest.raises(ConnectionClosed) as closed:
                await connection.get_message()
            nursery.cancel_scope.cancel()
    reason = closed.value.reason
    assert reason is not None
    assert reason.code == 1009
    check(reason.reason or "")


@each_call
def test_a_client_of_lines_sends_nothing(daemon: DaemonProcess, command: str) -> None:
    with connect(daemon.root) as client:
        with pytest.raises(CommandFailed) as refused:
            client.call(command, CALLS[command])
        assert refused.value.code == "invalid_request"
        check(str(refused.value))
        assert client.call("term_list", {})["result"] == []


def test_the_blocking_python_client_refuses(daemon: DaemonProcess) -> None:
    with aegis.connect_sync(daemon.root) as client:
        with pytest.raises(CommandFailed) as refused:
            client.workflows.run("release", {"text": LARGE})
        assert refused.value.code == "invalid_request"
        for call in (
            lambda: client.queues.enqueue("build", LARGE),
            lambda: client.canvases.write("plan", "Goals", LARGE),
            lambda: client.groups.broadcast("committee", LARGE),
        ):
            with pytest.raises(CommandFailed, match=r"must be at most 2\d{5} characters long"):
                call()
        assert (client.terminals.list()).result == []


async def test_the_asynchronous_python_client_refuses(daemon: DaemonProcess) -> None:
    with trio.fail_after(GUARD_S):
        async with aegis.connect(daemon.root) as client:
            with pytest.raises(CommandFailed) as refused:
                await client.workflows.run("release", {"text": LARGE})
            assert refused.value.code == "invalid_request"
            with pytest.raises(CommandFailed, match="must be at most 262144 characters long"):
                await client.queues.enqueue("build", LARGE)
            assert (await client.terminals.list()).result == []


@each_call
async def test_mcp_over_http_answers_413_with_the_sentence(
    daemon: DaemonProcess, command: str
) -> None:
    url = daemon.call("session_new", handle="pm")["url"]
    params = {"name": f"aegis_{command}", "arguments": CALLS[command]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with httpx2.AsyncClient(timeout=GUARD_S) as http:
        answer = await http.post(
            url, json=call, headers={"accept": "application/json, text/event-stream"}
        )
    assert answer.status_code == 413
    error = answer.json()["error"]
    assert error["code"] == -32600
    check(error["message"])


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_the_official_mcp_client_is_told(
    daemon: DaemonProcess, connect_mcp: Connect, era: str
) -> None:
    with trio.fail_after(GUARD_S):
        async with connect_mcp(daemon, era) as client:
            for command, arguments in CALLS.items():
                with pytest.raises(Exception, match=LIMIT):
                    await client.call_tool(f"aegis_{command}", arguments)
            assert not (await client.call_tool("aegis_term_list", {})).is_error


def test_mcp_over_a_command_answers_the_request_by_its_id(daemon: DaemonProcess) -> None:
    started = command_of(daemon, "pm")
    lines = [
        {
            "jsonrpc": "2.0",
            "id": f"large-{command}",
            "method": "tools/call",
            "params": {"name": f"aegis_{command}", "arguments": arguments},
        }
        for command, arguments in CALLS.items()
    ]
    done = subprocess.run(
        [started.command, *started.args],
        input="".join(json.dumps(line) + "\n" for line in lines),
        env=daemon.environment,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert {each["id"] for each in answers} - {None} == {line["id"] for line in lines}
    for each in answers:
        assert each["error"]["code"] == -32600
        check(each["error"]["message"])


@pytest.mark.parametrize(
    "words",
    [
        ["queue", "add", "build", "-"],
        ["queue", "add", "--wait", "5", "build", "-"],
        ["canvas", "write", "plan", "Goals", "-"],
        ["canvas", "append", "plan", "Goals", "-"],
        ["group", "broadcast", "committee", "-"],
    ],
    ids=" ".join,
)
def test_the_command_line_refuses_in_one_line(daemon: DaemonProcess, words: list[str]) -> None:
    done = subprocess.run(
        [*daemon.program, *words],
        input=LARGE,
        env=daemon.environment,
        cwd=daemon.root,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")  # not even sent
    [line] = done.stderr.splitlines()
    assert line.startswith("aegis-actors: ")
    check(line)
