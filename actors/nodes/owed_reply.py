"""``OwedReply``: the answer that an actor of this process owes to an asker in another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import outcome

from actors.envelope import Asker, Handler
from actors.reply import Reply

if TYPE_CHECKING:
    from actors.system import System


class Answering(Protocol):
    """The sender of answers."""

    @property
    def system(self) -> System:
        """The system of this process."""
        ...

    def answer(self, number: int, result: outcome.Outcome[Any]) -> None:
        """Send the answer to request ``number``."""


class OwedReply(Reply[Any]):
    """A reply whose caller is in another process: the outcome is sent there."""

    __slots__ = ("_number", "_to")

    def __init__(self, to: Answering, number: int) -> None:
        super().__init__(to.system)
        self._to = to
        self._number = number

    def abandon(self) -> None:
        """Note that the caller stopped waiting, or cannot be reached."""
        if not self.is_settled:
            self._abandon()

    def chain(self, askers: list[str]) -> tuple[Asker, ...]:
        """Return the chain of askers that the caller's process reported."""
        return tuple(Asker(_waiting_handler(path), 1, self) for path in askers)

    def _settle(self, result: outcome.Outcome[Any]) -> None:
        is_first = not self.is_settled
        super()._settle(result)
        if is_first:
            self._to.answer(self._number, result)


def _waiting_handler(path: str) -> Handler:
    handler = Handler(path)
    handler.number = 1
    return handler
