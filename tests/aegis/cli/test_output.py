"""``term output`` and ``term wait``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from aegis.errors import Busy, Unavailable

if TYPE_CHECKING:
    from click.testing import Result

    from tests.fakes.line_server import LineServer

Invoke = Callable[..., "Result"]
Make = Callable[..., dict[str, Any]]


def chunks(*texts: str, dropped: int = 0) -> Callable[[], Any]:
    """Replies in a row with these texts, then empty ones."""
    ahead, position = list(texts), [dropped]

    def answer() -> dict[str, Any]:
        text = ahead.pop(0) if ahead else ""
        start, position[0] = position[0], position[0] + len(text)
        lost = dropped if start == dropped and text else 0
        return {
            "text": text,
            "cursor": start,
            "next_cursor": position[0],
            "dropped": lost,
            "running": True,
        }

    return answer


def test_output_is_shown_to_its_end_and_escaped(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_output"] = chunks("one\n", "two\x1b[2J\n")
    result = invoke("term", "output", "build")
    assert (result.exit_code, result.stdout) == (0, "one\ntwo\\x1b[2J\n")
    asked = [server.arguments() for _ in range(3)]
    assert asked[0] == {"name": "build", "max_bytes": 262_144, "plain": True}
    assert [each.get("cursor") for each in asked] == [None, 4, 12]
    assert not any("wait_s" in each for each in asked)


def test_raw_output_is_as_it_is(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_output"] = chunks("\x1b[31mred")
    result = invoke("term", "output", "build", "--raw", "--cursor", "7")
    assert result.stdout == "\x1b[31mred"
    assert server.arguments() == {
        "name": "build",
        "max_bytes": 262_144,
        "plain": False,
        "cursor": 7,
    }


def test_what_is_no_longer_kept_is_said(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_output"] = chunks("rest", dropped=500)
    result = invoke("term", "output", "build", "--cursor", "0")
    assert (result.stdout, result.stderr) == ("rest", "… 500 bytes are no longer kept …\n")


def test_follow_goes_on_until_the_terminal_is_closed(server: LineServer, invoke: Invoke) -> None:
    reply = chunks("one\n", "two\n", "", "three\n")
    calls = []

    def answer() -> Any:
        calls.append(1)
        return reply() if len(calls) < 5 else Unavailable("terminal 'build' is closed: no more")

    server.answers["term_output"] = answer
    result = invoke("term", "output", "build", "--follow")
    assert (result.exit_code, result.stdout) == (0, "one\ntwo\nthree\n")
    assert result.stderr == "aegis-actors: terminal 'build' is closed: no more\n"
    asked = [server.arguments() for _ in range(5)]
    assert [each.get("wait_s") for each in asked] == [None, 50.0, 50.0, 50.0, 50.0]
    assert [each.get("cursor") for each in asked] == [None, 4, 8, 8, 14]


@pytest.mark.parametrize("error", [Unavailable("it failed"), Busy("too many")])
def test_follow_fails_if_it_cannot_begin(
    server: LineServer, invoke: Invoke, error: Unavailable | Busy
) -> None:
    server.answers["term_output"] = error
    result = invoke("term", "output", "build", "-f")
    assert (result.exit_code, result.stderr) == (1, f"aegis-actors: {error}\n")


def test_json_is_one_reply(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_output"] = chunks("a", "b")
    assert json.loads(invoke("term", "output", "build", "--json").stdout)["text"] == "a"
    result = invoke("term", "output", "build", "--json", "--follow")
    assert (result.exit_code, "leave out --follow" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        ({"reason": "ended", "record": {"exit": 3}}, 3),
        ({"reason": "ended", "record": {"exit": None}}, 125),
        ({"reason": "ended", "record": None}, 0),
        ({"reason": "matched", "match": "ready"}, 0),
        ({"reason": "matched", "match": "ready", "record": {"exit": 3}}, 0),
        ({"reason": "idle"}, 0),
        ({"reason": "timeout"}, 125),
        ({"reason": "needs_input", "record": {"exit": None}}, 125),
        ({"reason": "closed", "record": {"exit": None}}, 125),
    ],
)
def test_wait_exits_as_the_command_did(
    server: LineServer, invoke: Invoke, record: Make, outcome: dict[str, Any], code: int
) -> None:
    given = {"match": None, "cursor": 42, "record": None} | outcome
    if given["record"] is not None:
        given["record"] = record(**given["record"])
    server.answers["term_wait"] = given
    result = invoke("term", "wait", "build")
    assert result.exit_code == code
    assert result.stderr == f"↳ {given['reason'].replace('_', ' ')} · cursor 42\n"
    if given["match"] is not None:
        assert result.stdout == "ready\n"
    else:
        assert result.stdout.startswith("" if given["record"] is None else "#3 $ pytest -q")
    assert server.arguments() == {"name": "build"}


def test_wait_sends_every_option(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_wait"] = {"reason": "idle", "match": None, "cursor": 1, "record": None}
    options = ["--seq", "3", "--pattern", "a|b", "--idle", "1.5", "--cursor", "9", "--timeout", "7"]
    result = invoke("term", "wait", "build", *options, "--json", "--as", "alice")
    assert json.loads(result.stdout)["reason"] == "idle"
    assert server.arguments() == {
        "name": "build",
        "seq": 3,
        "pattern": "a|b",
        "idle_s": 1.5,
        "cursor": 9,
        "timeout": 7,
        "from_handle": "alice",
    }
