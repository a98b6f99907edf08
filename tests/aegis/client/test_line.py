"""The line client, against a real Unix socket."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aegis.client import line
from aegis.client.line import CommandFailed, ConnectionLost, NoDaemon, connect
from aegis.errors import Busy
from aegis.state.endpoint import read_endpoint, write_endpoint
from aegis.state.root import StatePaths

if TYPE_CHECKING:
    from tests.fakes.line_server import LineServer

GUARD_S = 60

EMPTY: dict[str, Any] = {"result": []}


def test_a_call_gives_the_result(server: LineServer) -> None:
    server.answers["term_list"] = EMPTY
    with connect(server.root) as client:
        assert client.call("term_list", {}) == EMPTY


def test_a_request_is_framed_as_the_protocol_says(server: LineServer) -> None:
    server.answers["term_subscribe"] = {"subscribers": ["é"], "ok": True}
    with connect(server.root) as client:
        client.call("term_subscribe", {"name": "build"})
    assert server.requests.get() == {
        "type": "request",
        "id": 1,
        "command": "term_subscribe",
        "arguments": {"name": "build"},
    }


def test_calls_on_one_connection_are_numbered(server: LineServer) -> None:
    server.answers["term_list"] = EMPTY
    with connect(server.root) as client:
        client.call("term_list", {})
        client.call("term_list", {})
    assert [server.requests.get()["id"], server.requests.get()["id"]] == [1, 2]


def test_an_error_of_the_daemon_keeps_its_code_and_sentence(server: LineServer) -> None:
    server.answers["term_list"] = Busy("terminal 'build' is busy")
    with connect(server.root) as client, pytest.raises(CommandFailed) as caught:
        client.call("term_list", {})
    assert (caught.value.code, str(caught.value)) == ("busy", "terminal 'build' is busy")


def test_the_name_of_the_tool_is_left_out_of_a_sentence(server: LineServer) -> None:
    with connect(server.root) as client, pytest.raises(CommandFailed) as caught:
        client.call("term_run", {"name": "build"})
    assert str(caught.value) == "cmd is missing"


def test_the_connection_serves_on_after_an_error(server: LineServer) -> None:
    server.answers["term_list"] = EMPTY
    with connect(server.root) as client:
        with pytest.raises(CommandFailed):
            client.call("term_run", {})
        assert client.call("term_list", {}) == EMPTY


def lines(*frames: object) -> bytes:
    return b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)


def test_frames_that_answer_something_else_are_passed_over(server: LineServer) -> None:
    server.answers["term_list"] = lines(
        {"type": "hello", "version": 1},
        {"type": "reply", "id": 99, "result": {"not": "ours"}},
        {"type": "progress", "id": 1, "text": "…"},
        {"type": "reply", "id": 1, "result": EMPTY},
    )
    with connect(server.root) as client:
        assert client.call("term_list", {}) == EMPTY


def test_an_error_about_a_frame_that_was_not_understood_ends_the_call(server: LineServer) -> None:
    server.answers["term_list"] = lines(
        {"type": "error", "id": None, "code": "invalid_request", "message": "too long"}
    )
    with connect(server.root) as client, pytest.raises(CommandFailed, match=r"^too long$"):
        client.call("term_list", {})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "the daemon closed it"),
        (b'{"type": "reply", "id": 1, "resu', "a line was truncated"),
        (b"HTTP/1.1 400 Bad Request\r\n", "the answer does not fit the protocol"),
        (b"[1]\n", "the answer does not fit the protocol"),
        (b'{"id": 1}\n', "the answer does not fit the protocol"),
        (b"[" * 100_000 + b"\n", "the answer does not fit the protocol"),
        (b"\xff\xfe\n", "the answer does not fit the protocol"),
    ],
    ids=["closed", "cut", "HTTP", "list", "untyped", "nested", "no UTF-8"],
)
def test_a_connection_lost_during_a_call_is_told(
    server: LineServer, answer: bytes, reason: str
) -> None:
    server.answers["term_list"] = answer
    with connect(server.root) as client, pytest.raises(ConnectionLost) as caught:
        client.call("term_list", {})
    assert str(caught.value) == (
        f"the connection to the daemon of {server.root} was lost during term_list: {reason}"
    )


def test_a_call_on_a_connection_that_the_daemon_closed_is_told(server: LineServer) -> None:
    server.answers["term_list"] = b""
    with connect(server.root) as client:
        for _ in range(2):
            with pytest.raises(ConnectionLost):
                client.call("term_list", {})


def test_a_large_request_and_a_large_reply_arrive_whole(server: LineServer) -> None:
    text = "é" * 2_000_000
    server.answers["handoff"] = {"id": text, "status": "queued", "position": 0}
    with connect(server.root) as client:
        arguments = {"target_handle": "bob", "context": "ß" * 200_000}
        assert client.call("handoff", arguments)["id"] == text
    assert server.arguments() == arguments


def test_a_byte_that_is_no_utf8_reaches_the_daemon_as_itself(server: LineServer) -> None:
    with connect(server.root) as client, pytest.raises(CommandFailed) as caught:
        client.call("term_run", {"name": "build", "cmd": os.fsdecode(b"ls \xff")})
    assert server.arguments()["cmd"] == "ls \udcff"
    assert "lone surrogates" in str(caught.value)


def test_without_a_daemon_the_command_that_starts_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, below = tmp_path / "a root", tmp_path / "a root" / "below"
    below.mkdir(parents=True)
    (root / ".aegis.yaml").touch()
    for here, options in [(root, ""), (below, ""), (tmp_path, f" --root '{root}'")]:
        monkeypatch.chdir(here)
        with pytest.raises(NoDaemon) as caught:
            connect(root)
        said = str(caught.value)
        assert said == f"no daemon runs for {root}: start one with: aegis-actors up{options}"


def test_a_daemon_that_died_is_told_from_one_that_never_ran(server: LineServer) -> None:
    server.stop()
    with pytest.raises(NoDaemon) as caught:
        connect(server.root)
    assert str(caught.value) == (
        f"the daemon of {server.root} (pid {os.getpid()}) has crashed: "
        f"start one with: aegis-actors up --root {server.root}"
    )


def test_a_socket_that_nobody_listens_on_is_a_dead_daemon(server: LineServer) -> None:
    endpoint = read_endpoint(StatePaths(server.root))
    assert endpoint is not None
    server.stop()
    server.path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(server.path))
    with pytest.raises(NoDaemon, match="has crashed"):
        connect(server.root)
    server.path.unlink()
    server.path.parent.rmdir()


def test_a_socket_path_that_the_kernel_refuses_is_told(server: LineServer) -> None:
    endpoint = read_endpoint(StatePaths(server.root))
    assert endpoint is not None
    write_endpoint(StatePaths(server.root), endpoint._replace(socket="/" + "x" * 200))
    with pytest.raises(ConnectionLost, match="cannot be reached: AF_UNIX path too long"):
        connect(server.root)


@pytest.fixture
def crowded(server: LineServer) -> Iterator[socket.socket]:
    """A daemon at whose socket as many wait as may; the listening socket."""
    with contextlib.ExitStack() as crowd:
        path = server.path.with_name("crowded")
        listener = crowd.enter_context(socket.socket(socket.AF_UNIX))
        crowd.callback(path.unlink)
        listener.bind(str(path))
        listener.listen(1)
        endpoint = read_endpoint(StatePaths(server.root))
        assert endpoint is not None
        write_endpoint(StatePaths(server.root), endpoint._replace(socket=str(path)))
        with contextlib.suppress(BlockingIOError):
            while True:
                waiting = crowd.enter_context(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                waiting.connect(str(path))
        yield listener


def test_who_comes_when_many_wait_waits_for_a_place(
    server: LineServer, crowded: socket.socket
) -> None:
    with ThreadPoolExecutor() as pool:
        client = pool.submit(connect, server.root)
        with crowded.accept()[0]:
            client.result(GUARD_S).close()


def test_a_daemon_that_takes_nobody_is_told_in_time(
    server: LineServer, crowded: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "CONNECT_TIMEOUT_S", 1.0)
    with pytest.raises(ConnectionLost, match="cannot be reached: too many connections are waiting"):
        connect(server.root)


def test_an_endpoint_file_that_is_none_is_told(server: LineServer) -> None:
    StatePaths(server.root).endpoint.write_text("{")
    with pytest.raises(NoDaemon, match="does not hold the address of a daemon"):
        connect(server.root)


def test_a_connection_that_the_daemon_closed_is_known_as_over(server: LineServer) -> None:
    server.answers["term_list"] = b""
    with connect(server.root) as client:
        assert not client.is_over()
        with pytest.raises(ConnectionLost):
            client.call("term_list", {})
        assert client.is_over()


@pytest.mark.parametrize("tool", ["aegis_term_run", "term_run"])
def test_the_name_of_the_tool_before_a_sentence_is_left_out(tool: str) -> None:
    # Tools of workspaces and shells have no prefix, and their sentences kept their names.
    frame = {"type": "error", "code": "invalid_request", "message": f"{tool}: timeout is wrong"}
    assert str(line.failure_in(frame, "term_run")) == "timeout is wrong"
