"""Several requests at once on one connection, over a real pair of sockets."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aegis.client.errors import CommandFailed, ConnectionLost
from aegis.client.nonblocking_line import NonBlockingLineClient, Response

ROOT = Path("/work")


class Peer:
    """The daemon's end of a flow."""

    def __init__(self) -> None:
        ours, self.socket = socket.socketpair()
        self.flow = NonBlockingLineClient(ours, ROOT)

    def frames(self) -> list[dict[str, Any]]:
        """What came until now."""
        assert self.flow.exchange() == []
        data = self.socket.recv(1_000_000)
        return [json.loads(line) for line in data.splitlines()]

    def says(self, **frame: object) -> None:
        self.socket.sendall(json.dumps(frame).encode() + b"\n")


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    with made.socket, made.flow:
        yield made


def test_requests_are_answered_in_any_order(peer: Peer) -> None:
    first = peer.flow.send("term_wait", {"name": "build"})
    second = peer.flow.send("term_output", {"name": "build"})
    assert [(each["id"], each["command"]) for each in peer.frames()] == [
        (first, "term_wait"),
        (second, "term_output"),
    ]
    peer.says(type="reply", id=second, result={"text": "x"})
    peer.says(type="error", id=first, code="busy", message="aegis_term_wait: it is busy")
    [one, other] = peer.flow.exchange()
    assert one == Response(second, {"text": "x"}, None)
    assert isinstance(other.error, CommandFailed)
    assert (other.number, other.error.code, str(other.error)) == (first, "busy", "it is busy")


def test_answers_may_come_byte_by_byte(peer: Peer) -> None:
    number = peer.flow.send("term_list", {})
    peer.frames()
    line = json.dumps({"type": "reply", "id": number, "result": {"é": "\n"}}, ensure_ascii=False)
    answers = []
    for byte in line.encode() + b"\n":
        peer.socket.sendall(bytes([byte]))
        answers += peer.flow.exchange()
    assert answers == [Response(number, {"é": "\n"}, None)]


def test_what_is_given_up_is_told_once_and_still_answered(peer: Peer) -> None:
    number = peer.flow.send("term_run", {})
    peer.frames()
    peer.flow.cancel(number)
    assert peer.frames() == [{"type": "cancel", "id": number}]
    peer.says(type="error", id=number, code="cancelled", message="cancelled by the client")
    [answer] = peer.flow.exchange()
    assert answer.error is not None
    assert answer.error.code == "cancelled"
    peer.flow.cancel(number)
    assert not peer.flow.events & select.POLLOUT


def test_frames_about_nothing_in_flight_are_passed_over(peer: Peer) -> None:
    number = peer.flow.send("term_list", {})
    peer.frames()
    peer.says(type="error", id=None, code="invalid_request", message="what?")
    peer.says(type="reply", id=number + 1, result={})
    peer.says(type="reply", id=number, result={"result": []})
    assert peer.flow.exchange() == [Response(number, {"result": []}, None)]


def test_a_long_request_waits_until_the_peer_reads_it(peer: Peer) -> None:
    text = "x" * 4_000_000
    peer.flow.send("term_run", {"cmd": text})
    received = b""
    assert peer.flow.exchange() == []
    assert peer.flow.events & select.POLLOUT
    while not received.endswith(b"\n"):
        received += peer.socket.recv(1_000_000)
        peer.flow.exchange()
    assert json.loads(received)["arguments"] == {"cmd": text}
    assert not peer.flow.events & select.POLLOUT


@pytest.mark.parametrize("line", [b"no json\n", b"[]\n", b'{"type": 3}\n', b'{"type": "hello"}\n'])
def test_what_is_no_answer_ends_it(peer: Peer, line: bytes) -> None:
    peer.flow.send("term_list", {})
    peer.frames()
    peer.socket.sendall(line)
    with pytest.raises(ConnectionLost, match="does not fit the protocol"):
        peer.flow.exchange()


def test_a_peer_that_goes_away_is_told_with_the_oldest_request(peer: Peer) -> None:
    peer.flow.send("term_wait", {})
    peer.flow.send("term_output", {})
    peer.frames()
    peer.socket.close()
    with pytest.raises(ConnectionLost) as caught:
        peer.flow.exchange()
    assert str(caught.value) == (
        "the connection to the daemon of /work was lost during term_wait: the daemon closed it"
    )
    assert caught.value.command == "term_wait"
