"""``Mail``: a session's connection to the inboxes: its own messages, and notifications to others.

It reports messages as ``News``, and delivered notifications as ``Notified``. The inbox keeps a
message until the session has acknowledged it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import attrs
import structlog
import trio

from actors import ActorError, Ref, Request, System, describe
from aegis.agents.drivers.images import images_named
from aegis.agents.sessions.steps import Incoming, Notified, Notify
from aegis.clock import utc_now
from aegis.errors import AegisError, InvalidRequest
from aegis.protocol.feeds import FollowInbox, InboxPlace
from aegis.protocol.inboxes import (
    COMMAND_ID,
    IMAGES_ID,
    Deliver,
    Message,
    ReadInbox,
    is_of_person,
    is_prompt,
)
from aegis.protocol.naming import name_key

log = structlog.get_logger("aegis.agents")

FETCHED = 200
"""Messages that are read from the inbox at a time."""

BEGIN = InboxPlace(at=0, number=0, life=0)
"""The place before the first message of an inbox."""

AGAIN_S = 0.5
"""Seconds after which the inbox is asked again if it did not answer."""


T = TypeVar("T")

ALONE = ("group:", "workflow:", "queue:")
"""The beginnings of senders whose messages are turns of their own."""


@attrs.frozen
class News:
    """Unread messages of the inbox, oldest first."""

    messages: tuple[Message, ...]

    @property
    def arrived(self) -> tuple[Incoming, ...]:
        """The messages as the session's machine takes them."""
        return tuple(map(_incoming, self.messages))


def _incoming(message: Message) -> Incoming:
    command = message.body if message.id.startswith(COMMAND_ID) else ""
    images = images_named(message.body) if message.id.startswith(IMAGES_ID) else ()
    return Incoming(
        id=message.id,
        sender=message.sender,
        text=message.text,
        is_alone=message.sender.startswith(ALONE)
        or bool(command or images)
        or is_prompt(message.id),
        command=command,
        images=images,
        is_person=is_of_person(message.id, message.sender),
    )


class MailContext(Protocol):
    """The part of an actor's context that is used here."""

    @property
    def ref(self) -> Ref[Any]:
        """The address that gets ``News``."""
        ...

    @property
    def system(self) -> System:
        """The system of the inboxes."""
        ...

    def start_soon(self, task: Any, *arguments: Any) -> None:
        """Start a helper task."""
        ...


class Mail:
    """The inbox of ``handle``, for its session.

    It reports the unread messages in their order, without a gap: to acknowledge one marks all
    before it as read.

    ``address_of`` returns the handle whose inbox has the messages to a handle: senders are known by
    the handles that they were shown with, which may be later ones than that of their inbox.
    """

    def __init__(
        self, owner: MailContext, handle: str, address_of: Callable[[str], str] = str
    ) -> None:
        self._owner = owner
        self._handle = handle
        self._address_of = address_of

    def start(self) -> None:
        """Report the unread messages, then each new one."""
        self._owner.start_soon(self._follow)

    def acknowledge(self, message: str) -> None:
        """Mark the inbox as read up to ``message``."""
        self._owner.start_soon(self._mark, message)

    def notify(self, notification: Notify) -> None:
        """Send a notification, and report ``Notified``; an inbox drops an id that it has."""
        self._owner.start_soon(self._deliver, notification)

    async def has_had(self, message: str) -> bool:
        """Return whether a message ever was in the inbox."""
        request = FollowInbox(handle=self._handle, after=message)
        try:
            await self._ask(self._handle, request, passed=InvalidRequest)
        except InvalidRequest:
            return False
        return True

    async def _follow(self) -> None:
        place = BEGIN
        while True:
            news = await self._ask(
                self._handle, FollowInbox(handle=self._handle, place=place, limit=FETCHED)
            )
            place = news.place
            await self._owner.ref.send(News(tuple(news.messages)))

    async def _mark(self, message: str) -> None:
        request = ReadInbox(from_handle=self._handle, after=message, limit=1)
        with suppress(InvalidRequest):  # the inbox has lost its ledger, and so the message
            await self._ask(self._handle, request, passed=InvalidRequest)

    async def _deliver(self, notification: Notify) -> None:
        handle = self._address_of(notification.handle)
        await self._ask(
            handle,
            Deliver(
                handle=handle,
                id=notification.id,
                sender="substrate",
                body=notification.body,
                timestamp=utc_now(),
                status="error" if notification.done is None else "ok",
            ),
        )
        self._owner.ref.tell(Notified(notification.id))

    async def _ask(
        self, handle: str, request: Request[T], passed: type[AegisError] | tuple[()] = ()
    ) -> T:
        """Return the inbox's answer; ask again as long as there is none. Raises ``passed``."""
        while True:
            inbox = self._inbox(handle)
            try:
                if inbox is not None:
                    return await inbox.send_request(request).wait()
            except passed:
                raise
            except (ActorError, AegisError) as error:
                log.warning("inbox did not answer", handle=self._handle, why=describe(error))
            await trio.sleep(AGAIN_S)

    def _inbox(self, handle: str) -> Ref[Any] | None:
        """Return the inbox of a handle; the router, which starts it, where it does not run."""
        registry = self._owner.system.registry
        inbox = registry.find("inbox", name_key(handle))
        is_running = inbox is not None and not inbox.is_stopped
        return inbox if is_running else registry.find("service", "inboxes")
