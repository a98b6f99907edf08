"""The permission for ``aegis_call``, as one for the tool that the call names."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.drivers.harness import OWN_PREFIX
from aegis.agents.sessions.open_requests import OpenRequests
from aegis.protocol import agent_events as ev
from aegis.protocol.tool_sets import CALL_TOOL

CALL: dict[str, Any] = {"tool": "aegis_term_run", "arguments": {"name": "build", "cmd": "make"}}


def named(*kinds: ev.OptionKind, **call: Any) -> ev.RequestOpened:
    requests = OpenRequests(lambda _: None, lambda *_: None)
    options = [ev.RequestOption(id=each, name=each, kind=each) for each in kinds]
    request = ev.RequestOpened(
        id="r1",
        kind="permission",
        tool=OWN_PREFIX + CALL_TOOL.tool,
        input=call or CALL,
        options=options,
    )
    return requests.named(request)


@pytest.mark.parametrize(
    ("kinds", "kept", "is_only_once"),
    [
        ((), [], False),
        (("allow_once", "deny"), ["allow_once", "deny"], False),
        (("allow_session", "allow_once", "deny"), ["allow_once", "deny", "allow_session"], False),
        # Nothing that the agent offers allows a single call: no answer for the session can be
        # carried out as one.
        (("allow_session", "deny"), ["deny"], True),
        (("allow_session", "deny_session"), [], True),
    ],
)
def test_a_session_can_be_answered_only_where_a_single_call_can(
    kinds: tuple[ev.OptionKind, ...], kept: list[str], is_only_once: bool
) -> None:
    request = named(*kinds)
    assert (request.tool, request.input) == (OWN_PREFIX + "aegis_term_run", CALL["arguments"])
    assert [each.kind for each in request.options] == kept
    assert request.no_session_scope is is_only_once


@pytest.mark.parametrize("call", [{"arguments": {}}, {"tool": "aegis_nothing"}])
def test_a_call_of_no_known_tool_is_answered_once_and_as_it_is(call: dict[str, Any]) -> None:
    request = named("allow_once", "allow_session", "deny", **call)
    assert (request.tool, request.input) == (OWN_PREFIX + CALL_TOOL.tool, call)
    assert [each.kind for each in request.options] == ["allow_once", "deny"]
    assert request.no_session_scope
