"""The verbs about terminals: what they send, print and exit with."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from aegis.errors import Busy, NotFound
from aegis.protocol.command import MAX_TIMEOUT_S

if TYPE_CHECKING:
    from click.testing import Result

    from tests.fakes.line_server import LineServer

Invoke = Callable[..., "Result"]
Make = Callable[..., dict[str, Any]]

DONE = {"ok": True}
HEAD = "name   state  shell      pid  size   last exit  subscribers  cwd\n"


def test_spawn_sends_only_what_was_given(server: LineServer, invoke: Invoke, info: Make) -> None:
    server.answers["term_spawn"] = info()
    result = invoke("term", "spawn", "build")
    assert server.arguments() == {"name": "build"}
    assert result.exit_code == 0
    assert (
        result.stdout
        == f"{HEAD}build  idle   /bin/bash  17   80x24  -          -            /work\n"
    )


def test_spawn_exits_with_1_if_the_terminal_has_failed(
    server: LineServer, invoke: Invoke, info: Make
) -> None:
    server.answers["term_spawn"] = info(state="failed", notice="3 shells in a row ended")
    result = invoke("term", "spawn", "build")
    assert result.exit_code == 1
    assert "failed" in result.stdout


def test_spawn_sends_every_option(server: LineServer, invoke: Invoke, info: Make) -> None:
    server.answers["term_spawn"] = info()
    where = ["--shell", "zsh", "--cwd", "/tmp", "--env", "A=1", "--env", "B=x=y"]
    size = ["--cols", "100", "--rows", "30", "--stderr", "separate", "--node", "gpu1"]
    invoke("term", "spawn", "build", *where, *size, "--as", "alice")
    assert server.arguments() == {
        "name": "build",
        "shell": "zsh",
        "cwd": "/tmp",
        "env": {"A": "1", "B": "x=y"},
        "cols": 100,
        "rows": 30,
        "stderr": "separate",
        "node": "gpu1",
        "from_handle": "alice",
    }


WORKSPACE = ["workspace", "create", "w"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [("below", "{here}/below"), ("./below", "{here}/below"), (".", "{here}"), ("/tmp", "/tmp")],
)
def test_a_directory_is_meant_from_where_one_is(
    server: LineServer, invoke: Invoke, info: Make, given: str, meant: str
) -> None:
    server.answers["term_spawn"] = info()
    server.answers["workspace_create"] = {"workspace_id": "w", "directory": "/", "shells": []}
    for words, name in [(["term", "spawn", "x", "--cwd"], "cwd"), (WORKSPACE, "directory")]:
        invoke(*words, given)
        assert server.arguments()[name] == meant.format(here=server.root)


@pytest.mark.parametrize("variable", ["PATH", "=x", ""])
def test_a_variable_needs_a_name_and_a_value(invoke: Invoke, variable: str) -> None:
    result = invoke("term", "spawn", "build", "--env", variable)
    assert result.exit_code == 2
    assert f"aegis-actors: --env must be NAME=VALUE, not '{variable}'; see: " in result.stderr


def test_list_shows_a_table(server: LineServer, invoke: Invoke, info: Make) -> None:
    infos = [info(), info(name="web", state="running", last_exit=1, subscribers=["bob", "eve"])]
    server.answers["term_list"] = {"result": infos}
    lines = invoke("term", "list").stdout.splitlines()
    assert lines[0].split() == HEAD.split()
    assert " ".join(lines[2].split()) == "web running /bin/bash 17 80x24 1 bob, eve /work"


def test_list_tells_where_terminals_run_as_soon_as_one_runs_elsewhere(
    server: LineServer, invoke: Invoke, info: Make
) -> None:
    away = info(name="train", node="gpu1", state="unreachable")
    server.answers["term_list"] = {"result": [info(), away]}
    lines = invoke("term", "list").stdout.splitlines()
    assert lines[0].split() == [*HEAD.split(), "node"]
    assert lines[1].split()[-2:] == ["/work", "local"]
    assert lines[2].split()[:2] == ["train", "unreachable"]
    assert lines[2].split()[-1] == "gpu1"


def test_a_title_cannot_smuggle_escape_sequences(
    server: LineServer, invoke: Invoke, info: Make
) -> None:
    server.answers["term_list"] = {"result": [info(cwd="/tmp/\x1b[2J\n")]}
    assert r"/tmp/\x1b[2J\n" in invoke("term", "list").stdout


def test_run_prints_the_output_and_exits_with_the_commands_code(
    server: LineServer, invoke: Invoke, record: Make
) -> None:
    server.answers["term_run"] = record(exit=3, stdout="1 failed\n")
    result = invoke("term", "run", "build", "pytest -q")
    assert server.arguments() == {
        "name": "build",
        "cmd": "pytest -q",
        "timeout": MAX_TIMEOUT_S,
        "until": "started",
    }
    assert (result.exit_code, result.stdout) == (3, "1 failed\n")
    assert result.stderr == "↳ exit 3 · 4.20s\n"


def test_run_escapes_what_a_terminal_would_obey(
    server: LineServer, invoke: Invoke, record: Make
) -> None:
    server.answers["term_run"] = record(stdout="a\tb\x1b[2J\n", stderr="\x07\n")
    result = invoke("term", "run", "build", "x")
    assert result.stdout == "a\tb\\x1b[2J\n"
    assert result.stderr.startswith("\\x07\n")


@pytest.mark.parametrize(
    ("words", "cmd"),
    [
        (["--timeout", "7", "--json", "make"], "make"),
        (["make test", "--timeout", "7", "--json"], "make test"),
        (["--timeout=7", "--json", "--", "make", "--json"], "make --json"),
    ],
)
def test_options_may_follow_the_name_and_a_command_in_quotes(
    server: LineServer, invoke: Invoke, record: Make, words: list[str], cmd: str
) -> None:
    server.answers["term_run"] = record()
    assert invoke("term", "run", "build", *words).exit_code == 0
    assert server.arguments() == {"name": "build", "cmd": cmd, "timeout": 7.0}


@pytest.mark.parametrize(
    ("words", "cmd"),
    [
        (["cd /tmp && ls | wc"], "cd /tmp && ls | wc"),
        (["ls", "-la", "a b"], "ls -la 'a b'"),
        (["pytest", "--json", "--timeout", "5", "--help"], "pytest --json --timeout 5 --help"),
        (["grep", "--", "$HOME"], "grep -- '$HOME'"),
        (["echo 'two\nlines'"], "echo 'two\nlines'"),
    ],
)
def test_all_behind_the_name_is_the_command(
    server: LineServer, invoke: Invoke, record: Make, words: list[str], cmd: str
) -> None:
    server.answers["term_run"] = record()
    assert invoke("term", "run", "--timeout", "7", "build", *words).exit_code == 0
    sent = {"name": "build", "cmd": cmd, "timeout": 7.0, "until": "started"}
    assert server.arguments() == sent


def test_what_looks_like_an_option_and_is_none_is_refused_rather_than_run(invoke: Invoke) -> None:
    for words in (["--tiemout", "5", "ls"], ["--", "-x"]):
        result = invoke("term", "run", "build", *words)
        assert result.exit_code == 2
        assert "is no option of term run, and no command begins so" in result.stderr


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"timed_out": True, "end": None},
            "the command (seq 3) is still running: the time for the call ran out; "
            "see: aegis-actors term read build",
        ),
        (
            {"needs_input": {"kind": "secret", "program": "sudo"}, "end": None},
            "the command (seq 3) is still running: sudo waits for a secret; "
            r"answer with: aegis-actors term keys build 'TEXT\r'; "
            "see: aegis-actors term screen build",
        ),
        (
            {"end": "closed"},
            "the exit code of the command (seq 3) is not known: closed; "
            "see: aegis-actors term read build",
        ),
        (
            {"end": "killed_by_restart", "killed_by_restart": True},
            "the exit code of the command (seq 3) is not known: killed by restart; "
            "see: aegis-actors term read build",
        ),
    ],
)
def test_run_exits_with_125_when_the_code_is_not_known(
    server: LineServer, invoke: Invoke, record: Make, changes: dict[str, Any], why: str
) -> None:
    server.answers["term_run"] = record(exit=None, duration_s=None, **changes)
    result = invoke("term", "run", "build", "x")
    assert result.exit_code == 125
    assert result.stdout == "3 passed\n"
    last = result.stderr.splitlines()[-1]
    assert last == f"aegis-actors: {why}"


def test_run_exits_with_125_when_the_call_failed(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_run"] = Busy("terminal 'build' is busy with 'make' of agent:bob")
    result = invoke("term", "run", "build", "x")
    assert (result.exit_code, result.stdout) == (125, "")
    assert result.stderr == "aegis-actors: terminal 'build' is busy with 'make' of agent:bob\n"


def test_run_exits_with_125_without_a_daemon(invoke: Invoke) -> None:
    assert invoke("term", "run", "build", "x").exit_code == 125


def test_run_as_json_keeps_the_exit_code(server: LineServer, invoke: Invoke, record: Make) -> None:
    server.answers["term_run"] = record(exit=9, stdout="\x1b[2J")
    result = invoke("term", "run", "--json", "build", "x")
    assert result.exit_code == 9
    assert json.loads(result.stdout) == record(exit=9, stdout="\x1b[2J")
    assert result.stderr == ""


def test_keys_are_sent_with_their_escapes_replaced(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_keys"] = DONE
    result = invoke("term", "keys", "build", r"ls\r\x03")
    assert server.arguments() == {"name": "build", "keys": "ls\r\x03"}
    assert (result.exit_code, result.output) == (0, "")


def test_literal_keys_are_sent_as_they_are(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_keys"] = DONE
    invoke("term", "keys", "--literal", "build", r"ls\r\q")
    assert server.arguments()["keys"] == r"ls\r\q"


def test_an_unknown_escape_is_a_usage_error(invoke: Invoke) -> None:
    result = invoke("term", "keys", "build", r"\q")
    assert result.exit_code == 2
    assert result.stderr.startswith(r"aegis-actors: '\q' is not an escape here: use \r")


def test_a_brief_read_leaves_out_what_was_printed(
    server: LineServer, invoke: Invoke, record: Make
) -> None:
    server.answers["term_read"] = {"result": [record(stderr="hidden\n")]}
    lines = invoke("term", "read", "build", "--brief").stdout.splitlines()
    assert [line.split(" · ")[0] for line in lines] == ["#3 $ pytest -q", "↳ exit 0"]
    assert server.arguments() == {"name": "build", "output": False}


def test_read_shows_the_records_before_one(
    server: LineServer, invoke: Invoke, record: Make
) -> None:
    server.answers["term_read"] = {"result": [record()]}
    invoke("term", "read", "build", "--before", "4", "-n", "1")
    assert server.arguments() == {"name": "build", "last_n": 1, "before_seq": 4}


def test_read_shows_records_oldest_first(server: LineServer, invoke: Invoke, record: Make) -> None:
    server.answers["term_read"] = {"result": [record(), record(seq=4, exit=1)]}
    result = invoke("term", "read", "build", "-n", "2")
    assert server.arguments() == {"name": "build", "last_n": 2}
    first, second = result.stdout.split("\n\n")
    assert first.startswith("#3 $ pytest -q · agent:alice")
    assert second.endswith("↳ exit 1 · 4.20s\n")


def test_read_tells_when_there_is_more(server: LineServer, invoke: Invoke, record: Make) -> None:
    server.answers["term_read"] = {"result": [record(seq=8)], "more": True}
    result = invoke("term", "read", "--since", "-1", "build")
    assert server.arguments() == {"name": "build", "since_seq": -1}
    assert result.stderr == "there is more: aegis-actors term read build --since 8\n"


def test_read_takes_one_way_of_choosing(invoke: Invoke) -> None:
    result = invoke("term", "read", "-n", "1", "--since", "0", "build")
    assert result.exit_code == 2
    assert result.stderr.startswith("aegis-actors: give --since without -n and --before; see: ")


def test_subscribe_shows_who_is_woken_now(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_subscribe"] = {"subscribers": ["alice", "bob"], "ok": True}
    result = invoke("--as", "bob", "term", "subscribe", "build")
    assert server.arguments() == {"name": "build", "from_handle": "bob", "only_failures": False}
    assert result.stdout == "subscribers: alice, bob\n"


def test_subscribe_takes_what_one_wants_to_be_told_of(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_subscribe"] = {"subscribers": ["human"], "ok": True}
    invoke("term", "subscribe", "build", "--pattern", "^make", "--only-failures")
    assert server.arguments() == {"name": "build", "pattern": "^make", "only_failures": True}


def test_unsubscribe_says_nothing(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_unsubscribe"] = DONE
    assert invoke("term", "unsubscribe", "build").output == ""
    assert server.arguments() == {"name": "build"}


@pytest.mark.parametrize(("words", "purge"), [([], False), (["--purge"], True)])
def test_close_keeps_the_history_unless_told(
    server: LineServer, invoke: Invoke, words: list[str], purge: bool
) -> None:
    server.answers["term_close"] = {"leftover": [], "ok": True}
    result = invoke("term", "close", "build", *words, "--json")
    assert server.arguments() == {"name": "build", "purge": purge}
    assert json.loads(result.stdout) == {"leftover": [], "ok": True}
    assert result.stderr == ""


def test_close_warns_of_processes_that_could_not_be_ended(
    server: LineServer, invoke: Invoke
) -> None:
    server.answers["term_close"] = {"leftover": ["dd (pid 7)", "x\n (pid 8)"], "ok": True}
    result = invoke("term", "close", "build")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        "warning: these processes of build could not be ended: dd (pid 7), x\\n (pid 8)\n"
    )


def test_a_refusal_is_one_line_and_exit_code_1(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_close"] = NotFound("there is no terminal\n'\x1b[2J'")
    result = invoke("term", "close", "build")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "aegis-actors: there is no terminal\\n'\\x1b[2J'\n"


def test_a_bad_argument_is_told_without_the_name_of_the_tool(
    server: LineServer, invoke: Invoke
) -> None:
    result = invoke("term", "spawn", "build", "--cols", "1")
    assert result.exit_code == 1
    assert result.stderr == "aegis-actors: cols must be from 2 to 1000 columns, not 1\n"
    assert server.arguments()["cols"] == 1


SCREEN = {
    "rows": 3,
    "cols": 20,
    "cursor": {"row": 1, "col": 4, "visible": True},
    "title": "",
    "alternate": False,
    "partial": False,
    "lines": ["$ ls", "a\tb\x1b[2J", ""],
}


def test_screen_prints_the_lines_escaped(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_screen"] = SCREEN
    result = invoke("term", "screen", "build")
    assert server.arguments() == {"name": "build"}
    assert result.stdout == "$ ls\na\\tb\\x1b[2J\n\n"
    assert result.stderr == "↳ 20x3 · cursor 2,5\n"


def test_screen_tells_what_is_to_be_known_of_it(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_screen"] = {
        **SCREEN,
        "cursor": {"row": 0, "col": 0, "visible": False},
        "title": "vim\x07",
        "alternate": True,
        "partial": True,
    }
    result = invoke("term", "screen", "build")
    assert result.stderr == (
        "↳ 20x3 · cursor 1,1 (hidden) · vim\\x07 · alternate screen · partial\n"
    )


@pytest.mark.parametrize(
    ("given", "sent"),
    [("INT", "INT"), ("int", "INT"), ("sigint", "SIGINT"), ("15", "SIGTERM"), ("9", "SIGKILL")],
)
def test_a_signal_is_sent_by_its_name_in_capitals_or_its_number(
    server: LineServer, invoke: Invoke, given: str, sent: str
) -> None:
    server.answers["term_signal"] = DONE
    result = invoke("term", "signal", "build", given)
    assert server.arguments() == {"name": "build", "signal": sent}
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.parametrize("size", [["100", "30"], ["100x30"], ["100X30"]], ids=" ".join)
def test_a_new_size_is_sent_and_the_terminal_shown(
    server: LineServer, invoke: Invoke, info: Make, size: list[str]
) -> None:
    server.answers["term_resize"] = info(name="build", cols=100, rows=30)
    result = invoke("term", "resize", "build", *size)
    assert server.arguments() == {"name": "build", "cols": 100, "rows": 30}
    assert result.exit_code == 0
    assert "100x30" in result.stdout


@pytest.mark.parametrize("size", [["wide", "30"], ["100"], ["100x"], ["x30"], ["100x30", "4"]])
def test_a_size_that_is_no_number_is_a_usage_error(invoke: Invoke, size: list[str]) -> None:
    result = invoke("term", "resize", "build", *size)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "give the size as 100 30 or 100x30" in result.stderr
