"""``Entries``: the transcript entries of a session's machine, and those that are not durable yet.

Pure.
"""

from __future__ import annotations

from typing import Any

from aegis.agents.sessions.steps import Append


class Entries:
    """Numbers entries; keeps each that must be durable until the disk has taken it."""

    def __init__(self) -> None:
        self._number = 0
        self._unstored: dict[int, tuple[str, dict[str, Any]]] = {}
        self._refused: list[tuple[str, dict[str, Any]]] = []

    @property
    def are_stored(self) -> bool:
        """Whether every entry that must be durable is."""
        return not self._unstored and not self._refused

    def append(self, kind: str, at: float, fields: dict[str, Any], *, sync: bool) -> Append:
        """Return the output that writes an entry at the moment ``at``."""
        self._number += 1
        if sync:
            self._unstored[self._number] = kind, fields
        entry = {"kind": kind, "at": round(at, 3), **fields}
        return Append(number=self._number, entry=entry, sync=sync)

    def stored(self, number: int) -> str:
        """Return the kind of the entry that is durable now; empty if it was written again."""
        return self._unstored.pop(number, ("", {}))[0]

    def refused(self, number: int) -> None:
        """Note that the disk refused an entry."""
        entry = self._unstored.pop(number, None)
        if entry is not None:
            self._refused.append(entry)

    def again(self, at: float) -> list[Append]:
        """Return the outputs that write the refused entries again, in order."""
        refused, self._refused = self._refused, []
        return [self.append(kind, at, fields, sync=True) for kind, fields in refused]
