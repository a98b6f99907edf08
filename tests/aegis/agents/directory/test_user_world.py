"""The servers of an agent's user, and the texts of its project."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from aegis.agents.directory.project_text import (
    MAX_TEXT_BYTES,
    UnusableFile,
    claude_text,
    read_inside,
    text_of,
)
from aegis.agents.directory.user_world import (
    MAX_SERVERS,
    UserWorld,
    local_servers,
    servers_in,
    user_world,
)
from aegis.agents.profiles.profile import profile_of
from aegis.configuration.agents import AgentSection


def test_local_servers_are_those_of_the_directory_without_the_disabled_ones(tmp_path: Path) -> None:
    server = {"command": "run", "args": ["${HOME}/x", "${NO_SUCH:-else}", "${NO_SUCH}", 5]}
    project = {"mcpServers": {"a": server, "b": server, "c": 7}, "disabledMcpServers": ["b", 9]}
    document = {"projects": {str(tmp_path): project, "/other": {"mcpServers": {"d": server}}}}
    (tmp_path / ".claude.json").write_text(json.dumps(document))
    found = local_servers(str(tmp_path), {"HOME": str(tmp_path)})
    args = [f"{tmp_path}/x", "else", "${NO_SUCH}", 5]
    assert found == {"a": {"command": "run", "args": args}}
    assert local_servers("/elsewhere", {"HOME": str(tmp_path)}) == {}
    named = {"HOME": "/nowhere", "CLAUDE_CONFIG_DIR": str(tmp_path)}
    assert list(local_servers(str(tmp_path), named)) == ["a"]


@pytest.mark.parametrize("content", ["", "[]", '{"projects": 5}', "\xff", "[" * 200_000])
def test_a_damaged_file_of_servers_has_none(tmp_path: Path, content: str) -> None:
    (tmp_path / ".claude.json").write_bytes(content.encode("latin-1"))
    assert local_servers("/w", {"HOME": str(tmp_path)}) == {}


def test_a_fifo_and_a_directory_in_place_of_the_file_of_servers_block_nothing(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / ".claude.json")
    assert local_servers("/w", {"HOME": str(tmp_path)}) == {}
    (tmp_path / "home" / ".claude.json").mkdir(parents=True)
    assert local_servers("/w", {"HOME": str(tmp_path / "home")}) == {}
    assert local_servers("/w", {}) == {}


def test_the_number_of_local_servers_is_bounded() -> None:
    servers = {str(number): {"command": "x"} for number in range(MAX_SERVERS + 9)}
    assert len(servers_in({"projects": {"/w": {"mcpServers": servers}}}, ("/w",), {})) == 64


def test_what_claude_code_does_not_read_is_given_by_the_primer(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.local.md").write_text("mine")
    (tmp_path / "AGENTS.md").write_text("ours")
    text = claude_text(str(tmp_path))
    assert [part.splitlines()[-1] for part in text.parts] == ["ours", "mine"]
    assert (text.is_read, text.notices) == (True, ())
    # As in a terminal: it reads AGENTS.md only where there is no CLAUDE.md.
    (tmp_path / "CLAUDE.md").write_text("@AGENTS.md")
    assert [part.splitlines()[-1] for part in claude_text(str(tmp_path)).parts] == ["mine"]


@pytest.mark.parametrize("name", ["CLAUDE.md", ".claude"])
def test_memory_that_leads_out_of_the_project_is_not_read(tmp_path: Path, name: str) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    for each in (project, outside):
        each.mkdir()
    (project / name).symlink_to(outside)
    text = claude_text(str(project))
    assert not text.is_read
    assert text.notices == (
        f"the agent reads neither CLAUDE.md nor rules of {project}: {name} leads out of the "
        "project",
    )


def test_a_link_inside_the_project_is_read(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "text.md").write_text("inside")
    (tmp_path / "CLAUDE.md").symlink_to("docs/text.md")
    (tmp_path / "AGENTS.md").symlink_to("docs/text.md")
    assert claude_text(str(tmp_path)).is_read
    assert text_of(str(tmp_path), ["AGENTS.md"]).parts[0].endswith("inside")


def test_a_text_is_bounded_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("x" * (MAX_TEXT_BYTES + 1))
    text = text_of(str(tmp_path), ["AGENTS.md"])
    assert text.parts[0].endswith("x\n[The rest of the file is left out.]")
    assert text.notices == ("the agent gets the first 32768 of 32769 bytes of AGENTS.md",)


def test_files_that_are_not_read_say_why(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    (tmp_path / "out").symlink_to("/etc/passwd")
    (tmp_path / "broken").symlink_to("nowhere")
    for name, why in (
        ("loop", "cannot be read"),
        ("fifo", "is no regular file"),
        ("directory", "is no regular file"),
        ("out", "is a link that leads out of the project"),
        ("broken", "cannot be read: No such file"),
    ):
        with pytest.raises(UnusableFile, match=why):
            read_inside(str(tmp_path), name, 100)
    notices = text_of(str(tmp_path), ["fifo", "missing"]).notices
    assert notices == (f"the agent does not get fifo of {tmp_path}: it is no regular file",)


def test_an_agent_that_uses_the_settings_of_its_directory_reads_all_this_itself(
    tmp_path: Path,
) -> None:
    (tmp_path / "AGENTS.md").write_text("ours")
    for provider in ("claude", "claude-agent-acp", "opencode"):
        for own, given in ((False, 1), (True, 0)):
            section = AgentSection(provider=provider, project_settings=own)
            world = user_world(profile_of("x", section), str(tmp_path), {}, ())
            assert len(world.texts) == given
    codex = profile_of("x", AgentSection(provider="codex"))
    assert user_world(codex, str(tmp_path), {}, ()) == UserWorld(profile=codex)
