"""What is offered behind TAB, asked as the scripts of the shells ask."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result

from aegis.cli import completion
from aegis.cli.completion import SIGNALS
from aegis.cli.grammar.click_program import COMPLETING, cli
from tests.fakes.line_server import GUARD_S, LineServer

Offered = Callable[[str], list[str]]


@pytest.fixture
def offered(invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> Offered:
    """The words that bash is offered behind this line, whose last word is begun or empty."""

    def ask(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv(COMPLETING, "bash_complete")
        monkeypatch.setenv("COMP_WORDS", f"aegis-actors {line}")
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        result = invoke()
        assert (result.exit_code, result.stderr) == (0, "")
        return [each.partition(",")[2] for each in result.stdout.split()]

    return ask


def node(name: str, kind: str) -> dict[str, Any]:
    where = {"pid": None, "address": None, "since": None}
    return {"name": name, "kind": kind, "state": "up", "terminals": 0, **where}


@pytest.fixture
def named(server: LineServer, info: Callable[..., dict[str, Any]]) -> LineServer:
    """A daemon that has something of everything."""
    shell = {
        "workspace_id": "web",
        "shell_id": "web.1",
        "cols": 80,
        "rows": 24,
        "cwd": "/",
        "state": "running",
    }
    workspace = {"workspace_id": "web", "directory": "/web", "shells": [shell]}
    server.answers = {
        "term_list": {"result": [info(name="build"), info(name="bench")]},
        "workspace_list": {"result": [workspace]},
        "status": {
            "version": "1",
            "pid": 1,
            "root": "/",
            "url": "http://x",
            "uptime_s": 1.0,
            "rss_bytes": 1,
            "open_files": 1,
            "actors": 1,
            "terminals": 2,
            "handles": ["pm", "builder"],
            "connections": 1,
            "late_replies": 0,
            "nodes": [node("w1", "worker"), node("gpu1", "host")],
        },
        "session_list": {"handles": ["pm"]},
    }
    return server


def test_every_kind_of_name_is_completed(
    offered: Offered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fields alone that completion reads: whole replies are tried in tests/e2e."""
    rows = {
        "list_sessions": {"handle": "ann"},
        "list_agents": {"profile": "claude"},
        "request_list": {"id": "b1d50fbd2dbb"},
        "queue_list": {"queue": "work"},
        "task_list": {"task_id": "01M8BTHCRS9JRE1GTGP2YZSR54"},
        "canvas_list": {"name": "plan", "sections": ["Goals", "Release notes"]},
        "group_list": {"group": "panel"},
        "page_list": {"id": "p1"},
    }

    class Client:
        def call(self, command: str, arguments: dict[str, object]) -> dict[str, Any]:
            if command == "workflow_list":
                runs = [{"workflow_id": "01M8BTHCRS9JRE1GTGP2YZSR55"}]
                return {"workflows": [{"name": "release"}], "result": runs}
            if command == "agent_show":
                assert arguments == {"handle": "ann"}
                names = ("compact", "context", "deep:sub")
                return {"commands": [{"name": each, "description": "x, y"} for each in names]}
            found = [rows[command]]
            return {"result": found, "requests": found, "pages": found, "links": []}

    monkeypatch.setattr(completion, "_ask_daemon", lambda context, names: names(Client(), context))
    lines = {
        "agent show ": "ann",
        "agent send a": "ann",
        "agent send ann /comp": "/compact",
        "agent send --wait ann /deep": "/deep:sub",
        "agent launch ": "claude",
        "agent launch --resume ": "ann",
        "agent trust ": "claude",
        "agent conversations --profile ": "claude",
        "acp --profile ": "claude",
        "request answer ": "b1d50fbd2dbb",
        "request list --agent ": "ann",
        "queue add ": "work",
        "queue pause w": "work",
        "queue task ": "01M8BTHCRS9JRE1GTGP2YZSR54",
        "queue add work --after ": "01M8BTHCRS9JRE1GTGP2YZSR54",
        "queue move work --before ": "01M8BTHCRS9JRE1GTGP2YZSR54",
        "canvas read ": "plan",
        "canvas read plan G": "Goals",
        "workflow run ": "release",
        "workflow cancel ": "01M8BTHCRS9JRE1GTGP2YZSR55",
        "group broadcast ": "panel",
        "group spawn panel ": "claude",
        "page revoke ": "p1",
    }
    assert {line: offered(line) for line in lines} == {line: [name] for line, name in lines.items()}
    assert offered("agent send ann /co") == ["/compact", "/context"]
    for line in (
        "agent send ann ",
        "agent send ann c",
        "agent send ann /compact /",
        "inbox send a",
    ):
        assert offered(line) == [], line
    for line in (
        "agent launch claude ",
        "agent launch --handle ",
        "inbox read --after ",
        "group orders panel --before ",
    ):
        assert offered(line) == []


