"""The recordings of real programs: what came out of a PTY, and how it was made.

``index.json`` describes each ``<name>.raw``; where ``<name>.txt`` stands beside it, that is the
text that a reader should get of it. ``record.py`` makes them.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs

HERE = Path(__file__).resolve().parent
INDEX = HERE / "index.json"
MAX_BYTES = 200_000


@attrs.frozen(kw_only=True)
class Recording:
    """One program's output on a terminal of ``rows`` x ``cols``, which did not change.

    ``screen_only``: the program draws on the screen; no text of its own is expected of it.
    """

    name: str
    program: str
    how: str
    rows: int
    cols: int
    screen_only: bool

    @property
    def data(self) -> bytes:
        """The bytes as they came out of the PTY."""
        return (HERE / f"{self.name}.raw").read_bytes()

    @property
    def text(self) -> str:
        """What a reader should get of it, looked at and found right."""
        return (HERE / f"{self.name}.txt").read_text(encoding="utf-8")


def recordings() -> list[Recording]:
    """All of them, in the order of the index."""
    return [Recording(**each) for each in json.loads(INDEX.read_text(encoding="utf-8"))]
