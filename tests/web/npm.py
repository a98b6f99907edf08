"""Packages of npm that only tests need, by version and digest, kept with those of the page."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[2] / ".npm" / "page"


def npm_archive(package: str, version: str, digest: str, scratch: Path) -> Path:
    """Return the archive of a package, with this SHA-512 in base64.

    Skips the test if npm is not installed or has no registry.
    """
    kept = CACHE / f"{package.removeprefix('@').replace('/', '-')}-{version}.tgz"
    if not kept.is_file():
        _fetch(f"{package}@{version}", kept, scratch)
    found = base64.b64encode(hashlib.sha512(kept.read_bytes()).digest()).decode()
    assert found == digest, f"{kept.name} is not the package that is pinned"
    return kept


def _fetch(wanted: str, kept: Path, scratch: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    words = ["npm", "pack", "--ignore-scripts", f"--pack-destination={scratch}", wanted]
    done = subprocess.run(words, cwd=scratch, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm cannot get {wanted}")
    CACHE.mkdir(parents=True, exist_ok=True)
    # By a name of its own first: another test may fetch the same package.
    part = kept.with_name(f"{kept.name}.{scratch.name}")
    shutil.move(scratch / kept.name, part)
    part.replace(kept)
