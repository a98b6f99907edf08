"""The check of agent programs, which are small scripts in PATH here."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from aegis.agents.drivers.providers import BUILT_IN, BY_NAME
from aegis.doctor import agents
from aegis.doctor.agents import examine_agents
from aegis.doctor.finding import Finding, Level
from aegis.state.root import CONFIG_NAME, StatePaths

pytestmark = pytest.mark.real


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is the whole PATH, and a home without logins."""
    directory, home = tmp_path / "bin", tmp_path / "home"
    directory.mkdir()
    home.mkdir()
    for provider in BY_NAME.values():
        for name in (*provider.key_variables, *provider.home_variables):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.setenv("HOME", str(home))
    return directory


def install(programs: Path, name: str, *lines: str) -> str:
    path = programs / name
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


def found(root: Path) -> dict[str, Finding]:
    return {each.subject: each for each in examine_agents(StatePaths(root))}


def test_without_any_program_each_is_listed_with_the_line_that_installs_it(
    programs: Path, tmp_path: Path
) -> None:
    findings = found(tmp_path)
    assert list(findings) == [f"agent {name}" for name in BUILT_IN]
    assert {each.level for each in findings.values()} == {Level.OK}
    for name in BUILT_IN:
        assert findings[f"agent {name}"].sentence.endswith(BY_NAME[name].install)


def test_an_installed_program_is_asked_for_its_version_outside_of_the_checkout(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = install(programs, "claude", '[ "$*" = --version ] && echo "2.1.330 in $PWD"')
    assert found(tmp_path)["agent claude"].sentence.startswith(f"Claude Code 2.1.330 ({path})")
    path = install(programs, "claude", '[ "$PWD" = / ] && echo 9.9')
    assert found(tmp_path)["agent claude"].sentence.startswith(f"Claude Code 9.9 ({path})")


def test_a_login_is_seen_by_a_key_or_a_file(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(programs, "codex-acp", "echo codex-acp 2.6.0")
    assert found(tmp_path)["agent codex"].sentence.endswith(
        "login unknown (to log in: codex login, or OPENAI_API_KEY in the daemon's environment)"
    )
    file = tmp_path / "home" / ".codex" / "auth.json"
    file.parent.mkdir()
    file.touch()
    assert "login unknown" in found(tmp_path)["agent codex"].sentence
    file.write_text("{}")
    assert found(tmp_path)["agent codex"].sentence.endswith(f"logged in by {file}")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    sentence = found(tmp_path)["agent codex"].sentence
    assert sentence.endswith("logged in by OPENAI_API_KEY")
    assert "sk-secret" not in sentence


def test_a_profile_whose_provider_is_not_known_is_said_to_get_no_key(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = "{provider: acp, command: [x], permission: full}"
    (tmp_path / CONFIG_NAME).write_text(f"agents:\n  other: {profile}\n")
    assert "keys of profile other" not in found(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert found(tmp_path)["keys of profile other"].sentence == (
        "its provider is not known, so it gets none of the keys OPENAI_API_KEY: name the one it "
        "needs in agents.other.env"
    )
    env = "{MY_KEY: $OPENAI_API_KEY}"
    (tmp_path / CONFIG_NAME).write_text(
        f"agents:\n  other: {profile.replace('full', f'full, env: {env}')}\n"
    )
    assert "keys of profile other" not in found(tmp_path)


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        ("echo oops >&2; exit 3", "printed nothing in place of its version"),
        ("echo broken", "printed 'broken' in place of its version"),
    ],
)
def test_a_program_that_prints_no_version_is_a_warning(
    programs: Path, tmp_path: Path, line: str, failure: str
) -> None:
    path = install(programs, "gemini", line)
    finding = found(tmp_path)["agent gemini"]
    assert (finding.level, finding.sentence) == (Level.WARNING, f"{path} {failure}")
    assert finding.remedy == (
        f"see what {path} --version prints, or install it again: npm install -g @google/gemini-cli"
    )


def test_a_program_that_cannot_be_executed_is_a_warning(programs: Path, tmp_path: Path) -> None:
    path = install(programs, "kimi")
    Path(path).write_bytes(b"\x7fELF")
    finding = found(tmp_path)["agent kimi"]
    assert finding.level is Level.WARNING
    assert finding.sentence == f"{path} cannot be run: Exec format error"


def test_programs_that_hang_or_flood_are_ended_together_in_time(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "VERSION_LIMIT_S", 0.5)
    pids = tmp_path / "pids"
    wait = f"echo $$ >> {pids}; while :; do /bin/sleep 100 & echo $! >> {pids}; wait; done"
    for name in ("claude", "gemini", "kimi"):
        install(programs, name, wait)
    install(programs, "opencode", "echo 1.18.33; while :; do echo more; done")
    began = time.monotonic()
    findings = found(tmp_path)
    assert time.monotonic() - began < 10
    assert findings["agent claude"].sentence.endswith("printed no version within 0.5 s")
    assert findings["agent opencode"].level is Level.OK
    _wait_for_end(pids)


def _wait_for_end(pids: Path) -> None:
    """Wait until no process of the file runs: a signal to a group is not awaited for each."""
    deadline = time.monotonic() + 10
    while any(_runs(int(pid)) for pid in pids.read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    """Whether the process runs; a child of a killed shell may wait for its reaper as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_check_that_is_broken_off_leaves_no_process(programs: Path, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    for name in ("claude", "gemini"):
        install(programs, name, f"echo 9.9; echo $$ >> {pids}; exec /bin/sleep 100 > /dev/null")
    checking = iter(examine_agents(StatePaths(tmp_path)))
    assert next(checking).subject == "agent claude"
    checking.close()  # type: ignore[attr-defined]
    _wait_for_end(pids)


def test_the_command_of_a_profile_is_looked_for_and_not_run(programs: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    install(programs, "evil", f"touch {mark}")
    (tmp_path / CONFIG_NAME).write_text(
        "agents:\n"
        "  good: {provider: acp, command: evil, asking_mode: ask}\n"
        "  lost: {provider: acp, command: [nothing, --acp], asking_mode: ask}\n"
        "  kimi: {provider: kimi, budget_usd: 1}\n"
    )
    findings = found(tmp_path)
    assert not mark.exists()
    assert "profile good" not in findings
    assert findings["profile lost"] == Finding(
        "profile lost",
        Level.WARNING,
        "it runs 'nothing', which is not installed",
        "install it, or correct its command",
    )
    texts = [
        (each.sentence, each.remedy)
        for each in examine_agents(StatePaths(tmp_path))
        if each.subject == "profile kimi"
    ]
    assert texts[0][0].startswith("profile 'kimi' has a budget, but kimi reports no cost")
    assert texts[1][1] == "install it: uv tool install --python 3.13 kimi-cli==1.44.0"


def test_a_bad_configuration_is_left_to_its_own_check(programs: Path, tmp_path: Path) -> None:
    (tmp_path / CONFIG_NAME).write_text("agents: 5")
    assert [each for each in found(tmp_path) if each.startswith("profile")] == []
