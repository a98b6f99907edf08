"""The verbs about agent sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from click.testing import Result

    from tests.fakes.line_server import LineServer

Invoke = Callable[..., "Result"]


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


def test_a_list_without_sessions_says_so(server: LineServer, invoke: Invoke) -> None:
    server.answers["list_sessions"] = {"result": []}
    result = invoke("agent", "list")
    assert (result.stdout, result.stderr) == ("", "↳ no agent session\n")
