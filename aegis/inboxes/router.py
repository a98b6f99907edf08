"""``InboxRouter``: finds and starts the inbox of each handle.

A handle exists once it called a command or a session was created for it. Its inbox file is created
then, so the files in the directory are the list of handles.

Each inbox has a supervisor of its own, so repeated crashes use up only its own restarts. It is then
stopped until the next request for it.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import attrs
import structlog

from actors import Actor, ActorError, ChildSpec, Ref, Reply, Request, Restart, SupervisorSpec
from actors.errors import root_cause
from aegis.errors import AegisError, InvalidRequest, NotFound, Unavailable
from aegis.inboxes.handoffs import (
    NoSessions,
    SessionDirectory,
    agent_of,
    answer,
    command_of,
    delivery_of,
)
from aegis.inboxes.inbox import EndWait, Inbox, Settle, stopping
from aegis.journal.archive import DEFAULT_KEEP, Archive, Keep
from aegis.journal.disk import stored_names
from aegis.journal.flusher import Flusher
from aegis.names import did_you_mean
from aegis.protocol.feeds import FollowInbox
from aegis.protocol.inboxes import (
    Deliver,
    FindMessage,
    Handoff,
    PersonHandoff,
    ReadInbox,
    Receipt,
    ReleaseInbox,
    WaitInbox,
)
from aegis.protocol.naming import is_name, name_key

log = structlog.get_logger()

MAX_HANDLES = 4_096
"""The largest number of handles that one daemon knows, beside those of its sessions."""

RELEASES = 64
"""The number of sessions closed after which the files of dropped ones are looked for."""

HUMAN = "human"
"""The handle of the person at the daemon."""

SUFFIX = ".jsonl"
"""The suffix of an inbox's ledger, after the handle."""

SETTLE_S = 5.0
"""Seconds that an inbox has to answer its requests before it is stopped."""

MAX_WAITING = 768
"""The largest number of requests that wait for one inbox to start or stop: its mailbox's size."""


@attrs.frozen(kw_only=True)
class HandleSeen:
    """The message that ``handle`` called a command, or that a session was created for it."""

    handle: str


@attrs.frozen(kw_only=True)
class EndWaits:
    """The request to end all waits, as the daemon stops."""


RouterMessage = (
    Deliver
    | Handoff
    | PersonHandoff
    | ReadInbox
    | WaitInbox
    | FollowInbox
    | ReleaseInbox
    | HandleSeen
    | EndWaits
)


