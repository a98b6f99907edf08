"""``Ref``: the address of an actor. It survives the actor's restarts."""

from __future__ import annotations

import math
from typing import Any, Generic, TypeVar

import trio

from actors.deadlines import deadline_error
from actors.envelope import Asker, Envelope, chain_of_askers
from actors.errors import ActorStopped, AskCycle, MisuseError
from actors.messages import Askable, Request
from actors.place import RefTarget
from actors.reply import Reply

M = TypeVar("M", contravariant=True)
T = TypeVar("T")

DEFAULT_ASK_TIMEOUT_S = 5.0


class Ref(Generic[M]):
    """The address of an actor that accepts ``M``: cheap, equal by path, valid across restarts."""

    __slots__ = ("_cell",)

    def __init__(self, cell: RefTarget) -> None:
        self._cell = cell

    @property
    def path(self) -> str:
        """The actor's path in the tree, such as ``root/terminals/build/shell``."""
        return self._cell.path

    @property
    def is_stopped(self) -> bool:
        """Whether the actor has stopped for good: nothing will run at this address again."""
        return self._cell.is_final

    def tell(self, message: M) -> None:
        """Send without waiting. Messages of one sender arrive in order.

        A message to a stopped actor is dropped and counted in ``System.dead_letters``. Raises
        ``WrongMessage``, and ``MailboxFull`` unless the receiver's policy drops old messages.
        """
        cell = self._cell
        if cell.is_final:
            cell.system.dead_letters += 1
            return
        cell.mailbox.put(message)

    def hand_over(self, message: M) -> bool:
        """Send like ``tell``; an idle receiver handles the message before this returns.

        The receiver decides for each message (``Actor.receive_now``). A message never overtakes a
        queued one, and no handler is entered twice: a receiver that handles another message, is
        down or has stopped gets it as by ``tell``. An exception of the receiver ends its own
        incarnation, not the sender's. Return whether the message was handled without one. Raises
        the errors of ``tell``.
        """
        cell = self._cell
        if cell.is_final:
            cell.system.dead_letters += 1
            return False
        return cell.mailbox.hand_over(message)

    async def send(self, message: M) -> None:
        """Send, and wait for room if the mailbox is full and its policy is ``wait``.

        Waiting senders are served in order. A cancelled call has not sent the message. There is no
        time limit: put one around the call. With any other policy this is a ``tell``. Always a
        checkpoint. Raises ``ActorStopped`` if the actor has stopped for good, also during the wait;
        ``AskCycle`` if the receiver itself waits for the sender; ``MailboxFull``; ``WrongMessage``.
        """
        await trio.lowlevel.checkpoint()
        if self._cell.is_final:
            raise ActorStopped(f"{self.path} has stopped; it takes no messages", path=self.path)
        mailbox = self._cell.mailbox
        if mailbox.must_wait(message):
            self._check_cycle("sending", message, chain_of_askers(Reply()))
        await mailbox.put_when_room(message)

    async def ask(self, request: Askable[T], *, timeout: float = DEFAULT_ASK_TIMEOUT_S) -> T:
        """Send a request and return its answer; wait at most ``timeout`` seconds.

        The time includes the wait for room if the mailbox's policy is ``wait``. Raises the
        handler's ``Refusal``, or an ``AskError``: ``ActorCrashed``, ``ActorStopped``,
        ``MailboxFull``, ``AskDeadline``, ``AskCycle``, ``NoReply``, and ``Unreachable`` for an
        actor on another host. ``WrongMessage`` and ``ValueError`` are bugs of the caller.
        """
        if not timeout >= 0:
            raise ValueError(f"timeout {timeout} is not a time: 0 or more seconds, or math.inf")
        reply: Reply[T] = Reply(self._cell.system)
        envelope = self._request(request, reply, chain_of_askers(reply))
        mailbox = self._cell.mailbox
        if mailbox.must_wait(envelope):
            left = await self._wait_for_room(envelope, timeout)
        else:
            mailbox.put_request(envelope)
            left = timeout
        if left < math.inf:
            self._cell.system.deadlines.add(reply, timeout, self.path, request, left)
        return await reply.wait()

    async def _wait_for_room(self, envelope: Envelope, timeout: float) -> float:
        """Return the seconds of ``timeout`` that are left once the request is in the mailbox."""
        deadline = trio.current_time() + timeout
        with trio.move_on_at(deadline) as scope:
            await self._cell.mailbox.put_when_room(envelope)
        if scope.cancelled_caught:
            raise deadline_error(self.path, type(envelope.message).__name__, timeout)
        return deadline - trio.current_time()

    def send_request(self, request: Request[T]) -> Reply[T]:
        """Send a request and return its reply, for callers that wait in their own way.

        There is no time limit. Raises the errors of ``ask`` that occur before the wait.
        """
        reply: Reply[T] = Reply(self._cell.system)
        self._cell.mailbox.put_request(self._request(request, reply, chain_of_askers(reply)))
        return reply

    def forward(self, request: Request[T], reply: Reply[T]) -> None:
        """Send a request whose answer goes to ``reply``, which was deferred by an earlier handler.

        From then on this actor owes the reply: the end of the forwarding incarnation does not
        settle it. Raises ``ActorStopped`` or ``MailboxFull``; the caller then still owes the reply.
        """
        self._cell.mailbox.put_request(self._request(request, reply, ()))
        reply.owner = None

    def pass_on(self, request: Request[Any], envelope: Envelope) -> None:
        """Send ``request`` together with the reply of ``envelope``.

        For the runtime: an actor calls ``Actor.pass_on``.
        """
        self._cell.mailbox.put_request(self._request(request, envelope.reply, envelope.chain))

    def stop(self) -> None:
        """Stop the actor in order and for good: the current message is finished, teardown runs.

        Does not wait. After ``ChildSpec.shutdown_s`` the incarnation is cancelled. An actor that is
        down between two incarnations is not restarted.
        """
        self._cell.stop_for_good()

    def _request(
        self, request: object, reply: Reply[Any] | None, chain: tuple[Asker, ...]
    ) -> Envelope:
        if self._cell.is_final:
            raise ActorStopped(f"{self.path} has stopped; it cannot answer", path=self.path)
        if chain:
            self._check_cycle("asking", request, chain)
        return Envelope(request, reply, chain)

    def _check_cycle(self, doing: str, message: object, chain: tuple[Asker, ...]) -> None:
        if any(asker.is_waiting and asker.handler.path == self.path for asker in chain):
            path = " -> ".join([*(asker.handler.path for asker in chain), self.path])
            raise AskCycle(
                f"{doing} {type(message).__name__} would wait for itself: {path}", path=self.path
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"Ref({self.path!r})"

    def __reduce__(self) -> str:
        raise MisuseError("a Ref cannot be pickled or copied: send its path instead")
