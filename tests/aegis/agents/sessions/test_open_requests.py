"""The permission for ``aegis_call``, as one for the tool that the call names."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from aegis.agents.drivers.harness import OWN_PREFIX
from aegis.agents.sessions import steps
from aegis.agents.sessions.open_requests import OpenRequests
from aegis.protocol import agent_events as ev
from aegis.protocol.tool_sets import CALL_TOOL

CALL: dict[str, Any] = {"tool": "aegis_term_run", "arguments": {"name": "build", "cmd": "make"}}


def named(*kinds: ev.OptionKind, **call: Any) -> ev.RequestOpened:
    requests = OpenRequests(lambda _: None, lambda *_: None)
    return requests.named(call_request(*kinds, **call))


def call_request(*kinds: ev.OptionKind, **call: Any) -> ev.RequestOpened:
    options = [ev.RequestOption(id=each, name=each, kind=each) for each in kinds]
    return ev.RequestOpened(
        id="r1",
        kind="permission",
        tool=OWN_PREFIX + CALL_TOOL.tool,
        input=call or CALL,
        options=options,
    )


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


def test_a_request_of_the_next_process_with_the_id_of_a_call_is_answered_as_it_is() -> None:
    requests = OpenRequests(lambda _: None, lambda *_: None)
    for_session = ev.PermissionAnswer(kind="allow_session")
    kinds: tuple[ev.OptionKind, ...] = ("allow_once", "allow_session", "deny")
    call = requests.named(call_request(*kinds))
    assert requests.decide(call) is None
    [answer] = requests.answered(call.id, for_session)
    assert isinstance(answer, steps.AnswerAgent)
    assert answer.answer == ev.PermissionAnswer(kind="allow_once", option="allow_once")
    requests.withdraw_all("the agent's process has ended")
    direct = requests.named(attrs.evolve(call, input={"name": "build", "cmd": "rm -r ."}))
    assert requests.decide(direct) is None, "the agent's own memory decides about its own tools"
    assert requests.answered(direct.id, for_session) == [
        steps.AnswerAgent(request=direct.id, answer=for_session)
    ]
