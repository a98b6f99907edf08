"""``WaitingMessages``: the messages of one session that wait for a turn. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from aegis.agents.sessions.steps import EndTurnOrder, Incoming, WithdrawOrder
from aegis.agents.sessions.turns import CurrentTurn, next_turn

MAX_WAITING = 1_000
"""Messages that wait for a turn; more stay in the inbox."""


class WaitingMessages:
    """The waiting messages, oldest first."""

    def __init__(self) -> None:
        self._messages: list[Incoming] = []
        self._withdrawn: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def add(self, messages: Sequence[Incoming], known: Collection[str]) -> int:
        """Add the messages that are neither waiting nor ``known``; return their number."""
        waiting = {each.id for each in self._messages}
        fresh = [each for each in messages if each.id not in waiting and each.id not in known]
        self._messages += fresh[: MAX_WAITING - len(self._messages)]
        return len(fresh)

    def open_turn(
        self, session: str, number: int, plain: Callable[[str], str] = str
    ) -> CurrentTurn:
        """Remove the messages of the next turn, and return it. Requires a message.

        ``plain``: see ``next_turn``.
        """
        turn, taken = next_turn(session, number, self._messages, plain)
        turn.is_interrupted = all(each.id in self._withdrawn for each in self._messages[:taken])
        for each in self._messages[:taken]:
            self._withdrawn.pop(each.id, None)
        del self._messages[:taken]
        return turn

    def interrupts(
        self,
        order: EndTurnOrder | WithdrawOrder,
        current: CurrentTurn | None,
        known: Collection[str],
    ) -> bool:
        """Return whether the ``current`` turn is to be interrupted.

        A message that is withdrawn and not ``known`` yet will have its turn end before it is sent:
        that of several messages only if all of them are withdrawn.
        """
        message = order.message
        if isinstance(order, EndTurnOrder):
            return message is None or message not in known
        if message not in known:
            self._withdrawn[order.message] = None
        if len(self._withdrawn) > MAX_WAITING:
            del self._withdrawn[next(iter(self._withdrawn))]
        return current is not None and current.has(order.message)

    def place_of(self, message: str) -> int | None:
        """Return the number of messages before this one; None if it does not wait."""
        ids = [each.id for each in self._messages]
        return ids.index(message) if message in ids else None
