"""Limits of sessions: counters of spawns, messages and cost, with the time passed in. Pure.

Times are in seconds since 1970 (UTC). Spawns, messages and cost are counted for each tree, that is
a session that the operator started and all that it spawned. A refusal is one sentence that says
when to try again. The operator's own spawns and messages are not counted.
"""

from __future__ import annotations

import math
from collections import deque

import attrs

from aegis.configuration.limits import LimitsSection

HOUR_S = 3600.0
DAY_S = 86_400.0
STEP_S = 60.0
"""Costs within a minute are added up, so that a day has a bounded number of entries."""

MAX_TREES = 10_000
"""Trees that are remembered. The one that was idle for the longest time is forgotten first."""


class _Window:
    """Amounts within a sliding window, in the order of their times."""

    def __init__(self, length_s: float) -> None:
        self._length_s = length_s
        self._entries: deque[tuple[float, float]] = deque()
        self._sum = 0.0

    def add(self, now: float, amount: float, step_s: float = 0.0) -> None:
        """Add an amount; one within ``step_s`` of the last entry is added to that entry."""
        self.total(now)
        if self._entries and now - self._entries[-1][0] < step_s:
            at, before = self._entries.pop()
            self._entries.append((at, before + amount))
        else:
            self._entries.append((now, amount))
        self._sum += amount

    def total(self, now: float) -> float:
        """Return the sum of the amounts within the window that ends now."""
        entries = self._entries
        if entries and entries[-1][0] > now:
            # The clock was set back: entries in the future count as made now.
            entries = self._entries = deque((min(at, now), amount) for at, amount in entries)
        while entries and entries[0][0] <= now - self._length_s:
            self._sum -= entries.popleft()[1]
        if not entries:
            self._sum = 0.0  # without the rounding errors
        return self._sum

    def wait_s(self, now: float, limit: float) -> float:
        """Return the seconds until the sum is below ``limit``; infinite if it never is."""
        left = self.total(now)
        if left < limit:
            return 0.0
        for at, amount in self._entries:
            left -= amount
            if left < limit:
                return max(0.0, at + self._length_s - now)
        return math.inf


@attrs.define
class _Tree:
    """The counters of one tree."""

    spawns: _Window = attrs.field(factory=lambda: _Window(HOUR_S))
    messages: _Window = attrs.field(factory=lambda: _Window(HOUR_S))
    cost: _Window = attrs.field(factory=lambda: _Window(DAY_S))


class Counters:
    """The counters of all trees. Each tree is named by the id of its root session."""

    def __init__(self, limits: LimitsSection) -> None:
        self._limits = limits
        self._trees: dict[str, _Tree] = {}

    def refuse_session(self, sessions: int) -> str | None:
        """Return why one more session cannot be opened beside ``sessions`` open ones."""
        if sessions < self._limits.sessions:
            return None
        return (
            f"{sessions} sessions are open, the limit of limits.sessions: close one with "
            "aegis_close, then try again"
        )

    def refuse_spawn(self, root: str, depth: int, sessions: int, now: float) -> str | None:
        """Return why a session of the tree ``root`` cannot spawn another one at ``depth``.

        The root has the depth 0. ``sessions`` is the number of open sessions.
        """
        if depth > self._limits.spawn_depth:
            return (
                f"a session at depth {depth} cannot be spawned: limits.spawn_depth is "
                f"{self._limits.spawn_depth}; do the work yourself, or ask the session that "
                "spawned you"
            )
        refusal = self.refuse_session(sessions)
        if refusal is not None:
            return refusal
        return _refuse_more(
            self._tree(root).spawns, self._limits.spawns_per_hour, "spawns", now
        ) or self.refuse_work(root, now)

    def note_spawn(self, root: str, now: float) -> None:
        """Count a spawn by a session of the tree."""
        self._tree(root).spawns.add(now, 1)

    def refuse_message(self, root: str, now: float) -> str | None:
        """Return why a session of the tree cannot send a message."""
        most = self._limits.messages_per_hour
        return _refuse_more(self._tree(root).messages, most, "messages", now)

    def note_message(self, root: str, now: float) -> None:
        """Count a message of a session of the tree."""
        self._tree(root).messages.add(now, 1)

    def refuse_work(self, root: str, now: float) -> str | None:
        """Return why a session of the tree cannot begin a turn: the cost of a day is reached."""
        most = self._limits.usd_per_day
        if most is None:
            return None
        window = self._tree(root).cost
        wait_s = window.wait_s(now, most)
        if not wait_s:
            return None
        return (
            f"the sessions of this tree cost {window.total(now):.2f} USD within 24 hours, and "
            f"limits.usd_per_day is {most:.2f}: {_again(wait_s)}"
        )

    def note_cost(self, root: str, usd: float, now: float) -> None:
        """Count a cost of a session of the tree."""
        if math.isfinite(usd) and usd > 0:
            self._tree(root).cost.add(now, usd, STEP_S)

    def _tree(self, root: str) -> _Tree:
        """Return the counters of a tree, and make it the newest."""
        tree = self._trees.pop(root, None) or _Tree()
        self._trees[root] = tree
        if len(self._trees) > MAX_TREES:
            del self._trees[next(iter(self._trees))]
        return tree


def _refuse_more(window: _Window, most: int, what: str, now: float) -> str | None:
    wait_s = window.wait_s(now, most)
    if not wait_s:
        return None
    return (
        f"the limit of {most} {what} in an hour (limits.{what}_per_hour) is reached: "
        f"{_again(wait_s)}"
    )


def _again(wait_s: float) -> str:
    """Return the end of a refusal: when to try again."""
    if math.isinf(wait_s):
        return "the limit allows none"
    if wait_s < 120:
        return f"try again in {math.ceil(wait_s)} seconds"
    if wait_s < 2 * HOUR_S:
        return f"try again in {math.ceil(wait_s / 60)} minutes"
    return f"try again in {math.ceil(wait_s / HOUR_S)} hours"
