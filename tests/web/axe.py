"""axe-core, which finds faults of accessibility: from npm, by digest."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

VERSION = "4.14.1"
DIGEST = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
CACHE = Path(__file__).resolve().parents[2] / ".npm" / f"axe-core-{VERSION}.tgz"


def axe_source(scratch: Path) -> str:
    """The script. Skips the test if npm is not installed or has no registry."""
    if not CACHE.is_file():
        _fetch(scratch)
    assert base64.b64encode(hashlib.sha512(CACHE.read_bytes()).digest()).decode() == DIGEST
    with tarfile.open(CACHE) as packed:
        script = packed.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


def _fetch(scratch: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    words = ["npm", "pack", "--ignore-scripts", f"--pack-destination={scratch}"]
    done = subprocess.run([*words, f"axe-core@{VERSION}"], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("npm cannot get axe-core")
    [archive] = scratch.glob("axe-core-*.tgz")
    CACHE.parent.mkdir(exist_ok=True)
    shutil.move(archive, CACHE)
