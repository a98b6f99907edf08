"""Standard streams that are closed, full, or left by their reader: no traceback."""

from __future__ import annotations

import os
import select
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.aegis.cli.test_main import ENVIRONMENT, GUARD_S, PROGRAM

if TYPE_CHECKING:
    from tests.fakes.line_server import LineServer

Make = Callable[..., dict[str, Any]]

pytestmark = [pytest.mark.real, pytest.mark.every_python]

VERBS = [
    *(["term", "list"], ["term", "list", "--json"], ["term", "read", "build"]),
    *(["term", "run", "build", "true"], ["term", "output", "build", "--follow"]),
    *(["tree"], ["--help"], ["--version"], ["config", "check"], ["completion", "zsh"]),
]
FULL = b"aegis-actors: the output could not be written: No space left on device"
CLOSED = b"aegis-actors: the output could not be written: Bad file descriptor"


@pytest.fixture
def answering(server: LineServer, record: Make, info: Make) -> LineServer:
    tree = {"name": "root", "path": "root", "kind": "Supervisor", "state": "running"}
    figures = {"mailbox": 0, "restarts": 0, "uptime_s": 1.0, "children": []}
    chunk = {"text": "x\n", "cursor": 0, "next_cursor": 2, "dropped": 0, "running": True}
    server.answers |= {
        "term_list": {"result": [info()]},
        "term_read": {"result": [record(stdout="x" * 200_000)]},
        "term_run": record(),
        "term_output": chunk,
        "tree": tree | figures,
    }
    return server


def shell(server: LineServer, words: list[str], redirection: str) -> tuple[int, bytes]:
    """The exit code and what came on standard error, as far as it was not redirected itself."""
    done = subprocess.run(
        ["bash", "-c", f'exec 3>&2; "$@" {redirection}', "bash", *PROGRAM, *words],
        cwd=server.root,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=GUARD_S,
        check=False,
    )
    return done.returncode, done.stderr.rstrip(b"\n")


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
@pytest.mark.parametrize(
    ("redirection", "said"), [(">/dev/full", FULL), (">&-", CLOSED)], ids=["full", "closed"]
)
def test_output_that_cannot_be_written_is_a_sentence(
    answering: LineServer, words: list[str], redirection: str, said: bytes
) -> None:
    code, errors = shell(answering, words, redirection)
    assert code == 1
    assert errors.splitlines()[-1] == said
    assert b"Traceback" not in errors
    assert b"Exception ignored" not in errors


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_reader_that_is_gone_is_met_in_silence(answering: LineServer, words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as output:
        done = subprocess.run(
            [*PROGRAM, *words],
            cwd=answering.root,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=GUARD_S,
            check=False,
        )
    assert done.returncode == 1
    assert b"aegis-actors:" not in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "redirection", ["2>/dev/full", "2>&-", "<&-", "<&- 2>&-"], ids=["full", "closed", "in", "both"]
)
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["term", "list"], 0),
        (["term", "run", "build", "x"], 7),
        (["term", "bogus"], 2),
        (["--help"], 0),
    ],
    ids=["list", "run", "bogus", "help"],
)
def test_standard_error_and_input_change_no_exit_code(
    answering: LineServer, record: Make, words: list[str], code: int, redirection: str
) -> None:
    answering.answers["term_run"] = record(exit=7)
    found, errors = shell(answering, words, redirection)
    assert found == code
    assert b"Traceback" not in errors


def test_a_connection_does_not_get_the_number_of_a_closed_stream(answering: LineServer) -> None:
    # Its descriptor would be 1, and what a verb prints would go to the daemon.
    code, _ = shell(answering, ["term", "list", "--json"], "<&- >&- 2>&-")
    assert code == 1
    assert answering.requests.get(timeout=GUARD_S)["command"] == "term_list"
    assert answering.requests.empty()


def test_a_pipe_that_must_not_block_is_waited_for(answering: LineServer) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with subprocess.Popen(
        [*PROGRAM, "term", "read", "build"],
        cwd=answering.root,
        env=ENVIRONMENT,
        stdout=writer,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(writer)
        # It has filled the pipe once that cannot be written to, which its reader cannot see.
        assert select.select([reader], [], [], GUARD_S)[0]
        parts: list[bytes] = []
        thread = threading.Thread(
            target=lambda: parts.extend(iter(lambda: os.read(reader, 65_536), b""))
        )
        thread.start()
        _, errors = process.communicate(timeout=GUARD_S)
        thread.join(GUARD_S)
    os.close(reader)
    assert (process.returncode, errors) == (0, b"")
    assert len(b"".join(parts)) > 200_000


def test_errors_are_json_where_json_was_asked_for(answering: LineServer, tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "--root", "/", "term", "list", "--json"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        timeout=GUARD_S,
        check=False,
    )
    sentence = b"no daemon runs for /: start one with: aegis-actors up --root /"
    assert done.returncode == 1
    assert done.stdout == b'{"error": {"code": "no_daemon", "message": "' + sentence + b'"}}\n'
    assert done.stderr == b"aegis-actors: " + sentence + b"\n"
