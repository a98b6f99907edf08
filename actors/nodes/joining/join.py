"""The joining side: this process becomes part of the tree of another host's root.

tractor's runtime is open only while this process is joined, in a task of its own, so that a failure
of the connection does not cancel the caller: it only sees a lost link.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from actors.errors import ActorError, HandshakeRefused, JoinFailed
from actors.nodes.compat.guest import open_guest
from actors.nodes.compat.network import Network
from actors.nodes.compat.nursery import LooseNursery
from actors.nodes.compat.reception import take_join
from actors.nodes.compat.subactor import Subactor, TractorStream
from actors.nodes.joining.joins import HANG_UP_S
from actors.nodes.joining.request import JoinRequest, arguments_of, verdict_of
from actors.nodes.links.authentication import ProofRefused
from actors.nodes.links.heartbeat import Beat
from actors.nodes.links.key import NodeKey
from actors.nodes.links.link import Link

JOIN_WITHIN_S = 10.0
"""The time limit of joining, in seconds."""


@asynccontextmanager
async def join(
    host: str, port: int, key: NodeKey, *, name: str, hello: bytes = b"", beat: Beat | None = None
) -> AsyncIterator[tuple[bytes, Link]]:
    """Join the root at ``host`` and ``port``; yield its answer and a link to it.

    ``hello`` is the data of this node for the root, at most 64 KiB. The caller must run
    ``link.run()``, and should end with ``link.finish``: otherwise the root sees a lost link. After
    the block this may be called again at once.

    Raises ``JoinFailed`` if the root cannot be reached, is silent or refuses, at the latest after
    ``JOIN_WITHIN_S``; ``HandshakeRefused`` if it has another key or is not a root; ``NodeError`` if
    the name or the hello is too long; ``MisuseError`` while a runtime is open in this process.
    """
    request = JoinRequest(name, hello, beat or Beat())
    membership = _Membership(host, port, key, request)
    async with LooseNursery() as nursery:
        with trio.move_on_after(JOIN_WITHIN_S):
            await nursery.start(membership.run)
        try:
            yield membership.joined()
        finally:
            membership.leave()


class _Membership:
    """One membership, from the first connection to the end of its cleanup."""

    def __init__(self, host: str, port: int, key: NodeKey, request: JoinRequest) -> None:
        self._root = (host, port)
        self._where = f"the root at {host} port {port}"
        self._network = Network(key)
        self._request = request
        self._arguments = arguments_of(request)
        self._scope = trio.CancelScope()
        self._left = trio.Event()
        self._joined: tuple[bytes, Link] | None = None

    def joined(self) -> tuple[bytes, Link]:
        """Return the answer and the link; ``JoinFailed`` if there is none in time."""
        if self._joined is None:
            raise JoinFailed(f"No answer from {self._where} within {JOIN_WITHIN_S:g} s.")
        return self._joined

    def leave(self) -> None:
        """End ``run``."""
        self._left.set()

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Join, report it, and stay until ``leave``. Raises only before it has joined."""
        failure: ActorError | None = None
        try:
            with self._scope:
                await self._take_part(task_status)
        except* Exception as group:
            failure = self._failure(_errors(group))
        if self._joined is None:
            raise failure or JoinFailed(f"The connection to {self._where} ended without an answer.")

    async def _take_part(self, task_status: trio.TaskStatus[None]) -> None:
        async with (
            open_guest(self._request.name, self._root, self._network) as guest,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(self._give_up_without_connection, guest)
            async with guest.conversation(take_join, **self._arguments) as (said, stream):
                try:
                    await self._stay(guest, self._accepted(said), stream, task_status)
                finally:
                    # Else tractor would say goodbye, and wait where nobody answers.
                    guest.disconnect()

    def _accepted(self, said: object) -> bytes:
        """Return what the root says of itself; ``JoinFailed`` with its sentence if it refuses."""
        verdict = verdict_of(said)
        if not verdict.is_accepted:
            raise JoinFailed(f"Refused by {self._where}: {verdict.said.decode('utf-8', 'replace')}")
        return verdict.said

    async def _stay(
        self,
        guest: Subactor,
        answer: bytes,
        stream: TractorStream,
        task_status: trio.TaskStatus[None],
    ) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()  # too late: the caller has given up
        link = Link(stream, self._request.beat)
        self._joined = answer, link
        task_status.started()
        # Who joined may still send what it must when it is cancelled; then it leaves.
        self._scope.shield = True
        await self._left.wait()
        if link.is_done:
            await guest.hang_up(HANG_UP_S)

    async def _give_up_without_connection(self, guest: Subactor) -> None:
        """End what tractor would wait for without end; what has come is still read."""
        await guest.wait_ended()
        await trio.sleep(HANG_UP_S)
        if self._joined is None:
            self._scope.cancel()

    def _failure(self, errors: list[BaseException]) -> ActorError:
        """Return what it comes to that these were raised; the first that is ours says best."""
        ours = [error for error in errors if isinstance(error, ActorError)]
        if ours:
            return ours[0]
        match errors[0]:
            case ProofRefused(__cause__=why):
                return HandshakeRefused(f"The handshake with {self._where} failed: {why}")
            case OSError() as error:
                return JoinFailed(f"Cannot reach {self._where}: {_reason(error)}")
            case error:
                return JoinFailed(f"{self._where} did not go through ({type(error).__name__}).")


def _errors(error: BaseException) -> list[BaseException]:
    """All that are in a group, however deep."""
    if isinstance(error, BaseExceptionGroup):
        return [one for each in error.exceptions for one in _errors(each)]
    return [error]


def _reason(error: OSError) -> str:
    # Trio keeps the system's errors as the cause if there were several addresses.
    causes = _errors(error.__cause__) if error.__cause__ is not None else []
    texts = [_text_of(each) for each in (error, *causes) if isinstance(each, OSError)]
    return next((text for text in texts if text), str(error))


def _text_of(error: OSError) -> str:
    if not error.errno:
        return ""
    of_names = error.errno < 0  # of the look-up of a host, which has numbers of its own
    return f"{error.strerror if of_names else os.strerror(error.errno)}."
