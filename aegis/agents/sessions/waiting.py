"""``Waiting``: the messages of one session that wait for a turn. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aegis.agents.sessions.steps import Incoming
from aegis.agents.sessions.turns import Turn, next_turn

MAX_WAITING = 1_000
"""Messages that wait for a turn; more stay in the inbox."""


class Waiting:
    """The waiting messages, oldest first."""

    def __init__(self) -> None:
        self._messages: list[Incoming] = []

    def __len__(self) -> int:
        return len(self._messages)

    def add(self, messages: Sequence[Incoming], known: Collection[str]) -> int:
        """Add the messages that are neither waiting nor ``known``; return their number."""
        waiting = {each.id for each in self._messages}
        fresh = [each for each in messages if each.id not in waiting and each.id not in known]
        self._messages += fresh[: MAX_WAITING - len(self._messages)]
        return len(fresh)

    def open_turn(self, session: str, number: int) -> Turn:
        """Remove the messages of the next turn, and return it. Requires a message."""
        turn, taken = next_turn(session, number, self._messages)
        del self._messages[:taken]
        return turn

    def place_of(self, message: str) -> int | None:
        """Return the number of messages before this one; None if it does not wait."""
        ids = [each.id for each in self._messages]
        return ids.index(message) if message in ids else None
