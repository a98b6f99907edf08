"""``InboxRouter``: finds, and starts, the inbox of each handle.

A handle exists once it was seen: it called a command, or a session was made for it. Being seen
makes its inbox, so the files in the directory are the handles there are.

An inbox that crashed is not started again by its supervisor, where one with a broken file would use
up the restarts of all. The next request for it starts it, and hears if that fails.
"""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path
from typing import Any

import attrs

from actors import Actor, ActorError, ChildSpec, Ref, Reply, Restart
from actors.errors import root_cause
from aegis.clock import utc_now
from aegis.errors import AegisError, NotFound, StorageError, Unavailable
from aegis.inboxes.inbox import EndWait, Inbox, stopping
from aegis.journal.flusher import Flusher
from aegis.names import nearest
from aegis.protocol.inboxes import Deliver, Handoff, ReadInbox, WaitInbox
from aegis.protocol.naming import is_name, name_key

MAX_HANDLES = 4_096
"""Handles that one daemon knows at most."""

MAX_WAITING = 768
"""Requests that wait for the start of one inbox at most: as many as its mailbox takes."""

InboxRequest = Deliver | ReadInbox | WaitInbox


@attrs.frozen(kw_only=True)
class HandleSeen:
    """This handle called something, or a session was made for it."""

    handle: str


@attrs.frozen(kw_only=True)
class EndWaits:
    """The daemon stops: nobody waits any more."""


class InboxRouter(Actor[Deliver | Handoff | ReadInbox | WaitInbox | HandleSeen | EndWaits]):
    """Routes messages to inboxes below ``supervisor`` (a path); ``directory`` has their files."""

    def __init__(self, *, directory: Path, supervisor: str, flusher: Flusher) -> None:
        self._directory = directory
        self._supervisor = supervisor
        self._flusher = flusher
        self._handles: dict[str, str] = {}
        self._waiting: dict[str, list[tuple[InboxRequest, Reply[Any]]]] = {}
        self._ending = False

    async def setup(self) -> None:
        """Be found; learn the handles there are."""
        self.context.register("service", "inboxes")
        if self._directory.is_dir():
            for path in sorted(self._directory.glob("*.jsonl")):
                if is_name(path.stem):
                    self._handles[name_key(path.stem)] = path.stem

    async def receive(
        self, message: Deliver | Handoff | ReadInbox | WaitInbox | HandleSeen | EndWaits
    ) -> None:
        """Pass a message on to the inbox it is for."""
        match message:
            case Deliver(handle=handle):
                self._route(message, handle)
            case Handoff():
                self._hand_off(message)
            case WaitInbox() if self._ending:
                raise stopping()
            case ReadInbox() | WaitInbox():
                self._route(message, message.from_handle or "human")
            case HandleSeen(handle=handle):
                self._see(handle)
            case EndWaits():
                self._end_waits()

    def _end_waits(self) -> None:
        self._ending = True
        for handle in self._handles.values():
            inbox = self._inbox(handle)
            if inbox is not None:
                with contextlib.suppress(ActorError):
                    inbox.tell(EndWait())

    def _hand_off(self, handoff: Handoff) -> None:
        target = self._handles.get(name_key(handoff.target_handle))
        if target is None:
            raise NotFound(self._unknown(handoff.target_handle))
        sender = handoff.from_handle
        delivery = Deliver(
            handle=target,
            id=f"handoff:{uuid.uuid4().hex}",
            sender=f"agent:{sender}" if sender is not None and sender != "human" else "human",
            body=handoff.context,
            timestamp=utc_now(),
        )
        self._send(delivery, self.defer(handoff), target)

    def _unknown(self, handle: str) -> str:
        close = nearest(handle, self._handles.values())
        if close:
            hint = f"did you mean {' or '.join(map(repr, close))}?"
        else:
            known = ", ".join(sorted(self._handles.values())[:20])
            hint = f"handles seen so far: {known or 'none'}"
        return f"nobody called {handle!r} has been here yet; {hint}"

    def _route(self, request: InboxRequest, handle: str) -> None:
        self._send(request, self.defer(request), self._see(handle))

    def _see(self, handle: str) -> str:
        """The handle as it was first written; a new one gets its inbox."""
        key = name_key(handle)
        if key not in self._handles:
            if len(self._handles) >= MAX_HANDLES:
                raise Unavailable(f"there are {MAX_HANDLES} handles already; no more can be made")
            self._handles[key] = handle
            self._start(handle)
        return self._handles[key]

    def _send(self, request: InboxRequest, reply: Reply[Any], handle: str) -> None:
        inbox = self._inbox(handle)
        if inbox is None:
            self._start(handle)
            self._wait_for_start(request, reply, handle)
            return
        try:
            inbox.forward(request, reply)
        except ActorError as error:
            reply.fail(error)

    def _wait_for_start(self, request: InboxRequest, reply: Reply[Any], handle: str) -> None:
        waiting = self._waiting[name_key(handle)]
        if len(waiting) >= MAX_WAITING:
            reply.fail(Unavailable(f"the inbox of {handle!r} is still being opened; call again"))
        else:
            waiting.append((request, reply))

    def _inbox(self, handle: str) -> Ref[Any] | None:
        if name_key(handle) in self._waiting:
            return None
        return self.context.system.registry.find("inbox", name_key(handle))

    def _start(self, handle: str) -> None:
        key = name_key(handle)
        if key not in self._waiting and self._inbox(handle) is None:
            self._waiting[key] = []
            self.context.start_soon(self._start_inbox, handle)

    async def _start_inbox(self, handle: str) -> None:
        spec = ChildSpec(
            name=handle,
            actor=Inbox,
            arguments={
                "handle": handle,
                "path": self._directory / f"{handle}.jsonl",
                "flusher": self._flusher,
            },
            restart=Restart.TEMPORARY,
        )
        try:
            await self.context.system.supervisor(self._supervisor).start_child(spec)
        except ActorError as error:
            self._refuse_waiting(handle, error)
            return
        for request, reply in self._waiting.pop(name_key(handle)):
            self._send(request, reply, handle)

    def _refuse_waiting(self, handle: str, error: ActorError) -> None:
        cause = root_cause(error)
        refusal = (
            cause
            if isinstance(cause, AegisError)
            else StorageError(f"the inbox of {handle!r} cannot be opened: {error}")
        )
        for _, reply in self._waiting.pop(name_key(handle)):
            reply.fail(refusal)
