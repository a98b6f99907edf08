"""The groups of a daemon on a simulated disk and clock, with members that a test directs.

The desk is the real one and gets the commands of clients. Sessions and inboxes are played by one
actor that loses nothing: it stands for durable transcripts and inboxes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from actors import Actor, ChildSpec, Reply, Request
from actors.errors import InjectedCrash
from actors.simulate import Simulation, simulate
from aegis.errors import AegisError, AlreadyExists, Busy, Forbidden, NotFound, Unavailable
from aegis.groups.desk import GroupDesk
from aegis.journal.archive import Keep
from aegis.protocol.agent_states import Blocked
from aegis.protocol.agents import AgentInfo, CloseAgent, ShowAgent, SpawnMember, TranscriptEntry
from aegis.protocol.feeds import FollowGroups, FollowSession, GroupsNews, SessionNews, SessionPlace
from aegis.protocol.groups import (
    BroadcastToGroup,
    DissolveGroup,
    GroupInfo,
    GroupReplies,
    ListGroups,
    RenameGroup,
    ShowGroup,
    SpawnIntoGroup,
    SpawnMixedGroup,
    WaitForAll,
    WaitForAny,
)
from aegis.protocol.inboxes import Deliver, FindMessage, Place, Receipt, WithdrawMessage
from tests.aegis.simulated_daemon import EMPTY, Answer, SimulatedDaemon
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.reproducible import reproducible

DIRECTORY = Path("/state/groups")
ARCHIVE = Path("/state/archive")


@attrs.define
class Session:
    """A session: its transcript, and its messages, of which those in ``waiting`` began no turn.

    ``handle`` is the first one, ``name`` the current one.
    """

    id: str
    handle: str
    name: str
    profile: str
    spawned_by: str
    entries: list[TranscriptEntry] = attrs.field(factory=list)
    messages: list[Deliver] = attrs.field(factory=list)
    waiting: list[Deliver] = attrs.field(factory=list)
    state: str = "idle"
    reason: str = ""
    limited_until: str | None = None
    blocked: Blocked | None = None
    turn: int = 0

    def begun(self, message: str) -> int:
        """Return the number of turns that a message began."""
        opened = [each.fields for each in self.entries if each.kind == "turn_opened"]
        return sum(each["messages"] == [{"id": message}] for each in opened)


class Agents:
    """All sessions by their ids, and all messages to others by their ids.

    ``refuses_spawn`` is why no session of a profile can be opened; ``silent`` sessions do not
    report their state. While ``holds_spawns``, no request for a session is answered.
    """

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.messages: dict[str, Deliver] = {}
        self.delivered: Counter[str] = Counter()
        self.withdrawn: list[tuple[str, str]] = []
        self.opened: list[str] = []
        self.refuses_spawn: dict[str, str] = {}
        self.holds_spawns = False
        self.closing_fails = False
        self.delivering_fails = False
        self.silent: set[str] = set()
        self.waiting: list[tuple[FollowSession, Reply[SessionNews]]] = []

    def find(self, name: str) -> Session:
        """Return a session by its id or handle. Raises ``NotFound``."""
        for each in self.sessions.values():
            if name in (each.id, each.handle, each.name):
                return each
        raise NotFound(f"there is no agent {name!r}")

    def open(self, request: SpawnMember) -> Session:
        """Open a session, unless it is open."""
        if request.session in self.sessions:
            return self.sessions[request.session]
        if request.profile in self.refuses_spawn:
            raise Unavailable(self.refuses_spawn[request.profile])
        handle = request.handle or f"{request.profile}-{len(self.opened) + 1}"
        if any(each.handle == handle for each in self.sessions.values()):
            raise AlreadyExists(f"handle {handle!r} is or was used")
        by = request.from_handle or "human"
        session = Session(request.session, handle, handle, request.profile or "", by)
        self.sessions[session.id] = session
        self.opened.append(session.id)
        return session

    def add(self, session: Session, kind: str, **fields: object) -> None:
        """Add an entry to a transcript, and publish it."""
        seq, fields = len(session.entries) + 1, {"turn": session.turn, **fields}
        session.entries.append(TranscriptEntry(seq=seq, kind=kind, at="", fields=fields))
        self.publish()

    def publish(self) -> None:
        waiting, self.waiting = self.waiting, []
        for follow, reply in waiting:
            self.follow(follow, reply)

    def begin(self, session: Session) -> None:
        """Let a session begin the turn of its oldest message that began none."""
        message = session.waiting.pop(0)
        session.turn, session.state = session.turn + 1, "working"
        self.add(session, "turn_opened", messages=[{"id": message.id}])

    def end(
        self, session: Session, outcome: str = "completed", text: str = "", **more: object
    ) -> None:
        session.state = "idle"
        reason = "" if outcome == "completed" else "it said so"
        self.add(session, "turn_ended", outcome=outcome, text=text, reason=reason, **more)

    def close(self, session: Session) -> None:
        if session.state == "working":
            self.end(session, "cancelled")
        if session.state != "closed":
            session.state = "closed"
            self.add(session, "closed")

    def purge(self, session: Session) -> None:
        """Delete a session with its transcript."""
        del self.sessions[session.id]
        self.publish()

    def deliver(self, message: Deliver) -> None:
        """Put a message into its inbox, once by its id."""
        self.delivered[message.id] += 1
        members = [each for each in self.sessions.values() if each.handle == message.handle]
        if not members:
            self.messages.setdefault(message.id, message)
        for each in members:
            if message.id not in [known.id for known in each.messages]:
                each.messages.append(message)
                if message.id.startswith("broadcast:"):
                    each.waiting.append(message)

    def withdraw(self, message: str) -> None:
        """End the turn of a message, or let it never begin."""
        for each in self.sessions.values():
            if message in [known.id for known in each.messages]:
                self.withdrawn.append((each.handle, message))
                each.waiting = [known for known in each.waiting if known.id != message]
                opened = [entry for entry in each.entries if entry.kind == "turn_opened"]
                if each.state == "working" and opened[-1].fields["messages"] == [{"id": message}]:
                    self.end(each, "cancelled")

    def place(self, message: str) -> Place | None:
        """Return the place of a message in its session."""
        for each in self.sessions.values():
            if message in [known.id for known in each.messages]:
                return Place(is_landed=bool(each.begun(message)))
        return None

    def follow(self, request: FollowSession, reply: Reply[SessionNews]) -> None:
        try:
            session = self.find(request.handle)
        except NotFound as error:
            reply.fail(error)
            return
        newest, is_over = len(session.entries), session.state == "closed"
        since = newest if request.place is None else request.place.seq
        if request.place is not None and since == newest and not is_over:
            self.waiting.append((request, reply))
            return
        place, entries = SessionPlace(seq=newest), session.entries[since:]
        reply.send(SessionNews(entries=entries, place=place, newest=newest, is_over=is_over))


def _info(session: Session) -> AgentInfo:
    state: Any = session.state
    return AgentInfo(
        id=session.id,
        handle=session.name,
        profile=session.profile,
        provider="claude",
        state=state,
        since="",
        reason=session.reason,
        cwd="/",
        spawned_by=session.spawned_by,
        model="",
        turn=session.turn,
        waiting=len(session.waiting),
        quiet_s=0.0,
        tools=[],
        blocked=session.blocked,
        limited_until=session.limited_until,
        conversation=None,
    )


Asked = (
    SpawnMember | ShowAgent | CloseAgent | FollowSession | Deliver | WithdrawMessage | FindMessage
)


class PlayedServices(Actor[Asked]):
    """The services and sessions that a desk asks."""

    def __init__(self, *, agents: Agents) -> None:
        self._agents = agents

    async def setup(self) -> None:
        for service in ("agents", "inboxes"):
            self.context.register("service", service)
        for session in self._agents.sessions:
            self.context.register("session", session)

    async def receive(self, message: Asked) -> None:
        agents = self._agents
        match message:
            case SpawnMember():
                if agents.holds_spawns:
                    self.defer(message)
                    return
                session = agents.open(message)
                self.context.register("session", session.id)
                self.reply(message, _info(session))
            case ShowAgent(handle=handle):
                if handle in agents.silent:
                    self.defer(message)
                else:
                    self.reply(message, _info(agents.find(handle)))
            case CloseAgent(handle=handle):
                session = agents.find(handle)
                if agents.closing_fails:
                    raise Unavailable("it is not possible now")
                agents.close(session)
                self.reply(message, _info(session))
            case FollowSession():
                agents.follow(message, self.defer(message))
            case Deliver():
                if agents.delivering_fails:
                    raise Busy("it is not possible now")
                agents.deliver(message)
                self.reply(message, Receipt(id=message.id, status="queued", position=0))
            case WithdrawMessage(message=id_):
                agents.withdraw(id_)
                self.reply(message, None)
            case FindMessage(message=id_):
                self.reply(message, agents.place(id_))


class Rights:
    """All agents may do everything, except for those that are named.

    ``children`` are the sessions that an agent has spawned. ``sent`` counts messages by senders.
    A question about ``BREAKS`` crashes the desk.
    """

    BREAKS = "breaks"

    def __init__(self) -> None:
        self.no_work: set[str] = set()
        self.no_messages: set[str] = set()
        self.children: dict[str, set[str]] = {}
        self.sent: Counter[str] = Counter()

    def refuse_work(self, sender: str | None, agent: str) -> AegisError | None:
        if agent == self.BREAKS:
            raise InjectedCrash("the desk is to crash")
        return Forbidden(f"{sender} may not use {agent}") if sender in self.no_work else None

    def refuse_messages(self, sender: str, number: int, now: float) -> AegisError | None:
        if sender in self.no_messages:
            return Forbidden(f"{sender} may not send {number} messages")
        self.sent[sender] += number
        return None

    def commands(self, caller: str, owner: str) -> bool:
        return caller == owner or owner in self.children.get(caller, set())


class Office(SimulatedDaemon):
    """A daemon with groups, the sessions of their members, and a client of it.

    ``shown`` has the current handles of other sessions by their first ones.
    """

    def __init__(
        self, simulation: Simulation, presets: dict[str, list[str]], keep: Keep | None = None
    ) -> None:
        super().__init__(simulation, "root/groups")
        self.keep = keep or Keep()
        self.presets = presets
        self.agents = Agents()
        self.rights = Rights()
        self.shown: dict[str, str] = {}

    def actors(self) -> tuple[ChildSpec, ...]:
        played = ChildSpec.of("played", PlayedServices, agents=self.agents)
        desk = ChildSpec.of(
            "groups",
            GroupDesk,
            directory=DIRECTORY,
            presets=self.presets,
            archive=ARCHIVE,
            keep=self.keep,
            flusher=SimulatedFlusher(self.disk),
            rights=self.rights,
            shown=self._shown,
        )
        return played, desk

    def dies(self) -> None:
        self.agents.waiting = []

    def _shown(self, handle: str) -> str:
        named = {each.handle: each.name for each in self.agents.sessions.values()}
        return {**named, **self.shown}.get(handle, handle)

    def disk_with(self, ledgers: dict[str, bytes]) -> SimulatedDisk:
        """Return a disk with these ledgers of groups, by their names."""
        files = {str(DIRECTORY / f"{name}.jsonl"): ledger for name, ledger in ledgers.items()}
        return SimulatedDisk({**EMPTY, str(DIRECTORY): None, **files}, self.plan)

    async def crashes(self) -> None:
        """Let the desk crash, and wait until it is restarted."""
        self.ask_soon(spawning(profile=Rights.BREAKS))
        await self.passes(2)

    # Clients.

    async def spawn(self, handle: str | None = None, **fields: Any) -> GroupInfo:
        """Start one member of a group."""
        return await self.ask(spawning(handle, **fields))

    async def form(self, *handles: str, group: str = "g", by: str | None = None) -> GroupInfo:
        """Create a group whose members have these handles."""
        for handle in handles:
            info = await self.spawn(handle, group=group, by=by)
        await self.settles()
        return info

    async def broadcast(self, objective: str = "do", **fields: Any) -> str:
        """Give a group an order; return its id once the members have it."""
        sent = await self.ask(ordering(objective, **fields))
        await self.settles()
        return sent.broadcast_id

    def waits_for_all(self, group: str = "g", **fields: Any) -> Answer[GroupReplies]:
        return self.ask_soon(WaitForAll(**{"group": group, "timeout": 3_600, **fields}))

    def waits_for_any(
        self, group: str = "g", by: str | None = None, **fields: Any
    ) -> Answer[GroupReplies]:
        made = {"group": group, "timeout": 3_600, "from_handle": by, **fields}
        return self.ask_soon(WaitForAny(**made))

    async def replies(self, id_: str | None = None, group: str = "g") -> GroupReplies:
        """Return the replies so far."""
        return await self.ask(WaitForAll(group=group, broadcast_id=id_, timeout=0))

    async def statuses(self, id_: str | None = None, group: str = "g") -> dict[str, str]:
        """Return the statuses of the members in a broadcast, by their handles."""
        found = await self.replies(id_, group)
        return {handle: each.status for handle, each in found.metadata.members.items()}

    async def show(self, group: str = "g") -> GroupInfo:
        return await self.ask(ShowGroup(group=group))

    async def dissolve(self, group: str = "g", by: str | None = None) -> GroupInfo:
        return await self.ask(DissolveGroup(group=group, from_handle=by))

    async def rename(self, group: str, new_name: str, by: str | None = None) -> GroupInfo:
        return await self.ask(RenameGroup(group=group, new_name=new_name, from_handle=by))

    async def listed(self) -> list[GroupInfo]:
        return (await self.ask(ListGroups())).result

    async def news(self, after: GroupsNews | None = None) -> GroupsNews:
        """Return the next news of the groups."""
        return await self.ask(FollowGroups(place=None if after is None else after.place))

    async def refusals(self, words: str, *requests: Request[Any]) -> None:
        """Check that each of these requests is refused with these words."""
        for each in requests:
            assert words in await self.refusal(each)

    # Members, by their handles.

    def member(self, handle: str) -> Session:
        return self.agents.find(handle)

    async def begins(self, *handles: str) -> None:
        for each in handles:
            self.agents.begin(self.member(each))
        await self.settles()

    async def ends(
        self, handle: str, text: str = "", outcome: str = "completed", **more: object
    ) -> None:
        """Let a member end its turn, which it begins before if it has not."""
        session = self.member(handle)
        if session.state != "working":
            self.agents.begin(session)
        self.agents.end(session, outcome, text, **more)
        await self.settles()

    async def has_turn_of_its_own(self, handle: str, text: str) -> None:
        """Let a member have a turn that no message of a group began."""
        session = self.member(handle)
        session.turn += 1
        self.agents.add(session, "turn_opened", messages=[{"id": "of a person"}])
        self.agents.end(session, text=text)
        await self.settles()

    def notification(self, id_: str) -> Deliver | None:
        """Return the message to the sender about the end of a broadcast."""
        return self.agents.messages.get(f"broadcast:{id_}/end")

    def orders(self, handle: str) -> list[str]:
        """Return the objectives of the orders that a member has."""
        bodies = [
            each.body for each in self.member(handle).messages if "/cancel:" not in each.sender
        ]
        return [each.partition("Objective:\n")[2] for each in bodies]

    def cancellations(self, handle: str) -> list[Deliver]:
        """Return the messages to a member that its reply is not awaited any more."""
        return [each for each in self.member(handle).messages if "/cancel:" in each.sender]

    def open_sessions(self) -> list[str]:
        """Return the handles of open sessions."""
        sessions = self.agents.sessions.values()
        return sorted(each.handle for each in sessions if each.state != "closed")


def spawning(handle: str | None = None, *, by: str | None = None, **fields: Any) -> SpawnIntoGroup:
    made = {"group": "g", "profile": "p", "handle": handle, "from_handle": by, **fields}
    return SpawnIntoGroup(**made)


def mixing(*profiles: str, group: str = "g", by: str | None = None) -> SpawnMixedGroup:
    return SpawnMixedGroup(group=group, profiles=[*profiles], from_handle=by)


def ordering(objective: str = "do", *, by: str | None = None, **fields: Any) -> BroadcastToGroup:
    return BroadcastToGroup(**{"group": "g", "objective": objective, "from_handle": by, **fields})


def play(
    story: Callable[[Office], Awaitable[None]],
    *,
    presets: dict[str, Sequence[str]] | None = None,
    seed: int = 1,
    keep: Keep | None = None,
) -> None:
    """Run a story of groups."""

    async def run(simulation: Simulation) -> None:
        given = {name: [*profiles] for name, profiles in (presets or {}).items()}
        with reproducible(simulation.chance):
            async with Office(simulation, given, keep).opened() as office:
                await story(office)

    simulate(run, seed=seed)
