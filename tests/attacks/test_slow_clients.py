"""Clients that send next to nothing, for ever: each request has its time, whatever comes."""

from __future__ import annotations

import contextlib
import select
import time

import pytest

from tests.attacks.conftest import Watch
from tests.attacks.raw import Raw, bearer, frame, local, tcp
from tests.e2e.harness import GUARD_S, DaemonProcess

pytestmark = [pytest.mark.real, pytest.mark.long]

DRIP_S = 0.2
LONGEST_S = 50.0
"""More than the longest of the daemon's times, 30 s for a body, on a machine that is busy."""

MANY = 20


def head_by_drops(raw: Raw, daemon: DaemonProcess) -> None:
    raw.send(b"GET /health HTTP/1.1\r\n")


def nothing_at_all(raw: Raw, daemon: DaemonProcess) -> None:
    pass


def second_head_by_drops(raw: Raw, daemon: DaemonProcess) -> None:
    assert raw.request("GET", "/health")[0] == 200
    raw.send(b"GET /health HTTP/1.1\r\n")


def body_by_drops(raw: Raw, daemon: DaemonProcess) -> None:
    raw.send(raw.head("POST", "/mcp", content_length="100000", **bearer(daemon)))


def chunks_by_drops(raw: Raw, daemon: DaemonProcess) -> None:
    raw.send(raw.head("POST", "/mcp", transfer_encoding="chunked", **bearer(daemon)))


def handshake_by_drops(raw: Raw, daemon: DaemonProcess) -> None:
    raw.send(raw.websocket_head()[:-2])


def half_a_frame(raw: Raw, daemon: DaemonProcess) -> None:
    assert raw.upgrade() == 101
    raw.send(frame(b"", length=5000))


DROPS = {
    head_by_drops: b"x",
    nothing_at_all: b"",
    second_head_by_drops: b"x",
    body_by_drops: b"x",
    chunks_by_drops: b"1\r\nx\r\n",
    handshake_by_drops: b"x",
    half_a_frame: b"x",
}


def test_whoever_sends_by_drops_is_let_go_in_time(
    own_daemon: DaemonProcess, watched: Watch
) -> None:
    """All at once, twenty of each, and each sends something five times a second."""
    own_daemon.start()
    with contextlib.ExitStack() as crowd:
        slow: dict[Raw, bytes] = {}
        for attack, drop in DROPS.items():
            for _ in range(MANY):
                raw = crowd.enter_context(tcp(own_daemon))
                attack(raw, own_daemon)
                slow[raw] = drop
        with watched(own_daemon, f"{len(slow)} clients that send by drops"):
            began = time.monotonic()
            while slow:
                assert time.monotonic() < began + LONGEST_S, f"{len(slow)} are still there"
                for raw in [each for each, drop in slow.items() if is_over(each, drop)]:
                    del slow[raw]
                time.sleep(DRIP_S)


def is_over(raw: Raw, drop: bytes) -> bool:
    """Whether the daemon has hung up; else one more drop is sent."""
    while select.select([raw.socket], [], [], 0)[0]:
        try:
            if not raw.socket.recv(65_536):
                return True
        except ConnectionResetError:
            return True
    return not raw.send(drop)


def test_half_a_line_holds_up_nobody_and_is_served_when_it_is_whole(
    own_daemon: DaemonProcess, watched: Watch
) -> None:
    """On the Unix socket nobody is a stranger: who is slow there is a person, or a debugger."""
    own_daemon.start()
    whole = b'{"type":"request","id":1,"command":"term_list"}\n'
    with contextlib.ExitStack() as crowd:
        slow = [crowd.enter_context(local(own_daemon)) for _ in range(100)]
        with watched(own_daemon, "100 half lines"):
            for raw in slow:
                raw.send(whole[:20])
        for raw in slow:
            raw.socket.settimeout(GUARD_S)
            raw.send(whole[20:])
            assert raw.line()["type"] == "reply"
