"""Install the agent CLIs in exact versions, once per user, outside the checkout.

The directory is ``$AEGIS_AGENT_CLIS``, or ``aegis-actors/agent-clis`` in the user's cache. Each
package has a directory of its own there, named after its version; a package that is installed
needs no network any more.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

VARIABLE = "AEGIS_AGENT_CLIS"
INSTALL_LIMIT_S = 240
UV = Path(__file__).resolve().parents[2] / ".ci" / "uv"
NPM_INSTALL = ("npm", "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error")
NPM_SETTINGS = {"npm_config_fetch_retries": "1", "npm_config_fetch_retry_mintimeout": "1000"}
"""Without a network npm is to fail at once, not after minutes."""

MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
OLDEST_PYTHON = (3, 12)
"""The oldest Python that kimi-cli runs on."""


class NotInstalled(Exception):
    """A package could not be installed; the sentence has the reason."""


@attrs.frozen
class Package:
    """An exact version of a package of npm, or of the Python index."""

    name: str
    version: str
    is_python: bool = False

    @property
    def slug(self) -> str:
        """The name of its directory."""
        return f"{self.name.strip('@').replace('/', '-')}-{self.version}"


NODE = Package(f"node-linux-{MACHINES.get(platform.machine(), platform.machine())}", "22.23.3")
"""The Node that the CLIs run on: the machine's own may be too old for them."""


def cache() -> Path:
    """Return the directory of all packages."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "aegis-actors" / "agent-clis"


def install(
    package: Package, where: Path | None = None, command: Sequence[str] | None = None
) -> Path:
    """Return the directory of a package, installed now if it is not yet. Raises ``NotInstalled``.

    Of several runners one installs, the others wait for it.
    """
    directory = (where or cache()) / package.slug
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "installed").exists():
            for words in [command] if command else _commands(package, directory):
                _run(package, words, directory)
            shutil.rmtree(directory / "npm-cache", ignore_errors=True)
            (directory / "installed").touch()
    return directory


def _commands(package: Package, directory: Path) -> Iterator[Sequence[str]]:
    if not package.is_python:
        yield [*NPM_INSTALL, f"{package.name}@{package.version}"]
        return
    python = str(directory / "python")
    yield [str(UV), "venv", "--quiet", "--clear", "--python", _find_python(), python]
    exact = f"{package.name}=={package.version}"
    yield [str(UV), "pip", "install", "--quiet", "--python", f"{python}/bin/python", exact]


def _run(package: Package, words: Sequence[str], directory: Path) -> None:
    if shutil.which(words[0]) is None:
        raise NotInstalled(f"{package.slug} is not installed: {words[0]} is missing")
    # Without a package.json of its own, npm would look for one in the directories above.
    (directory / "package.json").write_text('{"private": true}\n')
    try:
        done = subprocess.run(
            words,
            cwd=directory,
            env={**os.environ, **NPM_SETTINGS, "npm_config_cache": str(directory / "npm-cache")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        sentence = f"{words[0]} did not end within {INSTALL_LIMIT_S} s"
        raise NotInstalled(f"{package.slug} is not installed: {sentence}") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise NotInstalled(f"{package.slug} is not installed: {lines[0]}")


def _find_python() -> str:
    """Return a Python that is new enough: this one, one on PATH, or one of pyenv."""
    names = [f"python3.{minor}" for minor in (13, 12, 14)]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    kept = [str(each) for name in names for each in pyenv.glob(f"{name[6:]}.*/bin/python")]
    for candidate in (sys.executable, *names, *kept):
        check = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
        # A shim of pyenv can be on PATH without a Python behind it: run it to know.
        try:
            done = subprocess.run([candidate, "-c", check], capture_output=True, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    oldest = ".".join(map(str, OLDEST_PYTHON))
    raise NotInstalled(f"kimi-cli is not installed: it needs Python {oldest}, which is not here")
