"""The inbox of this client's handle, and messages to others."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from aegis.client.nouns.noun import Noun
from aegis.client.stream_kinds import InboxKind
from aegis.client.streams import InboxStream
from aegis.protocol.inboxes import Handoff, MessageList, ReadInbox, Receipt, WaitInbox


class Inboxes(Noun):
    """The inbox of this client's handle, and messages to others."""

    async def read(
        self, *, after: str | None = None, unread: bool = True, limit: int = 50
    ) -> MessageList:
        """Read messages; ``after`` acknowledges, up to the ``next`` of an earlier reply."""
        return await self._call(ReadInbox, after=after, unread=unread, limit=limit)

    async def wait(self, *, after: str | None = None, timeout: float = 50.0) -> MessageList:
        """Wait for an unacknowledged message, at most ``timeout`` seconds; then an empty list."""
        return await self._call(WaitInbox, after=after, timeout=timeout)

    async def handoff(self, target_handle: str, context: str) -> Receipt:
        """Wake another handle with a text."""
        return await self._call(Handoff, target_handle=target_handle, context=context)

    def watch(self, *, after: str | None = None) -> AbstractAsyncContextManager[InboxStream]:
        """``async with`` it: messages as they come, those behind the id ``after`` first.

        Reading here acknowledges nothing: pass the id of the last to ``read`` as ``after``.
        """
        session = self._session
        return session.watch(InboxStream(session, InboxKind(session.handle, after)))
