"""The items of a mailbox, and the chain of askers that finds cycles.

A message without a reply is queued bare, because an object around each would cost as much as
queueing it. A request is in an ``Envelope``, a message of the runtime in a ``Notification``.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

from actors.reply import Reply


class Handler:
    """The handler of one incarnation at ``path``, and the chain of askers that wait for it.

    ``number`` is that of the message being handled, counted from 1; 0 between two messages.
    """

    __slots__ = ("chain", "number", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.number = 0
        self.chain: tuple[Asker, ...] = ()


class Asker(NamedTuple):
    """A link of the chain of askers: a handler, its message, and the reply that it waits for."""

    handler: Handler
    number: int
    reply: Reply[Any]

    @property
    def is_waiting(self) -> bool:
        """Whether the handler still handles that message and has no reply yet."""
        return self.handler.number == self.number and not self.reply.is_settled


class Envelope:
    """A request with its reply, if a caller waits for one, and the chain of askers.

    ``deferred``: the handler has taken the reply and may return without an answer.
    """

    __slots__ = ("chain", "deferred", "message", "reply")

    def __init__(
        self, message: object, reply: Reply[Any] | None = None, chain: tuple[Asker, ...] = ()
    ) -> None:
        self.message = message
        self.reply = reply
        self.chain = chain
        self.deferred = False


class Notification(Envelope):
    """A message of the runtime itself: a timer's, or a ``Down``."""

    __slots__ = ()


current_handler: ContextVar[tuple[Handler, int] | None] = ContextVar(
    "current_handler", default=None
)
"""The handler that the current task runs for, and the number of the message that started it."""


def chain_of_askers(reply: Reply[Any]) -> tuple[Asker, ...]:
    """Return the handlers that wait for the current task, its own last, waiting for ``reply``."""
    current = current_handler.get()
    if current is None:
        return ()
    handler, number = current
    if handler.number != number:
        return ()
    return (*handler.chain, Asker(handler, number, reply))
