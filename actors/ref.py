"""``Ref``: the address of an actor. It survives the actor's restarts."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from actors.errors import ActorStopped, AskCycle, AskDeadline, MisuseError
from actors.mailbox import Asker, Envelope, Handling
from actors.messages import Request
from actors.reply import Reply

if TYPE_CHECKING:
    from actors.cell import Cell

M = TypeVar("M", contravariant=True)
T = TypeVar("T")

DEFAULT_ASK_TIMEOUT_S = 5.0

current_handling: ContextVar[Handling | None] = ContextVar("current_handling", default=None)
"""The message that the current task is handling, for the chain of askers."""


class Ref(Generic[M]):
    """Where to send messages of ``M`` to. Cheap, equal by path, safe to keep."""

    __slots__ = ("_cell",)

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    @property
    def path(self) -> str:
        """Where the actor sits in the tree, such as ``root/terminals/build/shell``."""
        return self._cell.path

    @property
    def is_stopped(self) -> bool:
        """Whether nobody will ever be at this address again."""
        return self._cell.is_final

    def tell(self, message: M) -> None:
        """Send without waiting. Order between one sender and one receiver is kept.

        To a stopped actor it is a dead letter: dropped and counted. Raises ``WrongMessage``, and
        ``MailboxFull`` where that is the receiver's policy.
        """
        cell = self._cell
        if cell.is_final:
            cell.system.dead_letters += 1
            return
        cell.mailbox.put(Envelope(message))

    async def ask(self, request: Request[T], *, timeout: float = DEFAULT_ASK_TIMEOUT_S) -> T:
        """Send a request and wait for its answer, at most ``timeout`` seconds.

        Ends in exactly one way: the value; the handler's ``Refusal``; or an ``AskError``:
        ``ActorCrashed``, ``ActorStopped``, ``MailboxFull``, ``AskDeadline``, ``AskCycle``,
        ``NoReply``.
        """
        with trio.move_on_after(timeout):
            return await self.send_request(request).wait()
        raise AskDeadline(
            f"{self.path} did not answer {type(request).__name__} within {timeout:g} s"
        )

    def send_request(self, request: Request[T]) -> Reply[T]:
        """Send a request and get the reply to wait on. For callers that wait in their own way."""
        reply: Reply[T] = Reply()
        handling = current_handling.get()
        if handling is None or not handling.active:
            self._put_request(Envelope(request, reply))
        else:
            self._put_request(Envelope(request, reply, (*handling.chain, Asker(handling, reply))))
        return reply

    def forward(self, request: Request[T], reply: Reply[T]) -> None:
        """Send a request whose answer goes to ``reply``, taken over from an earlier request.

        Raises ``ActorStopped`` or ``MailboxFull``; the reply is then still owed by the caller.
        """
        self.pass_on(request, Envelope(request, reply))

    def pass_on(self, request: Request[Any], envelope: Envelope) -> None:
        """Hand over the reply owed for ``envelope`` together with ``request``."""
        self._put_request(Envelope(request, envelope.reply, envelope.chain))

    def stop(self) -> None:
        """End the actor in order and for good: the message in hand is finished, teardown runs.

        Does not wait. After its ``shutdown_s`` the life is cancelled. Between two lives it ends
        all the same: no further life begins.
        """
        self._cell.system.stop_cell(self._cell)

    def _put_request(self, envelope: Envelope) -> None:
        cell = self._cell
        if cell.is_final:
            raise ActorStopped(f"{self.path} has stopped; it cannot answer")
        if any(asker.is_waiting and asker.handling.path == self.path for asker in envelope.chain):
            path = " -> ".join([*(asker.handling.path for asker in envelope.chain), self.path])
            request = type(envelope.message).__name__
            raise AskCycle(f"asking {request} would wait for itself: {path}")
        cell.mailbox.put(envelope)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"Ref({self.path!r})"

    def __reduce__(self) -> str:
        raise MisuseError("a Ref is a live address: send its path instead")
