"""``GroupDesk``: the actor of all groups, between their owners and the sessions of members.

The rules decide (``rules``); this actor checks the caller, appends the lines, and has ``members``
open, follow and close sessions. The ledger of a group is created with it, and keeps its first name.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import attrs
from ulid import ULID

from actors import Actor, Reply
from aegis.errors import AegisError, Forbidden, InvalidRequest, NotFound, StorageError
from aegis.following import Followers
from aegis.groups import events as e
from aegis.groups import faults
from aegis.groups.group import Forming, Group, Member
from aegis.groups.ledger import Fold
from aegis.groups.members import Members
from aegis.groups.rules import Groups
from aegis.groups.views import Shown, group_info, info_with, replies_with, sessions_of
from aegis.journal.appender import Appender
from aegis.journal.disk import stored_names
from aegis.journal.flusher import Flusher
from aegis.journal.folding import load
from aegis.journal.line_writer import LineWriter
from aegis.names import nearest, shorten
from aegis.protocol.feeds import FollowGroups, GroupsNews, StatesPlace
from aegis.protocol.groups import (
    BroadcastToGroup,
    DissolveGroup,
    GroupInfo,
    GroupList,
    ListGroups,
    RenameGroup,
    ShowGroup,
    SpawnIntoGroup,
    SpawnMixedGroup,
    WaitForAll,
    WaitForAny,
)
from aegis.protocol.naming import NAME_RULE, is_name

SUFFIX = ".jsonl"

MAX_LIST_BYTES = 256 * 1024
MEMBER_BYTES = 400
"""The size of one list of groups, and a part of it that a member surely fits in."""

STORE_AGAIN_S = 5.0
"""Seconds until lines that the disk refused are written again."""


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


@attrs.frozen
class TimeIsUp:
    """The time of a caller that waits for replies has passed."""

    caller: int


DeskMessage = (
    SpawnIntoGroup
    | SpawnMixedGroup
    | BroadcastToGroup
    | WaitForAll
    | WaitForAny
    | ShowGroup
    | DissolveGroup
    | RenameGroup
    | ListGroups
    | FollowGroups
    | TimeIsUp
    | e.Again
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
        flusher: Flusher,
        rights: GroupRights,
        shown: Shown,
    ) -> None:
        self._directory = directory
        self._presets = presets
        self._flusher = flusher
        self._rights = rights
        self._shown = shown
        self._rules = Groups(shown)
        self._writers: dict[str, LineWriter] = {}
        self._callers: dict[int, Reply[Any]] = {}
        self._count = 0
        self._followers = Followers("the groups", self._news)

    async def setup(self) -> None:
        """Register the desk and read the ledgers."""
        self.context.register("service", "groups")
        self._members = Members(self.context.system, self._handle, self._shown)
        ledgers = [await self._loaded(each) for each in self._stored()]
        self._handle(e.Recovering(ledgers=ledgers))

    async def teardown(self) -> None:
        for writer in self._writers.values():
            writer.close()

    async def receive(self, message: DeskMessage) -> None:
        """Handle a message of a client or a timer."""
        match message:
            case SpawnIntoGroup() | SpawnMixedGroup():
                await self._spawn(message)
            case BroadcastToGroup():
                self._broadcast(message)
            case WaitForAll() | WaitForAny():
                self._wait(message)
            case DissolveGroup(group=name):
                self._check_owner(message.from_handle, self._rules.state.get(name), "dissolve")
                self._handle(e.Dissolving(name=name, caller=self._keep(self.defer(message))))
            case RenameGroup(group=name, new_name=new):
                self._check_owner(message.from_handle, self._rules.state.get(name), "rename")
                caller = self._keep(self.defer(message))
                self._handle(e.Renaming(name=name, new_name=new, caller=caller))
            case TimeIsUp(caller=caller):
                self._handle(e.GivingUp(caller=caller))
            case e.Again():
                self._handle(message)
            case FollowGroups(place=place):
                self._followers.take(place, self.defer(message))
            case ShowGroup() | ListGroups():
                self._read(message)

    def _read(self, message: ShowGroup | ListGroups) -> None:
        if isinstance(message, ListGroups):
            self.reply(message, self._list())
            return
        group = self._rules.state.get(message.group)
        info = group_info(group, self._shown)
        ask = sessions_of(group, self._shown)
        self.context.start_soon(self._answer_with_states, self.defer(message), info, ask)

    def _list(self) -> GroupList:
        found: list[GroupInfo] = []
        size = 0
        for info in self._rules.state.infos():
            size += MEMBER_BYTES * (len(info.members) + 4)
            if size > MAX_LIST_BYTES:
                return GroupList(result=found, more=True)
            found.append(info)
        return GroupList(result=found)

    def _news(self, keys: list[str] | None, place: StatesPlace) -> GroupsNews:
        state = self._rules.state
        known = [*state.infos()] if keys is None else [*map(state.info, keys)]
        groups = [each for each in known if each is not None]
        return GroupsNews(groups=groups, place=place, is_all=keys is None)

    # Clients.

    async def _spawn(self, message: SpawnIntoGroup | SpawnMixedGroup) -> None:
        by, profiles = message.from_handle, self._profiles(message)
        for each in dict.fromkeys(profiles):
            refusal = self._rights.refuse_work(by, each)
            if refusal is not None:
                raise refusal
        group = self._rules.state.find(message.group)
        if group is not None:
            self._check_owner(by, group, "add members to")
        handle = (message.handle if isinstance(message, SpawnIntoGroup) else None) or ""
        members = tuple(
            Member(session=uuid.uuid4().hex, handle=handle, profile=each) for each in profiles
        )
        event = e.Spawning(
            name=message.group,
            id=str(ULID()),
            owner=_tag(by),
            forming=Forming(id=str(ULID()), members=members, by=by),
            must_be_new=isinstance(message, SpawnMixedGroup),
            caller=self._count + 1,
        )
        self._rules.check_spawn(event)  # before there is a file
        await self._open_ledger(message.group if group is None else group.address)
        self._keep(self.defer(message))
        self._handle(event)

    def _profiles(self, message: SpawnIntoGroup | SpawnMixedGroup) -> Sequence[str]:
        """Return the profiles of new members. Raises ``InvalidRequest``, ``NotFound``."""
        if isinstance(message, SpawnIntoGroup):
            return [message.profile]
        if (message.preset is None) == (not message.profiles):
            raise InvalidRequest("name either profiles, at least one, or a preset")
        if message.preset is not None:
            return self._preset(message.preset)
        for each in message.profiles:
            if not is_name(each):
                raise InvalidRequest(f"profile {shorten(each)!r} is not a name: use {NAME_RULE}")
        return message.profiles

    def _preset(self, name: str) -> Sequence[str]:
        if name in self._presets:
            return self._presets[name]
        close = nearest(name, list(self._presets))
        there = ", ".join(sorted(self._presets)) or "none"
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"there are: {there}"
        raise NotFound(f"there is no preset {name!r} in groups.presets of .aegis.yaml; {hint}")

    def _broadcast(self, message: BroadcastToGroup) -> None:
        by, group = message.from_handle, self._rules.state.get(message.group)
        self._check_owner(by, group, "broadcast to")
        event = e.Broadcasting(
            request=message, id=str(ULID()), sender=_tag(by), caller=self._count + 1
        )
        is_new = group.known(message.key, event.sender) is None and group.current is None
        if by is not None and is_new:
            refusal = self._rights.refuse_messages(by, len(group.members), time.time())
            if refusal is not None:
                raise refusal
        self._keep(self.defer(message))
        self._handle(event)

    def _wait(self, message: WaitForAll | WaitForAny) -> None:
        group = self._rules.state.get(message.group)
        if isinstance(message, WaitForAny) and message.cancel_losers:
            self._check_owner(message.from_handle, group, "cancel members of")
        caller = self._keep(self.defer(message))
        self._handle(e.Waiting(request=message, caller=caller))
        if caller in self._callers:
            self.context.after(message.timeout, TimeIsUp(caller))

    def _check_owner(self, by: str | None, group: Group, verb: str) -> None:
        """Raise ``Forbidden`` unless the group is the caller's own or that of one it spawned."""
        kind, _, owner = group.owner.partition(":")
        if by is None or (kind == "agent" and self._rights.commands(by, owner)):
            return
        who = self._shown(owner) if kind == "agent" else "a person"
        raise Forbidden(
            f"you may not {verb} group {group.name!r}, which {who} has created: only {who}, the "
            "sessions above and people may; create a group of your own with aegis_group_spawn"
        )

    # The rules.

    def _keep(self, reply: Reply[Any]) -> int:
        self._count += 1
        self._callers[self._count] = reply
        return self._count

    def _handle(self, event: e.Event) -> None:
        for action in self._rules.handle(event):
            self._perform(action)
        self._followers.look()

    def _perform(self, action: e.Action) -> None:
        match action:
            case e.Write(address=address, append=append):
                self._writers[address].append(append)
            case e.Changed(group=group):
                self._followers.changed(group)
            case e.Release(address=address):
                self._release(address)
            case e.WriteAgain():
                self.context.after(STORE_AGAIN_S, e.Again())
            case e.Return() | e.Fail():
                self._answer(action)
            case _:
                self._of_members(action)

    def _of_members(
        self, action: e.Form | e.Unform | e.Follow | e.Withdraw | e.Notify | e.Close
    ) -> None:
        group, start_soon, members = action.group, self.context.start_soon, self._members
        match action:
            case e.Form(forming=forming):
                start_soon(members.form, group, forming)
            case e.Unform(forming=forming):
                start_soon(members.unform, group, forming)
            case e.Follow(broadcast=id_, member=member):
                start_soon(members.follow, group, group.broadcasts[id_], member)
            case e.Withdraw(broadcast=id_, member=member):
                start_soon(members.withdraw, group, group.broadcasts[id_], member)
            case e.Notify(broadcast=id_):
                start_soon(members.notify, group, group.broadcasts[id_])
            case e.Close():
                start_soon(members.close, group)

    def _answer(self, action: e.Return | e.Fail) -> None:
        reply = self._callers.pop(action.caller, None)
        if reply is None:
            return
        if isinstance(action, e.Fail):
            reply.fail(action.error)
        elif action.ask:
            self.context.start_soon(self._answer_with_states, reply, action.value, action.ask)
        else:
            reply.send(action.value)

    async def _answer_with_states(
        self, reply: Reply[Any], value: Any, ask: Mapping[str, str]
    ) -> None:
        """Answer a caller once the sessions ``ask``, by handle, have reported their states."""
        found = await self._members.states(ask.values())
        states = {handle: found.get(id_) for handle, id_ in ask.items()}
        is_group = isinstance(value, GroupInfo)
        reply.send(info_with(states, value) if is_group else replies_with(states, value))

    # The ledgers.

    def _stored(self) -> list[str]:
        """Return the first names of groups that have a ledger. Raises ``StorageError``."""
        names = stored_names(self._flusher.disk, self._directory)
        groups = [each.removesuffix(SUFFIX) for each in names if each.endswith(SUFFIX)]
        return [each for each in groups if is_name(each)]

    async def _loaded(self, address: str) -> e.Loaded:
        try:
            fold = await self._open_ledger(address)
            if not fold.groups:
                self._release(address)
        except StorageError as error:
            problem = f"its ledger cannot be read: {error}; start the daemon again then"
            return e.Loaded(address=address, problem=problem)
        return e.Loaded(address=address, groups=[*fold.groups.values()])

    def _release(self, address: str) -> None:
        """Close the ledger of groups that are gone."""
        self._writers.pop(address).close()

    async def _open_ledger(self, address: str) -> Fold:
        """Open or create the ledger of a group; return what it says. Raises ``StorageError``."""
        if address in self._writers:
            return Fold(address)
        path = self._directory / f"{address}{SUFFIX}"
        appender = await Appender.open(path, self._flusher)
        with contextlib.ExitStack() as undo:
            undo.callback(appender.close)
            read = partial(load, self._flusher.disk, path, appender.synced, Fold(address))
            fold = await self._flusher.look(read)
            undo.pop_all()
        self._writers[address] = LineWriter(
            appender,
            self.context.start_soon,
            synced=lambda number: self._handle(e.Synced(number=number)),
            refused=lambda why: self._handle(e.Refused(address=address, sentence=why)),
            before=faults.APPEND_BEFORE.hit,
            after=faults.APPEND_AFTER.hit,
        )
        return fold


def _tag(handle: str | None) -> str:
    return "human" if handle is None else f"agent:{handle}"
