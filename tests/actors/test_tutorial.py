"""The tutorial of the actor library, run as it stands on the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "first-actors.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text("\n".join(blocks("python")))
    return path


@pytest.mark.real
@pytest.mark.every_python
def test_the_program_prints_what_the_page_says(program: Path) -> None:
    done = run(str(program))
    (expected,) = blocks("text")
    assert (done.stdout, done.stderr) == (expected, "")


@pytest.mark.long
def test_the_program_has_right_types(program: Path) -> None:
    done = run("-m", "mypy", "--strict", "--config-file=", str(program))
    assert done.returncode == 0, done.stdout


def test_the_program_has_about_twenty_lines() -> None:
    lines = "".join(blocks("python")).splitlines()
    assert len([line for line in lines if line.strip()]) <= 25
