"""The command line, run in this process, and a daemon's line protocol for it to talk to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from aegis.cli.grammar.click_program import cli
from tests.fakes.line_server import LineServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LineServer]:
    running = LineServer(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs ``aegis-actors`` in the test's directory with these words."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Result:
        result = CliRunner().invoke(cli, list(words))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture(scope="session")
def record() -> Callable[..., dict[str, Any]]:
    """A command's record as it travels, with what is given changed."""

    def make(**changes: Any) -> dict[str, Any]:
        return {
            "seq": 3,
            "cmd": "pytest -q",
            "writer": "agent:alice",
            "started_at": "2026-05-22T14:03:25.000Z",
            "finished_at": "2026-05-22T14:03:29.200Z",
            "duration_s": 4.2,
            "exit": 0,
            "stdout": "3 passed\n",
            "stderr": "",
            "killed_by_restart": False,
            "timed_out": False,
            "cwd": "/work",
            "output_bytes": 9,
            "truncated": False,
            "raw_start": 0,
            "raw_end": 20,
            "needs_input": None,
            "end": "exited",
        } | changes

    return make


@pytest.fixture(scope="session")
def info() -> Callable[..., dict[str, Any]]:
    """A terminal as it travels, with what is given changed."""

    def make(**changes: Any) -> dict[str, Any]:
        return {
            "name": "build",
            "pid": 17,
            "shell": "/bin/bash",
            "cwd": "/work",
            "started_at": "2026-05-22T14:00:00.000Z",
            "cols": 80,
            "rows": 24,
            "integration": "osc133",
            "state": "idle",
            "last_cmd_at": None,
            "last_exit": None,
            "subscribers": [],
            "restarts": 0,
            "node": "local",
        } | changes

    return make
