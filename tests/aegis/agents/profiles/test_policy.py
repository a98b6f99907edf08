"""The policy of a profile: which permissions it answers, how, and why."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.drivers.harness import Permission
from aegis.agents.profiles.policy import APPROVED, REFUSED, decide, is_own_tool
from aegis.protocol.agent_events import (
    PermissionAnswer,
    RequestKind,
    RequestOpened,
    RequestOption,
    ToolKind,
)

KINDS: tuple[ToolKind, ...] = get_args(ToolKind)
PERMISSIONS: tuple[Permission, ...] = get_args(Permission)


def asked(tool_kind: ToolKind = "other", tool: str = "Tool", **fields: Any) -> RequestOpened:
    values = {"id": "r1", "kind": "permission", "tool": tool, "tool_kind": tool_kind, **fields}
    return RequestOpened(**values)


#   kind       read    plan    ask     write   full
TABLE = """
    read       allow   ask     ask     allow   allow
    search     allow   ask     ask     allow   allow
    think      allow   ask     ask     allow   allow
    edit       deny    ask     ask     allow   allow
    delete     deny    ask     ask     allow   allow
    move       deny    ask     ask     allow   allow
    execute    deny    ask     ask     ask     allow
    fetch      ask     ask     ask     ask     allow
    plan       ask     ask     ask     ask     ask
    other      ask     ask     ask     ask     ask
"""
ROWS = {row[0]: row[1:] for row in map(str.split, TABLE.strip().splitlines())}


@pytest.mark.parametrize("kind", KINDS)
def test_each_permission_answers_exact_kinds_of_tools(kind: ToolKind) -> None:
    found = [decide(asked(kind), permission).kind for permission in PERMISSIONS]
    assert found == ROWS[kind]


def test_the_reason_names_the_tool_its_kind_and_the_permission() -> None:
    assert decide(asked("edit", "Write"), "write").why == (
        "the tool 'Write' is approved: its kind is 'edit' and the permission of the profile 'write'"
    )
    assert decide(asked("execute", "Bash"), "read").why == (
        "the tool 'Bash' is refused: its kind is 'execute' and the permission of the profile 'read'"
    )


def test_a_refusal_reaches_the_agent_with_its_reason_and_goes_on_with_the_turn() -> None:
    decision = decide(asked("edit", "Write"), "read")
    assert decision.answer == PermissionAnswer(kind="deny", message=decision.why)


@pytest.mark.parametrize("kind", ["question", "elicitation", "login"])
@pytest.mark.parametrize("permission", PERMISSIONS)
def test_what_is_no_permission_is_left_to_a_person(
    kind: RequestKind, permission: Permission
) -> None:
    decision = decide(asked("read", kind=kind), permission)
    assert (decision.kind, decision.answer) == ("ask", None)


@pytest.mark.parametrize("permission", PERMISSIONS)
@pytest.mark.parametrize("tool", ["Bash", "mcp__aegis__aegis_term_list"])
def test_a_tool_that_was_refused_for_the_session_is_refused_whatever_is_permitted(
    permission: Permission, tool: str
) -> None:
    request = asked("other", tool)
    assert decide(request, permission, {tool}).kind == "deny"
    assert decide(request, permission, {tool.lower() + "x"}).kind != "deny"


def test_a_tool_without_a_name_is_not_one_that_was_refused() -> None:
    assert decide(asked("read", ""), "read", {""}).kind == "allow"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("permission", PERMISSIONS)
@pytest.mark.parametrize("tool", ["ExitPlanMode", "mcp__aegis__aegis_term_list"])
def test_what_needs_a_person_is_never_approved(
    kind: ToolKind, permission: Permission, tool: str
) -> None:
    assert decide(asked(kind, tool, needs_person=True), permission).kind == "ask"


@pytest.mark.parametrize(
    ("tool", "kind", "is_own"),
    [
        ("mcp__aegis__aegis_term_run", "other", True),
        ("mcp__aegis__workspace_exec", "other", True),
        ("mcp__aegis__aegis_term_list", "read", True),
        ("mcp__aegis__no_such_tool", "other", False),
        ("mcp__aegis__", "other", False),
        ("mcp__aegis2__aegis_term_run", "other", False),
        ("aegis_term_run", "other", False),
        ("xmcp__aegis__aegis_term_run", "other", False),
        ("mcp__aegis__aegis_term_run; rm -rf /", "other", False),
        ("mcp__aegis__aegis_term_run", "execute", True),
        ("", "execute", False),
    ],
)
def test_our_own_tools_are_known_by_their_whole_name(
    tool: str, kind: ToolKind, is_own: bool
) -> None:
    request = asked(kind, tool, title="mcp__aegis__aegis_term_run")
    assert is_own_tool(request) is is_own


@pytest.mark.parametrize(
    ("tool", "permission", "expected"),
    [
        ("aegis_term_run", "read", "deny"),
        ("aegis_term_run", "ask", "ask"),
        ("aegis_term_run", "write", "ask"),
        ("aegis_term_run", "full", "allow"),
        ("workspace_exec", "ask", "ask"),
        ("aegis_handoff", "read", "allow"),
        ("aegis_term_list", "ask", "allow"),
        ("workspace_create", "write", "allow"),
    ],
)
def test_our_own_tools_fall_under_the_rights_of_the_profile(
    tool: str, permission: Permission, expected: str
) -> None:
    assert decide(asked("other", f"mcp__aegis__{tool}"), permission).kind == expected


@pytest.mark.parametrize(
    ("kinds", "permission", "expected"),
    [
        (["allow_once", "deny"], "full", "allow"),
        (["allow_session", "deny"], "full", "ask"),
        (["allow_session"], "read", "ask"),
        (["allow_once", "deny_session"], "read", "ask"),
        ([], "full", "allow"),
    ],
)
def test_an_answer_that_the_agent_does_not_offer_is_left_to_a_person(
    kinds: list[Any], permission: Permission, expected: str
) -> None:
    options = [RequestOption(id=kind, name=kind, kind=kind) for kind in kinds]
    assert decide(asked("edit", options=options), permission).kind == expected


@given(
    st.sampled_from(KINDS),
    st.sampled_from(PERMISSIONS),
    st.text(),
    st.booleans(),
    st.frozensets(st.text(), max_size=3),
)
def test_an_approval_is_for_one_call_and_never_of_an_unknown_tool(
    kind: ToolKind, permission: Permission, tool: str, needs_person: bool, denied: frozenset[str]
) -> None:
    request = asked(kind, tool, needs_person=needs_person)
    decision = decide(request, permission, denied)
    assert len(decision.why) < 300
    if decision.kind == "allow":
        assert decision.answer == PermissionAnswer(kind="allow_once")
        assert not needs_person
        assert kind in APPROVED[permission] or is_own_tool(request)


def test_no_kind_is_approved_and_refused() -> None:
    for permission in PERMISSIONS:
        assert not APPROVED[permission] & REFUSED[permission]
