"""The rows of a group's ledger: the group, its broadcasts, and the ends of members in them. Pure.

A step is a function from a row to the row after it. What has happened to members is a fact: such a
step is applied again to what a refusing disk has left, so it looks at the row that it gets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.journal.table import StoredText
from aegis.protocol.naming import name_key
from aegis.turns.watch import TurnEnd, TurnOutcome

MAX_REPLY_CHARS = 50_000
"""The longest reply that is kept; the transcript of the member has all of it."""

OBJECTIVE_CHARS = 200
"""The part of an objective that is shown."""

Phase = Literal["open", "dissolving", "dissolved"]


@attrs.frozen(kw_only=True)
class GroupSession:
    """A member: the id of its session, and the handle that it began with."""

    session: str
    handle: str
    profile: str


@attrs.frozen(kw_only=True)
class Forming:
    """Members whose sessions are being opened: all of them become members, or none.

    ``by`` is the handle of the agent that spawns them, None for a person. The handle of one that is
    to get a generated one is empty.
    """

    id: str
    members: tuple[GroupSession, ...]
    by: str | None


@attrs.frozen(kw_only=True)
class AgentGroup:
    """A group; ``id`` never changes. ``aliases`` are all names that it had before ``name``.

    ``owner`` is the sender tag of its creator. ``forming`` are by their ids, ``members`` by those
    of their sessions. ``seen`` has the newest entry of a session's transcript that a reply to an
    archived broadcast was read from.
    """

    tag: ClassVar[str] = "group"

    id: str
    name: str
    owner: str
    created: str
    phase: Phase = "open"
    aliases: tuple[str, ...] = ()
    members: Mapping[str, GroupSession] = attrs.field(factory=dict)
    forming: Mapping[str, Forming] = attrs.field(factory=dict)
    seen: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no member of it could be started."""
        return not self.members and not self.forming

    @property
    def names(self) -> set[str]:
        """The keys of all its names, none once it is dissolved."""
        known = (self.name, *self.aliases) if self.phase != "dissolved" else ()
        return set(map(name_key, known))

    @property
    def size(self) -> int:
        """The number of its members, those that are being started too."""
        return len(self.members) + sum(len(each.members) for each in self.forming.values())


@attrs.frozen(kw_only=True)
class GroupBroadcast:
    """A broadcast to the group with this id. ``members`` are the ids of sessions.

    ``objective`` is the beginning of it, ``text`` the whole order. ``number`` counts the broadcasts
    of the group; those of older versions have none.
    """

    tag: ClassVar[str] = "broadcast"

    id: str
    group: str
    sender: str
    callback: bool
    key: str | None
    objective: str = attrs.field(repr=False)
    text: StoredText = attrs.field(repr=False)
    at: str
    members: tuple[str, ...]
    is_notified: bool = False
    number: int = 0


@attrs.frozen(kw_only=True)
class BroadcastEnd:
    """The end of one member's part in a broadcast; ``at`` is UTC, ISO 8601 with ``Z``.

    ``number`` grows from end to end of a broadcast. ``seq`` is the entry of the transcript.
    ``is_dropped``: the group awaits the member no more. ``is_withdrawn``: the member has been
    notified of that, or need not be.
    """

    tag: ClassVar[str] = "end"

    id: str
    broadcast: str
    session: str
    number: int
    end: TurnEnd
    at: str
    text: StoredText | None = attrs.field(default=None, repr=False)
    reason: str = ""
    seq: int = 0
    is_cut: bool = False
    is_dropped: bool = False
    is_withdrawn: bool = True


GroupRow = AgentGroup | GroupBroadcast | BroadcastEnd


def end_id(broadcast: str, session: str) -> str:
    """Return the id of the row with the end of a member in a broadcast."""
    return f"{broadcast}/{session}"


