"""``Journal``: the calls of earlier processes of this workflow, and their order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from aegis.workflows.calls import Outcome, changed


@attrs.frozen(kw_only=True)
class Kept:
    """One call of the journal; ``outcome`` is None if it had begun and not ended."""

    position: str
    name: str
    digest: str
    about: str
    outcome: Outcome | None = attrs.field(default=None, repr=False)


class Journal:
    """The calls by their positions, and the steps by their names.

    ``seen`` are the outcomes that the function got, in their order, each with the workflow's time;
    readings of the clock are among them. ``unseen`` are the positions of the other ended calls, in
    the order of their ends. ``time`` is the newest recorded one, and ``at`` the real moment of it.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[str, float | None]] = []
        self.unseen: list[str] = []
        self.time: float | None = None
        self.at: float | None = None
        self._calls: dict[str, Kept] = {}
        self._steps: dict[str, Kept] = {}
        self._checkpoint: Kept | None = None

    def take_order(self, go: Mapping[str, Any]) -> None:
        """Take the last frame of the journal: the order of its calls."""
        self.seen = [(position, time) for position, time in go.get("seen", ())]
        self.unseen = [*go.get("unseen", ())]
        self.time, self.at = go.get("time"), go.get("at")

    def add(self, calls: Iterable[dict[str, Any]]) -> None:
        """Add calls, in the order in which they began."""
        for each in calls:
            kept = Kept(**each)
            self._calls[kept.position] = kept
            if kept.name == "step":
                self._steps[kept.digest] = kept
            elif kept.name == "checkpoint" and kept.outcome is not None:
                self._checkpoint = kept

    def has(self, position: str) -> bool:
        """Return whether an earlier process made a call at this position."""
        return position in self._calls

    def step(self, digest: str) -> str | None:
        """Return the position of the step with this digest, which is that of its name."""
        kept = self._steps.get(digest)
        return None if kept is None else kept.position

    def ended(self, position: str) -> Outcome | None:
        """Return the outcome of the call at a position; None if it has none."""
        kept = self._calls.get(position)
        return None if kept is None else kept.outcome

    def outcome(self, position: str, digest: str, about: str) -> Outcome | None:
        """Return the outcome of a call at a position; None if it has none.

        Of another call there, the outcome is that the workflow has changed.
        """
        kept = self._calls.get(position)
        if kept is None:
            return None
        if kept.digest != digest:
            return changed(position, kept.about, about)
        return kept.outcome

    def checkpoint(self) -> tuple[int, str, Any] | None:
        """Return the position, the name and the payload of the last checkpoint."""
        if self._checkpoint is None or self._checkpoint.outcome is None:
            return None
        found = self._checkpoint.outcome["value"]
        return int(self._checkpoint.position), found["checkpoint"], found["payload"]
