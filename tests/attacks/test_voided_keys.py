"""``token rotate`` and ``session revoke``: what was a key is none, and who used it is gone."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.conftest import Watch
from tests.attacks.raw import (
    ACCEPT,
    CLOSE,
    LEGACY,
    Raw,
    bearer,
    local,
    mcp,
    opened_session,
    session_path,
    tcp,
    until,
)
from tests.e2e.harness import GUARD_S, DaemonProcess

pytestmark = pytest.mark.real


def status_of(daemon: DaemonProcess, path: str, **headers: str) -> int:
    """What a request with these keys is answered."""
    with tcp(daemon) as raw:
        return mcp(raw, path, "ping", {}, **headers)[0]


def connected_websocket(daemon: DaemonProcess, **headers: str) -> Raw:
    """A WebSocket that was let in, and has been answered."""
    raw = tcp(daemon)
    assert raw.upgrade(**headers) == 101
    raw.send_frame({"type": "request", "id": 1, "command": "term_list"})
    assert b'"reply"' in raw.frame()[1]
    return raw


def test_a_rotated_token_is_void_at_once_and_for_good(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    old, path = bearer(own_daemon), session_path(own_daemon, "alice")
    assert status_of(own_daemon, "/mcp", **old) != 401
    voided = own_daemon.json("token", "rotate", "--json")
    assert (voided["token"], voided["sessions"]) == (True, [])
    assert status_of(own_daemon, "/mcp", **old) == 401
    fresh = bearer(own_daemon)
    assert fresh != old
    assert status_of(own_daemon, "/mcp", **fresh) != 401
    own_daemon.kill()  # at once: the answer came after the sync
    own_daemon.start()
    assert bearer(own_daemon) == fresh
    assert status_of(own_daemon, "/mcp", **old) == 401
    assert status_of(own_daemon, path) != 403, "the session is not the token's"


def test_the_endpoint_file_is_replaced_whole_and_stays_private(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    place = own_daemon.state.endpoint
    with place.open() as held:
        before = own_daemon.endpoint
        own_daemon.call("token_rotate")
        assert json.load(held)["token"] == before.token, "who reads it sees the old one whole"
    after = own_daemon.endpoint
    assert after._replace(token="") == before._replace(token="")
    assert after.token != before.token
    assert place.stat().st_mode & 0o777 == 0o600


def test_who_came_in_with_the_old_token_is_sent_away_and_nobody_else(
    own_daemon: DaemonProcess, watched: Watch
) -> None:
    own_daemon.start()
    secret = session_path(own_daemon, "alice").rpartition("/")[2]
    with (
        connected_websocket(own_daemon, **bearer(own_daemon)) as operators,
        tcp(own_daemon) as alices,
        watched(own_daemon, "a stolen token, rotated"),
    ):
        assert alices.upgrade() == 101
        alices.send_frame({"type": "hello", "version": 1, "session": secret})
        assert b'"alice"' in alices.frame()[1]
        assert own_daemon.call("token_rotate")["connections"] == 1
        kind, reason = operators.frame()
        assert (kind, int.from_bytes(reason[:2], "big")) == (CLOSE, 1008)
        assert operators.rest() == b""
        alices.send_frame({"type": "request", "id": 1, "command": "term_list"})
        assert b'"reply"' in alices.frame()[1]


def test_a_client_that_ignores_the_end_is_cut_off(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    with connected_websocket(own_daemon, **bearer(own_daemon)) as raw:
        wait = {"from_handle": "eve", "timeout": GUARD_S}
        raw.send_frame({"type": "request", "id": 2, "command": "inbox_wait", "arguments": wait})
        own_daemon.call("token_rotate")
        asked = json.dumps({"type": "request", "id": 3, "command": "term_list"})
        raw.send_frame(json.loads(asked))
        assert b'"id":3' not in raw.rest()


def test_streams_of_a_voided_key_end_and_say_why(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    with connected_websocket(own_daemon, **bearer(own_daemon)) as raw:
        raw.send_frame({"type": "open", "id": 2, "stream": "events", "arguments": {}, "credit": 0})
        assert b'"opened"' in raw.frame()[1]
        assert own_daemon.call("token_rotate")["connections"] == 1
        ended = json.loads(raw.frame()[1])
        assert (ended["type"], ended["id"], ended["code"]) == ("ended", 2, "unavailable")
        assert "void" in ended["message"]
        kind, reason = raw.frame()
        assert (kind, int.from_bytes(reason[:2], "big")) == (CLOSE, 1008)


def test_the_operator_by_uid_has_shown_no_key_and_stays(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    with local(own_daemon) as raw:
        assert raw.upgrade() == 101
        assert own_daemon.call("token_rotate", all_keys=True)["connections"] == 0
        raw.send_frame({"type": "request", "id": 1, "command": "term_list"})
        assert b'"reply"' in raw.frame()[1]


@pytest.mark.parametrize("how", ["session_revoke", "token_rotate"])
def test_a_voided_session_ends_with_its_streams_and_its_calls(
    own_daemon: DaemonProcess, how: str
) -> None:
    own_daemon.start()
    path = session_path(own_daemon, "alice")
    headers = {"mcp_session_id": opened_session(own_daemon, path), "mcp_protocol_version": LEGACY}
    with tcp(own_daemon) as stream, tcp(own_daemon) as waiting:
        stream.send(stream.head("GET", path, accept=ACCEPT, **headers))
        assert stream.answer()[0] == 200
        call = {"name": "aegis_inbox_wait", "arguments": {"timeout": GUARD_S}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        waiting.send(
            waiting.head(
                "POST",
                path,
                accept=ACCEPT,
                content_type="application/json",
                content_length=str(len(body)),
                **headers,
            )
            + body.encode()
        )
        assert waiting.answer()[0] == 200
        until(lambda: callers(own_daemon) == 1, "its call is under way")
        arguments = {"handle": "alice"} if how == "session_revoke" else {"session": "ALICE"}
        voided = own_daemon.call(how, **arguments)
        assert (voided["token"], voided["sessions"]) == (False, ["alice"])
        assert voided["connections"] >= 2
        stream.rest()
        waiting.rest()
    until(lambda: callers(own_daemon) == 0, "its session is over")
    assert status_of(own_daemon, path, **headers) == 403
    left = own_daemon.json("session", "list", "--json")["handles"]
    assert left == ([] if how == "session_revoke" else ["alice"])
    assert session_path(own_daemon, "alice") != path


def callers(daemon: DaemonProcess) -> int:
    """How many clients beside the one that asks have called something and are still there."""
    return int(daemon.call("status")["connections"]) - 1


def test_all_keys_together(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    paths = [session_path(own_daemon, name) for name in ("Bob", "alice")]
    old = bearer(own_daemon)
    told = own_daemon.cli("token", "rotate", "--all")
    assert told.stdout.splitlines() == [
        "revoked: the operator's token",
        "revoked: the session of Bob",
        "revoked: the session of alice",
        "clients disconnected: 0",
    ]
    assert [status_of(own_daemon, path) for path in paths] == [403, 403]
    assert status_of(own_daemon, "/mcp", **old) == 401
    assert own_daemon.cli("session", "list").stdout == "alice\nBob\n"
    own_daemon.kill()
    own_daemon.start()
    assert [status_of(own_daemon, path) for path in paths] == [403, 403]


def test_a_handle_cannot_void_keys_nor_see_who_has_one(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    secret = session_path(own_daemon, "alice").rpartition("/")[2]
    with tcp(own_daemon) as raw:
        assert raw.upgrade() == 101
        raw.send_frame({"type": "hello", "version": 1, "session": secret})
        raw.frame()
        for command in ("session_list", "session_revoke", "token_rotate"):
            asked: dict[str, Any] = {"type": "request", "id": 1, "command": command}
            if command == "session_revoke":
                asked["arguments"] = {"handle": "alice"}
            raw.send_frame(asked)
            assert json.loads(raw.frame()[1])["code"] == "forbidden"


def test_what_cannot_be_voided_is_told(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    error = own_daemon.refusal("session_revoke", handle="nobody")
    assert (error.code, "'nobody' has no session" in str(error)) == ("not_found", True)
    assert own_daemon.refusal("token_rotate", session="nobody").code == "not_found"
    both = own_daemon.refusal("token_rotate", session="nobody", all_keys=True)
    assert both.code == "invalid_request"
    assert own_daemon.cli("token", "rotate", "--session", "a", "--all").returncode == 2


def test_a_disk_that_refuses_voids_nothing(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    old, path = bearer(own_daemon), session_path(own_daemon, "alice")
    (Path(f"{own_daemon.state.keys}.new") / "in the way").mkdir(parents=True)
    for command, arguments in (
        ("token_rotate", {}),
        ("token_rotate", {"all_keys": True}),
        ("session_revoke", {"handle": "alice"}),
    ):
        assert own_daemon.refusal(command, **arguments).code == "storage"
    assert status_of(own_daemon, "/mcp", **old) != 401
    assert status_of(own_daemon, path) != 403
    assert own_daemon.stop(signal.SIGTERM) == 0
