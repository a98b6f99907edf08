"""The rights of sessions where their calls arrive."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.directory.session_rights import Allowed, SessionRights
from aegis.agents.profiles.profile import profile_of
from aegis.configuration.agents import AgentSection
from aegis.protocol.agent_events import RequestOpened, ToolKind


def rights(**fields: object) -> SessionRights:
    known = SessionRights()
    profile = profile_of("p", AgentSection(**fields))  # type: ignore[arg-type]
    known.open("1f", "Builder", profile)
    return known


def test_the_handle_of_a_session_is_found_by_its_id() -> None:
    assert (rights().handle_of("1f"), rights().handle_of("2e")) == ("Builder", None)


def test_a_handle_that_is_no_session_may_call_what_its_key_permits() -> None:
    assert rights(permission="read").refuse("pm", "term_run") is None


@pytest.mark.parametrize("handle", ["Builder", "builder", "BUILDER"])
def test_a_session_that_may_read_cannot_run_anything(handle: str) -> None:
    known = rights(permission="read")
    assert "'term_run' is not allowed" in (known.refuse(handle, "term_run") or "")
    assert known.refuse(handle, "term_list") is None


def test_an_agent_that_asks_for_our_tools_may_call_what_a_person_approves() -> None:
    assert rights(permission="ask").refuse("builder", "term_run") is None


def test_an_agent_that_does_not_ask_for_our_tools_cannot_call_what_needs_a_person() -> None:
    known = rights(permission="ask", provider="opencode")
    assert "does not ask" in (known.refuse("builder", "term_run") or "")
    assert known.refuse("builder", "term_list") is None
    full = rights(permission="full", provider="opencode")
    assert full.refuse("builder", "term_run") is None


RUN = {"name": "build", "cmd": "make"}

TEXT = [
    {"type": "content", "content": {"type": "text", "text": '{"name": "build", "cmd": "make"}'}}
]


def permission(
    tool: str = "", title: str = "", kind: ToolKind = "other", shown: dict[str, Any] | None = None
) -> RequestOpened:
    given = RUN if shown is None else shown
    return RequestOpened(
        id="1", kind="permission", tool=tool, title=title, tool_kind=kind, input=given
    )


@pytest.mark.parametrize(
    "request_",
    [
        permission(title="Read docs/aegis_term_run.md", kind="read", shown={}),
        permission(title="aegis_term_run", kind="read"),
        permission(title="aegis_term_run", kind="execute", shown={"command": "aegis_term_run"}),
        permission(title="grep -r aegis_term_run .", shown={"command": "grep"}),
        permission(title="notes: aegis_term_run"),
        permission(tool="notes", title="aegis_term_run"),
        permission(tool="mcp__notes__aegis_term_run", title="aegis_term_run"),
        permission(title="aegis_term_run aegis_term_keys"),
    ],
)
@pytest.mark.parametrize("lasts", [False, True])
def test_a_permission_that_is_not_for_a_tool_of_ours_allows_no_call_of_one(
    request_: RequestOpened, lasts: bool
) -> None:
    allowed = Allowed()
    allowed.add(request_, lasts=lasts)
    assert not allowed.take("term_run", RUN)


@pytest.mark.parametrize(
    "request_",
    [
        permission("mcp__aegis__aegis_term_run", "x", "execute"),
        permission("aegis_term_run", "x"),
        permission("aegis_aegis_term_run", "x"),
        # As gemini, codex, opencode, kimi and claude-agent-acp have shown calls.
        permission(
            title="aegis_term_run (aegis MCP Server)", shown={"title": "x", "content": TEXT}
        ),
        permission(
            "mcp__aegis__aegis_term_run",
            "mcp.aegis.aegis_term_run",
            "execute",
            {"server": "aegis", "tool": "aegis_term_run", "arguments": RUN},
        ),
        permission(title="aegis_aegis_term_run"),
        permission(title='aegis_term_run: {"name": \n"build"}'),
        permission(title="mcp__aegis__aegis_term_run"),
    ],
)
def test_a_permission_for_a_tool_of_ours_allows_one_call_with_the_arguments_that_were_shown(
    request_: RequestOpened,
) -> None:
    allowed = Allowed()
    allowed.add(request_, lasts=False)
    assert not allowed.take("term_run", {**RUN, "cmd": "rm -r ."})
    assert not allowed.take("term_keys", RUN)
    assert allowed.take("term_run", {**RUN, "timeout": 50.0})
    assert not allowed.take("term_run", RUN)


def test_a_permission_for_the_session_allows_each_call_of_its_tool() -> None:
    allowed = Allowed()
    allowed.add(permission("mcp__aegis__aegis_term_run"), lasts=True)
    assert allowed.take("term_run", RUN)
    assert allowed.take("term_run", {**RUN, "cmd": "rm -r ."})
    assert not allowed.take("term_keys", RUN)


@pytest.mark.parametrize("lasts", [False, True])
def test_a_title_without_arguments_allows_no_call_that_has_some(lasts: bool) -> None:
    allowed = Allowed()
    allowed.add(permission(title="aegis_term_run", shown={"title": "aegis_term_run"}), lasts=lasts)
    assert not allowed.take("term_run", RUN)
