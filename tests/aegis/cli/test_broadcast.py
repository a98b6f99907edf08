"""``term broadcast``: what it sends, prints and exits with."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from click.testing import Result

    from tests.fakes.line_server import LineServer

Invoke = Callable[..., "Result"]
Make = Callable[..., dict[str, Any]]


def answer(*outcomes: tuple[str, dict[str, Any] | None, str | None]) -> dict[str, Any]:
    return {"result": [{"name": n, "record": r, "error": e} for n, r, e in outcomes]}


@pytest.mark.parametrize(
    ("words", "cmd"),
    [
        (["cd /tmp && ls"], "cd /tmp && ls"),
        (["grep", "a b", "file"], "grep 'a b' file"),
        (["git", "log", "--", "x"], "git log -- x"),
        (["ls", "--json", "-l"], "ls --json -l"),
    ],
)
def test_what_stands_behind_the_dashes_is_the_command(
    server: LineServer, invoke: Invoke, record: Make, words: list[str], cmd: str
) -> None:
    server.answers["term_broadcast"] = answer(("web", record(), None), ("api", record(), None))
    result = invoke("term", "broadcast", "web", "--timeout", "3", "api", "--as", "pm", "--", *words)
    assert server.arguments() == {
        "names": ["web", "api"],
        "cmd": cmd,
        "timeout": 3.0,
        "from_handle": "pm",
    }
    assert result.exit_code == 0


def test_each_terminal_has_its_block(server: LineServer, invoke: Invoke, record: Make) -> None:
    outcomes = answer(("web", record(), None), ("api", None, "there is no\x1b terminal 'api'"))
    server.answers["term_broadcast"] = {**outcomes, "more": True}
    result = invoke("term", "broadcast", "web", "api", "--", "make")
    assert result.stdout == (
        "── web ──\n"
        "#3 $ pytest -q · agent:alice · 2026-05-22T14:03:25.000Z\n"
        "3 passed\n"
        "↳ exit 0 · 4.20s\n"
        "\n"
        "── api ──\n"
        "there is no\\x1b terminal 'api'\n"
    )
    assert (
        result.stderr
        == "long outputs were truncated; read them in full: aegis-actors term read NAME\n"
    )


@pytest.mark.parametrize(
    ("code", "error", "expected"), [(0, None, 0), (3, None, 1), (None, None, 1), (None, "busy", 1)]
)
def test_it_exits_with_0_only_if_all_did(
    server: LineServer,
    invoke: Invoke,
    record: Make,
    code: int | None,
    error: str | None,
    expected: int,
) -> None:
    second = None if error else record(exit=code)
    server.answers["term_broadcast"] = answer(("web", record(), None), ("api", second, error))
    result = invoke("term", "broadcast", "web", "api", "--json", "--", "make")
    assert json.loads(result.stdout)["result"][1]["error"] == error
    assert result.exit_code == expected


@pytest.mark.parametrize(
    ("words", "reason"),
    [(["web", "make"], "after '--'"), (["web", "--"], "after '--'"), (["--", "make"], "NAME")],
)
def test_names_and_a_command_are_needed(invoke: Invoke, words: list[str], reason: str) -> None:
    result = invoke("term", "broadcast", *words)
    assert result.exit_code == 2
    assert reason in result.stderr


def test_its_help_says_where_the_command_stands(invoke: Invoke) -> None:
    shown = " ".join(invoke("term", "broadcast", "--help").output.split())
    assert "broadcast [OPTIONS] NAME... -- COMMAND..." in shown
