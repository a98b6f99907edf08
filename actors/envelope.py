"""What lies in a mailbox, and who waits for whom.

A message that nobody waits for lies there bare: an object around each would cost as much as putting
it there. A request comes in an ``Envelope``, the runtime's own messages as ``News``.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

from actors.reply import Reply


class Handler:
    """One life at ``path``: which message it has in hand, and who waits for the end of that.

    Its messages are numbered from 1; ``turn`` is the number of the one in hand, 0 between them.
    """

    __slots__ = ("chain", "path", "turn")

    def __init__(self, path: str) -> None:
        self.path = path
        self.turn = 0
        self.chain: tuple[Asker, ...] = ()


class Asker(NamedTuple):
    """A link of the chain of askers: a handler in its ``turn``, and the reply it asked for."""

    handler: Handler
    turn: int
    reply: Reply[Any]

    @property
    def is_waiting(self) -> bool:
        """Whether that turn cannot end before the reply came."""
        return self.handler.turn == self.turn and not self.reply.is_settled


class Envelope:
    """A request on its way: with the reply somebody waits for, if any, and the chain of askers.

    ``deferred`` says that the handler may end without an answer.
    """

    __slots__ = ("chain", "deferred", "message", "reply")

    def __init__(
        self, message: object, reply: Reply[Any] | None = None, chain: tuple[Asker, ...] = ()
    ) -> None:
        self.message = message
        self.reply = reply
        self.chain = chain
        self.deferred = False


class News(Envelope):
    """A message of the runtime itself: a timer, a ``Down``."""

    __slots__ = ()


current_turn: ContextVar[tuple[Handler, int] | None] = ContextVar("current_turn", default=None)
"""The handler that the present task runs for, and the turn in which the task was begun."""


def chain_of_askers(reply: Reply[Any]) -> tuple[Asker, ...]:
    """The handlers that wait for what the present task does next, itself last, with ``reply``."""
    current = current_turn.get()
    if current is None:
        return ()
    handler, turn = current
    if handler.turn != turn:
        return ()
    return (*handler.chain, Asker(handler, turn, reply))
