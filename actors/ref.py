"""``Ref``: the address of an actor. It survives the actor's restarts."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from actors.errors import ActorStopped, AskCycle, AskDeadline, MisuseError
from actors.mailbox import Envelope, Handling, Signal
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
        reply = self.send_request(request)
        with trio.move_on_after(timeout):
            return await reply.wait()
        reply.abandon()
        raise AskDeadline(
            f"{self.path} did not answer {type(request).__name__} within {timeout:g} s"
        )

    def send_request(self, request: Request[T]) -> Reply[T]:
        """Send a request and get the reply to wait on. For callers that wait in their own way."""
        cell = self._cell
        chain = self._chain(type(request))
        if cell.is_final:
            raise ActorStopped(f"{self.path} has stopped; it cannot answer")
        reply: Reply[T] = Reply()
        cell.mailbox.put(Envelope(request, reply, chain))
        return reply

    def pass_on(self, request: Request[Any], envelope: Envelope) -> None:
        """Hand over the reply owed for ``envelope`` together with ``request``."""
        cell = self._cell
        if cell.is_final:
            raise ActorStopped(f"{self.path} has stopped; it cannot answer")
        cell.mailbox.put(Envelope(request, envelope.reply, envelope.chain))

    def stop(self) -> None:
        """Ask the actor to end in order: the message in hand is finished, teardown runs."""
        self._cell.mailbox.put_signal(Signal.STOP)

    def _chain(self, request: type) -> tuple[Handling, ...]:
        handling = current_handling.get()
        if handling is None or not handling.active:
            return ()
        chain = (*handling.chain, handling)
        if any(link.active and link.path == self.path for link in chain):
            path = " -> ".join([*(link.path for link in chain), self.path])
            raise AskCycle(f"asking {request.__name__} would wait for itself: {path}")
        return chain

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"Ref({self.path!r})"

    def __reduce__(self) -> str:
        raise MisuseError("a Ref is a live address: send its path instead")
