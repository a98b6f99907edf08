"""The requests of a daemon on a simulated disk and clock, with owners and answerers of a test.

The desk is the real one and gets the messages of owners and the commands of clients. The owners,
the directory of sessions and the inboxes are played by actors whose state loses nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import attrs

from actors import (
    Actor,
    AskError,
    ChildSpec,
    Ref,
    Reply,
    Restart,
)
from actors.errors import InjectedCrash
from actors.faults import RUNTIME, Crash, Plan, armed
from actors.simulate import Simulation, simulate
from aegis.errors import StorageError, Unavailable
from aegis.journal.archive import Keep
from aegis.journal.ledger import decode_line, encode_line, seal_new_line
from aegis.protocol.agent_events import RequestOption
from aegis.protocol.inboxes import Deliver, Receipt
from aegis.protocol.requests import (
    Answerer,
    AnswerReceived,
    AnswerRequest,
    ApplyAnswer,
    AskHuman,
    FindAnswerer,
    FollowRequests,
    HumanAnswer,
    ListRequests,
    OpenedRequest,
    OpenRequest,
    RenameRequests,
    RequestInfo,
    RequestNews,
    RequestReply,
    WithdrawAsked,
    WithdrawRequests,
)
from aegis.requests.desk import RequestDesk
from tests.aegis.simulated_daemon import EMPTY, WRITES, Answer, SimulatedDaemon
from tests.chaos.machine.disk_model import cached_image
from tests.chaos.machine.simulated_disk import SEALS, SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.reproducible import reproducible

T = TypeVar("T")

LEDGER = Path("/state/requests.jsonl")
ARCHIVE = Path("/state/archive")
SESSIONS = {
    "ann": Answerer(handle="ann", session="s-ann", answers_requests=True),
    "bob": Answerer(handle="bob", session="s-bob", answers_requests=True),
    "eve": Answerer(handle="eve", session="s-eve", answers_requests=True),
    "kid": Answerer(handle="kid", session="s-kid", ancestors=["s-ann"], answers_requests=True),
    "low": Answerer(handle="low", session="s-low"),
}
"""The sessions of the directory: ``ann`` has spawned ``kid``, and ``low`` may not answer."""

OPTIONS = [
    RequestOption(id="yes", name="Allow", kind="allow_once"),
    RequestOption(id="always", name="Always allow", kind="allow_session"),
    RequestOption(id="no", name="Reject", kind="deny"),
]


def permission(key: str = "k1", **changes: Any) -> OpenRequest:
    """Return a request of the session ``ann``."""
    fields: dict[str, Any] = {
        "owner": "root/ann",
        "handle": "ann",
        "session": "s-ann",
        "turn": "t1",
        "key": key,
        "kind": "permission",
        "tool": "Bash",
        "tool_kind": "execute",
        "title": "Run rm",
        "input": {"command": f"rm {key}"},
        "options": OPTIONS,
    }
    return OpenRequest(**(fields | changes))


def of_flow(key: str = "k1", **changes: Any) -> OpenRequest:
    """Return a request of the workflow ``w1``."""
    own = {"owner": "root/flow", "handle": "flow", "session": None, "turn": None, "workflow": "w1"}
    return permission(key, **(own | changes))


def an_io_error() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


def answer_to(request: OpenedRequest | RequestInfo, what: Any = "allow", **more: Any) -> Any:
    """Return the answer of the operator, or of ``from_handle``."""
    return AnswerRequest(**({"id": request.id, "digest": request.digest, "answer": what} | more))


@attrs.frozen
class CrashNow:
    """The order to crash."""


@attrs.define
class Owners:
    """All owners: the answers that they got, and those on which they acted, each of them once.

    ``refuses`` is why they do not act. ``holds`` the answers that come: before an owner acts, or
    before it replies; until ``release``.
    """

    got: list[ApplyAnswer] = attrs.field(factory=list)
    acted: list[ApplyAnswer] = attrs.field(factory=list)
    refuses: str = ""
    holds: str = ""
    acts: Callable[[ApplyAnswer], None] = lambda _: None
    _outcomes: dict[str, AnswerReceived] = attrs.field(factory=dict)
    _held: list[tuple[ApplyAnswer, Reply[AnswerReceived]]] = attrs.field(factory=list)

    def take(self, message: ApplyAnswer, reply: Reply[AnswerReceived]) -> None:
        self.got.append(message)
        if self.holds != "acts":
            self._outcome(message)
        if self.holds:
            self._held.append((message, reply))
        else:
            reply.send(self._outcome(message))

    def release(self) -> None:
        """Act on what is held, if that is to be, and reply."""
        self.holds = ""
        held, self._held = self._held, []
        for message, reply in held:
            if not reply.is_settled:
                reply.send(self._outcome(message))

    def _outcome(self, message: ApplyAnswer) -> AnswerReceived:
        if message.id not in self._outcomes:
            received = AnswerReceived(applied=not self.refuses, reason=self.refuses)
            self._outcomes[message.id] = received
            if received.applied:
                self.acted.append(message)
                self.acts(message)
        return self._outcomes[message.id]


class PlayedOwner(Actor[ApplyAnswer | CrashNow]):
    """A session or a workflow."""

    def __init__(self, *, owners: Owners) -> None:
        self._owners = owners

    async def receive(self, message: ApplyAnswer | CrashNow) -> None:
        match message:
            case CrashNow():
                raise InjectedCrash("as the test ordered")
            case ApplyAnswer():
                self._owners.take(message, self.defer(message))


@attrs.define
class Inboxes:
    """All messages by their ids; ``refuses`` is why no message is taken."""

    messages: dict[str, Deliver] = attrs.field(factory=dict)
    refuses: str = ""


class PlayedInboxes(Actor[Deliver]):
    """The service of inboxes."""

    def __init__(self, *, inboxes: Inboxes) -> None:
        self._inboxes = inboxes

    async def setup(self) -> None:
        self.context.register("service", "inboxes")

    async def receive(self, message: Deliver) -> None:
        if self._inboxes.refuses:
            raise Unavailable(self._inboxes.refuses)
        self._inboxes.messages.setdefault(message.id, message)
        self.reply(message, Receipt(id=message.id, status="queued", position=0))


class PlayedSessions(Actor[FindAnswerer]):
    """The directory of sessions; it does not answer for a handle in ``mute``."""

    def __init__(self, *, mute: set[str]) -> None:
        self._mute = mute

    async def setup(self) -> None:
        self.context.register("service", "sessions")

    async def receive(self, message: FindAnswerer) -> None:
        if message.handle not in self._mute:
            known = SESSIONS.get(message.handle, Answerer(handle=message.handle))
            self.reply(message, known)
        else:
            self.defer(message)


class Office(SimulatedDaemon):
    """One state directory with the lives of a daemon, and the clients of its requests."""

    intensity = 1_000

    def __init__(
        self, simulation: Simulation, *, has_sessions: bool = True, keep: Keep | None = None
    ) -> None:
        super().__init__(simulation, "root/requests")
        self.keep = keep or Keep()
        self.owners = Owners()
        self.inboxes = Inboxes()
        self.mute: set[str] = set()
        self.lives = 0
        self._has_sessions = has_sessions

    # Lives of the daemon.

    def actors(self) -> tuple[ChildSpec, ...]:
        self.lives += 1
        owner = ChildSpec.of("ann", PlayedOwner, owners=self.owners)
        owner = owner.with_options(restart=Restart.TRANSIENT)
        children = [
            *(attrs.evolve(owner, name=each) for each in ("ann", "bob", "flow")),
            ChildSpec.of("inboxes", PlayedInboxes, inboxes=self.inboxes),
            ChildSpec.of(
                "requests",
                RequestDesk,
                path=LEDGER,
                archive=ARCHIVE,
                keep=self.keep,
                flusher=SimulatedFlusher(self.disk),
                life=f"life{self.lives}",
            ),
        ]
        if self._has_sessions:
            children.insert(0, ChildSpec.of("sessions", PlayedSessions, mute=self.mute))
        return tuple(children)

    def dies(self) -> None:
        """Forget nothing: owners, inboxes and the directory are played and lose nothing."""

    async def crash_desk(self) -> None:
        """Crash the desk; it restarts and reads its ledger."""
        plan = Plan({("actor.receive.before[RequestDesk]", 1): Crash()})
        with armed(plan, RUNTIME), suppress(AskError, StorageError):
            await self.desk.ask(ListRequests())
        await self.settles()

    def owner(self, name: str = "ann") -> Ref[Any]:
        return self.system.ref(f"root/{name}")

    async def crash_owner(self, name: str = "ann") -> None:
        self.owner(name).tell(CrashNow())
        await self.settles()

    async def stop_owner(self, name: str = "ann") -> None:
        """Stop an owner for good, in this life of the daemon."""
        self.owner(name).stop()
        await self.settles()

    # Owners and clients.

    @property
    def desk(self) -> Ref[Any]:
        return self.system.ref("root/requests")

    async def open(self, request: OpenRequest | None = None) -> OpenedRequest:
        return await self.ask(permission() if request is None else request)

    async def answer(
        self, to: OpenedRequest | RequestInfo, what: str = "allow", **more: Any
    ) -> RequestReply:
        reply: RequestReply = await self.ask(answer_to(to, what, **more))
        return reply

    def answer_soon(
        self, to: OpenedRequest | RequestInfo, what: str = "allow", **more: Any
    ) -> Answer[RequestReply]:
        return self.ask_soon(answer_to(to, what, **more))

    async def withdraw(self, **fields: Any) -> list[str]:
        return (await self.ask(_withdraw(fields))).ids

    def withdraw_soon(self, **fields: Any) -> Answer[Any]:
        return self.ask_soon(_withdraw(fields))

    async def rename(self, session: str, handle: str) -> None:
        self.desk.tell(RenameRequests(session=session, handle=handle))
        await self.settles()

    async def close_askers(self, *askers: str, reason: str = "it was closed") -> None:
        self.desk.tell(WithdrawAsked(askers=[*askers], reason=reason))
        await self.settles()

    def ask_human(
        self, question: str = "Which?", *, by: str = "ann", wait_s: float = 50, **more: Any
    ) -> Answer[HumanAnswer]:
        fields: dict[str, Any] = {"question": question, "from_handle": by, "wait_s": wait_s}
        return self.ask_soon(AskHuman(**(fields | more)))

    async def listed(self, **fields: Any) -> list[RequestInfo]:
        made: dict[str, Any] = {"state": "all", "limit": 500} | fields
        return (await self.ask(ListRequests(**made))).requests

    async def find(self, request: OpenedRequest | RequestInfo | str) -> RequestInfo:
        id_ = request if isinstance(request, str) else request.id
        [found] = await self.listed(id=id_)
        return found

    async def state(self, request: OpenedRequest | RequestInfo | str) -> str:
        """Return the state of a request; ``applied`` once the owner has acted."""
        found = await self.find(request)
        return "applied" if found.applied else found.state

    async def states(self, *requests: OpenedRequest | RequestInfo | str) -> list[str]:
        return [await self.state(each) for each in requests]

    async def news(
        self, after: RequestNews | None = None, from_handle: str | None = None
    ) -> RequestNews:
        """Return the next news of the requests."""
        return await self.ask(_follow(after, from_handle))

    def news_soon(
        self, after: RequestNews | None = None, from_handle: str | None = None
    ) -> Answer[RequestNews]:
        return self.ask_soon(_follow(after, from_handle))

    # The disk.

    def refuse(self, *calls: str) -> None:
        """Refuse these calls of the disk; all that write if none is named."""
        self.plan.refuses = frozenset(calls) or WRITES

    def accept(self) -> None:
        self.plan.refuses = ()

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines of the ledger, without their codes."""
        data = cached_image(self.disk.model).get(str(LEDGER)) or b""
        return [decode_line(each) for each in data.splitlines(keepends=True)]

    async def restart_with(self, lines: Iterable[Mapping[str, Any]], tail: bytes = b"") -> None:
        """Restart on a ledger of these lines."""
        await self.stop()
        data = b"".join(map(_sealed, lines)) + tail
        self.disk = SimulatedDisk({**EMPTY, str(LEDGER): data}, self.plan)
        await self.start()
        await self.settles()


def play(
    story: Callable[[Office], Awaitable[None]],
    *,
    seed: int = 1,
    has_sessions: bool = True,
    keep: Keep | None = None,
) -> None:
    """Run a story of an office."""

    async def run(simulation: Simulation) -> None:
        with reproducible(simulation.chance):
            async with Office(simulation, has_sessions=has_sessions, keep=keep).opened() as office:
                await story(office)

    simulate(run, seed=seed)


def _withdraw(fields: dict[str, Any]) -> WithdrawRequests:
    return WithdrawRequests(**({"session": "s-ann", "reason": "the turn ended"} | fields))


def _follow(after: RequestNews | None, from_handle: str | None) -> FollowRequests:
    return FollowRequests(from_handle=from_handle, place=None if after is None else after.place)


def _sealed(fields: Mapping[str, Any]) -> bytes:
    return seal_new_line(encode_line(fields), SEALS.of(str(LEDGER)))
