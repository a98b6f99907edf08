"""The user's own servers, memory and hooks, and the texts of a project: all hold, nothing runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aegis.protocol.agent_events import StartNotice
from tests.actors.nodes.machine import until
from tests.agents_real.bench import Bench
from tests.agents_real.clis import Cli
from tests.agents_real.installed import NotInstalled
from tests.agents_real.sessions import real_session

pytestmark = [pytest.mark.real, pytest.mark.agents]

CLAUDES = ("claude", "claude-agent-acp")

SECRET = "PRIVATE-KEY-OF-THE-USER"


def installed(cli: Cli) -> None:
    try:
        cli.command()
    except NotInstalled as error:
        pytest.skip(str(error))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_user(home: Path, work: Path, evidence: Path) -> None:
    """Write the memory, a hook and MCP servers of the user, and a key that no text may bring."""
    evidence.mkdir(exist_ok=True)

    def server(name: str) -> dict[str, object]:
        return {"command": "sh", "args": ["-c", f"touch {evidence}/{name}; cat"]}

    hook = [{"hooks": [{"type": "command", "command": f"touch {evidence}/user-hook"}]}]
    write(home / ".claude" / "settings.json", json.dumps({"hooks": {"UserPromptSubmit": hook}}))
    write(home / ".claude" / "CLAUDE.md", "MEMORY-OF-THE-USER\n")
    write(home / ".ssh" / "id_ed25519", SECRET)
    local = {
        "mcpServers": {"mine": server("local"), "off": server("disabled")},
        "disabledMcpServers": ["off"],
    }
    settings = {"mcpServers": {"all": server("user")}, "projects": {str(work): local}}
    write(home / ".claude.json", json.dumps(settings))


def write_texts(work: Path, home: Path) -> None:
    """Write the texts of a project, whose imports try to bring a key of the user."""
    imports = ["@notes/inside.md", "@~/.ssh/id_ed25519", f"@{home}/.ssh/id_ed25519", "@key.md"]
    imports += ["@../home/.ssh/id_ed25519", "@linked/id_ed25519"]
    write(work / "CLAUDE.md", "MEMORY-OF-THE-PROJECT\n" + "\n".join(imports) + "\n")
    write(work / "notes" / "inside.md", "TEXT-OF-AN-IMPORT\n")
    write(work / "CLAUDE.local.md", "LOCAL-MEMORY\n")
    write(work / ".claude" / "rules" / "style.md", "RULE-OF-THE-PROJECT\n")
    (work / ".claude" / "rules" / "key.md").symlink_to(home / ".ssh" / "id_ed25519")
    (work / "key.md").symlink_to(home / ".ssh" / "id_ed25519")
    (work / "linked").symlink_to(home / ".ssh")


async def test_the_users_world_and_the_texts_of_the_project_hold(cli: Cli, bench: Bench) -> None:
    if cli.name not in CLAUDES:
        pytest.skip("the servers and memory of Claude Code")
    installed(cli)
    evidence = bench.work.parent / "evidence"
    write_user(bench.home, bench.work, evidence)
    write_texts(bench.work, bench.home)
    url = bench.daemon.call("session_new", handle="tried")["url"]
    begun = {"user-hook", "user", "local"}
    async with real_session(cli, bench, url) as session:
        assert (await session.turn("SAY hello")).result.ok
        # Its servers are started beside its turns.
        await until(lambda: begun <= names_in(evidence))
    asked = json.dumps(bench.model.lines())
    for text in (
        "MEMORY-OF-THE-USER",
        "MEMORY-OF-THE-PROJECT",
        "TEXT-OF-AN-IMPORT",
        "RULE-OF-THE-PROJECT",
        "LOCAL-MEMORY",
    ):
        assert text in asked, text
    assert SECRET not in asked
    assert names_in(evidence) == begun


def names_in(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir()}


@pytest.mark.parametrize("name", ["CLAUDE.md", ".claude", ".claude/rules", ".claude/CLAUDE.md"])
async def test_memory_that_is_a_link_out_of_the_project_is_left_out_with_a_sentence(
    cli: Cli, bench: Bench, name: str
) -> None:
    if cli.name not in CLAUDES:
        pytest.skip("the memory of Claude Code")
    installed(cli)
    outside = bench.work.parent / "outside"
    for each in ("CLAUDE.md", "rules/CLAUDE.md", "CLAUDE.local.md"):
        write(outside / each, SECRET)
    target = outside / ("rules" if name.endswith("rules") else "CLAUDE.md")
    link = bench.work / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside if name == ".claude" else target)
    (bench.work / "CLAUDE.local.md").symlink_to(outside / "CLAUDE.local.md")
    url = bench.daemon.call("session_new", handle="tried")["url"]
    async with real_session(cli, bench, url) as session:
        assert (await session.turn("SAY hello")).result.ok
        notices = [each.text for each in session.it.log.events if isinstance(each, StartNotice)]
    assert SECRET not in json.dumps(bench.model.lines())
    assert [f": {name} leads out of the project" in notices[0], len(notices)] == [True, 2]
    assert "CLAUDE.local.md" in notices[1]


async def test_a_changed_primer_holds_for_a_conversation_that_is_resumed(
    cli: Cli, bench: Bench
) -> None:
    if cli.name != "claude":
        pytest.skip("an ACP agent has no other primer than its first message")
    installed(cli)
    write(bench.work / "CLAUDE.local.md", "THE-OLD-TEXT\n")
    url = bench.daemon.call("session_new", handle="tried")["url"]
    async with real_session(cli, bench, url) as session:
        assert (await session.turn("SAY hello")).result.ok
        conversation = session.conversation
    write(bench.work / "CLAUDE.local.md", "THE-NEW-TEXT\n")
    async with real_session(cli, bench, url, conversation) as session:
        assert (await session.turn("SAY again")).result.ok
    system = bench.model.requests()[-1]["system"]
    assert "THE-NEW-TEXT" in system
    assert "THE-OLD-TEXT" not in system


async def test_the_instructions_of_a_project_come_with_the_first_message_of_opencode(
    cli: Cli, bench: Bench
) -> None:
    if cli.name != "opencode":
        pytest.skip("other agents read them themselves, or have none")
    installed(cli)
    write(bench.work / "AGENTS.md", "INSTRUCTIONS-OF-THE-PROJECT\n")
    url = bench.daemon.call("session_new", handle="tried")["url"]
    async with real_session(cli, bench, url) as session:
        assert (await session.turn("SAY hello")).result.ok
    assert "INSTRUCTIONS-OF-THE-PROJECT" in json.dumps(bench.model.lines())
