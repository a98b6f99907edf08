"""The lines of a group's ledger, and the groups that they result in. Pure.

Each line names its group by ``group``, an id: a name may be used again after a group was dissolved.

    {"kind": "created", "group": …, "name": …, "owner": …, "at": …, "forming": {…}}
    {"kind": "forming", "group": …, "forming": {…}}
    {"kind": "formed", "group": …, "id": …, "members": [{…}]}
    {"kind": "unformed", "group": …, "id": …}
    {"kind": "broadcast", "group": …, "broadcast": {…}}
    {"kind": "ended", "group": …, "id": …, "member": …, "end": {…}}
    {"kind": "cancelled", "group": …, "id": …, "members": […], "end": {…}}
    {"kind": "withdrawn", "group": …, "id": …, "member": …}
    {"kind": "notified", "group": …, "id": …}
    {"kind": "renamed", "group": …, "name": …}
    {"kind": "dissolving", "group": …}
    {"kind": "dissolved", "group": …}

Lines of other kinds, of a later version, are skipped. The first end of a member in a broadcast is
the one that counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.groups.group import Broadcast, End, Forming, Group, Member

Line = dict[str, object]


def created_line(group: Group, forming: Forming) -> Line:
    """Return the line of a new group, with the members that are being started."""
    fields = {"name": group.name, "owner": group.owner, "at": group.created}
    return {"kind": "created", "group": group.id, **fields, "forming": unstructure(forming)}


def forming_line(group: Group, forming: Forming) -> Line:
    """Return the line that further members are being started."""
    return {"kind": "forming", "group": group.id, "forming": unstructure(forming)}


def formed_line(group: Group, forming: str, members: Sequence[Member]) -> Line:
    """Return the line that members have been started, with their handles."""
    shown = [unstructure(each) for each in members]
    return {"kind": "formed", "group": group.id, "id": forming, "members": shown}


def unformed_line(group: Group, forming: str) -> Line:
    """Return the line that members could not be started: those that were have been closed."""
    return {"kind": "unformed", "group": group.id, "id": forming}


def broadcast_line(group: Group, broadcast: Broadcast) -> Line:
    """Return the line of a new broadcast."""
    return {"kind": "broadcast", "group": group.id, "broadcast": unstructure(broadcast)}


def ended_line(group: Group, broadcast: str, member: str, end: End) -> Line:
    """Return the line of a reply, or of why there is none."""
    fields = {"id": broadcast, "member": member, "end": unstructure(end)}
    return {"kind": "ended", "group": group.id, **fields}


def cancelled_line(group: Group, broadcast: str, members: Sequence[str], end: End) -> Line:
    """Return the line that the replies of these members are not awaited any more."""
    fields = {"id": broadcast, "members": [*members], "end": unstructure(end)}
    return {"kind": "cancelled", "group": group.id, **fields}


def withdrawn_line(group: Group, broadcast: str, member: str) -> Line:
    """Return the line that a member has been notified that its reply is not awaited any more."""
    return {"kind": "withdrawn", "group": group.id, "id": broadcast, "member": member}


def notified_line(group: Group, broadcast: str) -> Line:
    """Return the line that the sender has been notified that a broadcast is over."""
    return {"kind": "notified", "group": group.id, "id": broadcast}


def renamed_line(group: Group, name: str) -> Line:
    """Return the line of a new name."""
    return {"kind": "renamed", "group": group.id, "name": name}


def dissolving_line(group: Group) -> Line:
    """Return the line that the members will be closed."""
    return {"kind": "dissolving", "group": group.id}


def dissolved_line(group: Group) -> Line:
    """Return the line that the members have been closed."""
    return {"kind": "dissolved", "group": group.id}


def created(line: Mapping[str, Any], address: str) -> Group | None:
    """Return the group that a line creates in the ledger of ``address``; None if it is another.

    Raises ``CodecError``.
    """
    match line:
        case {
            "kind": "created",
            "group": str(id_),
            "name": str(name),
            "owner": str(owner),
            "at": str(at),
            "forming": fields,
        }:
            forming = structure(Forming, fields)
            group = Group(id=id_, address=address, name=name, owner=owner, created=at)
            return attrs.evolve(group, forming={forming.id: forming})
    return None


def changed(group: Group, line: Mapping[str, Any]) -> Group:
    """Return the group after a line about it. Raises ``CodecError``."""
    match line:
        case {"kind": "forming", "forming": fields}:
            forming = structure(Forming, fields)
            return attrs.evolve(group, forming={**group.forming, forming.id: forming})
        case {"kind": "formed", "id": str(id_), "members": [*fields]}:
            members = [structure(Member, each) for each in fields]
            known = {**group.members, **{each.session: each for each in members}}
            return attrs.evolve(group, forming=_without(group.forming, id_), members=known)
        case {"kind": "unformed", "id": str(id_)}:
            return attrs.evolve(group, forming=_without(group.forming, id_))
        case {"kind": "broadcast", "broadcast": fields}:
            broadcast = structure(Broadcast, fields)
            broadcasts = {**group.broadcasts, broadcast.id: broadcast}
            return attrs.evolve(group, broadcasts=broadcasts).kept()
        case {"kind": "renamed", "name": str(name)}:
            aliases = tuple(dict.fromkeys((*group.aliases, group.name)))
            return attrs.evolve(group, name=name, aliases=aliases)
        case {"kind": "dissolving"}:
            return attrs.evolve(group, phase="dissolving")
        case {"kind": "dissolved"}:
            return attrs.evolve(group, phase="dissolved")
        case {"id": str(id_)} if id_ in group.broadcasts:
            broadcast = _of_broadcast(group.broadcasts[id_], line)
            return attrs.evolve(group, broadcasts={**group.broadcasts, id_: broadcast})
    return group


def _of_broadcast(broadcast: Broadcast, line: Mapping[str, Any]) -> Broadcast:
    match line:
        case {"kind": "ended", "member": str(member), "end": fields}:
            return _with_ends(broadcast, [member], structure(End, fields))
        case {"kind": "cancelled", "members": [*members], "end": fields}:
            return _with_ends(broadcast, members, structure(End, fields))
        case {"kind": "withdrawn", "member": str(member)} if member in broadcast.ends:
            end = attrs.evolve(broadcast.ends[member], is_withdrawn=True)
            return attrs.evolve(broadcast, ends={**broadcast.ends, member: end})
        case {"kind": "notified"}:
            return attrs.evolve(broadcast, is_notified=True)
    return broadcast


def _with_ends(broadcast: Broadcast, members: Sequence[str], end: End) -> Broadcast:
    pending = broadcast.pending
    ends = {each: end for each in members if each in pending}
    return attrs.evolve(broadcast, ends={**broadcast.ends, **ends})


def _without(forming: Mapping[str, Forming], id_: str) -> dict[str, Forming]:
    return {key: each for key, each in forming.items() if key != id_}


class Fold:
    """The groups that the lines so far of the ledger of ``address`` result in, by their ids."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._groups: dict[str, Group] = {}
        self.skipped = 0

    @property
    def groups(self) -> dict[str, Group]:
        """The groups of which something is left."""
        return {id_: each for id_, each in self._groups.items() if not each.is_gone}

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply the next line."""
        try:
            self._apply(line)
        except CodecError:
            self.skipped += 1

    def _apply(self, line: Mapping[str, Any]) -> None:
        id_ = line.get("group")
        known = self._groups.get(id_) if isinstance(id_, str) else None
        group = created(line, self._address) if known is None else changed(known, line)
        if group is None:
            return
        self._groups[group.id] = group
        # One without members may get some: their start was written before the others' failure.
        if group.is_gone and group.phase == "dissolved":
            del self._groups[group.id]
