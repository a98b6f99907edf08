"""The inputs that are kept: what a fuzzer found worth keeping, and what once broke something.

``corpus/<target>.txt`` holds one input in base64 per line, so that a change of one can be read.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"


def kept(target: str) -> list[bytes]:
    """The inputs of ``target``, none if there is no file."""
    path = CORPUS / f"{target}.txt"
    if not path.exists():
        return []
    return [base64.b64decode(line) for line in path.read_text("ascii").splitlines()]


def keep(target: str, inputs: Iterable[bytes]) -> None:
    """Make ``inputs`` the ones of ``target``, the shortest first."""
    ordered = sorted(set(inputs), key=lambda each: (len(each), each))
    lines = [base64.b64encode(each).decode("ascii") + "\n" for each in ordered]
    (CORPUS / f"{target}.txt").write_text("".join(lines), "ascii")
