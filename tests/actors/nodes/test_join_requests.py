"""What a node may say when it joins, and what it may be answered."""

from __future__ import annotations

import math

import pytest

from actors.errors import JoinFailed, NodeError
from actors.nodes.joining.request import (
    NAME_LIMIT,
    REFUSAL_LIMIT,
    SAID_LIMIT,
    JoinAnswer,
    JoinRequest,
    arguments_of,
    judge,
    refusal,
    verdict_of,
)
from actors.nodes.links.heartbeat import Beat

SAID: dict[str, object] = {"hello": b"hi", "every_s": 1.0, "lost_after_s": 5.0}


@pytest.mark.parametrize(
    "request_",
    [
        JoinRequest("gpu1", b"", Beat()),
        JoinRequest("g" * NAME_LIMIT, bytes(SAID_LIMIT), Beat(0.05, 0.1)),
        JoinRequest("Knoten ä", b"\xff\x00", Beat(30, 60)),
    ],
)
def test_what_a_node_says_is_what_the_root_understands(request_: JoinRequest) -> None:
    assert judge(request_.name, arguments_of(request_)) == request_


@pytest.mark.parametrize("name", ["", "g" * (NAME_LIMIT + 1), "two\nlines", "\x1b[31m", "\x00"])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(NodeError, match="characters that can be shown"):
        judge(name, SAID)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"hello": "text"}, "no request to join"),
        ({"hello": None}, "no request to join"),
        ({"hello": [b"hi"]}, "no request to join"),
        ({"more": 1}, "no request to join"),
        ({"hello": bytes(SAID_LIMIT + 1)}, "too long"),
        ({"every_s": "1"}, "beats every"),
        ({"every_s": None}, "beats every"),
        ({"every_s": 0.0}, "beats every"),
        ({"every_s": -1.0}, "beats every"),
        ({"every_s": math.nan}, "beats every"),
        ({"every_s": 3.0}, "beats every"),
        ({"lost_after_s": math.nan}, "beats every"),
        ({"lost_after_s": math.inf}, "beats every"),
        ({"lost_after_s": 61.0}, "beats every"),
        ({"lost_after_s": {}}, "beats every"),
        ({"lost_after_s": 10**400}, "beats every"),
    ],
)
def test_what_is_no_request_is_refused_with_a_reason(
    change: dict[str, object], reason: str
) -> None:
    with pytest.raises(NodeError, match=reason):
        judge("gpu1", {**SAID, **change})


@pytest.mark.parametrize("missing", list(SAID))
def test_a_request_that_leaves_something_out_is_refused(missing: str) -> None:
    with pytest.raises(NodeError, match="no request to join"):
        judge("gpu1", {name: said for name, said in SAID.items() if name != missing})


@pytest.mark.parametrize(
    "verdict", [JoinAnswer(True, b""), JoinAnswer(True, b"\x00"), refusal("No.")]
)
def test_an_answer_comes_back_as_it_was_given(verdict: JoinAnswer) -> None:
    assert verdict_of(list(verdict.packed())) == verdict


def test_a_refusal_is_bounded() -> None:
    assert refusal("x" * 5_000).said == b"x" * REFUSAL_LIMIT


@pytest.mark.parametrize(
    "said", [None, [], [True], [True, "text"], [1, b""], [True, b"", 0], {}, [True, bytes(70_000)]]
)
def test_what_is_no_answer_is_not_taken_for_one(said: object) -> None:
    with pytest.raises(JoinFailed, match="no answer"):
        verdict_of(said)
