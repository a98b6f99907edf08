"""The table of providers: complete, and true to what was measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from aegis.agents.drivers.providers import BY_NAME, PROVIDERS, Provider, provider_of_command
from aegis.processes.environment import KEY_VARIABLES
from tests.aegis.agents.drivers.providers_page import providers_page

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "providers.md"

KNOWN = [provider for provider in PROVIDERS if provider.start]


def test_the_six_measured_providers_and_any_other_are_listed_once() -> None:
    names = [provider.name for provider in PROVIDERS]
    assert names == list(BY_NAME)
    assert names == ["claude", "claude-agent-acp", "codex", "gemini", "opencode", "kimi", "acp"]


@pytest.mark.parametrize("provider", KNOWN, ids=lambda each: each.name)
def test_a_provider_can_be_started_installed_and_logged_in(provider: Provider) -> None:
    assert provider.install
    assert provider.login
    assert provider.oldest == provider.tried[0]
    assert provider.asking_modes
    assert provider.key_variables or provider.key_files
    assert set(provider.key_variables) <= KEY_VARIABLES
    assert all(not path.startswith("/") and ".." not in path for path in provider.key_files)
    for home in provider.home_variables.values():
        assert any(path.startswith(f"{home}/") for path in provider.key_files)


@pytest.mark.parametrize(
    ("cmd", "name"),
    [
        ("claude", "claude"),
        ("env A=1 B=2 /opt/bin/claude --model x", "claude"),
        ("codex resume", "codex"),
        ("exec gemini", "gemini"),
        ("make claude", None),
        ("A=1", None),
        ("", None),
    ],
)
def test_the_provider_of_a_command_is_that_of_its_program(cmd: str, name: str | None) -> None:
    found = provider_of_command(cmd)
    assert (None if found is None else found.name) == name


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda each: each.name)
def test_each_trap_is_one_sentence(provider: Provider) -> None:
    assert provider.traps
    for trap in provider.traps:
        assert re.fullmatch(r"[A-Z`].*\.", trap, re.IGNORECASE)
        assert ". " not in trap


def test_only_the_providers_that_report_a_cost_can_hold_a_budget() -> None:
    found = {provider.name for provider in PROVIDERS if provider.reports_cost}
    assert found == {"claude", "claude-agent-acp", "opencode"}
    for provider in KNOWN:
        says = any("reports no cost" in trap for trap in provider.traps)
        assert says is not provider.reports_cost


def test_two_providers_give_up_a_call_after_a_minute() -> None:
    limits = {provider.name: provider.call_limit_s for provider in KNOWN if provider.call_limit_s}
    assert limits == {"opencode": 60.0, "kimi": 60.0}


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda each: each.name)
def test_no_asking_mode_lets_a_model_approve(provider: Provider) -> None:
    careless = {"auto", "agent", "agent-full-access", "bypassPermissions", "yolo", "acceptEdits"}
    assert not careless & set(provider.asking_modes)


def test_opencode_asks_for_each_tool_but_reading_planning_and_ours_in_both_modes() -> None:
    environment = BY_NAME["opencode"].environment
    configuration = json.loads(environment["OPENCODE_CONFIG_CONTENT"])
    rules = configuration["permission"]
    allowed = {name for name, rule in rules.items() if rule == "allow"}
    assert allowed == {"list", "glob", "grep", "todowrite", "aegis_*"}
    assert {rules[name] for name in ("*", "bash", "edit", "webfetch", "task")} == {"ask"}
    assert next(iter(rules)) == "*"
    assert rules["read"]["*.env"] == "ask"
    assert [configuration["agent"][mode]["permission"] for mode in ("build", "plan")] == [rules] * 2
    assert json.loads(environment["OPENCODE_PERMISSION"]) == rules


def test_the_page_is_made_from_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == providers_page()
