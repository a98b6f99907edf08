"""The program as a whole: options, errors, exit codes, signals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from aegis.cli.grammar.click_program import cli
from aegis.errors import NotFound

if TYPE_CHECKING:
    from click.testing import Result

    from tests.fakes.line_server import LineServer

Invoke = Callable[..., "Result"]
Make = Callable[..., dict[str, Any]]

PROJECT = Path(__file__).resolve().parents[3]
PROGRAM = [sys.executable, "-c", "from aegis.cli.main import main; main()"]
# Without PYTHONUNBUFFERED and the like: output is buffered as it is for a user.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
    "PYTHONPATH": str(PROJECT),
}
GUARD_S = 60


def run_program(
    *words: str, cwd: Path, guard_s: float = GUARD_S, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, *words],
        cwd=cwd,
        env=ENVIRONMENT | variables,
        capture_output=True,
        timeout=guard_s,
        check=False,
    )


TERM_VERBS = [
    *(
        "spawn",
        "list",
        "run",
        "keys",
        "read",
        "output",
        "wait",
        "subscribe",
        "unsubscribe",
        "close",
    ),
]
EVERY_VERB = [
    *([verb] for verb in ("up", "down", "status", "tree")),
    *(["term", verb] for verb in TERM_VERBS),
    *(["inbox", verb] for verb in ("read", "wait", "send")),
    ["session", "new"],
    *([verb] for verb in ("mcp", "doctor", "completion")),
]


@pytest.mark.parametrize("words", [[], ["term"], ["inbox"], ["session"], *EVERY_VERB], ids=" ".join)
def test_every_verb_has_help(invoke: Invoke, words: list[str]) -> None:
    for option in ("-h", "--help"):
        result = invoke(*words, option)
        assert result.exit_code == 0
        assert result.stdout.startswith(f"Usage: {' '.join(['aegis-actors', *words])} ")


def test_the_help_tells_every_verb_in_a_whole_line(invoke: Invoke) -> None:
    for words in ([], ["term"], ["workspace"], ["shell"], ["inbox"], ["session"], ["node"]):
        assert "..." not in invoke(*words, "--help").stdout.split("Commands:")[1]


def test_without_a_verb_the_help_is_shown_and_it_is_a_usage_error(invoke: Invoke) -> None:
    result = invoke()
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["bogus"], "No such command 'bogus'; see: aegis-actors --help"),
        (["term", "bogus"], "No such command 'bogus'; see: aegis-actors term --help"),
        (
            ["term", "clsoe", "build"],
            "No such command 'clsoe'. Did you mean 'close'?; see: aegis-actors term --help",
        ),
        (["sesion"], "No such command 'sesion'. Did you mean 'session'?; see: aegis-actors --help"),
        (
            ["run"],
            "No such command 'run'. Did you mean 'term run' or 'workflow run'?; see: aegis-actors "
            "--help",
        ),
        (
            ["open", "x"],
            "No such command 'open'. Did you mean 'shell open' or 'canvas open'?; see: "
            "aegis-actors --help",
        ),
        (
            ["list"],
            "No such command 'list'. Did you mean 'term list' or 'workspace list' or "
            "'agent list' or 'request list' or 'queue list' or 'canvas list' or 'workflow list' or "
            "'group list' or 'page list' or 'push list' or 'session list'?; "
            "see: aegis-actors --help",
        ),
        (
            ["completion"],
            "Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish; "
            "see: aegis-actors completion --help",
        ),
        (
            ["term", "run", "build"],
            "Missing argument 'COMMAND...'; see: aegis-actors term run --help",
        ),
        (
            ["status", "--root", "/nonexistent"],
            "Invalid value for '--root': Directory '/nonexistent' does not exist; "
            "see: aegis-actors status --help",
        ),
        (
            ["term", "read", "build", "-n", "x"],
            "Invalid value for '-n': 'x' is not a valid integer; "
            "see: aegis-actors term read --help",
        ),
    ],
)
def test_a_usage_error_is_one_line_and_exit_code_2(
    invoke: Invoke, words: list[str], sentence: str
) -> None:
    result = invoke(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"aegis-actors: {sentence}\n"


def test_without_a_daemon_a_verb_fails_with_the_command_that_starts_one(
    invoke: Invoke, tmp_path: Path
) -> None:
    result = invoke("status")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"aegis-actors: no daemon runs for {tmp_path}: start one with: aegis-actors up\n"
    )


def test_the_daemon_is_found_from_a_directory_below(
    server: LineServer, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = server.root / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    server.answers["term_list"] = {"result": []}
    assert invoke("term", "list").exit_code == 0


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["term", "ls"], "term_list"),
        (["term", "ps"], "term_list"),
        (["term", "rm", "build"], "term_close"),
        (["agent", "ls"], "list_sessions"),
        (["agent", "kill", "ann"], "close"),
        (["agent", "logs", "ann"], "session_read"),
        (["queue", "enqueue", "work", "a task"], "enqueue"),
        (["group", "ls"], "group_list"),
    ],
)
def test_a_word_of_other_tools_leads_to_the_verb(
    server: LineServer, invoke: Invoke, words: list[str], command: str
) -> None:
    server.answers[command] = NotFound("it was asked")
    assert "it was asked" in invoke(*words).stderr
    assert server.requests.get()["command"] == command


@pytest.mark.parametrize(
    ("words", "verbs"),
    [
        (["ls"], ["'term list'", "'agent list'"]),
        (["ps"], ["'term list'", "'tree'"]),
        (["rm", "build"], ["'term close NAME'"]),
        (["kill", "build"], ["'term signal NAME KILL'", "'agent stop AGENT'"]),
        (["logs", "build"], ["'term read NAME'", "'agent read AGENT'"]),
        (["term", "logs", "build"], ["'term read NAME'", "'term output NAME'"]),
        (["term", "kill", "build"], ["'term close NAME'"]),
        (["exec", "build", "ls"], ["'term run NAME COMMAND'"]),
        (["node", "list"], ["'status'"]),
    ],
)
def test_a_word_that_could_mean_several_verbs_is_answered_with_them(
    invoke: Invoke, words: list[str], verbs: list[str]
) -> None:
    result = invoke(*words)
    assert result.exit_code == 2
    assert all(verb in result.stderr for verb in verbs)
    known = {" ".join([*above, name]) for above, name in every_verb()}
    named = re.findall(r"'([a-z]+(?: [a-z]+)?)\b[^']*'", result.stderr.partition(": No such")[2])
    assert set(named[1:]) <= known


def test_help_and_version_are_verbs_too(invoke: Invoke) -> None:
    assert invoke("help", "term", "run").stdout == invoke("term", "run", "--help").stdout
    assert invoke("version").stdout == invoke("--version").stdout == invoke("-V").stdout


def every_verb() -> Iterator[tuple[list[str], str]]:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        yield [], name
        command = cli.get_command(context, name)
        if isinstance(command, click.Group):
            yield from (([name], member) for member in command.commands)


def test_json_may_stand_before_the_verb(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_list"] = {"result": []}
    assert json.loads(invoke("--json", "term", "list").stdout)["result"] == []


@pytest.mark.parametrize(
    ("words", "command", "field", "others"),
    [
        (["inbox", "send", "pm", "-"], "handoff", "context", {"target_handle": "pm"}),
        (["agent", "send", "pm", "-"], "handoff", "context", {"target_handle": "pm"}),
        (["agent", "launch", "claude", "-"], "spawn", "prompt", {"profile": "claude"}),
        (["queue", "add", "work", "-"], "enqueue", "payload", {"queue": "work"}),
        (["term", "run", "--json", "b", "-"], "term_run", "cmd", {"name": "b"}),
        (["workspace", "exec", "w", "-"], "workspace_exec", "command", {"workspace": "w"}),
    ],
)
def test_a_dash_reads_the_text_from_standard_input(
    server: LineServer,
    words: list[str],
    command: str,
    field: str,
    others: dict[str, str],
) -> None:
    server.answers[command] = NotFound("it was asked")
    given = b"two\nlines, \xc3\xa9\n"
    for text in (given, b" \n", b"\xff", b"x" * 4_200_000):
        done = subprocess.run(
            [*PROGRAM, *words],
            cwd=server.root,
            env=ENVIRONMENT,
            input=text,
            capture_output=True,
            timeout=GUARD_S,
            check=False,
        )
        if text == given:
            arguments = server.arguments()
            assert arguments[field] == "two\nlines, é"
            assert arguments.items() >= others.items()
        else:
            assert b"nothing was sent" in done.stderr
            assert done.returncode == 2
    assert server.requests.empty()


@pytest.mark.parametrize("before", [True, False], ids=["before the verb", "behind the verb"])
def test_root_and_handle_may_stand_before_or_behind_the_verb(
    server: LineServer, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    monkeypatch.chdir("/")
    server.answers["term_list"] = {"result": []}
    options = ["--root", str(server.root), "--as", "alice"]
    verb = ["term", "list"]
    result = invoke(*options, *verb) if before else invoke(*verb, *options)
    assert result.exit_code == 0
    assert server.arguments() == {"from_handle": "alice"}


def test_what_stands_behind_the_verb_counts_more(server: LineServer, invoke: Invoke) -> None:
    server.answers["term_list"] = {"result": []}
    invoke("--as", "alice", "term", "list", "--as", "bob")
    assert server.arguments() == {"from_handle": "bob"}


@pytest.mark.real
@pytest.mark.every_python
def test_a_directory_that_is_gone_is_a_usage_error(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    # -P: like the installed program, it does not look for modules in the directory that is gone.
    code = "import os, sys; os.rmdir(os.getcwd()); from aegis.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "status"],
        cwd=gone,
        env=ENVIRONMENT,
        capture_output=True,
        timeout=GUARD_S,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(
        b"aegis-actors: the current directory was deleted: give --root; see: "
    )


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["agent", "send", "ann", ""], "a TEXT that is not empty"),
        (["agent", "send", "ann", " ", "\n"], "a TEXT that is not empty"),
        (["agent", "send", "ann"], "a TEXT that is not empty"),
        (["agent", "launch", "claude", "--fork"], "--fork copies a --conversation"),
    ],
)
def test_a_line_without_what_it_needs_is_refused_before_the_daemon_is_asked(
    server: LineServer, invoke: Invoke, line: list[str], sentence: str
) -> None:
    result = invoke("--root", str(server.root), *line)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert server.requests.empty()


@pytest.mark.real
@pytest.mark.every_python
def test_the_program_exits_with_the_commands_code(server: LineServer, record: Make) -> None:
    server.answers["term_run"] = record(exit=42, stdout="é\n")
    done = run_program("term", "run", "build", "x", cwd=server.root)
    assert (done.returncode, done.stdout) == (42, "é\n".encode())
    assert done.stderr == "↳ exit 42 · 4.20s\n".encode()


@pytest.mark.real
@pytest.mark.every_python
def test_a_locale_without_the_character_does_not_end_the_program(
    server: LineServer, record: Make
) -> None:
    server.answers["term_run"] = record(exit=0, stdout="é\n")
    done = run_program("term", "run", "build", "x", cwd=server.root, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (0, b"\\xe9\n")


@pytest.mark.real
@pytest.mark.every_python
def test_an_interrupted_call_exits_with_130(server: LineServer, record: Make) -> None:
    came, release = threading.Event(), threading.Event()

    def hold() -> dict[str, Any]:
        came.set()
        assert release.wait(GUARD_S)
        return {"reason": "ended", "match": None, "cursor": 0, "record": record()}

    server.answers["term_wait"] = hold
    try:
        with subprocess.Popen(
            [*PROGRAM, "term", "wait", "build"],
            cwd=server.root,
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
        ) as process:
            assert came.wait(GUARD_S)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=GUARD_S)
    finally:
        release.set()
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == b"aegis-actors: interrupted"


@pytest.mark.real
@pytest.mark.every_python
@pytest.mark.parametrize("size", [10, 1_000_000], ids=["little", "much"])
def test_a_reader_that_goes_away_is_met_in_silence(
    server: LineServer, record: Make, size: int
) -> None:
    server.answers["term_read"] = {"result": [record(stdout="x" * size)]}
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [*PROGRAM, "term", "read", "build"],
        cwd=server.root,
        env=ENVIRONMENT,
        stdout=writer,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(writer)
        _, stderr = process.communicate(timeout=GUARD_S)
    assert (process.returncode, stderr) == (1, b"")


@pytest.mark.real
@pytest.mark.every_python
def test_the_version_is_told(tmp_path: Path) -> None:
    done = run_program("--version", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(b"aegis-actors, version ")
