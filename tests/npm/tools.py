"""Programs of npm that tests drive, in the versions of ``package.json`` beside this file.

They are installed once, into a directory of the checkout that git ignores, and bring the Node that
they run on: what a system has may be too old for them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".npm"
FILES = ("package.json", "package-lock.json")
INSTALL_LIMIT_S = 600

INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
"""No script of a package runs: none of these needs one."""


class NotInstalled(Exception):
    """npm is missing, or could not install them; the sentence says which."""


@attrs.frozen
class NpmTools:
    """The directory in which they are installed."""

    directory: Path

    def command(self, program: str) -> list[str]:
        """How a program of one of the packages is started."""
        return [str(self.node), str(self.directory / "node_modules" / ".bin" / program)]

    @property
    def node(self) -> Path:
        """The program that runs them."""
        [found] = self.directory.glob("node_modules/node-linux-*/bin/node")
        return found


def install(command: Sequence[str] = INSTALL, cache: Path = CACHE) -> NpmTools:
    """The tools, installed now if they are not yet. Raises ``NotInstalled``.

    Tests may run side by side: one installs, the others wait for it.
    """
    if shutil.which(command[0]) is None:
        raise NotInstalled(f"{command[0]} is not installed")
    content = b"".join((HERE / name).read_bytes() for name in FILES)
    directory = cache / hashlib.sha256(content).hexdigest()[:16]
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "installed").exists():
            _install_into(directory, command)
    return NpmTools(directory)


def _install_into(directory: Path, command: Sequence[str]) -> None:
    for name in FILES:
        shutil.copy(HERE / name, directory)
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, "npm_config_cache": str(directory / "cache")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"npm did not end within {INSTALL_LIMIT_S} s") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise NotInstalled(f"npm could not install them: {lines[0]}")
    shutil.rmtree(directory / "cache", ignore_errors=True)
    (directory / "installed").touch()


def tools_or_skip() -> NpmTools:
    """The tools; without them the test is skipped with the reason."""
    try:
        return install()
    except NotInstalled as error:
        pytest.skip(str(error))
