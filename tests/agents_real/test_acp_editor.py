"""acpx, a client of ACP that runs without a screen, beside an editor on one session."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents_real.clis import node
from tests.agents_real.installed import NotInstalled, Package, install
from tests.e2e.editor import Editor
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.test_agents import Team

pytestmark = [pytest.mark.real, pytest.mark.agents]

ACPX = Package("acpx", "0.19.1")


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    daemon = DaemonProcess(tmp_path)
    yield Team(daemon)
    if daemon.is_running:
        daemon.stop()


@pytest.fixture
def program() -> list[str]:
    try:
        return [str(node()), str(install(ACPX) / "node_modules" / "acpx" / "dist" / "cli.js")]
    except NotInstalled as error:
        pytest.skip(str(error))


def acpx(team: Team, program: list[str], *words: str) -> subprocess.Popen[str]:
    """Start acpx on the session ``pm``."""
    agent = shlex.join([*team.daemon.program, "acp", "--handle", "pm"])
    environment = team.daemon.environment
    return subprocess.Popen(
        [*program, "--agent", agent, "--format", "quiet", *words],
        env={**environment, "PATH": f"{Path(program[0]).parent}{os.pathsep}{environment['PATH']}"},
        cwd=team.daemon.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


DENIED = 5
"""Its exit code if it has denied a permission."""


def printed(process: subprocess.Popen[str], code: int = 0) -> str:
    out, errors = process.communicate(timeout=GUARD_S)
    assert process.returncode == code, errors
    return out


def test_acpx_answers_a_permission_and_an_editor_sees_it_withdrawn(
    team: Team, program: list[str]
) -> None:
    team.spawn("SAY before", handle="pm")
    team.has_turns("pm", 1)
    with Editor(team.daemon) as editor:
        editor.open("pm")
        running = acpx(team, program, "--approve-all", "exec", "ASK touch x\nSAY done")
        assert printed(running).strip().endswith("done")
        editor.says("done")
        asked = editor.asked()
        withdrawn = editor.wait(lambda each: each.get("method") == "$/cancel_request")
        assert withdrawn["params"]["requestId"] == asked["id"]
        # The first of two answers wins, in either client.
        running = acpx(team, program, "--deny-all", "exec", "ASK touch y\nSAY denied")
        assert printed(running, DENIED).strip().endswith("denied")
    assert team.outcomes("pm") == ["completed"] * 3


def test_an_editor_answers_while_acpx_waits_and_is_killed(team: Team, program: list[str]) -> None:
    team.spawn(handle="pm")
    with Editor(team.daemon) as editor:
        editor.open("pm")
        running = acpx(team, program, "--approve-all", "exec", "SAY begun\nHANG")
        editor.says("begun")
        running.kill()
        running.communicate()
        editor.prompt("pm", "SAY mine")
        team.call("interrupt", handle="pm")
        editor.says("mine")
        assert printed(acpx(team, program, "exec", "SAY again")).strip().endswith("again")
    assert team.outcomes("pm") == ["cancelled", "completed", "completed"]
