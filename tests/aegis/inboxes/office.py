"""The inboxes of a daemon on a simulated disk and clock, with sessions that a test directs.

The router and the inboxes are the real ones and get the messages of the other primitives and of
clients. The sessions of agents, which are asked for the place of a message, are played.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pytest
import trio

from actors import Actor, ActorError, ChildSpec, Ref, Reply, Request, SupervisorSpec
from actors.faults import RUNTIME, Crash, Plan, armed
from actors.simulate import Simulation, simulate
from aegis.errors import AegisError
from aegis.inboxes.reading import message_archive
from aegis.inboxes.router import EndWaits, HandleSeen, InboxRouter
from aegis.journal.archive import DEFAULT_KEEP, Keep
from aegis.journal.ledger import decode_line, encode_line, seal_new_line
from aegis.protocol.feeds import FollowInbox, InboxNews
from aegis.protocol.inboxes import (
    Deliver,
    FindMessage,
    Handoff,
    Message,
    MessageList,
    Place,
    ReadInbox,
    Receipt,
    ReleaseInbox,
    SyncInbox,
    WaitInbox,
)
from aegis.protocol.naming import name_key
from aegis.protocol.wakes import wake_id
from tests.aegis.simulated_daemon import EMPTY, WRITES, Answer, SimulatedDaemon
from tests.chaos.machine.disk_model import cached_image
from tests.chaos.machine.simulated_disk import SEALS, SimulatedDisk, Stall
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.reproducible import reproducible

T = TypeVar("T")

DIRECTORY = Path("/state/inboxes")
ARCHIVE = Path("/state/archive/messages")
TIME = "2026-05-22T14:03:25.120Z"
TOGETHER = 500
"""Requests that a client sends without waiting for the answers; a mailbox has room for them."""


def note(number: int, body: str | None = None, handle: str = "pm", **more: Any) -> Deliver:
    """Return a message of an agent: ``n<number>``."""
    body = f"body {number}" if body is None else body
    fields = {"handle": handle, "id": f"n{number}", "sender": "agent:ann", "timestamp": TIME}
    return Deliver(body=body, **(fields | more))


def deferred(number: int, after: int | None = None, **more: Any) -> Deliver:
    """Return a message whose sender leaves the sync to the inbox."""
    before = None if after is None else f"n{after}"
    return note(number, defer_sync=True, after=before, **more)


def wake(
    seq: int,
    terminal: str = "build",
    life: str = "5f3a",
    handle: str = "pm",
    body: str = "$ make",
    **more: Any,
) -> Deliver:
    """Return the wake about the record ``seq`` of a terminal."""
    return Deliver(
        handle=handle,
        id=wake_id(terminal, life, seq, handle),
        sender=f"term:{terminal}",
        body=body,
        timestamp=f"2026-05-22T14:03:{seq % 60:02}.120Z",
        **more,
    )


def handoff(text: str = "run", target: str = "builder", by: str | None = "pm", **more: Any) -> Any:
    return Handoff(from_handle=by, target_handle=target, context=text, **more)


@attrs.define
class PlayedSessions:
    """The sessions of agents, as the router knows them: ``ids`` of open ones by their handles.

    ``places`` are the answers of sessions about messages; a session without one is silent.
    """

    ids: dict[str, str] = attrs.field(factory=dict)
    closed: dict[str, AegisError] = attrs.field(factory=dict)
    dropped: set[str] = attrs.field(factory=set)
    refusals: dict[str, AegisError] = attrs.field(factory=dict)
    commands: dict[str, AegisError] = attrs.field(factory=dict)
    places: dict[str, Place | None] = attrs.field(factory=dict)
    asked: list[FindMessage] = attrs.field(factory=list)
    checked: list[tuple[str, str, bool]] = attrs.field(factory=list)
    silent: list[Reply[Place | None]] = attrs.field(factory=list)

    def session_of(self, handle: str) -> str | None:
        return self.ids.get(name_key(handle))

    def refuse_closed(self, handle: str) -> AegisError | None:
        return self.closed.get(name_key(handle))

    def has(self, handle: str) -> bool:
        return name_key(handle) in {*self.ids, *self.closed, *self.dropped}

    def was_dropped(self, handle: str) -> bool:
        return name_key(handle) in self.dropped

    def refuse_handoff(
        self, sender: str, target: str, *, interrupts: bool, now: float
    ) -> AegisError | None:
        assert now > 0
        self.checked.append((sender, target, interrupts))
        return self.refusals.get(name_key(sender))

    def refuse_command(self, target: str, name: str) -> AegisError | None:
        return self.commands.get(name)


class PlayedSession(Actor[FindMessage]):
    """One session."""

    def __init__(self, *, session: str, sessions: PlayedSessions) -> None:
        self._session = session
        self._sessions = sessions

    async def setup(self) -> None:
        self.context.register("session", self._session)

    async def receive(self, message: FindMessage) -> None:
        self._sessions.asked.append(message)
        if self._session in self._sessions.places:
            self.reply(message, self._sessions.places[self._session])
        else:
            self._sessions.silent.append(self.defer(message))


class Office(SimulatedDaemon):
    """One state directory with the lives of a daemon, and the clients of its inboxes."""

    intensity = 1_000

    def __init__(self, simulation: Simulation, keep: Keep = DEFAULT_KEEP) -> None:
        super().__init__(simulation, "root/router")
        self.keep = keep
        self.sessions = PlayedSessions()
        self.running = {"s-builder": "builder"}
        """The sessions that run from the start of each life, and their handles."""

    # Lives of the daemon.

    def actors(self) -> tuple[ChildSpec, ...]:
        self.sessions.ids = {handle: each for each, handle in self.running.items()}
        sessions = [
            ChildSpec.of(each, PlayedSession, session=each, sessions=self.sessions)
            for each in self.running
        ]
        router = ChildSpec.of(
            "router",
            InboxRouter,
            directory=DIRECTORY,
            archive=message_archive(ARCHIVE.parent, self.disk, self.keep),
            keep=self.keep,
            supervisor="root/inboxes",
            flusher=SimulatedFlusher(self.disk),
            sessions=self.sessions,
        )
        return (*sessions, SupervisorSpec(name="inboxes", dynamic=True), router)  # type: ignore[arg-type]

    def dies(self) -> None:
        """Forget nothing: the sessions are played."""

    @property
    def router(self) -> Ref[Any]:
        return self.system.ref("root/router")

    def inbox(self, handle: str = "pm") -> Ref[Any]:
        """Return the running inbox of a handle."""
        found = self.system.registry.find("inbox", name_key(handle))
        assert found is not None
        return found

    def is_running(self, handle: str = "pm") -> bool:
        return self.system.registry.find("inbox", name_key(handle)) is not None

    async def crash_inbox(self, handle: str = "pm") -> None:
        """Crash an inbox; it restarts and reads its ledger."""
        with armed(Plan({("actor.receive.before[Inbox]", 1): Crash()}), RUNTIME):
            self.inbox(handle).tell(SyncInbox())
            await self.yields()
        await self.settles()

    async def crash_router(self) -> None:
        plan = Plan({("actor.receive.before[InboxRouter]", 1): Crash()})
        with armed(plan, RUNTIME), suppress(ActorError):
            await self.ask(ReadInbox(from_handle="pm"))
        await self.settles()

    # Senders and readers.

    def ask_soon(self, request: Request[T]) -> Answer[T]:
        """Send a request now, behind all earlier ones, without waiting for the answer."""
        answer: Answer[T] = Answer()
        reply: Reply[T] = self.router.send_request(request)

        async def wait() -> None:
            try:
                with answer.scope:
                    answer.value = await reply.wait()
            except (AegisError, ActorError) as error:
                answer.error = error
            answer.at = trio.current_time()

        self._nursery.start_soon(wait)
        return answer

    async def deliver(self, *messages: Deliver) -> list[Receipt]:
        """Deliver messages, one after the other."""
        return [await self.ask(each) for each in messages]

    async def fill(self, messages: Iterable[Deliver]) -> None:
        """Deliver many messages, in their order."""
        todo = [*messages]
        for start in range(0, len(todo), TOGETHER):
            together = todo[start : start + TOGETHER]
            for reply in [self.router.send_request(each) for each in together]:
                await reply.wait()

    async def defer(self, *numbers: int, **more: Any) -> list[Answer[Receipt]]:
        """Send deferred messages; they are written when this returns."""
        answers = [self.ask_soon(deferred(each, **more)) for each in numbers]
        await self.settles()
        return answers

    async def read(self, handle: str = "pm", **more: Any) -> MessageList:
        fields: dict[str, Any] = {"from_handle": handle, "limit": 1_000}
        return await self.ask(ReadInbox(**(fields | more)))

    async def unread(self, handle: str = "pm", **more: Any) -> list[str]:
        return ids(await self.read(handle, **more))

    async def all(self, handle: str = "pm", **more: Any) -> list[str]:
        """Return the ids of the newest messages, read or not."""
        return ids(await self.read(handle, unread=False, **more))

    async def message(self, number: int = 0, handle: str = "pm") -> Message:
        return (await self.read(handle)).messages[number]

    async def wait(self, **more: Any) -> MessageList:
        return await self.ask(WaitInbox(**({"from_handle": "pm"} | more)))

    def wait_soon(self, handle: str | None = "pm", **more: Any) -> Answer[MessageList]:
        return self.ask_soon(WaitInbox(**({"from_handle": handle, "timeout": 30} | more)))

    async def follow(self, last: InboxNews | None = None, **more: Any) -> InboxNews:
        """Return what a stream gets after its ``last`` news; without these, its first place."""
        return await self.ask(_follow(last, more))

    def follow_soon(self, last: InboxNews, **more: Any) -> Answer[InboxNews]:
        return self.ask_soon(_follow(last, more))

    async def see(self, *handles: str) -> None:
        """Let handles call a command."""
        for each in handles:
            self.router.tell(HandleSeen(handle=each))
        await self.settles()

    async def release(self, handle: str) -> None:
        self.router.tell(ReleaseInbox(handle=handle))
        await self.settles()

    async def end_waits(self) -> None:
        self.router.tell(EndWaits())
        await self.settles()

    # The disk.

    def refuse(self, *calls: str) -> None:
        """Refuse these calls of the disk; all that write if none is named."""
        self.plan.refuses = frozenset(calls) or WRITES

    def accept(self) -> None:
        """Refuse and delay no more calls."""
        self.plan.refuses = ()
        self.plan.faults.clear()

    def stall(self, seconds: float = 10) -> None:
        """Let the next sync of a ledger take so long."""
        self.plan.faults["fdatasync", self.plan.hits["fdatasync"] + 1] = Stall(seconds)

    @property
    def syncs(self) -> int:
        return self.plan.hits["fdatasync"]

    def data(self, handle: str = "pm") -> bytes:
        return cached_image(self.disk.model).get(_path(handle)) or b""

    def lines(self, handle: str = "pm") -> list[dict[str, Any]]:
        """Return the lines of a ledger, without their codes."""
        return [decode_line(each) for each in self.data(handle).splitlines(keepends=True)]

    async def restart_with(
        self, lines: Iterable[Mapping[str, Any] | bytes], handle: str = "pm"
    ) -> None:
        """Restart on a ledger of these lines; raw ones are taken as they are."""
        await self.stop()
        data = b"".join(e if isinstance(e, bytes) else sealed(e, handle) for e in lines)
        image = {**EMPTY, str(DIRECTORY): None, _path(handle): data}
        self.disk = SimulatedDisk(image, self.plan)
        await self.start()
        await self.settles()

    async def until_running(self, handle: str = "pm") -> None:
        await self.until(lambda: self.is_running(handle))


def ids(found: MessageList | InboxNews) -> list[str]:
    return [each.id for each in found.messages]


def sealed(fields: Mapping[str, Any], handle: str = "pm") -> bytes:
    """Return a line of the ledger of a handle."""
    return seal_new_line(encode_line(fields), SEALS.of(_path(handle)))


def message_line(message: Deliver, **more: Any) -> dict[str, Any]:
    """Return a message as the ledgers of version 1 have it."""
    names = ("id", "sender", "body", "timestamp", "task_id", "status")
    return {"kind": "message", **{each: getattr(message, each) for each in names}, **more}


def read_line(up_to: str, start: object = 0) -> dict[str, Any]:
    """Return an acknowledgement as the ledgers of version 1 have it."""
    return {"kind": "read", "up_to": up_to, "from": start}


def limited(monkeypatch: pytest.MonkeyPatch, **limits: float) -> None:
    """Set limits of inboxes, in each module that uses them."""
    modules = [each for key, each in sys.modules.items() if key.startswith("aegis.inboxes")]
    for name, limit in limits.items():
        using = [each for each in modules if hasattr(each, name)]
        assert using, name
        for each in using:
            monkeypatch.setattr(each, name, limit)


def play(
    story: Callable[[Office], Awaitable[None]], *, seed: int = 1, keep: Keep = DEFAULT_KEEP
) -> None:
    """Run a story of an office."""

    async def run(simulation: Simulation) -> None:
        with reproducible(simulation.chance):
            async with Office(simulation, keep).opened() as office:
                with trio.fail_after(1_000_000_000):
                    await story(office)

    simulate(run, seed=seed)


def _path(handle: str) -> str:
    return str(DIRECTORY / f"{handle}.jsonl")


def _follow(last: InboxNews | None, more: dict[str, Any]) -> FollowInbox:
    fields: dict[str, Any] = {"handle": "pm", "place": None if last is None else last.place}
    return FollowInbox(**(fields | more))
