"""The options of the ACP machine for a profile."""

from __future__ import annotations

import pytest

from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.profiles.acp_options import acp_options_of
from aegis.agents.profiles.profile import profile_of
from aegis.configuration.agents import AgentSection


def options(section: AgentSection, **variables: str) -> AcpOptions:
    return acp_options_of(profile_of("x", section), variables)


def test_the_facts_of_the_provider_reach_the_machine() -> None:
    assert options(AgentSection(provider="codex")) == AcpOptions(
        asking_modes=("read-only",),
        session_options=("allow_session",),
        waits_for_mcp=True,
    )
    assert options(AgentSection(provider="opencode")).reports_cost


@pytest.mark.parametrize("permission", ["read", "ask", "write", "full"])
def test_only_full_rights_do_without_an_asking_mode(permission: str) -> None:
    section = AgentSection(provider="kimi", permission=permission)  # type: ignore[arg-type]
    assert options(section).needs_mode is (permission != "full")


def test_a_key_chooses_the_method_to_log_in() -> None:
    gemini = AgentSection(provider="gemini")
    assert options(gemini).auth == ""
    assert options(gemini, GEMINI_API_KEY="").auth == ""
    assert options(gemini, GEMINI_API_KEY="k").auth == "gemini-api-key"
    named = AgentSection(provider="gemini", env={"GEMINI_API_KEY": "$OTHER"})
    assert options(named, OTHER="k").auth == "gemini-api-key"


def test_an_unknown_agent_has_no_answer_for_a_whole_session() -> None:
    section = AgentSection(provider="acp", command=("qwen",), asking_mode="default")
    assert options(section).session_options == ()
    assert options(section).asking_modes == ("default",)
