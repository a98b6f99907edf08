"""The verbs about inboxes and sessions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from click.testing import Result

    from tests.fakes.line_server import LineServer

Invoke = Callable[..., "Result"]


def message(number: int, body: str) -> dict[str, Any]:
    return {
        "id": f"m{number}",
        "sender": "agent:bob",
        "body": body,
        "text": f"> from agent:bob · 2026-05-22T14:03:25Z\n{body}",
        "timestamp": "2026-05-22T14:03:25.000Z",
        "task_id": None,
        "status": None,
    }


def test_read_shows_messages_and_how_to_acknowledge_them(
    server: LineServer, invoke: Invoke
) -> None:
    messages = [message(1, "one\x1b[2J"), message(2, "two")]
    server.answers["inbox_read"] = {"messages": messages, "next": "n2"}
    result = invoke("inbox", "read", "--as", "alice")
    assert server.arguments() == {"from_handle": "alice"}
    header = "> from agent:bob · 2026-05-22T14:03:25Z"
    assert result.stdout == f"{header}\none\\x1b[2J\n\n{header}\ntwo\n"
    assert result.stderr == "acknowledge with: --after n2\n"

    server.answers["inbox_read"] = {"messages": messages, "next": None}
    result = invoke("inbox", "read", "--as", "alice", "--all", "--limit", "2")
    assert result.stdout.endswith("two\n")
    notice = "↳ older unread messages are not shown: read them first, without --all\n"
    assert result.stderr == notice


@pytest.mark.parametrize(
    ("sender", "body", "shown"),
    [
        (
            "term:b",
            'folded\nread them: aegis_term_read(name="b", since_seq=3)',
            "folded\nread them: aegis-actors term read b --since 3",
        ),
        ("term:b", "$ grep aegis_term_read", "$ grep aegis_term_read"),
        ("agent:bob", "use aegis_term_read", "use aegis_term_read"),
    ],
)
def test_only_the_daemons_own_sentences_name_verbs(
    server: LineServer, invoke: Invoke, sender: str, body: str, shown: str
) -> None:
    found = message(1, body) | {"sender": sender, "text": f"> from {sender}\n{body}"}
    server.answers["inbox_read"] = {"messages": [found], "next": None}
    assert invoke("inbox", "read", "--as", "pm").stdout == f"> from {sender}\n{shown}\n"


def test_read_sends_every_option(server: LineServer, invoke: Invoke) -> None:
    server.answers["inbox_read"] = {"messages": [], "next": None}
    result = invoke("inbox", "read", "--after", "n1", "--all", "--limit", "3")
    assert server.arguments() == {"after": "n1", "unread": False, "limit": 3}
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "↳ no message\n")


def test_a_wait_in_which_nothing_came_says_so(server: LineServer, invoke: Invoke) -> None:
    server.answers["inbox_wait"] = {"messages": [], "next": None}
    result = invoke("inbox", "wait", "--timeout", "0.1")
    told = "↳ no message arrived in time\n"
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", told)


def test_wait_waits_as_long_as_told(server: LineServer, invoke: Invoke) -> None:
    server.answers["inbox_wait"] = {"messages": [message(1, "x")], "next": "n1"}
    result = invoke("inbox", "wait", "--timeout", "0.5", "--json")
    assert server.arguments() == {"timeout": 0.5}
    assert json.loads(result.stdout)["next"] == "n1"


@pytest.mark.parametrize(
    ("words", "context"),
    [(["look at --json"], "look at --json"), (["run", "-x", "now"], "run -x now")],
)
def test_send_wakes_somebody_with_the_text(
    server: LineServer, invoke: Invoke, words: list[str], context: str
) -> None:
    server.answers["handoff"] = {"id": "m7", "status": "queued", "position": 2}
    result = invoke("inbox", "send", "bob", *words)
    assert server.arguments() == {"target_handle": "bob", "context": context}
    assert result.stdout == "queued behind 2 (m7)\n"


@pytest.mark.parametrize("verb", ["inbox", "agent"])
def test_send_interrupts_and_names_its_message(
    server: LineServer, invoke: Invoke, verb: str
) -> None:
    server.answers["handoff"] = {"id": "m7", "status": "landed", "position": 0}
    result = invoke(verb, "send", "--interrupt", "--key", "k1", "bob", "stop")
    assert server.arguments() == {
        "target_handle": "bob",
        "context": "stop",
        "interrupt": True,
        "key": "k1",
    }
    assert result.stdout == "landed (m7)\n"


def test_a_new_session_prints_its_url_and_nothing_else(server: LineServer, invoke: Invoke) -> None:
    url = "http://127.0.0.1:8420/mcp/s/secret"
    server.answers["session_new"] = {"handle": "alice", "url": url}
    result = invoke("session", "new", "--handle", "alice")
    assert server.arguments() == {"handle": "alice"}
    assert result.output == f"{url}\n"


def test_a_session_needs_a_handle(invoke: Invoke) -> None:
    result = invoke("session", "new")
    assert result.exit_code == 2
    assert result.stderr == (
        "aegis-actors: Missing option '--handle'; see: aegis-actors session new --help\n"
    )


def test_show_prints_what_an_agent_has_used(server: LineServer, invoke: Invoke) -> None:
    usage = {
        "input_tokens": 12_000,
        "cached_percent": 80.0,
        "output_tokens": 700,
        "cost_usd": 0.1234,
        "context_tokens": 3_690,
        "context_limit": 200_000,
        "context_percent": 1.8,
        "turns_s": 65.0,
    }
    server.answers["agent_show"] = AGENT | {"usage": usage}
    lines = invoke("agent", "show", "builder").stdout.splitlines()
    assert "tokens            12,000 in, 80.0 % of it cached, 700 out" in lines
    assert "context           3,690 tokens, 1.8 % of 200,000" in lines
    assert "cost              0.1234 USD" in lines
    assert "time in turns     1m 5s" in lines
    server.answers["agent_show"] = AGENT | {"usage": None}
    assert "cost" not in invoke("agent", "show", "builder").stdout


AGENT: dict[str, object] = {
    "permission": "ask",
    "budget_usd": None,
    "id": "s1",
    "handle": "builder",
    "profile": "p",
    "provider": "claude",
    "state": "idle",
    "since": "2026-05-22T14:03:25.000Z",
    "reason": "",
    "cwd": "/",
    "spawned_by": "human",
    "model": "",
    "turn": 1,
    "waiting": 0,
    "quiet_s": 0.0,
    "tools": [],
    "blocked": None,
    "limited_until": None,
    "conversation": None,
}
