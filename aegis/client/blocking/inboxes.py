"""The inbox of this client's handle, and messages to others, one call after the other."""

from __future__ import annotations

from collections.abc import Iterator

from aegis.client.blocking.noun import BlockingNoun
from aegis.client.calls import MAX_TRIES
from aegis.client.errors import ConnectionLost
from aegis.protocol.inboxes import Handoff, Message, MessageList, ReadInbox, Receipt, WaitInbox

POLL_S = 25.0
"""Seconds that one call of a watch waits for a message."""


class Inboxes(BlockingNoun):
    """The inbox of this client's handle, and messages to others."""

    def read(
        self, *, after: str | None = None, unread: bool = True, limit: int = 50
    ) -> MessageList:
        """Read messages; ``after`` acknowledges, up to the ``next`` of an earlier reply."""
        return self._call(ReadInbox, after=after, unread=unread, limit=limit)

    def wait(self, *, after: str | None = None, timeout: float = 50.0) -> MessageList:
        """Wait for an unacknowledged message, at most ``timeout`` seconds; then an empty list."""
        return self._call(WaitInbox, after=after, timeout=timeout)

    def handoff(self, target_handle: str, context: str) -> Receipt:
        """Wake another handle with a text."""
        return self._call(Handoff, target_handle=target_handle, context=context)

    def watch(self) -> Iterator[Message]:
        """Unacknowledged messages, and then each as it comes; made of calls of ``wait``.

        What one call gave is acknowledged once all of it was taken and more is asked for. So each
        message comes at least once, whatever is killed between.
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
                continue  # to acknowledge the same again does no harm
            losses = 0
            yield from found.messages
            after = found.next or after
