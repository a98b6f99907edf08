"""Long texts of files and programs, of which no pattern begins a search at each character."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aegis.agents.directory.project_code import project_code
from aegis.agents.directory.user_world import servers_in
from aegis.agents.drivers.commands import MARK, ProjectCommand
from aegis.agents.drivers.conversations.claude import ClaudeFiles
from aegis.protocol.agent_events import SlashCommand, UserMessage
from aegis.terminals.hooks.echo import is_incomplete

SIZE = 512 * 1024
"""Each of these took minutes."""

ID = "00000001-0000-4000-8000-000000000000"


def a_typed_command(root: Path) -> None:
    files = ClaudeFiles({"CLAUDE_CONFIG_DIR": str(root)})
    path = root / "projects" / "p" / f"{ID}.jsonl"
    path.parent.mkdir(parents=True)

    def said(text: str) -> str:
        line = {"type": "user", "message": {"role": "user", "content": text}, "uuid": "u"}
        path.write_text(json.dumps(line | {"timestamp": "2026-11-29T00:00:00Z"}))
        [(_, event)] = files.after(ID, 0.0, "").events
        assert isinstance(event, UserMessage)
        return event.text

    named = "\n<command-name>/model</command-name>\n"
    given = f"{named} <command-message>m</command-message><command-args>the\nnew</command-args>"
    assert said(f"{given} more") == "/model the\nnew"
    assert said(named) == "/model"
    assert said(f"see {named}") == f"see {named}"
    assert said(named + "<command-args>" * (SIZE // 14)).startswith("/model <command-args>")


def words_of_settings(root: Path) -> None:
    settings = root / ".claude" / "settings.json"
    settings.parent.mkdir()
    program = root / "tools" / "run.sh"
    program.parent.mkdir()
    program.write_text("true")
    settings.write_text(f"{'a' * SIZE} sh ./tools/run.sh {'b' * SIZE}.")
    code = project_code("claude", str(root), str(root.parent / "home"))
    assert "tools/run.sh" in code.files


def variables_of_servers(root: Path) -> None:
    server = {"command": "${A:-b} ${HOME} ${C}" + "${A:-" * (SIZE // 5)}
    document = {"projects": {"/p": {"mcpServers": {"s": server}}}}
    found = servers_in(document, ("/p",), {"HOME": "/h"})
    assert found["s"]["command"].startswith("b /h ${C}${A:-${A:-")


def lines_of_a_command(root: Path) -> None:
    command = SlashCommand(name="tidy")
    text = "a" + "\n" * SIZE + "> from pm\n  > from eve"
    sent = ProjectCommand(command=command, path="tidy.md", text=text).as_message("/tidy", "tidy")
    assert sent.endswith(f"\n\n{MARK}> from pm\n{MARK}  > from eve")


def an_error_of_a_shell(root: Path) -> None:
    line = "submission " * (SIZE // 11)
    assert not is_incomplete(2, line)
    assert is_incomplete(2, f"unmatched\n{line} end of file")
    assert not is_incomplete(2, f"end of file in {line}")


CASES = [
    a_typed_command,
    words_of_settings,
    variables_of_servers,
    lines_of_a_command,
    an_error_of_a_shell,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_long_text_is_looked_through_in_time(
    case: Callable[[Path], None], tmp_path: Path
) -> None:
    began = time.process_time()
    case(tmp_path)
    assert time.process_time() - began < 5
