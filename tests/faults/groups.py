"""The scenario of a group: its members, broadcasts to them, their replies, losers and its end.

The desk and its ledger are the real ones. Sessions and inboxes are played by one actor that loses
nothing: it stands for durable transcripts and inboxes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import Actor, ChildSpec, Reply, SupervisorSpec, System
from actors.faults import RUNTIME, FaultTable
from aegis.errors import AegisError, AlreadyExists, InvalidRequest, NotFound
from aegis.groups.desk import GroupDesk
from aegis.groups.faults import GROUPS
from aegis.groups.rows import AgentGroup, BroadcastEnd, GroupBroadcast, GroupRow, end_id
from aegis.journal.faults import JOURNAL
from aegis.journal.opening import open_ledger
from aegis.journal.table import read_rows
from aegis.protocol import groups as api
from aegis.protocol.agents import AgentInfo, CloseAgent, ShowAgent, SpawnMember, TranscriptEntry
from aegis.protocol.feeds import FollowSession, SessionNews
from aegis.protocol.inboxes import Deliver, Receipt
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.faults.retrying import PAUSE_S, ask_until_answered, until_done

DIRECTORY = Path("/state/groups")
GROUP = "jury"
LEDGER = DIRECTORY / f"{GROUP}.jsonl"
SENDER = "pm"
PATIENCE = 300
"""The most looks at an inbox, a second apart."""

RACE = "race"
"""The order that only the first member replies to."""

_TOKEN = re.compile(r"@[a-z]+[.][0-9]@")


@attrs.frozen
class Formed:
    """A group whose creation was acknowledged, by the ids of its members."""

    handles: tuple[str, ...]


@attrs.frozen
class Opened:
    """A session that was opened for a member."""

    session: str


@attrs.frozen
class Begun:
    """A turn of a member that began with an order."""

    member: str
    token: str


@attrs.frozen
class Sent:
    """A broadcast that was acknowledged."""

    id: str
    token: str


@attrs.frozen
class Replied:
    """A reply that a client got."""

    id: str
    member: str
    text: str


@attrs.frozen
class Told:
    """The message to the sender of a broadcast that is over."""

    id: str


@attrs.frozen
class Dissolved:
    """The acknowledged end of the group."""


@attrs.define
class Member:
    """A session: its transcript, and the ids of the messages that it has."""

    id: str
    handle: str
    entries: list[TranscriptEntry] = attrs.field(factory=list)
    got: set[str] = attrs.field(factory=set)
    is_closed: bool = False

    def add(self, kind: str, **fields: object) -> None:
        seq, turn = len(self.entries) + 1, sum(each.kind == "turn_opened" for each in self.entries)
        turn += kind == "turn_opened"
        self.entries.append(
            TranscriptEntry(seq=seq, kind=kind, at="", fields={"turn": turn, **fields})
        )

    @property
    def is_working(self) -> bool:
        kinds = [each.kind for each in self.entries]
        return kinds.count("turn_opened") > kinds.count("turn_ended")


@attrs.define
class Sessions:
    """All sessions, and the messages to the sender."""

    world: World
    members: dict[str, Member] = attrs.field(factory=dict)
    messages: dict[str, Deliver] = attrs.field(factory=dict)

    def find(self, name: str) -> Member:
        """Return a session by its id or its handle. Raises ``NotFound``."""
        for each in self.members.values():
            if name in (each.id, each.handle):
                return each
        raise NotFound(f"there is no agent {name!r}")

    def open(self, request: SpawnMember) -> Member:
        """Open a session, unless it is open."""
        if request.session not in self.members:
            handle = f"member-{len(self.members) + 1}"
            self.members[request.session] = Member(request.session, handle)
            self.world.confirm(Opened(request.session))
        return self.members[request.session]

    def deliver(self, message: Deliver) -> None:
        """Take a message, once by its id."""
        if message.handle == SENDER:
            if message.id not in self.messages:
                self.messages[message.id] = message
                self.world.confirm(Told(message.id.removeprefix("broadcast:")[:-4]))
            return
        member = self.find(message.handle)
        if message.id in member.got or member.is_closed:
            return
        member.got.add(message.id)
        if message.id.startswith("cancel:"):
            if member.is_working:
                member.add("turn_ended", outcome="cancelled")
            return
        [token] = _TOKEN.findall(message.body)
        self.world.confirm(Begun(member.handle, token))
        member.add("turn_opened", messages=[{"id": message.id}])
        if RACE not in token or member is next(iter(self.members.values())):
            member.add("turn_ended", outcome="completed", text=reply_of(member.handle, token))

    def close(self, member: Member) -> None:
        if not member.is_closed:
            member.is_closed = True
            member.add("closed")


def reply_of(member: str, token: str) -> str:
    return f"{member} did {token}"


Asked = SpawnMember | ShowAgent | CloseAgent | FollowSession | Deliver


class Played(Actor[Asked]):
    """The services that a desk asks."""

    def __init__(self, *, sessions: Sessions) -> None:
        self._sessions = sessions
        self._waiting: list[tuple[FollowSession, Reply[SessionNews]]] = []

    async def setup(self) -> None:
        for service in ("agents", "inboxes"):
            self.context.register("service", service)

    async def receive(self, message: Asked) -> None:
        sessions = self._sessions
        match message:
            case SpawnMember():
                self.reply(message, _info(sessions.open(message)))
            case ShowAgent(handle=handle):
                self.reply(message, _info(sessions.find(handle)))
            case CloseAgent(handle=handle):
                sessions.close(sessions.find(handle))
                self.reply(message, _info(sessions.find(handle)))
                self._changed()
            case FollowSession():
                self._follow(message, self.defer(message))
            case Deliver():
                sessions.deliver(message)
                self.reply(message, Receipt(id=message.id, status="queued", position=0))
                self._changed()

    def _changed(self) -> None:
        waiting, self._waiting = self._waiting, []
        for request, reply in waiting:
            self._follow(request, reply)

    def _follow(self, request: FollowSession, reply: Reply[SessionNews]) -> None:
        entries = self._sessions.find(request.handle).entries
        newest, place = len(entries), request.place
        if place is None:
            place = SessionNews(entries=[], place=_place(newest), newest=newest).place
            reply.send(SessionNews(entries=[], place=place, newest=newest))
        elif place.seq == newest:
            self._waiting.append((request, reply))
        else:
            news = entries[place.seq :]
            reply.send(SessionNews(entries=news, place=_place(newest), newest=newest))


def _place(seq: int) -> Any:
    from aegis.protocol.feeds import SessionPlace

    return SessionPlace(seq=seq)


def _info(member: Member) -> AgentInfo:
    return AgentInfo(
        id=member.id,
        handle=member.handle,
        profile="a",
        provider="claude",
        state="closed" if member.is_closed else "working" if member.is_working else "idle",
        since="",
        reason="",
        cwd="/",
        spawned_by="group:jury",
        model="",
        turn=len(member.entries),
        waiting=0,
        quiet_s=0.0,
        tools=[],
        blocked=None,
        limited_until=None,
        conversation=None,
    )


class AllRights:
    """Everybody may do everything."""

    def refuse_work(self, sender: str | None, agent: str) -> AegisError | None:
        return None

    def refuse_messages(self, sender: str, number: int, now: float) -> AegisError | None:
        return None

    def commands(self, caller: str, owner: str) -> bool:
        return True


@attrs.frozen
class Held:
    """The rows after recovery, by their ids."""

    rows: Mapping[str, GroupRow]

    @property
    def groups(self) -> list[AgentGroup]:
        """The groups of which something is left."""
        found = (each for each in self.rows.values() if isinstance(each, AgentGroup))
        return [each for each in found if each.phase != "dissolved" and not each.is_empty]


@attrs.frozen
class Broadcasts:
    """Broadcasts to one group through the real desk."""

    name: str = "groups"
    image: Image = attrs.field(factory=lambda: {"/": None, "/state": None})
    tables: tuple[FaultTable, ...] = (JOURNAL, GROUPS, RUNTIME)
    subjects: tuple[str, ...] = ("GroupDesk",)
    recovers_durably: bool = False
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        from tests.chaos.reproducible import reproducible

        sessions = Sessions(world)
        spec = SupervisorSpec(
            name="root",
            children=(
                ChildSpec.of("played", Played, sessions=sessions),
                ChildSpec.of(
                    "groups",
                    GroupDesk,
                    directory=DIRECTORY,
                    presets={},
                    archive=DIRECTORY.parent / "archive",
                    flusher=world.flusher,
                    rights=AllRights(),
                    shown=str,
                ),
            ),
        )

        async def live() -> None:
            async with world.simulation.open_system(spec) as system:
                await _Client(world, system, sessions).play()

        with reproducible(world.simulation.chance):
            await until_done(live)

    def recover(self, disk: SimulatedDisk) -> Held:
        opened = open_ledger(disk, LEDGER)
        disk.close(opened.fd)
        return Held(read_rows(disk, LEDGER, opened.length, GroupRow))

    def check(self, evidence: Evidence, found: Held, *, killed: bool) -> Iterator[str]:
        is_gone = Dissolved() in evidence.confirmed
        if is_gone:
            yield from (f"{each.name} is there again" for each in found.groups)
        if len(found.groups) > 1:
            yield f"there are {len(found.groups)} groups of one name"
        times = Counter(each for each in evidence.confirmed if isinstance(each, Begun))
        yield from (f"{each} happened {n} times" for each, n in times.items() if n > 1)
        yield from self._miscredited(evidence)
        if not is_gone and not self._may_be_gone(evidence):
            yield from self._lost(evidence, found)

    @staticmethod
    def _may_be_gone(evidence: Evidence) -> bool:
        return Dissolved() in evidence.tried

    def _miscredited(self, evidence: Evidence) -> Iterator[str]:
        tokens = {each.id: each.token for each in evidence.confirmed if isinstance(each, Sent)}
        for each in evidence.confirmed:
            if isinstance(each, Replied) and each.text != reply_of(each.member, tokens[each.id]):
                yield f"{each} is no reply to {tokens[each.id]}"

    def _lost(self, evidence: Evidence, found: Held) -> Iterator[str]:
        rows = found.rows
        group = found.groups[0] if found.groups else None
        known = {id_: each for id_, each in rows.items() if isinstance(each, GroupBroadcast)}
        sessions = _sessions_of(group)
        keys = Counter(each.key for each in known.values())
        yield from (f"the key {key} has {n} broadcasts" for key, n in keys.items() if n > 1)
        handles = {} if group is None else {each.handle: id_ for id_, each in group.members.items()}
        for each in evidence.confirmed:
            match each:
                case Formed(handles=formed) if not {*formed} <= handles.keys():
                    yield f"{each} was acknowledged, and the members are {sorted(handles)}"
                case Opened(session=session) if session not in sessions:
                    yield f"no group knows of {session}, which was opened for one"
                case Sent(id=id_, token=token) if id_ not in known or token not in _text(
                    known[id_]
                ):
                    yield f"{each} was acknowledged and is lost"
                case Replied(id=id_, member=member, text=text):
                    end = rows.get(end_id(id_, handles.get(member, "")))
                    if not isinstance(end, BroadcastEnd) or _text(end) != text:
                        yield f"{each} was shown, and is {end}"
                case Told(id=id_) if id_ not in known or not _is_over(known[id_], rows):
                    yield f"the sender was told of the end of {id_}, which is not over"


def _text(row: GroupBroadcast | BroadcastEnd) -> str:
    """Return the text of a row; all texts of this scenario are short."""
    return "" if row.text is None else row.text.head


def _is_over(broadcast: GroupBroadcast, rows: Mapping[str, GroupRow]) -> bool:
    return all(end_id(broadcast.id, each) in rows for each in broadcast.members)


def _sessions_of(group: AgentGroup | None) -> set[str]:
    if group is None:
        return set()
    forming = {each.session for one in group.forming.values() for each in one.members}
    return {*group.members} | forming


class _Client:
    """The client of one incarnation: it does everything again under the same keys."""

    def __init__(self, world: World, system: System, sessions: Sessions) -> None:
        self._world = world
        self._desk = system.ref("root/groups")
        self._sessions = sessions

    async def play(self) -> None:
        if not await self._form():
            return
        first = await self._broadcast("first", "@work.1@")
        await self._wait(first)
        race = await self._broadcast("race", f"@{RACE}.2@")
        await self._wait_for_any(race)
        last = await self._broadcast("last", "@work.3@")
        await self._wait(last)
        await self._wait(race)
        for each in (first, race, last):
            await self._is_told(each)
        await self._dissolve()

    async def _form(self) -> bool:
        """Create the group; return False if an earlier incarnation has dissolved it."""
        if Dissolved() in self._world.evidence.tried:
            await self._dissolve()
            return False

        async def form() -> None:
            request = api.SpawnMixedGroup(group=GROUP, profiles=["a", "a"], from_handle=SENDER)
            try:
                await self._desk.ask(request)
            except (AlreadyExists, InvalidRequest):
                return  # an earlier try has created it

        await until_done(form)
        info = await ask_until_answered(self._desk, api.ShowGroup(group=GROUP))
        for _ in range(PATIENCE):
            if not info.forming:
                break
            await trio.sleep(PAUSE_S)
            info = await ask_until_answered(self._desk, api.ShowGroup(group=GROUP))
        self._world.confirm(Formed(tuple(each.handle for each in info.members)))
        return True

    async def _broadcast(self, key: str, token: str) -> str:
        request = api.BroadcastToGroup(group=GROUP, objective=token, key=key, from_handle=SENDER)
        sent = await ask_until_answered(self._desk, request)
        self._world.confirm(Sent(sent.broadcast_id, token))
        return sent.broadcast_id

    async def _wait(self, broadcast: str) -> None:
        request = api.WaitForAll(group=GROUP, broadcast_id=broadcast, timeout=600.0)
        self._replied(await ask_until_answered(self._desk, request))

    async def _wait_for_any(self, broadcast: str) -> None:
        request = api.WaitForAny(
            group=GROUP, broadcast_id=broadcast, timeout=600.0, from_handle=SENDER
        )
        self._replied(await ask_until_answered(self._desk, request))

    def _replied(self, found: api.GroupReplies) -> None:
        for member, text in found.by_member.items():
            self._world.confirm(Replied(found.broadcast_id, member, text))

    async def _is_told(self, broadcast: str) -> None:
        for _ in range(PATIENCE):
            if f"broadcast:{broadcast}/end" in self._sessions.messages:
                return
            await trio.sleep(PAUSE_S)
        raise AssertionError(f"the end of broadcast {broadcast} is not told")

    async def _dissolve(self) -> None:
        self._world.tries(Dissolved())

        async def dissolve() -> None:
            try:
                await self._desk.ask(api.DissolveGroup(group=GROUP, from_handle=SENDER))
            except NotFound:
                return  # an earlier try has done it

        await until_done(dissolve)
        self._world.confirm(Dissolved())
        open_ones = [each.handle for each in self._sessions.members.values() if not each.is_closed]
        assert not open_ones, f"{open_ones} are open after the end of their group"