@attrs.frozen
class BroadcastProgress:
    """A broadcast, and the ends of its members so far, by their sessions and in their order."""

    broadcast: GroupBroadcast
    ends: Mapping[str, BroadcastEnd]

    @classmethod
    def of(cls, broadcast: GroupBroadcast, ends: Iterable[BroadcastEnd]) -> BroadcastProgress:
        """Return a broadcast with its ends in any order."""
        ordered = sorted(ends, key=lambda each: each.number)
        return cls(broadcast, {each.session: each for each in ordered})

    @property
    def rows(self) -> tuple[GroupBroadcast | BroadcastEnd, ...]:
        """The broadcast, and the ends."""
        return self.broadcast, *self.ends.values()

    @property
    def ended(self) -> str:
        """The moment of its last end; that of a broadcast without members is its own."""
        return max((each.at for each in self.ends.values()), default=self.broadcast.at)

    @property
    def pending(self) -> list[str]:
        """The members whose replies are awaited."""
        return [each for each in self.broadcast.members if each not in self.ends]

    @property
    def is_over(self) -> bool:
        """Whether no reply is awaited any more."""
        return not self.pending

    @property
    def replied(self) -> list[str]:
        """The members that have replied, in the order of their replies."""
        return [each for each, end in self.ends.items() if end.end == "completed"]

    @property
    def to_withdraw(self) -> list[str]:
        """The members that are to be notified that their replies are not awaited any more."""
        return [each for each, end in self.ends.items() if not end.is_withdrawn]

    @property
    def is_to_be_notified(self) -> bool:
        """Whether the sender is to be notified that it is over."""
        return self.is_over and self.broadcast.callback and not self.broadcast.is_notified

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to do for it."""
        return self.is_over and not self.is_to_be_notified and not self.to_withdraw

    @property
    def next_number(self) -> int:
        """The number of its next end."""
        return 1 + max((each.number for each in self.ends.values()), default=0)


# The archive.

KIND, KIND_OF_GROUPS = "broadcasts", "groups"
"""The kinds of the archived rows: past broadcasts, and groups that are gone, with all of theirs."""


def entries_of(broadcast: GroupBroadcast) -> dict[str, dict[str, Any]]:
    """Return what stays known of a broadcast that is archived, by name."""
    known = {"id": broadcast.id, "group": broadcast.group, "digest": broadcast.text.digest}
    entries: dict[str, dict[str, Any]] = {id_name(broadcast.id): known}
    if broadcast.key is not None:
        entries[key_name(broadcast.group, broadcast.sender, broadcast.key)] = known
    return entries


def id_name(broadcast: str) -> str:
    """Return the name under which an archived broadcast is known."""
    return f"broadcast {broadcast}"


def key_name(group: str, sender: str, key: str) -> str:
    """Return the name under which the key of a sender is known."""
    return f"key {json.dumps([group, sender, key])}"


# The steps.


def with_seen(group: AgentGroup, ends: Iterable[BroadcastEnd]) -> AgentGroup:
    """Replies are archived: what was read of the transcripts stays known."""
    newer = {each.session: each.seq for each in ends if each.seq > group.seen.get(each.session, 0)}
    return attrs.evolve(group, seen={**group.seen, **newer}) if newer else group


def with_forming(group: AgentGroup, forming: Forming) -> AgentGroup:
    """Members are being started."""
    return attrs.evolve(group, forming={**group.forming, forming.id: forming})


def formed(group: AgentGroup, forming: str, members: Sequence[GroupSession]) -> AgentGroup:
    """The sessions of ``forming`` are open, or, without ``members``, all of them are closed."""
    if forming not in group.forming:
        return group
    others = {key: each for key, each in group.forming.items() if key != forming}
    known = {**group.members, **{each.session: each for each in members}}
    return attrs.evolve(group, forming=others, members=known)


def renamed(group: AgentGroup, name: str) -> AgentGroup:
    """It has another name."""
    if name == group.name:
        return group
    aliases = tuple(dict.fromkeys((*group.aliases, group.name)))
    return attrs.evolve(group, name=name, aliases=aliases)


def ended(
    progress: BroadcastProgress, session: str, outcome: TurnOutcome, now: str
) -> BroadcastEnd:
    """Return the end of a member from the outcome of its turn."""
    return BroadcastEnd(
        id=end_id(progress.broadcast.id, session),
        broadcast=progress.broadcast.id,
        session=session,
        number=progress.next_number,
        end=outcome.end,
        at=now,
        text=StoredText.of(outcome.text[:MAX_REPLY_CHARS]) if outcome.text else None,
        reason=outcome.reason,
        seq=outcome.seq,
        is_cut=outcome.is_cut or len(outcome.text) > MAX_REPLY_CHARS,
    )


def dropped(
    progress: BroadcastProgress, reason: str, now: str, *, withdraw: bool
) -> list[BroadcastEnd]:
    """Return the ends of all members that have none, and are not awaited any more.

    ``withdraw``: they are to be notified of that.
    """
    broadcast = progress.broadcast.id
    return [
        BroadcastEnd(
            id=end_id(broadcast, session),
            broadcast=broadcast,
            session=session,
            number=number,
            end="cancelled",
            at=now,
            reason=reason,
            is_dropped=True,
            is_withdrawn=not withdraw,
        )
        for number, session in enumerate(progress.pending, start=progress.next_number)
    ]


# Ledgers of a version before tables.


def lines_of_today(
    line: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """Return a line that a version before tables has written as lines of today's form."""
    group, id_ = rows.get(line.get("group", ""), {}), line.get("id")
    broadcast = rows.get(id_, {}) if isinstance(id_, str) else {}
    try:
        if broadcast.get("type") == "broadcast":
            return _of_broadcast(line, broadcast, rows)
        if group.get("type") == "group":
            return _of_group(line, group)
        return _created(line)
    except CodecError:  # it was skipped before, too
        return []


