"""The inbox of the client's handle and messages to other handles, for the blocking client."""

from __future__ import annotations

from collections.abc import Iterator

from aegis.client.blocking.noun import BlockingNoun
from aegis.client.calls import MAX_TRIES
from aegis.client.errors import ConnectionLost
from aegis.protocol.inboxes import Handoff, Message, MessageList, ReadInbox, Receipt, WaitInbox

POLL_S = 25.0
"""Seconds that one call of a watch waits for a message."""


class Inboxes(BlockingNoun):
    """The inbox of the client's handle, and messages to other handles."""

    def read(
        self, *, after: str | None = None, unread: bool = True, limit: int = 50
    ) -> MessageList:
        """Read messages; ``after``, the ``next`` of an earlier reply, acknowledges up to there."""
        return self._call(ReadInbox, after=after, unread=unread, limit=limit)

    def wait(self, *, after: str | None = None, timeout: float = 50.0) -> MessageList:
        """Wait at most ``timeout`` seconds for an unacknowledged message; the list may be empty."""
        return self._call(WaitInbox, after=after, timeout=timeout)

    def handoff(
        self,
        target_handle: str,
        context: str,
        *,
        interrupt: bool = False,
        key: str | None = None,
        alone: bool = False,
    ) -> Receipt:
        """Send a text to the inbox of another handle and wake its agent.

        ``interrupt`` ends its current turn first. A repeated call with the same ``key`` delivers
        nothing, and returns the same id. With ``alone`` it is a turn of its own, whose end the
        caller follows: no message reports it.
        """
        return self._call(
            Handoff,
            target_handle=target_handle,
            context=context,
            interrupt=interrupt,
            key=key,
            alone=alone,
        )

    def watch(self) -> Iterator[Message]:
        """Yield the unacknowledged messages, then new ones, by repeated calls of ``wait``.

        The messages of one call are acknowledged when the next message after them is requested. So
        each message is delivered at least once, even if the client or the daemon is killed.
        """
        after: str | None = None
        losses = 0
        while True:
            try:
                found = self.wait(after=after, timeout=POLL_S)
            except ConnectionLost as error:
                losses += 1
                if losses >= MAX_TRIES or not error.maybe_done:
                    raise
                continue  # the same acknowledgement is safe to repeat
            losses = 0
            yield from found.messages
            after = found.next or after
