"""``UnreadCount``: how many messages wait in the inbox of a terminal agent.

They are kept and announced, never typed into its terminal: its program reads them with a tool.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import trio

from actors import Request, System
from aegis.agents.interactive.terminal import FAILURES
from aegis.errors import Unavailable
from aegis.protocol.feeds import FollowInbox, InboxPlace
from aegis.protocol.inboxes import MessageList, ReadInbox

MAX_COUNTED = 100
"""More messages are counted as so many."""

LOOK_S = 1.0
AGAIN_S = 1.0

T = TypeVar("T")


class UnreadCount:
    """The unread messages of ``address``; ``on_change`` is called when ``count`` has changed."""

    def __init__(self, system: System, address: str, on_change: Callable[[], None]) -> None:
        self._system = system
        self._address = address
        self._on_change = on_change
        self.count = 0

    async def follow(self) -> None:
        """Count after each message that arrives, until cancelled."""
        place: InboxPlace | None = None
        while True:
            try:
                await self._count()  # after each turn of the loop: a message may have come before
                news = await self._ask(FollowInbox(handle=self._address, place=place, limit=1))
            except FAILURES:  # the inbox is being restarted
                await trio.sleep(AGAIN_S)
            else:
                place = news.place

    async def look(self) -> None:
        """Count now: reading messages is no event. An inbox that does not answer is left out."""
        with trio.move_on_after(LOOK_S), suppress(*FAILURES):
            await self._count()

    async def _count(self) -> None:
        read = ReadInbox(from_handle=self._address, limit=MAX_COUNTED)
        found: MessageList = await self._ask(read)
        if len(found.messages) != self.count:
            self.count = len(found.messages)
            self._on_change()

    async def _ask(self, request: Request[T]) -> T:
        inboxes = self._system.registry.find("service", "inboxes")
        if inboxes is None:
            raise Unavailable("the daemon is starting or stopping")
        reply: T = await inboxes.send_request(request).wait()
        return reply
