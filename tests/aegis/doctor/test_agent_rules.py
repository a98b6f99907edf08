"""The rules for agent programs: versions as they print them, and visible logins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.drivers.providers import BY_NAME, PROVIDERS
from aegis.doctor.agent_rules import (
    judge_missing,
    judge_version,
    key_files_of,
    login_of,
    version_in,
)
from aegis.doctor.finding import Level, ok, warning

CLAUDE, CODEX, KIMI = BY_NAME["claude"], BY_NAME["codex"], BY_NAME["kimi"]


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("2.1.330 (Claude Code)\n", "2.1.330"),
        ("0.101.0\n", "0.101.0"),
        ("@agentclientprotocol/codex-acp 2.6.0\n", "2.6.0"),
        ("kimi, version 1.44.0\n", "1.44.0"),
        ("v1.18.33-beta.1", "1.18.33"),
        ("", None),
        ("Error: 5 things went wrong", None),
    ],
)
def test_the_version_is_found_in_what_real_programs_print(output: str, version: str | None) -> None:
    assert version_in(output) == version


@given(st.text())
def test_any_output_gives_a_finding_of_one_line(output: str) -> None:
    found = judge_version(CLAUDE, "/bin/claude", output, "login unknown")
    assert found.sentence.isprintable()
    assert len(found.sentence) < 300


@pytest.mark.parametrize(
    ("output", "level"),
    [
        ("2.1.330", Level.OK),
        ("2.1.331", Level.OK),
        ("2.2.0", Level.OK),
        ("10.0", Level.OK),
        ("2.1.329", Level.WARNING),
        ("2.0.999", Level.WARNING),
        ("1.99.999", Level.WARNING),
        ("2.1", Level.WARNING),
        ("no version", Level.WARNING),
    ],
)
def test_a_version_older_than_the_tried_one_is_a_warning(output: str, level: Level) -> None:
    assert judge_version(CLAUDE, "/bin/claude", output, "login unknown").level is level


def test_a_finding_names_version_path_login_and_remedy() -> None:
    login = "logged in by OPENAI_API_KEY"
    assert judge_version(CODEX, "/bin/codex-acp", "2.6.0", login) == ok(
        "agent codex",
        "Codex by its ACP adapter 2.6.0 (/bin/codex-acp), logged in by OPENAI_API_KEY",
    )
    assert judge_version(CODEX, "/bin/codex-acp", "0.16.0", login) == warning(
        "agent codex",
        "Codex by its ACP adapter 0.16.0 (/bin/codex-acp), logged in by OPENAI_API_KEY; it was "
        "tried with 2.6.0 and newer ones only",
        "upgrade it: npm install -g @agentclientprotocol/codex-acp",
    )
    assert judge_missing(KIMI) == ok(
        "agent kimi", "not installed; to install it: uv tool install --python 3.13 kimi-cli==1.44.0"
    )


def test_a_login_is_a_key_in_the_environment_or_a_file_and_else_unknown() -> None:
    variables = {"ANTHROPIC_API_KEY": "sk-secret", "EMPTY": ""}
    assert login_of(CLAUDE, variables, "/h/x") == "logged in by ANTHROPIC_API_KEY"
    assert login_of(CLAUDE, {"ANTHROPIC_API_KEY": ""}, "/h/x") == "logged in by /h/x"
    assert login_of(KIMI, variables, None) == "login unknown (to log in: kimi login)"


def test_the_files_with_keys_follow_the_variables_of_the_agent() -> None:
    assert key_files_of(CODEX, {}, "/home/u") == ["/home/u/.codex/auth.json"]
    assert key_files_of(CODEX, {"CODEX_HOME": "/c"}, "/home/u") == ["/c/auth.json"]
    moved = {"CLAUDE_CONFIG_DIR": "/c"}
    assert key_files_of(CLAUDE, moved, "/home/u") == ["/c/.credentials.json"]
    for provider in PROVIDERS:
        assert len(key_files_of(provider, {}, "/h")) == len(provider.key_files)
