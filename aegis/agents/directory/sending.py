"""``Sending``: messages of a person with images and other files.

The images are durable before the message, which names them; the message is durable when the send is
answered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import attrs
import structlog
import trio

from actors import ActorError, Ref, System, describe
from aegis.agents import faults
from aegis.agents.directory.attached_files import attach
from aegis.agents.directory.roster import Member
from aegis.agents.drivers.images import images_named
from aegis.agents.profiles.profile import Profile
from aegis.agents.sessions.sent_images import SentImages
from aegis.errors import AegisError, Forbidden, InvalidRequest, Unavailable
from aegis.journal.disk import storage_error
from aegis.journal.flusher import Flusher
from aegis.limits import in_thread
from aegis.protocol import agents as api
from aegis.protocol.inboxes import (
    IMAGES_ID,
    PersonHandoff,
    ReadInbox,
    Receipt,
    command_name,
)

log = structlog.get_logger("aegis.agents")

SEND_S = 60.0
"""The time limit of a send."""

UNREAD = 1_000
"""Unread messages that are looked at: more cannot wait for a turn."""


@attrs.define(kw_only=True)
class Sending:
    """The messages to sessions whose files are in directories below ``directory``, by their ids.

    ``refuse_closed`` returns why the session with a handle reads no messages; None if it does.
    """

    directory: Path
    flusher: Flusher
    system: System
    refuse_closed: Callable[[str], AegisError | None]
    profile_of: Callable[[Member], Profile]
    _lock: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    async def send(
        self, request: api.SendToAgent, member: Member, session: Ref[Any] | None
    ) -> Receipt:
        """Send a message; durable on return. Raises ``AegisError``, ``ActorError``."""
        if member.cmd is not None:
            raise InvalidRequest(
                f"agent send: {member.handle!r} is a terminal agent: type the paths into its "
                f"terminal, aegis-actors term attach {member.address}"
            )
        if request.from_handle is not None:
            raise Forbidden("agent send: only a person sends files: name their paths in the text")
        has_files = bool(request.files or request.images or request.texts)
        name = command_name(request.text)
        if name and "/" not in name and has_files:  # the text can begin with a path
            raise InvalidRequest(
                "agent send: a command of the agent takes no files: begin the text otherwise, or "
                "name their paths in it"
            )
        if refusal := self.refuse_closed(member.address):
            raise refusal
        if request.images and session is not None:
            await self._check_images(member, session)
        sent = self._images_of(member.id)
        provider = self.profile_of(member).provider
        attached = await in_thread(attach, request, sent, provider)
        if not attached.text:
            raise InvalidRequest("agent send: the message is empty: give a TEXT or a file")
        handoff = PersonHandoff(
            target_handle=member.address,
            context=attached.text,
            interrupt=request.interrupt,
            alone=request.alone,
            key=request.key,
            is_text=has_files,
            has_images=bool(attached.images),
        )
        if not attached.images:
            return await self._hand_off(handoff)
        async with self._lock:
            await self._keep(member, attached.images, sent)
            faults.IMAGES_AFTER.hit(member.handle)
            try:
                receipt = await self._hand_off(handoff)
            except (AegisError, ActorError):
                await self._sweep(member)
                raise
            names = {name for name, _ in attached.images}
            await self._call(sent, partial(sent.confirm, names))
        return receipt

    async def sweep(self, sessions: list[Member]) -> None:
        """Delete images whose messages were never sent: the daemon was killed in between."""
        for member in sessions:
            async with self._lock:
                await self._sweep(member)

    async def _sweep(self, member: Member) -> None:
        sent = self._images_of(member.id)
        try:
            if await self._call(sent, sent.has_unconfirmed):
                awaited = await self._awaited(member)
                await self._call(sent, partial(sent.sweep, awaited))
        except (AegisError, ActorError) as error:
            # They count for the limit, and go with the session.
            log.warning("unsent images not deleted", handle=member.handle, why=describe(error))

    async def _check_images(self, member: Member, session: Ref[Any]) -> None:
        details: api.AgentDetails = await session.ask(
            cast("Any", api.ShowDetails(handle=member.handle))
        )
        if details.takes_images is False:
            raise InvalidRequest(
                f"agent send: {member.handle!r} takes no images: its program has not announced "
                "them; name their paths in the text"
            )

    async def _keep(
        self, member: Member, images: tuple[tuple[str, bytes], ...], sent: SentImages
    ) -> None:
        await self._call(sent, partial(sent.keep, images))
        if await self._call(sent, sent.is_full):
            awaited = {*await self._awaited(member), *(name for name, _ in images)}
            await self._call(sent, partial(sent.drop_oldest, awaited))
            if await self._call(sent, sent.is_full):
                await self._sweep(member)
                raise Unavailable(
                    f"agent send: the images that wait for {member.handle!r} are too many: send "
                    "them when it has had those"
                )

    async def _awaited(self, member: Member) -> set[str]:
        """Return the names of the images of unread messages."""
        inboxes = self._inboxes()
        found = await inboxes.ask(ReadInbox(from_handle=member.address, limit=UNREAD))
        return {
            name
            for each in found.messages
            if each.id.startswith(IMAGES_ID)
            for name in images_named(each.body)
        }

    async def _hand_off(self, handoff: PersonHandoff) -> Receipt:
        receipt: Receipt = await self._inboxes().ask(handoff, timeout=SEND_S)
        return receipt

    def _inboxes(self) -> Ref[Any]:
        found = self.system.registry.find("service", "inboxes")
        if found is None:
            raise Unavailable("agent send: the inboxes are not open now; try again")
        return found

    def _images_of(self, session: str) -> SentImages:
        return SentImages(self.flusher.disk, self.directory / session)

    async def _call(self, sent: SentImages, blocking: Any) -> Any:
        try:
            return await self.flusher.call(blocking)
        except OSError as error:
            raise storage_error("store the images of a message in", sent.path(""), error) from error
