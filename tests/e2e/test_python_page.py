"""The page about the Python client, run as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import GUARD_S, DaemonProcess

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "use-the-python-client.md"

EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def examples() -> list[tuple[str, str]]:
    """Each program, and what it prints."""
    return [(match[1], match[2]) for match in EXAMPLE.finditer(PAGE.read_text("utf-8"))]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=2 * GUARD_S,
        check=False,
    )


def test_every_program_of_the_page_has_what_it_prints() -> None:
    assert len(examples()) == PAGE.read_text("utf-8").count("```python") == 8


@pytest.mark.long
@pytest.mark.real
def test_every_program_prints_what_the_page_says(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    for program, expected in examples():
        done = run("-W", "error", "-c", program, cwd=own_daemon.root)
        assert (done.stdout, done.stderr) == (expected, ""), program


@pytest.mark.long
def test_every_program_has_right_types(tmp_path: Path) -> None:
    for number, (program, _) in enumerate(examples()):
        (tmp_path / f"program_{number}.py").write_text(program)
    done = run("-m", "mypy", "--strict", "--config-file=", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
