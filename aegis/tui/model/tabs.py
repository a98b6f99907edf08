"""The tabs: their order, which one is active, and which have news. Pure."""

from __future__ import annotations

import attrs

from aegis.tui.model.rail import status_of
from aegis.tui.model.world import World

MAX_TABS = 40
"""Beyond this number, what others open appears in the rail only."""


@attrs.frozen
class TabLabel:
    """A tab as it is shown."""

    key: str
    title: str
    dot: str = ""
    has_news: bool = False


class Tabs:
    """Keys of tabs in their order; ``recent`` has them by when they were shown last."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.active = ""
        self.recent: list[str] = []
        self._news: set[str] = set()

    def add(self, key: str) -> bool:
        """Add a tab behind the others; return whether it is new."""
        if key in self.keys or len(self.keys) >= MAX_TABS:
            return False
        self.keys.append(key)
        return True

    def show(self, key: str) -> None:
        """Make a tab the active one; its news are seen."""
        if key not in self.keys and key != "view:welcome":
            self.keys.append(key)
        self.active = key
        self._news.discard(key)
        self.recent = [key, *(each for each in self.recent if each != key)]

    def close(self, key: str) -> str:
        """Remove a tab; return the one to show instead, empty if there is none."""
        if key not in self.keys:
            return self.active
        self.keys.remove(key)
        self._news.discard(key)
        self.recent = [each for each in self.recent if each != key]
        following = next((each for each in self.recent if each in self.keys), "")
        return following or (self.keys[0] if self.keys else "")

    def has_news(self, key: str) -> None:
        """Mark a tab that is not shown, until it is."""
        if key != self.active and key in self.keys:
            self._news.add(key)

    def beside(self, by: int) -> str:
        """Return the tab before or after the active one, around the ends."""
        if not self.keys:
            return ""
        if self.active not in self.keys:
            return self.keys[0]
        return self.keys[(self.keys.index(self.active) + by) % len(self.keys)]

    def labels(self, world: World, now: float) -> list[TabLabel]:
        """Return the tabs as they are shown."""
        return [
            TabLabel(
                key=key,
                title=_title(key, world),
                dot="" if key.startswith("view:") else status_of(key, world, now).dot,
                has_news=key in self._news,
            )
            for key in self.keys
        ]


def _title(key: str, world: World) -> str:
    kind, _, name = key.partition(":")
    if kind == "term":
        return f"term:{name}"
    if kind == "agent":
        info = world.agents.get(name)
        return world.closed.get(name, name) if info is None else info.handle
    return name
