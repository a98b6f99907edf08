"""The requests of a daemon on a simulated disk and clock, with owners and answerers of a test.

The desk is the real one and gets the messages of owners and the commands of clients. The owners,
the directory of sessions and the inboxes are played by actors whose state loses nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

import attrs
import trio
import trio.testing

from actors import (
    Actor,
    ActorError,
    AskError,
    ChildSpec,
    Ref,
    Reply,
    Request,
    Restart,
    SupervisorSpec,
    System,
)
from actors.faults import RUNTIME, Crash, Plan, armed
from actors.simulate import Simulation, simulate
from aegis.errors import AegisError, StorageError, Unavailable
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
    OpenRequest,
    RenameRequests,
    RequestInfo,
    RequestNews,
    RequestOpened,
    RequestReply,
    WithdrawAsked,
    WithdrawRequests,
)
from aegis.requests.desk import RequestDesk
from tests.chaos.machine.disk_images import drawn_image, legal_images
from tests.chaos.machine.disk_model import DiskModel, Image, cached_image
from tests.chaos.machine.simulated_disk import SEALS, DiskFault, DiskPlan, Fail, SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.reproducible import reproducible

T = TypeVar("T")

LEDGER = Path("/state/requests.jsonl")
EMPTY: Image = {"/": None, "/state": None}
SETTLED_S = 0.2
"""Longer than all syncs and calls take that follow from one event, shorter than any timer."""

WRITES = frozenset({"write", "fdatasync", "ftruncate"})

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


def answer_to(request: RequestOpened | RequestInfo, what: Any = "allow", **more: Any) -> Any:
    """Return the answer of the operator, or of ``from_handle``."""
    return AnswerRequest(**({"id": request.id, "digest": request.digest, "answer": what} | more))


class RefusingDisk(DiskPlan):
    """A disk whose calls named in ``refuses`` fail with ``ENOSPC``; ``refused`` counts them."""

    refuses: Container[str] = ()
    refused = 0

    def strike(self, call: str) -> DiskFault | None:
        """Count the call; fail it if it is refused."""
        super().strike(call)
        if call not in self.refuses:
            return None
        self.refused += 1
        return Fail(errno.ENOSPC)


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
                raise RuntimeError("as the test ordered")
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


class Office:
    """One state directory with the lives of a daemon, and the clients of its requests."""

    def __init__(self, simulation: Simulation, *, has_sessions: bool = True) -> None:
        self.chance = simulation.chance
        self.owners = Owners()
        self.inboxes = Inboxes()
        self.mute: set[str] = set()
        self.plan = RefusingDisk()
        self.disk = SimulatedDisk(EMPTY, self.plan)
        self.lives = 0
        self.system: System
        self._has_sessions = has_sessions
        self._simulation = simulation
        self._scope = trio.CancelScope()
        self._nursery: trio.Nursery

    # Lives of the daemon.

    async def start(self) -> None:
        """Start the daemon on what is on the disk."""
        self.lives += 1
        await self._nursery.start(self._live)

    async def _live(self, task_status: trio.TaskStatus[None]) -> None:
        owner = ChildSpec.of("ann", PlayedOwner, owners=self.owners)
        owner = owner.with_options(restart=Restart.TRANSIENT)
        children = [
            *(attrs.evolve(owner, name=each) for each in ("ann", "bob", "flow")),
            ChildSpec.of("inboxes", PlayedInboxes, inboxes=self.inboxes),
            ChildSpec.of(
                "requests",
                RequestDesk,
                path=LEDGER,
                flusher=SimulatedFlusher(self.disk),
                life=f"life{self.lives}",
            ),
        ]
        if self._has_sessions:
            children.insert(0, ChildSpec.of("sessions", PlayedSessions, mute=self.mute))
        spec = SupervisorSpec(name="root", children=tuple(children), intensity=1_000)
        with trio.CancelScope() as self._scope:
            async with self._simulation.open_system(spec) as self.system:
                task_status.started()
                await trio.sleep_forever()

    async def stop(self, *, power_fails: bool = False, draws: bool = False) -> None:
        """Kill the daemon; ``power_fails``: only synced data is left, or what chance ``draws``."""
        model = self.disk.model
        if power_fails and draws:
            image = drawn_image(model, self.chance.randrange)
        elif power_fails:
            image = next(iter(legal_images(model)))
        else:
            image = dict(cached_image(model))
        self.disk = SimulatedDisk(image, self.plan)  # the cleanup of the killed one changes nothing
        self._scope.cancel()
        await trio.testing.wait_all_tasks_blocked()

    async def restart(self, *, power_fails: bool = False, draws: bool = False) -> None:
        await self.stop(power_fails=power_fails, draws=draws)
        await self.start()
        await self.settles()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Office]:
        async with trio.open_nursery() as self._nursery:
            await self.start()
            yield self
            self._nursery.cancel_scope.cancel()

    async def settles(self) -> None:
        """Wait until all that follows from the last event has happened, apart from timers."""
        await trio.sleep(SETTLED_S)

    async def passes(self, seconds: float) -> None:
        """Let time pass."""
        await trio.sleep(seconds)
        await self.settles()

    async def yields(self) -> None:
        """Let all tasks run that can, without time passing."""
        await trio.testing.wait_all_tasks_blocked()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition, which is looked at every millisecond."""
        with trio.fail_after(60):
            while not condition():  # noqa: ASYNC110 -- of the simulated clock
                await trio.sleep(0.001)

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

    async def ask(self, request: Request[T]) -> T:
        answer: T = await self.desk.ask(request, timeout=10_000)
        return answer

    def ask_soon(self, request: Request[T]) -> Answer[T]:
        """Ask without waiting for the answer."""
        answer: Answer[T] = Answer()

        async def wait() -> None:
            try:
                with answer.scope:
                    answer.value = await self.ask(request)
            except (AegisError, ActorError) as error:
                answer.error = error

        self._nursery.start_soon(wait)
        return answer

    async def refusal(self, request: Request[Any]) -> AegisError:
        """Return why a request is refused."""
        try:
            answer = await self.ask(request)
        except AegisError as error:
            return error
        raise AssertionError(f"it is not refused: {answer}")

    async def open(self, request: OpenRequest | None = None) -> RequestOpened:
        return await self.ask(permission() if request is None else request)

    async def answer(
        self, to: RequestOpened | RequestInfo, what: str = "allow", **more: Any
    ) -> RequestReply:
        reply: RequestReply = await self.ask(answer_to(to, what, **more))
        return reply

    def answer_soon(
        self, to: RequestOpened | RequestInfo, what: str = "allow", **more: Any
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

    async def find(self, request: RequestOpened | RequestInfo | str) -> RequestInfo:
        id_ = request if isinstance(request, str) else request.id
        [found] = await self.listed(id=id_)
        return found

    async def state(self, request: RequestOpened | RequestInfo | str) -> str:
        """Return the state of a request; ``applied`` once the owner has acted."""
        found = await self.find(request)
        return "applied" if found.applied else found.state

    async def states(self, *requests: RequestOpened | RequestInfo | str) -> list[str]:
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

    def refuse_to_open(self, *, refuses: bool = True) -> None:
        """Refuse to open the ledger."""
        opens = DiskModel.open

        def refusing(path: str, *arguments: Any, **more: Any) -> int:
            if refuses and path == str(LEDGER):
                raise an_io_error()
            return opens(self.disk.model, path, *arguments, **more)

        self.disk.model.open = refusing  # type: ignore[method-assign]


@attrs.define
class Answer(Generic[T]):
    """The answer to a request that a test does not wait for: None until it is there."""

    value: T | Any = None
    error: Exception | None = None
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    @property
    def has_come(self) -> bool:
        return self.value is not None or self.error is not None

    def give_up(self) -> None:
        """Stop waiting."""
        self.scope.cancel()


def play(
    story: Callable[[Office], Awaitable[None]], *, seed: int = 1, has_sessions: bool = True
) -> None:
    """Run a story of an office."""

    async def run(simulation: Simulation) -> None:
        with reproducible(simulation.chance):
            async with Office(simulation, has_sessions=has_sessions).opened() as office:
                await story(office)

    simulate(run, seed=seed)


def _withdraw(fields: dict[str, Any]) -> WithdrawRequests:
    return WithdrawRequests(**({"session": "s-ann", "reason": "the turn ended"} | fields))


def _follow(after: RequestNews | None, from_handle: str | None) -> FollowRequests:
    return FollowRequests(from_handle=from_handle, place=None if after is None else after.place)


def _sealed(fields: Mapping[str, Any]) -> bytes:
    return seal_new_line(encode_line(fields), SEALS.of(str(LEDGER)))
