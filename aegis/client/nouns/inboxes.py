"""The inbox of the client's handle, and messages to other handles."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from aegis.client.nouns.noun import Noun
from aegis.client.stream_kinds import InboxKind
from aegis.client.streams import InboxStream
from aegis.protocol.inboxes import Handoff, MessageList, ReadInbox, Receipt, WaitInbox


class Inboxes(Noun):
    """The inbox of the client's handle, and messages to other handles."""

    async def read(
        self, *, after: str | None = None, unread: bool = True, limit: int = 50
    ) -> MessageList:
        """Read messages; ``after``, the ``next`` of an earlier reply, acknowledges up to there."""
        return await self._call(ReadInbox, after=after, unread=unread, limit=limit)

    async def wait(self, *, after: str | None = None, timeout: float = 50.0) -> MessageList:
        """Wait at most ``timeout`` seconds for an unacknowledged message; the list may be empty."""
        return await self._call(WaitInbox, after=after, timeout=timeout)

    async def handoff(
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
        return await self._call(
            Handoff,
            target_handle=target_handle,
            context=context,
            interrupt=interrupt,
            key=key,
            alone=alone,
        )

    def watch(self, *, after: str | None = None) -> AbstractAsyncContextManager[InboxStream]:
        """Open the stream of new messages, with ``async with``; first those after the id ``after``.

        Reading the stream acknowledges nothing: pass the last id to ``read`` as ``after``.
        """
        session = self._session
        return session.watch(InboxStream(session, InboxKind(session.handle, after)))
