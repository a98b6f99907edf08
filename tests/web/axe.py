"""axe-core, which finds faults of accessibility: from npm, by digest."""

from __future__ import annotations

import tarfile
from pathlib import Path

from tests.web.npm import npm_archive

VERSION = "4.14.1"
DIGEST = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="


def axe_source(scratch: Path) -> str:
    """Return the script. Skips the test if npm is not installed or has no registry."""
    with tarfile.open(npm_archive("axe-core", VERSION, DIGEST, scratch)) as packed:
        script = packed.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()