def test_verbs_and_options_need_no_daemon(offered: Offered) -> None:
    assert offered("ter") == ["term"]
    assert offered("term re") == ["read", "resize"]
    assert offered("term run --ti") == ["--timeout"]
    assert offered("completion ") == ["bash", "zsh", "fish"]
    assert offered("term signal build S") == ["STOP"]
    assert offered("term signal build ") == list(SIGNALS)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("term read ", ["build", "bench"]),
        ("term run be", ["bench"]),
        ("term broadcast build be", ["bench"]),
        ("term close --purge bu", ["build"]),
        ("term spawn b", []),
        ("workspace exec ", ["web"]),
        ("workspace create w", []),
        ("shell open ", ["web"]),
        ("shell read ", ["web.1"]),
        ("inbox send ", ["pm", "builder"]),
        ("--as ", ["pm", "builder"]),
        ("inbox read --as b", ["builder"]),
        ("session new --handle p", ["pm"]),
        ("session revoke ", ["pm"]),
        ("token rotate --session ", ["pm"]),
        ("mcp --handle p", ["pm"]),
        ("term run build make ", []),
        ("node forget g", ["gpu1"]),
        ("term spawn x --node ", ["local", "w1", "gpu1"]),
    ],
)
def test_names_come_from_the_daemon(
    named: LineServer, offered: Offered, line: str, names: list[str]
) -> None:
    assert offered(line) == names


def test_the_root_on_the_line_is_the_one_that_is_asked(
    named: LineServer, offered: Offered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".aegis.yaml").touch()
    monkeypatch.chdir(elsewhere)
    assert offered("term read bu") == []
    root = shlex.quote(str(tmp_path))
    assert offered(f"--root {root} term read bu") == ["build"]
    assert offered(f"term read --root {root} bu") == ["build"]


@pytest.mark.parametrize("line", ["term read b", "--as p", "shell read ", "inbox send "])
def test_without_a_daemon_there_are_no_names_and_not_a_word(offered: Offered, line: str) -> None:
    assert offered(line) == []


def test_a_daemon_that_does_not_answer_is_given_up(
    named: LineServer, offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up = threading.Event()

    def too_late() -> dict[str, Any]:
        assert given_up.wait(GUARD_S)
        return {"result": []}

    named.answers["term_list"] = too_late
    monkeypatch.setattr(completion, "PATIENCE_S", 0.05)
    assert offered("term read b") == []
    given_up.set()


def test_every_argument_that_is_a_name_of_something_is_known() -> None:
    """A verb that takes a name, and is in no table, would offer nothing."""
    context = click.Context(cli)
    words = {"term": {"name", "names"}, "workspace": {"name"}, "shell": {"shell", "workspace"}}
    found = set()
    for group in words:
        command = cli.get_command(context, group)
        assert isinstance(command, click.Group)
        taken = {each.name for verb in command.commands.values() for each in verb.params}
        found |= {(group, str(name)) for name in taken & words[group]}
    assert found <= completion._ARGUMENTS.keys()
    assert len(found) == 5
