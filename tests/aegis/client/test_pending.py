"""Which requests wait for an answer, seen by whoever only carries them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.client import pending as module
from aegis.client.pending import MAX_PENDING, Pending, error_answer


def ask(request: object, method: str = "tools/call") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request, "method": method}).encode() + b"\n"


def answer(request: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request, "result": {}}).encode() + b"\n"


def cancel(request: object) -> bytes:
    params = {"requestId": request}
    frame = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    return json.dumps(frame).encode() + b"\n"


def test_a_request_waits_until_it_is_answered_or_cancelled() -> None:
    pending = Pending()
    pending.to_server(ask(1) + ask("two") + ask(3))
    assert pending.ids == [1, "two", 3]
    pending.to_client(answer("two"))
    assert pending.ids == [1, 3]
    pending.to_server(cancel(3))
    assert pending.ids == [1]
    pending.to_client(error_answer(1, "no"))
    assert pending.ids == []


@pytest.mark.parametrize(
    "passing",
    [
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n',
        b'{"jsonrpc": "2.0", "id": 5, "result": {}}\n',
        b'{"jsonrpc": "2.0", "id": null, "method": "ping"}\n',
        b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}\n',
        b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]\n',
        b'{"method": "notifications/cancelled", "params": [1]}\n',
        b'{"method": "notifications/cancelled"}\n',
        b"no json\n",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b"\n\n",
    ],
)
def test_what_is_no_request_is_passed_over(passing: bytes) -> None:
    pending = Pending()
    pending.to_server(passing + ask(7))
    assert pending.ids == [7]


def test_a_request_of_the_server_answers_nothing() -> None:
    pending = Pending()
    pending.to_server(ask(1))
    pending.to_client(ask(1, "roots/list"))
    assert pending.ids == [1]


@given(st.lists(st.integers(1, 40)))
def test_pieces_of_any_size_say_the_same_as_the_whole(sizes: list[int]) -> None:
    asked = ask(1) + ask(2) + cancel(1) + ask("three")
    answered = answer(2) + ask(9, "ping")
    pending = Pending()
    for data, feed in ((asked, pending.to_server), (answered, pending.to_client)):
        at = 0
        for size in [*sizes, len(data)]:
            feed(data[at : at + size])
            at += size
    assert pending.ids == ["three"]
    assert not pending.is_inside_a_line


def test_it_knows_whether_the_client_got_half_a_line() -> None:
    pending = Pending()
    assert not pending.is_inside_a_line
    for byte in answer(1)[:-1]:
        pending.to_client(bytes([byte]))
        assert pending.is_inside_a_line
    pending.to_client(b"\n")
    assert not pending.is_inside_a_line
    pending.to_client(b"\n{")
    assert pending.is_inside_a_line


def test_a_line_that_is_too_long_is_carried_and_not_looked_into(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 100)
    pending = Pending()
    long = ask("x" * 200)
    for at in range(0, len(long), 30):
        pending.to_server(long[at : at + 30])
        assert sum(map(len, pending._requests._pieces)) <= 100
    pending.to_server(ask(2))
    assert pending.ids == [2]


def test_of_too_many_requests_the_newest_are_known() -> None:
    pending = Pending()
    for number in range(MAX_PENDING + 3):
        pending.to_server(ask(number))
    assert pending.ids == list(range(3, MAX_PENDING + 3))


@pytest.mark.parametrize("request_id", [0, 7, "seven"])
def test_an_answer_in_the_place_of_the_server_is_one_line_of_json_rpc(request_id: int) -> None:
    line = error_answer(request_id, "no daemon runs\nhere")
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "jsonrpc": "2.0",
        "id": request_id,
        "error": {"code": -32000, "message": "no daemon runs\nhere"},
    }
