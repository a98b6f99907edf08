"""Profiles: resolved from configuration and provider, found by name, refused in sentences."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.drivers.providers import BUILT_IN, BY_NAME
from aegis.agents.profiles.profile import (
    every_profile,
    find_profile,
    login_command,
    process_variables,
    profile_of,
    refuse_start,
    secret_names,
    variables_of,
)
from aegis.configuration.agents import AgentSection


def made(**values: Any) -> AgentSection:
    return AgentSection(**values)


def test_a_profile_without_values_has_the_defaults_of_its_provider() -> None:
    profile = profile_of("k", made(provider="kimi"))
    assert (profile.name, profile.provider) == ("k", BY_NAME["kimi"])
    assert profile.command == ("kimi", "acp")
    assert profile.asking_modes == ("default",)
    assert profile.call_limit_s == 60.0
    assert (profile.permission, profile.tools) == ("ask", ("work",))
    assert refuse_start(profile, {}) is None


def test_the_values_of_the_profile_win() -> None:
    profile = profile_of("k", made(provider="kimi", command=("/opt/kimi",), call_limit_s=30.0))
    assert (profile.command, profile.call_limit_s) == (("/opt/kimi",), 30.0)


def test_any_agent_that_speaks_acp_is_a_profile_with_a_command_and_a_mode() -> None:
    section = made(provider="acp", command=("qwen", "--acp"), asking_mode="default")
    profile = profile_of("qwen", section)
    assert (profile.command, profile.asking_modes) == (("qwen", "--acp"), ("default",))
    assert refuse_start(profile, {}) is None


def test_the_environment_by_which_an_agent_asks_cannot_be_replaced() -> None:
    env = {"OPENCODE_CONFIG_CONTENT": "{}", "A": "b"}
    profile = profile_of("o", made(provider="opencode", env=env))
    fixed = {**BY_NAME["opencode"].environment, **BY_NAME["opencode"].without_project}
    assert profile.environment == {**fixed, "A": "b"}


def test_a_variable_that_is_only_preset_can_be_replaced() -> None:
    assert profile_of("c", made()).environment["ENABLE_TOOL_SEARCH"] == "false"
    changed = profile_of("c", made(env={"ENABLE_TOOL_SEARCH": "true"}))
    assert changed.environment["ENABLE_TOOL_SEARCH"] == "true"


def test_keys_are_secret_from_the_commands_of_an_agent_and_what_every_program_needs_is_not() -> (
    None
):
    env = {"MY_KEY": "$THEIR_KEY", "PATH": "$PATH", "PLAIN": "x"}
    secrets = secret_names(profile_of("g", made(provider="gemini", env=env)))
    assert secrets >= {"MY_KEY", "THEIR_KEY", "GEMINI_API_KEY"}
    assert not secrets & {"PATH", "PLAIN"}


def test_a_value_with_a_dollar_is_taken_from_the_daemon() -> None:
    env = {"OPENAI_API_KEY": "$REVIEW_KEY", "PRICE": "5$", "TEXT": "a $REVIEW_KEY", "NO": "$GONE"}
    profile = profile_of("r", made(provider="codex", env=env))
    daemon = {"REVIEW_KEY": "s3cret", "OTHER": "x"}
    assert variables_of(profile, daemon) == {
        "OPENAI_API_KEY": "s3cret",
        "PRICE": "5$",
        "TEXT": "a $REVIEW_KEY",
    }
    assert "s3cret" not in repr(profile)
    assert refuse_start(profile, daemon) == (
        "profile 'r' needs GONE from the environment of the daemon, where it is not set: set it "
        "and restart the daemon"
    )
    assert refuse_start(profile, {**daemon, "GONE": ""}) is None


def test_each_process_of_opencode_has_a_password_of_its_own() -> None:
    profile = profile_of("o", made(provider="opencode"))
    passwords = iter(["one", "two"])
    daemon = {"OPENCODE_SERVER_PASSWORD": "inherited"}
    for expected in ("one", "two"):
        found = process_variables(profile, daemon, lambda: next(passwords))
        assert found == {
            **profile.environment,
            "OPENCODE_SERVER_PASSWORD": expected,
        }
    codex = profile_of("c", made(provider="codex"))
    assert process_variables(codex, daemon, lambda: next(passwords)) == {}


@pytest.mark.parametrize("provider", BUILT_IN)
def test_a_budget_is_refused_for_a_provider_that_reports_no_cost(provider: str) -> None:
    refusal = refuse_start(profile_of("p", made(provider=provider, budget_usd=1.0)), {})
    if BY_NAME[provider].reports_cost:
        assert refusal is None
    else:
        assert refusal == (
            f"profile 'p' has a budget, but {provider} reports no cost: remove budget_usd, or use "
            "one of claude, claude-agent-acp, opencode"
        )


@pytest.mark.parametrize("permission", ["read", "ask", "write", "full"])
def test_an_agent_without_an_asking_mode_is_refused_unless_nothing_is_asked(
    permission: str,
) -> None:
    section = made(provider="acp", command=("qwen",), permission=permission)
    refusal = refuse_start(profile_of("q", section), {})
    if permission == "full":
        assert refusal is None
    else:
        assert refusal == (
            f"profile 'q' has the permission {permission!r}, but no mode of 'qwen' is known in "
            "which it asks: set asking_mode, or permission: full"
        )


AGENTS = {"builder": made(permission="write"), "gemini": made(provider="gemini", model="m")}


@pytest.mark.parametrize(
    ("wanted", "default", "name"),
    [
        ("builder", None, "builder"),
        ("builder", "gemini", "builder"),
        (None, "builder", "builder"),
        (None, "kimi", "kimi"),
        ("kimi", None, "kimi"),
    ],
)
def test_a_profile_is_found_by_its_name(wanted: str | None, default: str | None, name: str) -> None:
    found = find_profile(wanted, AGENTS, default)
    assert not isinstance(found, str)
    assert found.name == name


def test_a_configured_profile_replaces_the_one_of_a_provider() -> None:
    found = every_profile(AGENTS)
    assert found["gemini"].model == "m"
    assert list(found) == ["builder", "gemini", *(each for each in BUILT_IN if each != "gemini")]


@pytest.mark.parametrize(
    ("wanted", "default", "sentence"),
    [
        (None, None, "no profile was given, and .aegis.yaml has no default_agent: give one of "
         "builder, gemini, claude, claude-agent-acp, codex, opencode, kimi"),
        ("bilder", None, "there is no profile 'bilder'; did you mean 'builder'?"),
        ("Builder", None, "there is no profile 'Builder'; did you mean 'builder'?"),
        ("acp", None, "there is no profile 'acp'; the profiles are builder, gemini, claude, "
         "claude-agent-acp, codex, opencode, kimi"),
        ("x" * 500, None, f"there is no profile '{'x' * 79}…'; the profiles are"),
    ],
)  # fmt: skip
def test_an_unknown_profile_is_refused_with_the_nearest(
    wanted: str | None, default: str | None, sentence: str
) -> None:
    found = find_profile(wanted, AGENTS, default)
    assert isinstance(found, str)
    assert found.startswith(sentence)


def test_the_settings_of_a_directory_are_used_only_if_the_profile_says_so() -> None:
    plain = profile_of("p", AgentSection(provider="opencode"))
    assert plain.environment["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1"
    trusting = profile_of("p", AgentSection(provider="opencode", project_settings=True))
    assert "OPENCODE_DISABLE_PROJECT_CONFIG" not in trusting.environment
    plain = profile_of("p", AgentSection(provider="gemini"))
    assert "GEMINI_CLI_TRUST_WORKSPACE" not in plain.environment
    trusting = profile_of("p", AgentSection(provider="gemini", project_settings=True))
    assert trusting.environment["GEMINI_CLI_TRUST_WORKSPACE"] == "true"


@pytest.mark.parametrize(
    ("section", "command"),
    [
        (AgentSection(provider="claude"), "claude auth login"),
        (
            AgentSection(provider="claude", command=("/opt/my claude",)),
            "'/opt/my claude' auth login",
        ),
        (
            AgentSection(provider="codex", env={"CODEX_HOME": "$WORK", "HTTPS_PROXY": "a b"}),
            "CODEX_HOME=\"$WORK\" HTTPS_PROXY='a b' codex login",
        ),
        (AgentSection(provider="codex", env={"OPENAI_API_KEY": "$KEY"}), "codex login"),
        (AgentSection(provider="opencode", env={"EMPTY": ""}), "EMPTY='' opencode auth login"),
        (AgentSection(provider="acp", command=("own",), env={"A": "b"}), ""),
    ],
)
def test_a_login_has_the_variables_of_the_profile_but_keys(
    section: AgentSection, command: str
) -> None:
    assert login_command(profile_of("p", section)) == command
