"""The rights of sessions where their calls arrive."""

from __future__ import annotations

import pytest

from aegis.agents.directory.session_rights import SessionRights
from aegis.agents.profiles.profile import profile_of
from aegis.configuration.agents import AgentSection


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
