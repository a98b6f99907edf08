"""The files of a project that run programs: found, shown, and trusted by their content."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from aegis.agents.directory import project_code as found_code
from aegis.agents.directory.project_code import CODE, ProjectCode, project_code
from aegis.agents.directory.user_world import gemini_trusts, user_world
from aegis.agents.profiles.profile import profile_of
from aegis.configuration.agents import AgentSection


def write(path: Path, text: str = "{}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def code(project: Path, provider: str = "claude") -> ProjectCode:
    return project_code(provider, str(project), str(project.parent / "home"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.mark.parametrize("provider", [*CODE, "kimi", "acp"])
def test_a_project_without_settings_needs_no_trust(project: Path, provider: str) -> None:
    write(project / "CLAUDE.md", "text")
    write(project / ".claude" / "rules" / "style.md", "text")
    write(project / ".claude" / "CLAUDE.md", "text")
    found = code(project, provider)
    assert (found.digest, found.files) == ("", ())
    assert found.is_within(())


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("claude", ".claude/settings.json"),
        ("claude", ".claude/settings.local.json"),
        ("claude", ".claude/hooks/run.sh"),
        ("claude", ".claude/skills/x/SKILL.md"),
        ("claude-agent-acp", ".mcp.json"),
        ("codex", ".codex/config.toml"),
        ("gemini", ".env"),
        ("gemini", ".gemini/settings.json"),
        ("opencode", "opencode.json"),
        ("opencode", "opencode.jsonc"),
        ("opencode", ".opencode/plugin/evil.js"),
    ],
)
def test_each_change_needs_another_trust(project: Path, provider: str, name: str) -> None:
    file = write(project / name, "{}")
    before = code(project, provider)
    assert before.files == (name,)
    assert not before.is_within(())
    assert before.is_within(before.digests)
    file.write_text('{"a": 1}')
    assert not code(project, provider).is_within(before.digests)
    file.write_text("{}")
    assert code(project, provider).is_within(before.digests)
    file.rename(file.with_name(f"other-{file.name}"))
    moved = code(project, provider)
    assert not moved.digests or not moved.is_within(before.digests)


def test_the_settings_of_directories_above_count_but_not_those_of_the_home(tmp_path: Path) -> None:
    project = tmp_path / "home" / "src" / "project"
    project.mkdir(parents=True)
    write(tmp_path / "home" / ".claude" / "settings.json")
    write(tmp_path / "home" / "src" / ".mcp.json")
    found = project_code("claude", str(project), str(tmp_path / "home"))
    assert found.files == ("../.mcp.json",)


def test_a_worktree_with_the_same_settings_needs_no_other_trust(project: Path) -> None:
    write(project / ".mcp.json")
    tree = project / ".aegis" / "worktrees" / "1"
    write(tree / ".mcp.json")
    assert code(tree).is_within(code(project).digests)
    write(tree / ".mcp.json", "[]")
    assert not code(tree).is_within(code(project).digests)


def test_a_program_of_the_project_that_settings_name_counts(project: Path) -> None:
    program = write(project / "tools" / "hook.sh", "true")
    hook = {"hooks": {"Stop": [{"hooks": [{"command": "$CLAUDE_PROJECT_DIR/tools/hook.sh -v"}]}]}}
    write(project / ".claude" / "settings.json", json.dumps(hook))
    write(project / ".mcp.json", json.dumps({"command": "python", "args": ["./server.py"]}))
    server = write(project / "server.py", "")
    trusted = code(project).digests
    for each in (program, server):
        before = each.read_text()
        each.write_text("rm -rf /")
        assert not code(project).is_within(trusted)
        each.write_text(before)
    assert code(project).is_within(trusted)


def test_the_settings_are_shown_value_by_value_and_other_files_by_name(project: Path) -> None:
    write(project / ".claude" / "agents" / "a.md", "text")
    write(project / ".claude" / "settings.json", json.dumps({"env": {"A": "b"}, "hooks": ["x"]}))
    write(project / ".mcp.json", "{ no JSON")
    assert code(project).shown == (
        ".claude/agents/a.md",
        '.claude/settings.json: env.A = "b"',
        '.claude/settings.json: hooks[0] = "x"',
        ".mcp.json",
    )
    write(project / ".codex" / "config.toml", '[mcp_servers.x]\ncommand = "sh"\n')
    assert code(project, "codex").shown == ('.codex/config.toml: mcp_servers.x.command = "sh"',)


def test_what_is_shown_is_bounded(project: Path) -> None:
    deep = "[" * 500 + "]" * 500
    many = {"long": "x" * 9_000, "many": [*range(500)], "deep": json.loads(deep)}
    write(project / ".mcp.json", json.dumps(many))
    shown = code(project).shown
    assert len(shown) == found_code.MAX_SHOWN + 1
    assert shown[-1] == "and 302 more lines"
    assert max(map(len, shown)) <= found_code.MAX_SHOWN_CHARS + 1
    write(project / ".mcp.json", "[" * 100_000)
    assert code(project).shown == (".mcp.json",)


@pytest.mark.parametrize("name", [".claude", ".claude/settings.json", ".mcp.json"])
def test_a_link_out_of_the_project_cannot_be_trusted(project: Path, name: str) -> None:
    outside = write(project.parent / "outside" / "settings.json")
    link = project / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside.parent if name == ".claude" else outside)
    found = code(project)
    assert found.problem == f"{name} is a link that leads out of {project}"
    assert not found.is_within(found.digests)


def test_a_link_inside_the_project_counts_with_its_target_and_content(project: Path) -> None:
    first, second = write(project / "a.json"), write(project / "b.json")
    link = project / ".mcp.json"
    link.symlink_to(first.name)
    trusted = code(project).digests
    first.write_text("[]")
    assert not code(project).is_within(trusted)
    first.write_text("{}")
    link.unlink()
    link.symlink_to(second.name)
    assert not code(project).is_within(trusted)


def test_files_that_are_none_cannot_be_trusted(project: Path) -> None:
    os.mkfifo(project / ".mcp.json")
    assert code(project).problem == ".mcp.json is no regular file"
    (project / ".mcp.json").unlink()
    (project / ".mcp.json").mkdir()  # a directory: its files count
    write(project / ".mcp.json" / "x", "1")
    assert code(project).files == (".mcp.json/x",)
    (project / ".claude").symlink_to(".claude")
    assert code(project).problem.startswith(".claude")
    (project / ".claude").unlink()
    (project / ".claude").symlink_to(".")  # a directory in itself
    assert "in each other" in code(project).problem


def test_too_many_files_and_bytes_cannot_be_trusted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        write(project / ".claude" / f"{number // 3}" / f"{number}.md", "x" * 10)
    assert not code(project).problem
    monkeypatch.setattr(found_code, "MAX_FILES", 5)
    assert "too many to be trusted" in code(project).problem
    monkeypatch.setattr(found_code, "MAX_FILES", 50)
    monkeypatch.setattr(found_code, "MAX_BYTES", 50)
    assert "too many to be trusted" in code(project).problem
    words = " ".join(f"a/{number}" for number in range(found_code.MAX_WORDS + 1))
    monkeypatch.setattr(found_code, "MAX_BYTES", 10**6)
    write(project / ".mcp.json", json.dumps({"a": words}))
    assert "words that can be programs" in code(project).problem


def test_a_name_that_is_no_text_is_shown_and_counts(project: Path) -> None:
    (project / ".claude").mkdir()
    Path(os.fsdecode(os.fsencode(project / ".claude") + b"/\xff")).write_text("x")
    found = code(project)
    assert len(found.digests) == 1
    json.dumps([found.files, found.shown]).encode()


@pytest.mark.parametrize("provider", ["claude", "claude-agent-acp", "codex", "gemini", "opencode"])
def test_a_profile_uses_settings_only_as_they_were_trusted(project: Path, provider: str) -> None:
    name = next(iter(CODE[provider]))
    write(project / name if "." in name[1:] else project / name / "x.json")
    profile = profile_of("p", AgentSection(provider=provider, project_settings=True))
    plain = profile_of("p", AgentSection(provider=provider))
    variables = {"HOME": str(project.parent)}
    untrusted = user_world(profile, str(project), variables, ())
    assert untrusted.profile == plain
    assert untrusted.notices[0] == (
        f"the agent was started without the settings of {project}: they are not trusted as they "
        f"are now; look at them with: aegis-actors agent trust p --directory {project}; once they "
        "are trusted, restart the agent"
    )
    trusted = project_code(provider, str(project), str(project.parent)).digests
    assert user_world(profile, str(project), variables, trusted).profile == profile


def test_gemini_in_a_directory_that_it_does_not_trust_says_so(project: Path) -> None:
    profile = profile_of("g", AgentSection(provider="gemini"))
    write(project / "GEMINI.md", "text")
    home = project.parent / "home"
    world = user_world(profile, str(project), {"HOME": str(home)}, ())
    assert "has none of the tools of aegis" in world.notices[0]
    assert len(world.texts) == 1
    write(home / ".gemini" / "trustedFolders.json", json.dumps({str(project): "TRUST_FOLDER"}))
    world = user_world(profile, str(project), {"HOME": str(home)}, ())
    assert (world.notices, world.texts) == ((), ())


def test_the_longest_rule_of_gemini_decides(project: Path) -> None:
    home = project.parent / "home"
    variables = {"HOME": str(home)}
    rules = home / ".gemini" / "trustedFolders.json"
    above = str(project.parent)
    for given, trusts in (
        ({}, False),
        ({above: "TRUST_FOLDER"}, True),
        ({above: "TRUST_FOLDER", str(project): "DO_NOT_TRUST"}, False),
        ({f"{project}/x": "TRUST_PARENT"}, True),
        ({f"{project}x": "TRUST_FOLDER"}, False),
        ([], False),
    ):
        write(rules, json.dumps(given))
        assert gemini_trusts(str(project), variables) is trusts
    write(rules, "no JSON")
    assert not gemini_trusts(str(project), variables)
    off = {"security": {"folderTrust": {"enabled": False}}}
    write(home / ".gemini" / "settings.json", json.dumps(off))
    assert gemini_trusts(str(project), variables)
    switch = "GEMINI_CLI_TRUST_WORKSPACE"
    assert not gemini_trusts(str(project), {**variables, switch: "false"})
    assert gemini_trusts("/", {switch: "true"})
