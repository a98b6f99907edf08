from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from aegis.servers.calls import OPERATOR, Identity
from aegis.servers.requests import MAX_FRAME_BYTES
from aegis.servers.wires.conversation import MAX_IN_FLIGHT, MAX_STRIKES

pytestmark = [pytest.mark.real, pytest.mark.every_python]


async def test_a_request_gets_its_reply(daemon: Any) -> None:
    client = await daemon.line_client()
    answer = await client.request("term_run", 7, name="build", cmd="echo hi")
    assert (answer["type"], answer["id"]) == ("reply", 7)
    assert answer["result"]["stdout"] == "echo hi"
    caller, command, arguments = daemon.port.calls[0]
    assert (caller.identity, caller.face, command) == (OPERATOR, "line", "term_run")
    assert arguments == {"name": "build", "cmd": "echo hi"}


async def test_the_same_user_needs_no_hello_and_may_say_one(daemon: Any) -> None:
    client = await daemon.line_client()
    hello = await client.ask(type="hello", version=1)
    assert len(hello.pop("instance")) == 16
    assert hello == {"type": "hello", "version": 1, "server": "aegis-actors/0", "handle": None}
    assert (await client.request("term_list"))["type"] == "reply"


async def test_a_session_secret_binds_the_connection_to_its_handle(daemon: Any) -> None:
    client = await daemon.line_client()
    secret = daemon.keys.session_secret("alice")
    assert (await client.ask(type="hello", version=1, session=secret))["handle"] == "alice"
    await client.request("term_list")
    assert daemon.port.calls[0][0].identity == Identity(handle="alice", operator=False)
    refused = await client.request("down")
    assert (refused["code"], daemon.port.calls[1:]) == ("forbidden", [])


async def test_a_false_key_is_refused_and_ends_the_connection(daemon: Any) -> None:
    for key in ({"session": "x"}, {"token": "x"}, {"token": daemon.keys.session_secret("a")}):
        client = await daemon.line_client()
        answer = await client.ask(type="hello", version=1, **key)
        assert (answer["type"], answer["id"], answer["code"]) == ("error", None, "forbidden")
        with pytest.raises(EOFError):
            await client.receive()
    assert daemon.port.here == []


async def test_a_hello_in_the_middle_changes_nothing(daemon: Any) -> None:
    client = await daemon.line_client()
    await client.request("term_list")
    secret = daemon.keys.session_secret("alice")
    answer = await client.ask(type="hello", version=1, session=secret)
    assert (answer["id"], answer["code"]) == (None, "invalid_request")
    await client.request("term_list")
    assert daemon.port.calls[1][0].identity == OPERATOR


@pytest.mark.parametrize(
    ("command", "arguments", "code", "words"),
    [
        ("term_rnu", {}, "not_found", "did you mean 'term_run'"),
        ("term_run", {"name": "t"}, "invalid_request", "cmd"),
        ("term_run", {"name": "t", "cmd": "busy"}, "busy", "busy with 'make'"),
        ("term_run", {"name": "t", "cmd": "slow actor"}, "unavailable", "did not answer"),
    ],
)
async def test_a_failure_has_a_code_and_a_sentence(
    daemon: Any, command: str, arguments: dict[str, object], code: str, words: str
) -> None:
    client = await daemon.line_client()
    answer = await client.request(command, **arguments)
    assert (answer["type"], answer["id"], answer["code"]) == ("error", 1, code)
    assert words in answer["message"]


async def test_a_bug_is_logged_and_told_without_details(daemon: Any) -> None:
    client = await daemon.line_client()
    with capture_logs() as logs:
        answer = await client.request("term_run", name="t", cmd="bug")
    assert answer["code"] == "internal"
    assert "internal detail" not in answer["message"]
    assert [entry["event"] for entry in logs] == ["a request failed"]
    assert (await client.request("term_list"))["type"] == "reply"


async def test_answers_come_in_the_order_of_completion(daemon: Any) -> None:
    client = await daemon.line_client()
    arguments = {"name": "t", "cmd": "hold"}
    await client.send({"type": "request", "id": "a", "command": "term_run", "arguments": arguments})
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    assert (await client.request("term_list", 2))["id"] == 2
    daemon.port.release.set()
    assert (await client.receive())["id"] == "a"


async def test_a_cancelled_request_is_told_so_and_the_others_go_on(daemon: Any) -> None:
    client = await daemon.line_client()
    for number in (1, 2):
        await client.send({"type": "request", "id": number, "command": "inbox_wait"})
    await daemon.port.until(lambda: daemon.port.waiting == 2)
    answer = await client.ask(type="cancel", id=1)
    assert (answer["id"], answer["code"]) == (1, "cancelled")
    assert (daemon.port.cancelled, daemon.port.waiting) == (1, 1)


async def test_cancelling_what_is_not_in_flight_does_nothing(daemon: Any) -> None:
    client = await daemon.line_client()
    await client.send({"type": "cancel", "id": 1})
    assert (await client.request("term_list", 1))["type"] == "reply"
    await client.send({"type": "cancel", "id": 1})
    assert (await client.request("term_list", 2))["id"] == 2


async def test_an_id_in_flight_cannot_be_used_twice(daemon: Any) -> None:
    client = await daemon.line_client()
    await client.send({"type": "request", "id": 1, "command": "inbox_wait"})
    answer = await client.ask(type="request", id=1, command="term_list")
    assert (answer["id"], answer["code"]) == (None, "invalid_request")
    assert "still in flight" in answer["message"]
    assert (await client.ask(type="cancel", id=1))["code"] == "cancelled"


