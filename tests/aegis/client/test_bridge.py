"""``aegis-actors mcp`` as a process, against a daemon that is a bare socket."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aegis.client.bridge import CHUNK_BYTES, MAX_WELCOME_BYTES
from aegis.state.endpoint import Endpoint, write_endpoint
from aegis.state.root import StatePaths, make_directory

pytestmark = pytest.mark.real

GUARD_S = 60
PROGRAM = [sys.executable, "-P", "-c", "from aegis.cli.main import main; main()"]
WELCOME = b'{"type": "mcp", "version": 1, "server": "x", "handle": "pm"}\n'
BIG = 40 * CHUNK_BYTES


class Bridge:
    """The process, and the daemon's end of its connection once that is taken."""

    def __init__(self, root: Path) -> None:
        words = [*PROGRAM, "mcp", "--handle", "pm", "--root", str(root)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        assert self.process.stdin
        assert self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def line(self) -> bytes:
        """The next line that the client gets."""
        line = b""
        while not line.endswith(b"\n"):
            piece = self.stdout.read(1)
            assert piece, line
            line += piece
        return line

    def ended(self) -> tuple[int, str]:
        """The exit code, and what was said on standard error."""
        code = self.process.wait(GUARD_S)
        assert self.process.stderr
        return code, self.process.stderr.read().decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe
            pipe.close()


class FakeDaemon:
    """Listens where the endpoint file says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._path = root / "s"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.settimeout(GUARD_S)
        self._listener.bind(os.path.relpath(self._path))
        self._listener.listen()
        make_directory(StatePaths(root))
        write_endpoint(StatePaths(root), Endpoint(1, "", "", "", os.path.relpath(self._path), "t"))

    def accept(self) -> tuple[socket.socket, bytes]:
        """The next connection, and its first line."""
        connection, _ = self._listener.accept()
        connection.settimeout(GUARD_S)
        hello = b""
        while not hello.endswith(b"\n"):
            hello += connection.recv(1)
        return connection, hello

    def welcome(self) -> socket.socket:
        """The next connection, its hello answered."""
        connection, _ = self.accept()
        connection.sendall(WELCOME)
        return connection

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root, short in the daemon's socket name: the program is started in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fake(root: Path) -> Iterator[FakeDaemon]:
    listening = FakeDaemon(root)
    yield listening
    listening.close()


@pytest.fixture
def bridge(root: Path) -> Iterator[Bridge]:
    started = Bridge(root)
    yield started
    started.close()


def request(number: float | str, method: str = "tools/call") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method}).encode() + b"\n"


def received(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(CHUNK_BYTES)
        assert piece
        data += piece
    return data


def test_it_asks_for_mcp_under_the_handle(fake: FakeDaemon, bridge: Bridge) -> None:
    connection, hello = fake.accept()
    with connection:
        assert json.loads(hello) == {"type": "mcp", "version": 1, "handle": "pm"}


def test_bytes_go_both_ways_as_they_are(fake: FakeDaemon, bridge: Bridge) -> None:
    with fake.welcome() as connection:
        data = b"any \xff bytes, \n even half a li"
        bridge.stdin.write(data)
        assert received(connection, len(data)) == data
        connection.sendall(b"\x00back\n")
        assert bridge.line() == b"\x00back\n"


def test_what_came_with_the_welcome_is_passed_on(fake: FakeDaemon, bridge: Bridge) -> None:
    connection, _ = fake.accept()
    with connection:
        connection.sendall(WELCOME + b"early\n")
        assert bridge.line() == b"early\n"


def test_a_client_that_does_not_read_holds_a_bounded_amount(
    fake: FakeDaemon, bridge: Bridge
) -> None:
    with fake.welcome() as connection:
        connection.setblocking(False)
        sent = 0
        poller_limit_s = 1.0
        while True:
            try:
                sent += connection.send(b"x" * CHUNK_BYTES)
            except BlockingIOError:
                connection.settimeout(poller_limit_s)
                try:
                    sent += connection.send(b"x")
                except TimeoutError:
                    break
                connection.setblocking(False)
        assert sent < BIG
        # Meanwhile the other direction goes on.
        connection.settimeout(GUARD_S)
        bridge.stdin.write(request(1))
        assert received(connection, len(request(1))) == request(1)
        assert len(bridge.stdout.read(1000)) == 1000


def test_much_goes_through_in_both_directions_at_once(fake: FakeDaemon, bridge: Bridge) -> None:
    with fake.welcome() as connection:
        data = bytes(range(256)) * (BIG // 256)
        writing = threading.Thread(target=write_all, args=(bridge.stdin.fileno(), data))
        sending = threading.Thread(target=connection.sendall, args=(data,))
        for thread in (writing, sending):
            thread.start()
        assert received(connection, len(data)) == data
        got = b""
        while len(got) < len(data):
            got += bridge.stdout.read(CHUNK_BYTES)
        assert got == data
        for thread in (writing, sending):
            thread.join(GUARD_S)


def write_all(descriptor: int, data: bytes) -> None:
    at = 0
    while at < len(data):
        at += os.write(descriptor, data[at : at + CHUNK_BYTES])


def test_it_ends_with_the_client_and_passes_on_the_last_answers(
    fake: FakeDaemon, bridge: Bridge
) -> None:
    with fake.welcome() as connection:
        bridge.stdin.write(request(1))
        bridge.stdin.close()
        assert received(connection, len(request(1))) == request(1)
        assert connection.recv(1) == b""
        answer = b'{"jsonrpc": "2.0", "id": 1, "result": {}}\n'
        connection.sendall(answer)
        assert bridge.line() == answer
    assert bridge.ended() == (0, "")


def test_the_last_line_needs_no_end_and_its_answer_is_awaited(
    fake: FakeDaemon, bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake.welcome() as connection:
        sent = request(1) + request(2.0).rstrip()
        bridge.stdin.write(sent)
        bridge.stdin.close()
        assert received(connection, len(sent) + 1) == sent + b"\n"
        assert connection.recv(1) == b""
    answers = [json.loads(bridge.line()) for _ in range(2)]
    assert [each["id"] for each in answers] == [1, 2]
    code, said = bridge.ended()
    assert (code, "ended: start it" in said) == (1, True)


def test_an_endless_request_does_not_keep_it_after_the_end_of_input(
    fake: FakeDaemon, bridge: Bridge
) -> None:
    with fake.welcome() as connection:
        bridge.stdin.write(request(1, "subscriptions/listen"))
        bridge.stdin.close()
        while connection.recv(CHUNK_BYTES):
            pass
    assert bridge.ended() == (0, "")


def test_it_ends_when_nobody_reads_its_output_any_more(fake: FakeDaemon, bridge: Bridge) -> None:
    with fake.welcome() as connection:
        connection.sendall(b"x\n")
        assert bridge.line() == b"x\n"
        bridge.stdout.close()
        assert bridge.ended() == (1, "")


def test_sigterm_ends_it_without_a_word(fake: FakeDaemon, bridge: Bridge) -> None:
    with fake.welcome() as connection:
        connection.sendall(b"x\n")
        bridge.line()
        bridge.process.send_signal(signal.SIGTERM)
        assert bridge.ended() == (0, "")
        assert connection.recv(1) == b""


def test_when_the_daemon_goes_each_pending_request_is_answered(
    fake: FakeDaemon, bridge: Bridge
) -> None:
    with fake.welcome() as connection:
        sent = request(1) + request("two") + request(3)
        bridge.stdin.write(sent)
        received(connection, len(sent))
        connection.sendall(b'{"jsonrpc": "2.0", "id": 1, "result": {}}\n{"jsonrpc": "2')
        assert json.loads(bridge.line())["id"] == 1
    assert bridge.line() == b'{"jsonrpc": "2\n'
    answers = [json.loads(bridge.line()) for _ in range(2)]
    assert [each["id"] for each in answers] == ["two", 3]
    code, said = bridge.ended()
    assert code == 1
    assert said.count("\n") == 1
    assert "ended: start it with: aegis-actors up" in said
    assert {each["error"]["message"] for each in answers} == {
        said.removeprefix("aegis-actors: ").rstrip()
    }


def test_without_a_daemon_the_first_request_is_answered_so(bridge: Bridge) -> None:
    bridge.stdin.write(request(0, "initialize"))
    answer = json.loads(bridge.line())
    assert (answer["id"], answer["error"]["code"]) == (0, -32000)
    assert "start one with: aegis-actors up" in answer["error"]["message"]
    code, said = bridge.ended()
    assert code == 1
    assert said == f"aegis-actors: {answer['error']['message']}\n"


def test_without_a_daemon_and_without_a_client_it_ends(bridge: Bridge) -> None:
    bridge.stdin.close()
    code, said = bridge.ended()
    assert code == 1
    assert said.startswith("aegis-actors: no daemon runs for ")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b'{"type": "error", "id": null, "code": "forbidden", "message": "go away"}\n', "go away"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is not aegis-actors"),
        (b'["mcp"]\n', "is not aegis-actors"),
        (b"", "is not aegis-actors"),
        (b"x" * (MAX_WELCOME_BYTES + 100), "is not aegis-actors"),
    ],
)
def test_a_daemon_that_does_not_take_it_in_is_told_of(
    fake: FakeDaemon, bridge: Bridge, answer: bytes, reason: str
) -> None:
    connection, _ = fake.accept()
    with connection:
        connection.sendall(answer)
    bridge.stdin.write(request(0, "initialize"))
    assert reason in json.loads(bridge.line())["error"]["message"]
    code, said = bridge.ended()
    assert (code, said.count("\n")) == (1, 1)
    assert reason in said