class InboxRouter(Actor[RouterMessage]):
    """The actor that routes messages to inboxes, which are below ``supervisor`` (a path).

    ``directory`` contains their files, ``archive`` what is old in all of them. ``sessions`` are the
    sessions of agents.
    """

    def __init__(
        self,
        *,
        directory: Path,
        archive: Archive,
        supervisor: str,
        flusher: Flusher,
        keep: Keep = DEFAULT_KEEP,
        sessions: SessionDirectory | None = None,
    ) -> None:
        self._directory = directory
        self._archive, self._keep = archive, keep
        self._supervisor = supervisor
        self._flusher = flusher
        self._sessions = sessions or NoSessions()
        self._handles: dict[str, str] = {}
        self._waiting: dict[str, list[tuple[Request[Any], Reply[Any]]]] = {}
        self._ending = False
        self._releases = 0

    async def setup(self) -> None:
        """Register the router; find the existing handles."""
        self.context.register("service", "inboxes")
        for name in stored_names(self._flusher.disk, self._directory):
            handle = name.removesuffix(SUFFIX)
            if handle != name and is_name(handle):
                self._handles[name_key(handle)] = handle

    async def receive(self, message: RouterMessage) -> None:
        """Pass a message on to its inbox."""
        match message:
            case Deliver(handle=handle):
                self._route(message, handle)
            case Handoff():
                self._hand_off(message)
            case WaitInbox() if self._ending:
                raise stopping()
            case ReadInbox() | WaitInbox():
                self._route(message, message.from_handle or HUMAN)
            case FollowInbox(handle=handle):
                self._route(message, handle)
            case HandleSeen(handle=handle):
                self._see(handle)
            case ReleaseInbox(handle=handle):
                self._release(name_key(handle))
            case EndWaits():
                self._end_waits()

    def _end_waits(self) -> None:
        self._ending = True
        for key in self._handles:
            inbox = self._inbox(key)
            if inbox is not None:
                with contextlib.suppress(ActorError):
                    inbox.tell(EndWait())

    def _hand_off(self, handoff: Handoff) -> None:
        key = name_key(handoff.target_handle)
        # A person exists also before the first call of theirs.
        target = self._see(HUMAN) if key == HUMAN else self._handles.get(key)
        if target is None:
            raise NotFound(self._unknown(handoff.target_handle))
        refusal = self._sessions.refuse_closed(handoff.target_handle)
        if refusal is not None:
            raise refusal
        session = self._session(target)
        if handoff.interrupt and session is None:
            raise InvalidRequest(
                f"{target!r} is no session that runs, so nothing of it can be interrupted; leave "
                "interrupt out"
            )
        self._check_sender(handoff, target)
        command = command_of(handoff, target, self._sessions)
        delivery = delivery_of(handoff, target, self._sessions, is_command=bool(command))
        if session is None:
            self._pass_to_inbox(handoff, delivery, target)
            return
        # Sent here, not in the task: tasks start in any order, and a sender's messages keep theirs.
        delivered = self._delivered(delivery)
        by = (handoff.from_handle or HUMAN) if handoff.interrupt else None
        find = FindMessage(message=delivery.id, interrupt_by=by, command=command)
        self.context.start_soon(answer, self.defer(handoff), delivered, session, find)

    def _delivered(self, delivery: Deliver) -> Reply[Receipt]:
        """Send a message to its inbox; return the reply. Its failures are in the reply too."""
        key = name_key(delivery.handle)
        inbox = self._inbox(key)
        reply: Reply[Receipt] = Reply(self.context.system)
        if inbox is None:
            self._start(key)
            self._wait_for_start(delivery, reply, key)
            return reply
        try:
            inbox.forward(delivery, reply)
        except ActorError as error:
            reply.fail(error)
        return reply

    def _session(self, handle: str) -> Ref[Any] | None:
        """Return the actor of the session with this handle, if one is running."""
        found = self._sessions.session_of(handle)
        return None if found is None else self.context.system.registry.find("session", found)

    def _check_sender(self, handoff: Handoff, target: str) -> None:
        """Raise the refusal of a message that the sender may not send."""
        sender = agent_of(handoff)
        if sender is not None:
            refusal = self._sessions.refuse_handoff(
                sender, target, interrupts=handoff.interrupt, now=time.time()
            )
            if refusal is not None:
                raise refusal

    def _unknown(self, handle: str) -> str:
        known = ", ".join(sorted(self._handles.values())[:20])
        seen = f"handles seen so far: {known or 'none'}"
        hint = did_you_mean(handle, self._handles.values(), seen)
        return f"nobody called {handle!r} has been here yet; {hint}"

    def _route(self, request: Deliver | ReadInbox | WaitInbox | FollowInbox, handle: str) -> None:
        self._pass_to_inbox(request, request, self._see(handle))

    def _see(self, handle: str) -> str:
        """Return the handle as it was first spelled; start the inbox of a new one."""
        key = name_key(handle)
        known = self._handles.get(key)
        if known is not None:
            return known
        if len(self._handles) >= MAX_HANDLES and not self._sessions.has(handle):
            clients = sum(not self._sessions.has(each) for each in self._handles.values())
            if clients >= MAX_HANDLES:
                raise Unavailable(f"{MAX_HANDLES} handles exist, which is the limit")
        self._handles[key] = handle
        self._start(key)
        return handle

    def _pass_to_inbox(self, request: Request[Any], passed: Request[Any], handle: str) -> None:
        """Let the inbox answer ``request``, passed on as ``passed``."""
        key = name_key(handle)
        inbox = self._inbox(key)
        if inbox is None:
            self._start(key)
            self._wait_for_start(passed, self.defer(request), key)
            return
        try:
            self.pass_on(request, inbox, passed)
        except ActorError:
            log.warning("message not passed on", handle=handle)  # no reply is expected

    def _wait_for_start(self, request: Request[Any], reply: Reply[Any], key: str) -> None:
        waiting = self._waiting[key]
        if len(waiting) >= MAX_WAITING:
            handle = self._handles[key]
            reply.fail(Unavailable(f"the inbox of {handle!r} is still being opened; call again"))
        else:
            waiting.append((request, reply))

    def _inbox(self, key: str) -> Ref[Any] | None:
        """Return the running inbox; None if it is not running, or still starting or stopping."""
        if key in self._waiting:
            return None
        return self.context.system.registry.find("inbox", key)

    def _start(self, key: str) -> None:
        if key not in self._waiting and self._inbox(key) is None:
            self._waiting[key] = []
            self.context.start_soon(self._start_inbox, key)

    async def _start_inbox(self, key: str) -> None:
        try:
            await self.context.system.supervisor(self._supervisor).start_child(self._spec(key))
        except ActorError as error:
            self._refuse_waiting(key, error)
            return
        inbox = self.context.system.ref(f"{self._supervisor}/{self._handles[key]}/inbox")
        for request, reply in self._waiting.pop(key):
            try:
                inbox.forward(request, reply)
            except ActorError as error:
                reply.fail(error)

    def _spec(self, key: str) -> SupervisorSpec:
        handle = self._handles[key]
        inbox = ChildSpec.of(
            "inbox",
            Inbox,
            handle=handle,
            path=self._directory / f"{handle}{SUFFIX}",
            archive=self._archive,
            keep=self._keep,
            flusher=self._flusher,
        )
        return SupervisorSpec(name=handle, children=(inbox,), restart=Restart.TEMPORARY)

    # Closed sessions.

    def _release(self, key: str) -> None:
        """Stop the inbox of a closed session; now and then, delete those of dropped ones."""
        doomed = []
        if self._releases % RELEASES == 0:
            known = self._handles.values()
            doomed = [name_key(each) for each in known if self._sessions.was_dropped(each)]
        self._releases += 1
        self.context.start_soon(self._stop_inboxes, key, doomed)

    async def _stop_inboxes(self, key: str, doomed: list[str]) -> None:
        await self._stop_inbox(key)
        for each in doomed:
            await self._stop_inbox(each)
            if each in self._waiting:
                continue  # it is used again: deleted later
            handle = self._handles.pop(each, None)
            if handle is not None:
                with contextlib.suppress(OSError):  # tried again later
                    self._flusher.disk.unlink(self._directory / f"{handle}{SUFFIX}")

    async def _stop_inbox(self, key: str) -> None:
        """Stop the inbox after its last answer; start it again for requests that came meanwhile."""
        inbox = self._inbox(key)
        if inbox is None:
            return
        self._waiting[key] = []
        with contextlib.suppress(ActorError):
            await inbox.ask(Settle(), timeout=SETTLE_S)
        with contextlib.suppress(ActorError):  # it has ended by itself
            await self.context.system.supervisor(self._supervisor).stop_child(self._handles[key])
        if self._waiting[key]:
            await self._start_inbox(key)
        else:
            del self._waiting[key]

    def _refuse_waiting(self, key: str, error: ActorError) -> None:
        cause = root_cause(error)
        for _, reply in self._waiting.pop(key):
            reply.fail(
                type(cause)(*cause.args)
                if isinstance(cause, AegisError)
                else Unavailable(
                    f"the inbox of {self._handles[key]!r} had an internal error while it was "
                    "opened; nothing is lost: call again"
                )
            )