async def test_requests_in_flight_are_bounded_and_cancelling_makes_room(daemon: Any) -> None:
    client = await daemon.line_client()
    for number in range(MAX_IN_FLIGHT):
        await client.send({"type": "request", "id": number, "command": "inbox_wait"})
    answer = await client.request("term_list", 1000)
    assert (answer["id"], answer["code"]) == (1000, "busy")
    assert (await client.ask(type="cancel", id=5))["id"] == 5
    assert (await client.request("term_list", 1001))["type"] == "reply"


@pytest.mark.parametrize("how", ["closes", "closes its sending side"])
async def test_a_client_that_goes_cancels_what_it_had_in_flight(daemon: Any, how: str) -> None:
    client = await daemon.line_client()
    await client.send({"type": "request", "id": 1, "command": "inbox_wait"})
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    await (client.stream.aclose() if how == "closes" else client.stream.send_eof())
    await daemon.port.until(lambda: daemon.port.cancelled == 1)
    await daemon.port.until(lambda: daemon.port.gone == daemon.port.here)


async def test_each_connection_is_told_open_and_closed_once_with_its_own_name(
    daemon: Any,
) -> None:
    for _ in range(2):
        client = await daemon.line_client()
        await client.request("term_list")
        await client.request("term_list")
        await client.stream.aclose()
    await daemon.port.until(lambda: len(daemon.port.gone) == 2)
    assert sorted(daemon.port.gone, key=str) == sorted(daemon.port.here, key=str)
    assert len({caller.connection for caller in daemon.port.here}) == 2
    assert [call[0] for call in daemon.port.calls][::2] == daemon.port.here


async def test_somebody_who_only_connects_is_nobody(daemon: Any) -> None:
    client = await daemon.line_client()
    await client.stream.send_all(b"{")
    await client.stream.aclose()
    assert (await (await daemon.line_client()).request("term_list"))["type"] == "reply"
    assert len(daemon.port.here) == 1


async def test_a_malformed_line_is_answered_and_the_next_is_served(daemon: Any) -> None:
    client = await daemon.line_client()
    for line in (b"{\n", b"nonsense\n", b"[1]\n", b'{"type":"x"}\n', b"\xff\n"):
        await client.stream.send_all(line)
        answer = await client.receive()
        assert (answer["type"], answer["id"], answer["code"]) == ("error", None, "invalid_request")
    assert (await client.request("term_list"))["type"] == "reply"


async def test_repeated_abuse_ends_the_connection(daemon: Any) -> None:
    client = await daemon.line_client()
    for _ in range(MAX_STRIKES):
        await client.send({"type": "nonsense"})
        assert (await client.receive())["id"] is None
    with pytest.raises(EOFError):
        await client.receive()


async def test_being_sent_away_cancels_what_is_in_flight(daemon: Any) -> None:
    client = await daemon.line_client()
    await client.send({"type": "request", "id": 1, "command": "inbox_wait"})
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    for _ in range(MAX_STRIKES):
        await client.ask(type="nonsense")
    await daemon.port.until(lambda: daemon.port.cancelled == 1)
    await daemon.port.until(lambda: daemon.port.gone == daemon.port.here)


async def test_good_requests_between_bad_ones_forgive_them(daemon: Any) -> None:
    client = await daemon.line_client()
    for _ in range(2):
        for _ in range(MAX_STRIKES - 1):
            await client.ask(type="nonsense")
        assert (await client.request("term_list"))["type"] == "reply"


async def test_empty_lines_are_passed_over(daemon: Any) -> None:
    client = await daemon.line_client()
    one, two = (
        json.dumps({"type": "request", "id": number, "command": "term_list"}) for number in (1, 2)
    )
    await client.stream.send_all(f"{one}\n\n \r\n{two}\r\n".encode())
    assert (await client.receive())["type"] == (await client.receive())["type"] == "reply"


async def test_a_line_may_be_as_long_as_the_limit(daemon: Any) -> None:
    client = await daemon.line_client()
    frame = json.dumps({"type": "request", "id": 1, "command": "term_list"}).encode()
    await client.stream.send_all(frame + b" " * (MAX_FRAME_BYTES - len(frame)) + b"\n")
    assert (await client.receive())["type"] == "reply"


async def test_a_line_beyond_the_limit_is_told_and_ends_the_connection(
    daemon: Any, nursery: trio.Nursery
) -> None:
    client = await daemon.line_client()

    async def send_forever() -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while True:
                await client.stream.send_all(b"{" * 65_536)

    nursery.start_soon(send_forever)
    answer = await client.receive()
    assert (answer["id"], answer["code"]) == (None, "invalid_request")
    with pytest.raises((EOFError, trio.BrokenResourceError)):
        await client.receive()


async def test_a_client_that_does_not_read_costs_the_others_nothing(daemon: Any) -> None:
    deaf = await daemon.line_client()
    arguments = {"name": "t", "cmd": "x" * 900_000}
    for number in range(3):
        await deaf.send(
            {"type": "request", "id": number, "command": "term_run", "arguments": arguments}
        )
    await daemon.port.until(lambda: len(daemon.port.calls) == 3)
    client = await daemon.line_client()
    for number in range(20):
        assert (await client.request("term_list", number))["id"] == number


async def test_a_large_answer_arrives_whole(daemon: Any) -> None:
    client = await daemon.line_client()
    text = "é" * 400_000
    answer = await client.request("term_run", name="t", cmd=text)
    assert answer["result"]["stdout"] == text