def _created(line: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    match line:
        case {
            "kind": "created",
            "group": str(id_),
            "name": str(name),
            "owner": str(owner),
            "at": str(at),
            "forming": given,
        }:
            group = AgentGroup(id=id_, name=name, owner=owner, created=at)
            return [_whole(with_forming(group, structure(Forming, given)))]
    return []


def _broadcast(group: str, given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    match given:
        case {"text": str(text), "objective": str(objective)}:
            known = {name: value for name, value in given.items() if name != "ends"}
            known |= {"type": "broadcast", "group": group, "text": unstructure(StoredText.of(""))}
            known["objective"] = objective[:OBJECTIVE_CHARS]
            return [_whole(structure(GroupBroadcast, known), text=text)]
    return []


def _of_group(line: Mapping[str, Any], document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    group = structure(AgentGroup, document)
    match line:
        case {"kind": "broadcast", "broadcast": dict(given)}:
            return _broadcast(group.id, given)
        case {"kind": "forming", "forming": given}:
            group = with_forming(group, structure(Forming, given))
        case {"kind": "formed", "id": str(id_), "members": [*given]}:
            group = formed(group, id_, [structure(GroupSession, each) for each in given])
        case {"kind": "unformed", "id": str(id_)}:
            group = formed(group, id_, [])
        case {"kind": "renamed", "name": str(name)}:
            group = renamed(group, name)
        case {"kind": "dissolving" | "dissolved" as phase}:
            group = attrs.evolve(group, phase=phase)
        case _:
            return []
    return [_whole(group)]


def _of_broadcast(
    line: Mapping[str, Any], broadcast: Mapping[str, Any], rows: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    match line:
        case {"kind": "ended", "member": str(member), "end": dict(given)}:
            return _ends([member], given, broadcast, rows)
        case {"kind": "cancelled", "members": [*members], "end": dict(given)}:
            return _ends(members, given, broadcast, rows)
        case {"kind": "withdrawn", "member": str(member)}:
            id_ = end_id(broadcast["id"], member)
            return [{"id": id_, "set": {"is_withdrawn": True}}] if id_ in rows else []
        case {"kind": "notified"}:
            return [{"id": broadcast["id"], "set": {"is_notified": True}}]
    return []


def _ends(
    members: Sequence[Any],
    given: Mapping[str, Any],
    broadcast: Mapping[str, Any],
    rows: Mapping[str, Any],
) -> list[Mapping[str, Any]]:
    """Return the lines with the same end of those of several members that have none yet."""
    text = given.get("text") or ""
    known = {name: value for name, value in given.items() if name != "text"}
    known |= {"type": "end", "broadcast": broadcast["id"]}
    ids = {each: end_id(broadcast["id"], each) for each in broadcast["members"]}
    number = 1 + sum(each in rows for each in ids.values())
    found: list[Mapping[str, Any]] = []
    for session in members:
        if isinstance(text, str) and session in ids and ids[session] not in rows:
            own = {"id": ids[session], "session": session, "number": number + len(found)}
            more = {"text": text} if text else {}
            found.append(_whole(structure(BroadcastEnd, {**known, **own}), **more))
    return found


def _whole(row: GroupRow, **more: str) -> Mapping[str, Any]:
    """Return the line with all fields of a row, of which some are ``more``."""
    document: dict[str, Any] = unstructure(row)
    del document["id"]
    return {"id": row.id, "set": {**document, **more}}
