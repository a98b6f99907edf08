"""The checks of what clients ask of groups. Pure."""

from __future__ import annotations

from aegis.errors import AegisError, Busy, InvalidRequest, Unavailable
from aegis.groups.group import Broadcast, Group
from aegis.groups.views import Shown, handles_of
from aegis.path_text import is_utf8
from aegis.protocol.groups import MAX_MEMBERS, BroadcastToGroup

MAX_GROUPS = 100
"""Groups that are not dissolved."""

NAMED = 5
"""Members that a sentence names."""


def refusal_of_members(group: Group | None, groups: int, wanted: int) -> AegisError | None:
    """Return why so many members cannot be started in ``group``; None: it is new."""
    if group is None and groups >= MAX_GROUPS:
        return Unavailable(f"there are {groups} groups, which is the limit; dissolve one first")
    size = wanted if group is None else group.size + wanted
    if size > MAX_MEMBERS:
        return InvalidRequest(f"a group has at most {MAX_MEMBERS} members, not {size}")
    return None


def is_dissolving(group: Group) -> Unavailable:
    """Return the error for a group that can be given neither members, orders nor a name."""
    return Unavailable(f"group {group.name!r} is being dissolved; choose another name, or wait")


def exists_already(group: Group) -> InvalidRequest:
    """Return the error for a group that is to be created, and exists."""
    return InvalidRequest(
        f"group {group.name!r} has {group.size} members already: add one with aegis_group_spawn, "
        "or dissolve it first with aegis_group_dissolve"
    )


def refusal_of_broadcast(
    request: BroadcastToGroup, group: Group, shown: Shown
) -> AegisError | None:
    """Return why a broadcast cannot be sent now."""
    texts = (request.objective, request.output_format, request.tool_guidance, request.boundaries)
    if not request.objective.strip():
        return InvalidRequest("the objective is empty; say what the members are to do")
    if not all(map(is_utf8, (*texts, request.key or ""))):
        return InvalidRequest(
            "a text of the order is not valid Unicode; send it without surrogates"
        )
    if group.forming:
        return still_forming(group)
    if group.current is not None:
        return in_flight(group, group.current, shown)
    return None


def still_forming(group: Group) -> Busy:
    """Return the error for a group whose members are being started."""
    return Busy(f"members of group {group.name!r} are still being started; try again in a moment")


def in_flight(group: Group, broadcast: Broadcast, shown: Shown) -> Busy:
    """Return the error for a group that has a broadcast already."""
    handles = handles_of(group, broadcast, shown)
    pending = [handles[each] for each in broadcast.pending]
    more = f" and {len(pending) - NAMED} others" if len(pending) > NAMED else ""
    return Busy(
        f"group {group.name!r} still waits for {', '.join(pending[:NAMED])}{more} in broadcast "
        f"{broadcast.id}: wait with aegis_group_wait_all, or take the first reply and cancel the "
        "others with aegis_group_wait_any"
    )


def other_text(key: str, broadcast: Broadcast) -> InvalidRequest:
    """Return the error for a key that was used for another order."""
    return InvalidRequest(
        f"the key {key!r} belongs to broadcast {broadcast.id}, which has another text; choose "
        "another key"
    )
