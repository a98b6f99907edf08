"""``GroupDesk``: the actor of all groups, between their owners and the sessions of members.

    members    → a row says so, durably → their sessions are opened → all are members, or none
    an order   → durable → the caller gets the id, each member the order
    a reply    → durable → the waiters get it; after the last one the sender is notified
    a winner   → the ends of the losers are durable → each is interrupted; the waiters get them
    dissolving → durable → no reply is awaited any more, the members are closed → it is dissolved

``_advance`` does what follows from the durable rows of a group, whether they have just become
durable, were read at the start, or are what a refusing disk has left. The first end of a member
that is written counts. The ledger of a group is created with it, and keeps its first name.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import attrs
from ulid import ULID

from actors import Actor, Reply
from actors.codec import unstructure
from aegis.clock import moment_of, utc_now
from aegis.errors import (
    AegisError,
    AlreadyExists,
    Forbidden,
    InvalidRequest,
    StorageError,
    Unavailable,
)
from aegis.following import Followers
from aegis.groups import faults, rows, views
from aegis.groups.members import Members, brief, result
from aegis.groups.rows import (
    AgentGroup,
    BroadcastEnd,
    BroadcastProgress,
    Forming,
    GroupBroadcast,
    GroupRow,
    GroupSession,
    end_id,
)
from aegis.groups.views import Shown
from aegis.journal.archive import DEFAULT_KEEP, Archive, Keep
from aegis.journal.archiver import Archiver, Leaving
from aegis.journal.disk import stored_names
from aegis.journal.flusher import Flusher
from aegis.journal.table import StoredText, Table, digest_of
from aegis.names import shorten
from aegis.path_text import is_utf8
from aegis.protocol.command import json_size
from aegis.protocol.feeds import FollowGroups, GroupsNews, StatesPlace
from aegis.protocol.groups import (
    MAX_MEMBERS,
    BroadcastSent,
    BroadcastToGroup,
    DissolveGroup,
    GroupInfo,
    GroupList,
    GroupOrder,
    GroupOrders,
    GroupReplies,
    ListGroupOrders,
    ListGroups,
    RenameGroup,
    ShowGroup,
    SpawnIntoGroup,
    SpawnMixedGroup,
    WaitForAll,
    WaitForAny,
)
from aegis.protocol.naming import NAME_RULE, is_name, name_key
from aegis.turns.services import Services
from aegis.turns.sessions import AgentSessions
from aegis.turns.watch import TurnOutcome

SUFFIX = ".jsonl"

MAX_LIST_BYTES = 256 * 1024
MEMBER_BYTES = 400
"""The size of one list of groups, and a part of it that a member surely fits in."""

MAX_GROUPS = 100
"""Groups that are not gone."""

MAX_GONE = 256
"""Groups that are gone and still shown to streams that are behind."""

DECIDED = "another member's reply was taken"
DISSOLVED = "the group was dissolved"


class GroupRights(Protocol):
    """The rights of sessions concerning groups."""

    def refuse_work(self, sender: str | None, agent: str) -> AegisError | None:
        """Return why ``sender``, None for a person, may give no work to a profile."""
        ...

    def refuse_messages(self, sender: str, number: int, now: float) -> AegisError | None:
        """Return why a session may not send so many messages now, else count them."""
        ...

    def commands(self, caller: str, owner: str) -> bool:
        """Return whether ``caller`` is the agent ``owner``, or a session that spawned it."""
        ...


class DeskGroup:
    """A group: its rows in ``table``, the ledger of ``address``.

    ``closing`` are the callers that wait until it is dissolved. The ``past`` broadcasts are
    settled, and not the newest: nothing follows from them any more.
    """

    def __init__(self, id_: str, address: str, table: Table[Any]) -> None:
        self.id, self.address, self.table = id_, address, table
        self.closing: list[Reply[GroupInfo]] = []
        self.past: dict[str, None] = {}
        self._broadcasts: dict[str, None] = {}  # some may have been refused
        self._keys: dict[tuple[str, str | None], str] = {}
        self._seen: dict[str, int] = {}

    @property
    def newest(self) -> AgentGroup:
        """The group with all changes."""
        row: AgentGroup = self.table.rows[self.id]
        return row

    @property
    def shown(self) -> AgentGroup | None:
        """The group as it is durable; None if it is not, or is gone."""
        return self.table.shown(self.id)

    def is_named(self, name: str) -> bool:
        """Return whether clients mean this group by a name."""
        return name_key(name) in (self.shown or self.newest).names

    @property
    def is_forming(self) -> bool:
        """Whether members are being started; also until it is durable that none could be."""
        return bool(self.newest.forming or (self.shown is not None and self.shown.forming))

    # Broadcasts.

    def add(self, broadcast: GroupBroadcast) -> None:
        """Add a broadcast that is put or was read."""
        self._broadcasts[broadcast.id] = None
        self.add_key(broadcast)

    def add_key(self, broadcast: GroupBroadcast) -> None:
        """Note the key of a broadcast."""
        self._keys[broadcast.sender, broadcast.key] = broadcast.id

    def has(self, broadcast: str) -> bool:
        """Return whether it has a broadcast in the table."""
        return broadcast in self._broadcasts or broadcast in self.past

    def add_end(self, end: BroadcastEnd) -> None:
        """Note how far the transcript of a member was read for its reply."""
        self._seen[end.session] = max(self._seen.get(end.session, 0), end.seq)

    def progress(self, broadcast: str) -> BroadcastProgress | None:
        """Return a broadcast as far as it is durable."""
        return self._progress(broadcast, self.table.shown)

    def newest_progress(self, broadcast: str) -> BroadcastProgress | None:
        """Return a broadcast with all changes."""
        return self._progress(broadcast, self.table.rows.get)

    def _progress(self, id_: str, find: Callable[[str], Any]) -> BroadcastProgress | None:
        broadcast: GroupBroadcast | None = find(id_) if self.has(id_) else None
        if broadcast is None:
            return None
        found = (find(end_id(id_, each)) for each in broadcast.members)
        return BroadcastProgress.of(broadcast, (each for each in found if each is not None))

    def all_progress(self, *, durable: bool = False) -> Iterator[BroadcastProgress]:
        """Yield the broadcasts that are not past, the newest first."""
        find = self.progress if durable else self.newest_progress
        yield from (each for each in map(find, reversed([*self._broadcasts])) if each is not None)

    def orders(self) -> list[BroadcastProgress]:
        """Return all durable broadcasts in the table, the newest first."""
        found = map(self.progress, [*self.past, *self._broadcasts])
        known = [each for each in found if each is not None]
        return sorted(known, key=lambda e: (e.broadcast.number, e.broadcast.id), reverse=True)

    def latest(self, *, durable: bool) -> BroadcastProgress | None:
        """Return the newest broadcast."""
        return next(self.all_progress(durable=durable), None)

    def known(self, key: str | None, sender: str) -> GroupBroadcast | None:
        """Return the broadcast to which the sender has given this key; None without one."""
        known = None if key is None else self._keys.get((sender, key))
        return None if known is None else self.table.rows.get(known)

    def seen(self, session: str) -> int:
        """Return the newest entry of a member's transcript that an earlier reply was read from."""
        return max(self._seen.get(session, 0), self.newest.seen.get(session, 0))

    # Rows that are not needed any more.

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it is left: it was dissolved, or no member of it could be started."""
        row = self.shown
        if row is None or not (row.phase == "dissolved" or row.is_empty):
            return False
        is_at_rest = self.table.is_at_rest(self.id)
        return is_at_rest and all(map(self._is_settled, self.all_progress()))

    def find_past(self) -> list[BroadcastProgress]:
        """Return the broadcasts that have just become past."""
        self._broadcasts = {each: None for each in self._broadcasts if each in self.table.rows}
        older = [*self.all_progress(durable=True)][1:]
        found = [each for each in older if self._is_settled(each)]
        for each in found:
            del self._broadcasts[each.broadcast.id]
            self.past[each.broadcast.id] = None
        return found

    def leave(self, progress: BroadcastProgress) -> None:
        """Leave a past broadcast that is archived, and will be dropped."""
        broadcast = progress.broadcast
        self.table.put(rows.with_seen(self.newest, progress.ends.values()))
        self.past.pop(broadcast.id, None)
        if self._keys.get((broadcast.sender, broadcast.key)) == broadcast.id:
            del self._keys[broadcast.sender, broadcast.key]

    def all_rows(self) -> list[Any]:
        """Return the durable rows of the group, its own first."""
        found = map(self.progress, [*self.past, *self._broadcasts])
        parts = [row for each in found if each is not None for row in each.rows]
        return [self.shown, *parts]

    def _is_settled(self, progress: BroadcastProgress) -> bool:
        return progress.is_settled and all(self.table.is_at_rest(each.id) for each in progress.rows)


@attrs.define(eq=False)
class GroupWaiter:
    """A caller that waits for replies to a broadcast. ``has_chosen``: it has had losers dropped."""

    request: WaitForAll | WaitForAny
    group: DeskGroup = attrs.field(repr=False)
    broadcast: str
    reply: Reply[GroupReplies] = attrs.field(repr=False)  # its address is not of the seed
    has_chosen: bool = False

    @property
    def cancels(self) -> bool:
        """Whether the other members are not awaited any more once one has replied."""
        return isinstance(self.request, WaitForAny) and self.request.cancel_losers

    def is_served(self, progress: BroadcastProgress) -> bool:
        """Return whether the replies so far are enough."""
        is_any = isinstance(self.request, WaitForAny) and not self.cancels
        return progress.is_over or (is_any and bool(progress.replied))


@attrs.frozen
class WaitTimeout:
    """A caller has waited for replies long enough."""

    waiter: GroupWaiter


DeskMessage = (
    SpawnIntoGroup
    | SpawnMixedGroup
    | BroadcastToGroup
    | WaitForAll
    | WaitForAny
    | ShowGroup
    | DissolveGroup
    | RenameGroup
    | ListGroupOrders
    | ListGroups
    | FollowGroups
    | WaitTimeout
)


class GroupDesk(Actor[DeskMessage]):
    """Gathers the replies of groups. Their ledgers are in ``directory``.

    ``presets`` are lists of profiles by name; ``shown`` returns the current handles of sessions.
    """

    def __init__(
        self,
        *,
        directory: Path,
        presets: Mapping[str, Sequence[str]],
        archive: Path,
        flusher: Flusher,
        rights: GroupRights,
        shown: Shown,
        keep: Keep = DEFAULT_KEEP,
    ) -> None:
        self._directory, self._presets, self._archive = directory, presets, archive
        self._flusher, self._rights, self._shown, self._keep = flusher, rights, shown, keep
        self._tables: dict[str, Table[Any]] = {}
        self._unread: set[str] = set()  # the ledgers of before that cannot be read
        self._groups: dict[str, DeskGroup] = {}
        self._past: dict[str, DeskGroup] = {}  # by their past broadcasts
        self._leaving: dict[str, DeskGroup] = {}  # those that are gone, until they are archived
        self._gone: dict[str, GroupInfo] = {}
        self._waiting: dict[str, list[GroupWaiter]] = {}
        self._carried: set[str] = set()  # what a task does now
        self._opening: str | None = None  # a ledger that will have its first group
        # The keys of names in lines that are not durable, by ledger. One that was refused is there
        # until the disk accepts again: a kill before that may leave its line.
        self._tried: dict[str, set[str]] = {}
        self._followers = Followers("the groups", self._news)

    async def setup(self) -> None:
        """Register the desk, read the ledgers, and continue what has not ended."""
        self.context.register("service", "groups")
        self._members = Members(AgentSessions(Services(self.context.system)))
        self._archiver = Archiver(
            Archive(self._archive, rows.KIND, self._flusher.disk, self._keep.archive_bytes),
            self._keep,
            self._flusher,
            self.context,
            find=self._leaving_broadcast,
            leave=self._leave_broadcast,
        )
        # Nothing shows a group that is gone, and its ledger would have to stay open.
        at_once = attrs.evolve(self._keep, newest=0, days=0)
        self._group_archiver = Archiver(
            Archive(self._archive, rows.KIND_OF_GROUPS, self._flusher.disk, at_once.archive_bytes),
            at_once,
            self._flusher,
            self.context,
            find=self._leaving_group,
            leave=lambda _: None,
            left=lambda id_: self._leaving.pop(id_, None),
        )
        for address in self._stored():
            table = await self._open(address)
            if table.is_open:
                self._close_unused(address, deletes=True)  # at once: there may be many
            else:
                self._unread.add(address)
        for group in [*self._groups.values()]:
            self._advance(group)

    async def teardown(self) -> None:
        for table in self._tables.values():
            table.close()

    async def receive(self, message: DeskMessage) -> None:
        """Handle a message of a client or a timer."""
        match message:
            case SpawnIntoGroup() | SpawnMixedGroup():
                await self._spawn(message)
            case BroadcastToGroup():
                await self._broadcast(message)
            case WaitForAll() | WaitForAny():
                await self._wait(message)
            case DissolveGroup():
                await self._dissolve(message)
            case RenameGroup():
                await self._rename(message)
            case ShowGroup(group=name):
                info, ask = self._info(group := self._get_shown(name)), self._sessions_of(group)
                self.context.start_soon(self._answer, self.defer(message), info, ask)
            case ListGroupOrders():
                self.reply(message, self._orders(message))
            case ListGroups():
                self.reply(message, self._list())
            case FollowGroups(place=place):
                self._followers.take(place, self.defer(message))
            case WaitTimeout(waiter=waiter):
                if waiter in self._waiting.get(waiter.broadcast, ()):
                    self._serve(waiter, timed_out=True)

    # Members.

    async def _spawn(self, request: SpawnIntoGroup | SpawnMixedGroup) -> None:
        by, profiles = request.from_handle, self._profiles(request)
        for each in dict.fromkeys(profiles):
            refusal = self._rights.refuse_work(by, each)
            if refusal is not None:
                raise refusal
        group = self._find(request.group)
        if group is not None:
            await group.table.open()
            group = self._find(request.group)  # the disk may have refused it
        if group is not None:
            self._check_owner(by, group, "add members to")
        self._check_spawn(request, group, len(profiles))  # a refused one leaves no ledger
        handle = (request.handle if isinstance(request, SpawnIntoGroup) else None) or ""
        members = tuple(
            GroupSession(session=uuid.uuid4().hex, handle=handle, profile=each) for each in profiles
        )
        forming = Forming(id=str(ULID()), members=members, by=by)
        if group is None:
            row = AgentGroup(id=str(ULID()), name=request.group, owner=_tag(by), created=utc_now())
            self._opening = request.group
            group = DeskGroup(row.id, request.group, await self._open(request.group))
            self._try_name(group, row.name)
        else:
            row = group.newest
        reply: Reply[Any] = self.defer(request)
        then = partial(self._form_soon, group, forming, reply)
        if group.table.put(rows.with_forming(row, forming), then, reply):
            self._groups[group.id] = group
        self._opening = None

    def _check_spawn(
        self, request: SpawnIntoGroup | SpawnMixedGroup, group: DeskGroup | None, wanted: int
    ) -> None:
        """Raise why members cannot be started in a group; None: it is new."""
        row = None if group is None else group.newest
        if row is not None and isinstance(request, SpawnMixedGroup):
            raise views.exists_already(row)
        if row is None and len(self._groups) >= MAX_GROUPS:
            raise Unavailable(
                f"there are {len(self._groups)} groups, which is the limit; dissolve one first"
            )
        size = wanted if row is None else row.size + wanted
        if size > MAX_MEMBERS:
            raise InvalidRequest(f"a group has at most {MAX_MEMBERS} members, not {size}")
        if row is None:
            self._check_name(request.group, address=request.group)
        elif row.phase != "open":
            raise views.is_dissolving(row)

    def _profiles(self, request: SpawnIntoGroup | SpawnMixedGroup) -> Sequence[str]:
        """Return the profiles of new members. Raises ``InvalidRequest``, ``NotFound``."""
        if isinstance(request, SpawnIntoGroup):
            return [request.profile]
        if (request.preset is None) == (not request.profiles):
            raise InvalidRequest("name either profiles, at least one, or a preset")
        if request.preset is not None:
            if request.preset not in self._presets:
                raise views.no_preset(request.preset, [*self._presets])
            return self._presets[request.preset]
        for each in request.profiles:
            if not is_name(each):
                raise InvalidRequest(f"profile {shorten(each)!r} is not a name: use {NAME_RULE}")
        return request.profiles

    def _form_soon(
        self, group: DeskGroup, forming: Forming, reply: Reply[GroupInfo] | None = None
    ) -> None:
        self._carry(f"form {forming.id}", self._form, group, forming, reply)

    async def _form(
        self, group: DeskGroup, forming: Forming, reply: Reply[GroupInfo] | None
    ) -> None:
        """Open the sessions of members; close all if one cannot be opened."""
        members: Sequence[GroupSession] = ()
        error = None
        try:
            members = await self._members.start(group.newest, forming)
        except AegisError as refusal:
            await self._members.close(forming.members)
            error = refusal
        change = partial(rows.formed, forming=forming.id, members=members)
        group.table.fact(group.id, change, partial(self._is_formed, group, reply, error))

    def _is_formed(
        self, group: DeskGroup, reply: Reply[GroupInfo] | None, error: AegisError | None
    ) -> None:
        if reply is not None and error is not None:
            reply.fail(error)
        elif reply is not None:
            reply.send(self._info(group))
        self._advance(group)

    # Broadcasts.

    async def _broadcast(self, request: BroadcastToGroup) -> None:
        group, by = await self._reach(request.group), request.from_handle
        self._check_owner(by, group, "broadcast to")
        text, sender = brief(request), _tag(by)
        known = group.known(request.key, sender)
        if known is None and request.key is not None:
            entry = await self._archiver.entry(rows.key_name(group.id, sender, request.key))
            if entry is not None:
                _check_text(request, text, entry["id"], entry["digest"])
                self.reply(request, BroadcastSent(broadcast_id=entry["id"]))
                return
            group = self._get(request.group)
        if known is not None:
            _check_text(request, text, known.id, known.text.digest)
            reply: Reply[Any] = self.defer(request)
            group.table.settled(partial(reply.send, BroadcastSent(broadcast_id=known.id)), reply)
            return
        row = self._check_broadcast(request, text, group)
        if by is not None:
            refusal = self._rights.refuse_messages(by, len(row.members), time.time())
            if refusal is not None:
                raise refusal
        newest = group.latest(durable=False)
        broadcast = GroupBroadcast(
            id=str(ULID()),
            group=group.id,
            sender=sender,
            callback=request.callback,
            key=request.key,
            objective=request.objective[: rows.OBJECTIVE_CHARS],
            text=StoredText.of(text),
            at=utc_now(),
            members=tuple(row.members),
            number=1 + (0 if newest is None else newest.broadcast.number),
        )
        reply = self.defer(request)
        if group.table.put(broadcast, partial(self._is_sent, group, broadcast.id, reply), reply):
            group.add(broadcast)

    def _check_broadcast(
        self, request: BroadcastToGroup, text: str, group: DeskGroup
    ) -> AgentGroup:
        """Return the group that gets the order ``text``. Raises ``AegisError``."""
        row, newest = group.newest, group.latest(durable=False)
        if row.phase != "open":
            raise views.is_dissolving(row)
        if not request.objective.strip():
            raise InvalidRequest("the objective is empty; say what the members are to do")
        if not (is_utf8(text) and is_utf8(request.key or "")):
            raise InvalidRequest(
                "a text of the order is not valid Unicode; send it without surrogates"
            )
        if group.is_forming:
            raise views.still_forming(row)
        if newest is not None and not newest.is_over:
            raise views.in_flight(row, newest, self._shown)
        return row

    def _is_sent(self, group: DeskGroup, broadcast: str, reply: Reply[BroadcastSent]) -> None:
        reply.send(BroadcastSent(broadcast_id=broadcast))
        self._advance_broadcast(group, broadcast)
        self._find_past(group)

    async def _follow(self, group: DeskGroup, broadcast: GroupBroadcast, session: str) -> None:
        """Give a member its order, unless it has it, and write its reply."""
        table, since = group.table, group.seen(session)
        try:
            text = table.text(broadcast.text, "text")
            outcome = await self._members.outcome(group.newest, broadcast, text, session, since)
        except StorageError as error:
            outcome = TurnOutcome(end="lost", reason=f"its order cannot be read: {error}")
        progress = group.newest_progress(broadcast.id)
        if progress is not None and table.shown(end_id(broadcast.id, session)) is None:
            end = rows.ended(progress, session, outcome, utc_now())
            group.add_end(end)
            table.add_fact(end, partial(self._advance_broadcast, group, broadcast.id))

    def _drop(self, group: DeskGroup, broadcast: str, reason: str, *, withdraw: bool) -> None:
        """Write that the members without an end are not awaited any more."""
        progress = group.newest_progress(broadcast)
        assert progress is not None, "it is durable"
        for end in rows.dropped(progress, reason, utc_now(), withdraw=withdraw):
            if not group.table.put(end, partial(self._advance_broadcast, group, broadcast)):
                return

    async def _withdraw(self, group: DeskGroup, end: rows.BroadcastEnd) -> None:
        await self._members.withdraw(group.newest, end)
        advance = partial(self._advance_broadcast, group, end.broadcast)
        group.table.fact(end.id, lambda end: attrs.evolve(end, is_withdrawn=True), advance)

    async def _notify(self, group: DeskGroup, progress: BroadcastProgress) -> None:
        row, id_ = group.newest, progress.broadcast.id
        handles = views.handles_of(row, progress, self._shown)
        message = result(row, progress, self._texts(group, progress), handles)
        await self._members.notify(row, message)
        advance = partial(self._advance_broadcast, group, id_)
        group.table.fact(id_, lambda sent: attrs.evolve(sent, is_notified=True), advance)

    # Waits.

    async def _wait(self, request: WaitForAll | WaitForAny) -> None:
        group = self._get_shown(request.group)
        if isinstance(request, WaitForAny) and request.cancel_losers:
            self._check_owner(request.from_handle, group, "cancel members of")
            await group.table.open()
            group = self._get_shown(request.group)
        id_ = request.broadcast_id
        progress = group.latest(durable=True) if id_ is None else group.progress(id_)
        if progress is None:
            found = None if id_ is None else await self._archived(group.id, id_)
            group = self._get_shown(request.group)  # it may have been dissolved
            if found is None or found.broadcast.group != group.id:
                raise views.no_broadcast(group.newest, id_)
            self.reply(request, self._replies(request, group, found, timed_out=False))
            return
        reply: Reply[Any] = self.defer(request)
        waiter = GroupWaiter(request, group, progress.broadcast.id, reply)
        self._waiting.setdefault(waiter.broadcast, []).append(waiter)
        self._look(waiter)
        if not reply.is_settled:
            self.context.after(request.timeout, WaitTimeout(waiter))

    def _look(self, waiter: GroupWaiter) -> None:
        """Answer a waiter if there are replies enough; drop the losers of a winner."""
        progress = waiter.group.progress(waiter.broadcast)
        assert progress is not None, "a broadcast with a waiter is kept"
        is_decided = waiter.cancels and bool(progress.replied) and not progress.is_over
        if is_decided and not waiter.has_chosen:
            waiter.has_chosen = True
            self._drop(waiter.group, waiter.broadcast, DECIDED, withdraw=True)
            _fail_with_table(waiter.group.table, waiter.reply)
        if waiter.is_served(progress) or waiter.reply.is_settled:
            self._serve(waiter, timed_out=False)

    def _serve(self, waiter: GroupWaiter, *, timed_out: bool) -> None:
        waiting = self._waiting[waiter.broadcast]
        waiting.remove(waiter)
        if not waiting:
            del self._waiting[waiter.broadcast]
        group, progress = waiter.group, waiter.group.progress(waiter.broadcast)
        if waiter.reply.is_settled or progress is None:
            return  # the disk has refused the ends of the losers, or the caller has given up
        row = group.newest
        value = self._replies(waiter.request, group, progress, timed_out=timed_out)
        handles = views.handles_of(row, progress, self._shown)
        ask = {handles[each]: each for each in progress.pending}
        if ask:
            self.context.start_soon(self._answer, waiter.reply, value, ask)
        else:
            waiter.reply.send(value)

    def _replies(
        self,
        request: WaitForAll | WaitForAny,
        group: DeskGroup,
        progress: BroadcastProgress,
        *,
        timed_out: bool,
    ) -> GroupReplies:
        reducer = request.reducer if isinstance(request, WaitForAll) else None
        row, texts = group.newest, self._texts(group, progress)
        return views.replies(row, progress, texts, self._shown, reducer, timed_out=timed_out)

    async def _answer(
        self, reply: Reply[Any], value: GroupInfo | GroupReplies, ask: Mapping[str, str]
    ) -> None:
        """Answer a caller once the sessions ``ask``, by handle, have reported their states."""
        found = await self._members.states(ask.values())
        states = {handle: found.get(id_) for handle, id_ in ask.items()}
        if isinstance(value, GroupInfo):
            reply.send(views.info_with(states, value))
        else:
            reply.send(views.replies_with(states, value))

    def _texts(self, group: DeskGroup, progress: BroadcastProgress) -> list[str]:
        """Return the replies to a broadcast, in their order."""
        return [self._text(group.table, progress.ends[each].text) for each in progress.replied]

    def _text(self, table: Table[Any], text: StoredText | None) -> str:
        try:
            return "" if text is None else table.text(text, "text")
        except StorageError as error:
            return f"its reply cannot be read: {error}"

    # The group as a whole.

    async def _dissolve(self, request: DissolveGroup) -> None:
        group = await self._reach(request.group)
        self._check_owner(request.from_handle, group, "dissolve")
        if group.is_forming:
            raise views.still_forming(group.newest)
        reply: Reply[GroupInfo] = self.defer(request)
        group.closing = [*(each for each in group.closing if not each.is_settled), reply]
        row = group.newest
        if row.phase == "open":
            dissolving = attrs.evolve(row, phase="dissolving")
            group.table.put(dissolving, partial(self._advance, group), reply)
        elif group.shown is not None and group.shown.phase == "open":
            _fail_with_table(group.table, reply)

    async def _close_members(self, group: DeskGroup) -> None:
        faults.CLOSE_BEFORE.hit(group.newest.name)
        await self._members.close(group.newest.members.values())
        dissolved = partial(self._is_dissolved, group)
        group.table.fact(group.id, lambda row: attrs.evolve(row, phase="dissolved"), dissolved)

    def _is_dissolved(self, group: DeskGroup) -> None:
        for each in group.closing:
            each.send(self._info(group))
        self._advance(group)

    async def _rename(self, request: RenameGroup) -> None:
        group = await self._reach(request.group)
        self._check_owner(request.from_handle, group, "rename")
        if group.newest.phase != "open":
            raise views.is_dissolving(group.newest)
        self._check_name(request.new_name, address=group.address, of=group)
        reply: Reply[GroupInfo] = self.defer(request)
        row = rows.renamed(group.newest, request.new_name)
        self._try_name(group, row.name)
        group.table.put(row, lambda: reply.send(self._info(group)), reply)

    # What follows.

    def _advance(self, group: DeskGroup) -> None:
        """Do what follows from the durable rows of a group."""
        row = group.shown
        if row is None:
            return
        for forming in row.forming.values():
            if forming.id in group.newest.forming:  # or that has ended, and is being written
                self._form_soon(group, forming)
        for each in [*group.all_progress(durable=True)]:
            self._advance_broadcast(group, each.broadcast.id)
        if row.phase == "dissolving" and group.newest.phase == "dissolving":
            self._carry(f"close {group.id}", self._close_members, group)
        self._leave(group)

    def _advance_broadcast(self, group: DeskGroup, id_: str) -> None:
        """Do what follows from the durable rows of a broadcast."""
        row = group.shown
        durable, newest = group.progress(id_), group.newest_progress(id_)
        if row is None or durable is None or newest is None:
            return
        if row.phase != "open":
            self._drop(group, id_, DISSOLVED, withdraw=False)
        else:
            for each in newest.pending:
                key = f"follow {end_id(id_, each)}"
                self._carry(key, self._follow, group, durable.broadcast, each)
        for each in durable.to_withdraw:
            if each in newest.to_withdraw:
                end = durable.ends[each]
                self._carry(f"withdraw {end.id}", self._withdraw, group, end)
        if durable.is_to_be_notified and newest.is_to_be_notified:
            self._carry(f"notify {id_}", self._notify, group, durable)
        for waiter in [*self._waiting.get(id_, ())]:
            self._look(waiter)
        self._leave(group)

    def _leave(self, group: DeskGroup) -> None:
        """Remove a group that is gone; streams that are behind still get its end."""
        if group.is_gone:
            self._gone[group.id] = attrs.evolve(self._info(group), state="dissolved")
            if len(self._gone) > MAX_GONE:
                oldest = next(iter(self._gone))
                del self._gone[oldest]
                self._followers.remove(oldest)
            self._archive_group(group)
            self._followers.changed(group.id)
            return
        self._find_past(group)

    # The archive.

    def _find_past(self, group: DeskGroup) -> None:
        """Add the broadcasts that have become past; perhaps older ones are archived now."""
        for each in group.find_past():
            self._add_past(group, each)

    def _add_past(self, group: DeskGroup, progress: BroadcastProgress) -> None:
        self._past[progress.broadcast.id] = group
        self._archiver.add(progress.broadcast.id, moment_of(progress.ended).timestamp())

    def _leaving_broadcast(self, id_: str) -> Leaving | None:
        """Return a past broadcast as the archive gets it."""
        group = self._past.get(id_)
        progress = None if group is None else group.progress(id_)
        if group is None or progress is None:
            return None
        return Leaving(group.table, progress.rows, rows.entries_of(progress.broadcast))

    def _leave_broadcast(self, id_: str) -> None:
        group = self._past.pop(id_)
        progress = group.progress(id_)
        assert progress is not None, "it is at rest"
        group.leave(progress)

    async def _archived(self, group: str, id_: str) -> BroadcastProgress | None:
        """Return a broadcast of a group from the archive; None if it is not there any more."""
        entry = await self._archiver.entry(rows.id_name(id_))
        if entry is None or entry["group"] != group:
            return None
        found = await self._archiver.rows(GroupRow, entry, id_)
        broadcast = next((each for each in found if isinstance(each, GroupBroadcast)), None)
        ends = (each for each in found if isinstance(each, BroadcastEnd))
        return None if broadcast is None else BroadcastProgress.of(broadcast, ends)

    def _archive_group(self, group: DeskGroup) -> None:
        """Archive a group that is gone, with all of its broadcasts."""
        self._groups.pop(group.id, None)
        for each in group.past:
            self._past.pop(each, None)
            self._archiver.remove(each)
        self._leaving[group.id] = group
        self._group_archiver.add(group.id, 0.0)

    def _leaving_group(self, id_: str) -> Leaving | None:
        """Return a group that is gone as the archive gets it."""
        group = self._leaving.get(id_)
        if group is None or group.shown is None:
            return None
        entries = {f"group {id_}": {"id": id_, "name": group.shown.name}}
        return Leaving(group.table, tuple(group.all_rows()), entries)

    def _carry(self, key: str, work: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Have a task do ``work``, unless one that was given this key does."""
        if key not in self._carried:
            self._carried.add(key)
            self.context.start_soon(self._do, key, work, arguments)

    async def _do(
        self, key: str, work: Callable[..., Awaitable[None]], arguments: Sequence[Any]
    ) -> None:
        try:
            await work(*arguments)
        finally:
            self._carried.discard(key)

    # Ledgers.

    def _stored(self) -> list[str]:
        """Return the first names of groups that have a ledger. Raises ``StorageError``."""
        names = stored_names(self._flusher.disk, self._directory)
        groups = [each.removesuffix(SUFFIX) for each in names if each.endswith(SUFFIX)]
        return [each for each in groups if is_name(each)]

    async def _open(self, address: str) -> Table[Any]:
        """Open the ledger of a group, also one that the disk has refused."""
        if address in self._tables:
            await self._tables[address].open()
            return self._tables[address]
        table = self._tables[address] = Table(
            self._directory / f"{address}{SUFFIX}",
            GroupRow,
            self._flusher,
            self.context,
            changed=partial(self._changed, address),
            lost=partial(self._derive, address),
            upgrade=rows.lines_of_today,
        )
        await table.open()
        self._know(address)
        return table

    def _know(self, address: str) -> None:
        """Add the groups of a ledger that was read."""
        table = self._tables[address]
        shown = [*table.all_shown()]
        known = self._groups.keys() | self._leaving.keys()
        added = {
            each.id: DeskGroup(each.id, address, table)
            for each in shown
            if isinstance(each, AgentGroup) and each.id not in known
        }
        broadcasts = [each for each in shown if isinstance(each, GroupBroadcast)]
        # A row whose drop was refused comes last.
        for broadcast in sorted(broadcasts, key=lambda each: each.number):
            if broadcast.group in added:
                added[broadcast.group].add(broadcast)
            elif broadcast.group in self._groups:
                self._restore(self._groups[broadcast.group], broadcast)
        of = {each.id: added.get(each.group) for each in broadcasts}
        for end in shown:
            if isinstance(end, BroadcastEnd) and (group := of.get(end.broadcast)) is not None:
                group.add_end(end)
        self._drop_orphans(table, shown)
        for group in added.values():
            if group.is_gone:
                self._archive_group(group)
            else:
                self._groups[group.id] = group
                self._find_past(group)

    def _drop_orphans(self, table: Table[Any], shown: Sequence[GroupRow]) -> None:
        """Drop parts of archived rows: a loss of power has kept only some of their drops."""
        ids = {each.id for each in shown}
        for each in shown if table.is_whole else ():
            match each:
                case GroupBroadcast(group=owner) | BroadcastEnd(broadcast=owner):
                    if owner not in ids:
                        table.drop(each.id)

    def _restore(self, group: DeskGroup, broadcast: GroupBroadcast) -> None:
        """Add a past broadcast again whose drop the disk has refused."""
        if not group.has(broadcast.id):
            group.past[broadcast.id] = None
            group.add_key(broadcast)
            progress = group.progress(broadcast.id)
            assert progress is not None, "it is durable"
            self._add_past(group, progress)

    def _derive(self, address: str) -> None:
        """Derive all from the rows of a ledger once its disk accepts again, or can be read."""
        self._know(address)
        self._tried.pop(address, None)
        if address in self._unread:
            self._unread.remove(address)
            self._followers.begin_anew()  # what was shown in place of its groups has no id
        for group in self._of(address):
            self._advance(group)
        for group in self._leaving.values():
            if group.address == address:
                self._group_archiver.add(group.id, 0.0)

    def _of(self, address: str) -> list[DeskGroup]:
        return [each for each in self._groups.values() if each.address == address]

    def _changed(self, address: str) -> None:
        """Publish what a ledger shows, and leave the groups whose creation it has refused."""
        tried = self._tried.get(address, set())
        for group in self._of(address):
            if group.id in group.table.rows:
                self._followers.changed(group.id)
            else:
                del self._groups[group.id]
            if group.shown is not None:
                tried -= group.shown.names
        self._close_unused(address)
        self._followers.look()

    def _close_unused(self, address: str, *, deletes: bool = False) -> None:
        """Close a ledger of which no group is left; ``deletes``: delete it if it has no row."""
        table = self._tables.get(address)
        is_used = self._of(address) or any(e.address == address for e in self._leaving.values())
        if table is None or table.problem or is_used or address == self._opening:
            return
        del self._tables[address]
        if deletes:
            table.discard()
        else:
            table.close()

    # What clients see.

    def _find(self, name: str) -> DeskGroup | None:
        """Return the group with this name or alias, ignoring case. Raises ``StorageError``."""
        for group in self._groups.values():
            if group.is_named(name):
                return group
        for address in self._unread:
            if name_key(address) == name_key(name):
                raise StorageError(self._tables[address].problem)
        return None

    def _get(self, name: str) -> DeskGroup:
        """Return the group with this name or alias. Raises ``NotFound``, ``StorageError``."""
        group = self._find(name)
        if group is None:
            known = [each.newest for each in self._groups.values()]
            raise views.no_group(name, [each.name for each in known if each.phase != "dissolved"])
        return group

    def _get_shown(self, name: str) -> DeskGroup:
        """Return a group that is durable. Raises ``NotFound``, ``StorageError``."""
        group = self._get(name)
        if group.shown is None:
            raise views.no_group(name, [])
        return group

    async def _reach(self, name: str) -> DeskGroup:
        """Return a group that is to be changed, whose ledger is tried again if it has refused."""
        await self._get(name).table.open()
        return self._get(name)

    def _check_name(self, name: str, *, address: str, of: DeskGroup | None = None) -> None:
        """Raise ``AlreadyExists`` if a name is taken, but not by ``of`` or in its own ledger."""
        found, key = self._find(name), name_key(name)
        tried = (names for each, names in self._tried.items() if each != address)
        if found not in (None, of) or any(key in names for names in tried):
            raise AlreadyExists(
                f"the name {name!r} is or was that of another group; choose another one"
            )

    def _try_name(self, group: DeskGroup, name: str) -> None:
        """Let no other group have a name from now on that is being written."""
        self._tried.setdefault(group.address, set()).add(name_key(name))

    def _check_owner(self, by: str | None, group: DeskGroup, verb: str) -> None:
        """Raise ``Forbidden`` unless the group is the caller's own or that of one it spawned."""
        row = group.newest
        kind, _, owner = row.owner.partition(":")
        if by is None or (kind == "agent" and self._rights.commands(by, owner)):
            return
        who = self._shown(owner) if kind == "agent" else "a person"
        raise Forbidden(
            f"you may not {verb} group {row.name!r}, which {who} has created: only {who}, the "
            "sessions above and people may; create a group of your own with aegis_group_spawn"
        )

    def _info(self, group: DeskGroup) -> GroupInfo:
        """Return a group that is durable as clients see it."""
        row = group.shown
        assert row is not None
        return views.group_info(row, group.latest(durable=True), self._shown)

    def _sessions_of(self, group: DeskGroup) -> dict[str, str]:
        """Return the sessions of the members of a group, by their current handles."""
        return {self._shown(each.handle): each.session for each in group.newest.members.values()}

    def _infos(self) -> Iterator[GroupInfo]:
        """Yield all groups in the order of their names."""
        groups = [self._info(each) for each in self._groups.values() if each.shown is not None]
        unread = [views.unreadable(each, self._tables[each].problem) for each in self._unread]
        yield from sorted([*groups, *unread], key=lambda each: (name_key(each.group), each.id))

    def _list(self) -> GroupList:
        found: list[GroupInfo] = []
        size = 0
        for info in self._infos():
            size += MEMBER_BYTES * (len(info.members) + 4)
            if size > MAX_LIST_BYTES:
                return GroupList(result=found, more=True)
            found.append(info)
        return GroupList(result=found)

    def _orders(self, request: ListGroupOrders) -> GroupOrders:
        group = self._get_shown(request.group)
        orders, before = group.orders(), request.before
        if before is not None:
            ids = [each.broadcast.id for each in orders]
            if before not in ids:
                raise views.no_broadcast(group.newest, before)
            orders = orders[ids.index(before) + 1 :]
        found, size = list[GroupOrder](), 0
        for each in orders[: request.limit]:
            order = views.order_of(group.newest, each, self._texts(group, each), self._shown)
            size += json_size(unstructure(order))
            if found and size > MAX_LIST_BYTES:
                break
            found.append(order)
        return GroupOrders(group=group.newest.name, result=found, more=len(orders) > len(found))

    def _news(self, keys: list[str] | None, place: StatesPlace) -> GroupsNews:
        if keys is None:
            return GroupsNews(groups=[*self._infos()], place=place, is_all=True)
        known = (self._groups.get(each) for each in keys)
        groups = [self._info(each) for each in known if each is not None and each.shown is not None]
        gone = [self._gone[each] for each in keys if each in self._gone]
        return GroupsNews(groups=[*groups, *gone], place=place, is_all=False)


def _check_text(request: BroadcastToGroup, text: str, id_: str, digest: str) -> None:
    """Raise ``InvalidRequest`` if a key was given with another order before."""
    if digest != digest_of(text):
        raise views.other_text(request.key or "", id_)


def _tag(handle: str | None) -> str:
    return "human" if handle is None else f"agent:{handle}"


def _fail_with_table(table: Table[Any], reply: Reply[Any]) -> None:
    """Fail a reply if the disk refuses a change so far; it is answered later otherwise."""
    if table.problem:
        reply.fail(StorageError(table.problem))
    else:
        table.settled(lambda: None, reply)
