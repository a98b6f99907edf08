"""The names of the closed parts of a terminal's ledger, the segments (``segments``). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import attrs

from aegis.journal.disk import Disk

PACKED = ".gz"

_NAME = re.compile(r"(\d{4}-\d\d-\d\dT\d{6})\.(\d{1,16})-(\d{1,16})\.jsonl(\.gz)?")


@attrs.frozen
class Segment:
    """A closed part of a ledger; ``path`` is that of the file that is not compressed.

    It has the lines whose numbers are from ``first`` to ``last``.
    """

    path: Path
    closed_at: str
    first: int
    last: int

    @property
    def packed(self) -> Path:
        """The path of the compressed file."""
        return self.path.with_name(self.path.name + PACKED)


def segments_of(disk: Disk, ledger: Path) -> list[Segment]:
    """Return the segments of a ledger, the oldest first. Raises ``OSError``."""
    try:
        names = disk.list_directory(ledger.parent)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return segments_among(ledger, names)


def segments_among(ledger: Path, names: Iterable[str]) -> list[Segment]:
    """Return the segments of a ledger among the names beside it, the oldest first."""
    found = {segment_named(ledger, name) for name in names if name != ledger.name}
    return sorted((each for each in found if each is not None), key=lambda each: each.first)


def segment_named(ledger: Path, name: str) -> Segment | None:
    """Return the segment in a file of this name beside a ledger; None if it is another file."""
    start = f"{ledger.stem}."
    if not name.startswith(start):
        return None
    match = _NAME.fullmatch(name, len(start))
    if match is None:
        return None
    path = ledger.with_name(name.removesuffix(PACKED))
    return Segment(path, match[1], int(match[2]), int(match[3]))
