"""The page about canvases, run as it stands: each command prints what the page says."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.harness import GUARD_S, PROGRAM, DaemonProcess

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "share-a-canvas.md"

BLOCK = re.compile(r"^```\n(\$ .*?)^```$", re.DOTALL | re.MULTILINE)
LIFE = "5f3a9c1d2e4b"
"""The part of the ids of wakes that is another for each canvas."""

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def commands() -> list[tuple[str, str]]:
    """Each command of the page, and what it prints."""
    found = []
    for block in BLOCK.findall(PAGE.read_text("utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def test_the_page_has_commands() -> None:
    assert len(commands()) == 13


@pytest.mark.real
def test_every_command_prints_what_the_page_says(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    life = LIFE
    for command, output in commands():
        done = subprocess.run(
            ["bash", "-c", command.replace(LIFE, life)],
            env={**own_daemon.environment, "PATH": f"{PROGRAM.parent}:/usr/bin:/bin"},
            cwd=own_daemon.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=False,
        )
        meta = own_daemon.state.canvases / "plan" / "meta.json"
        life = json.loads(meta.read_text())["life"]
        shown = (done.stdout + done.stderr).replace(life, LIFE)
        if "canvas read" in command:  # headings go to the standard error
            shown = done.stderr + done.stdout
        assert TIME.sub("TIME", shown) == TIME.sub("TIME", output), command
