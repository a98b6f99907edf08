"""The options of the ACP machine for a profile."""

from __future__ import annotations

import pytest

from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.drivers.harness import Permission
from aegis.agents.profiles.families import acp_options_of
from aegis.agents.profiles.profile import profile_of
from aegis.configuration.agents import AgentSection


def options(section: AgentSection, **variables: str) -> AcpOptions:
    return acp_options_of(profile_of("x", section), variables, "/s/mcp.json")


def test_the_facts_of_the_provider_reach_the_machine() -> None:
    assert options(AgentSection(provider="codex")) == AcpOptions(
        asking_modes=("read-only",),
        session_options=("allow_session",),
        waits_for_mcp=True,
        cwd_end="/.",
        mentions="skills",
    )
    assert options(AgentSection(provider="opencode")).reports_cost


@pytest.mark.parametrize("permission", ["read", "ask", "write", "full"])
def test_a_session_that_began_with_full_rights_needs_an_asking_mode_for_less(
    permission: Permission,
) -> None:
    # With "full" no mode is set, but the permission can be lowered while the agent runs.
    assert options(AgentSection(provider="kimi", permission=permission)).needs_mode


def test_a_key_chooses_the_method_to_log_in() -> None:
    gemini = AgentSection(provider="gemini")
    assert options(gemini).auth == ""
    assert options(gemini, GEMINI_API_KEY="").auth == ""
    assert options(gemini, GEMINI_API_KEY="k").auth == "gemini-api-key"
    named = AgentSection(provider="gemini", env={"GEMINI_API_KEY": "$OTHER"})
    assert options(named, OTHER="k").auth == "gemini-api-key"


def test_claude_below_an_adapter_gets_our_server_in_a_file_and_no_settings_of_its_directory() -> (
    None
):
    found = options(AgentSection(provider="claude-agent-acp"))
    assert found.server_in_file
    (given,) = found.meta.values()
    assert given["options"]["settingSources"] == ["user"]
    assert given["options"]["extraArgs"] == {"mcp-config": "/s/mcp.json"}
    assert not {"strictMcpConfig", "additionalDirectories"} & {*given["options"]}
    assert given["options"]["promptSuggestions"] is False
    trusting = options(AgentSection(provider="claude-agent-acp", project_settings=True))
    assert "settingSources" not in trusting.meta["claudeCode"]["options"]


def test_codex_does_not_find_its_directory_among_those_that_its_adapter_trusts() -> None:
    assert options(AgentSection(provider="codex")).cwd_end == "/."
    assert options(AgentSection(provider="codex", project_settings=True)).cwd_end == ""


def test_an_unknown_agent_has_no_answer_for_a_whole_session() -> None:
    section = AgentSection(provider="acp", command=("qwen",), asking_mode="default")
    assert options(section).session_options == ()
    assert options(section).asking_modes == ("default",)
