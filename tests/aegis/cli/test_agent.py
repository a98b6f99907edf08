"""The verbs about agent sessions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from click.testing import Result

    from tests.fakes.line_server import LineServer

Invoke = Callable[..., "Result"]

OTHER_VERSION = (
    "the answer does not fit: the daemon is of another version; restart it with aegis-actors down, "
    "then aegis-actors up"
)


def said(seq: int) -> dict[str, Any]:
    event = {"type": "assistant_text", "text": f"text {seq}"}
    at = "2026-11-23T09:00:00.000Z"
    return {"seq": seq, "kind": "event", "at": at, "fields": {"event": event}}


@pytest.mark.parametrize(
    ("words", "first", "more", "notice"),
    [
        ((), 1, False, ""),
        ((), 7, False, "↳ from the beginning: aegis-actors agent read pm --since 0\n"),
        (("--since", "0"), 1, False, ""),
        (("--since", "6"), 7, True, "↳ there are more: aegis-actors agent read pm --since 8\n"),
    ],
)
def test_read_says_how_to_get_the_entries_that_it_left_out(
    server: LineServer, invoke: Invoke, words: tuple[str, ...], first: int, more: bool, notice: str
) -> None:
    server.answers["session_read"] = {"result": [said(first), said(first + 1)], "more": more}
    result = invoke("agent", "read", "pm", *words)
    assert result.stdout == f"{first:>5} text {first}\n{first + 1:>5} text {first + 1}\n"
    assert result.stderr == notice


@pytest.mark.parametrize(
    ("words", "command", "result"),
    [
        (("agent", "list"), "list_sessions", {"result": [{"name": "ann"}]}),
        (("agent", "show", "ann"), "agent_show", {"usage": 3}),
        (
            ("agent", "wait", "ann", "--json"),
            "agent_wait",
            {"outcome": "pondering", "blocked": None},
        ),
    ],
)
def test_an_answer_of_another_version_is_one_sentence(
    server: LineServer, invoke: Invoke, words: tuple[str, ...], command: str, result: object
) -> None:
    frame = {"type": "reply", "id": 1, "result": result}
    server.answers[command] = json.dumps(frame).encode() + b"\n"
    failed = invoke(*words)
    assert failed.exit_code == 1
    assert failed.stderr == f"aegis-actors: {OTHER_VERSION}\n"
    if "--json" in words:
        assert json.loads(failed.stdout.splitlines()[-1])["error"]["message"] == OTHER_VERSION


def test_a_long_wait_is_made_of_calls_that_the_daemon_accepts(
    server: LineServer, invoke: Invoke
) -> None:
    outcomes = iter(["timeout", "timeout", "done"])
    rest: dict[str, Any] = {"handle": "pm", "reason": "", "turn": 1, "text": "", "blocked": None}
    server.answers["agent_wait"] = lambda: rest | {"outcome": next(outcomes)}
    assert invoke("agent", "wait", "pm", "--timeout", "90000").exit_code == 0
    assert [server.arguments()["timeout"] for _ in range(3)] == [3600.0] * 3


def test_a_list_without_sessions_says_so(server: LineServer, invoke: Invoke) -> None:
    server.answers["list_sessions"] = {"result": []}
    result = invoke("agent", "list")
    assert (result.stdout, result.stderr) == ("", "↳ no agent session\n")
