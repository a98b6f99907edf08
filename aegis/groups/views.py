"""Groups and replies as clients see them, and the sentences of refusals. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import attrs

from aegis.errors import Busy, InvalidRequest, NotFound, Unavailable
from aegis.groups.rows import AgentGroup, BroadcastEnd, BroadcastProgress
from aegis.names import did_you_mean, shorten
from aegis.protocol.command import fitting, json_size
from aegis.protocol.groups import (
    BroadcastInfo,
    GroupInfo,
    GroupMember,
    GroupOrder,
    GroupReplies,
    MemberReply,
    Reducer,
    RepliesMetadata,
    ReplyStatus,
)

REPLIES_BYTES = 150_000
"""The size, as JSON, of all replies in one answer, and again of the text made from them."""

ORDER_BYTES = 16_000
"""The size, as JSON, of all replies to one order in a list of orders."""

REASON_CHARS = 500

NAMED = 5
"""Members that a sentence names."""

MAX_KNOWN = 20
"""Groups that a sentence names."""

Shown = Callable[[str], str]
"""Returns the current handle of a session, by its first one."""


# Groups.


def group_info(group: AgentGroup, newest: BroadcastProgress | None, shown: Shown) -> GroupInfo:
    """Return a group with its newest broadcast, without the states of its sessions."""
    members = [
        GroupMember(handle=shown(each.handle), profile=each.profile)
        for each in group.members.values()
    ]
    return GroupInfo(
        group=group.name,
        id=group.id,
        owner=_shown_tag(group.owner, shown),
        created=group.created,
        state=group.phase,
        members=members,
        forming=sum(len(each.members) for each in group.forming.values()),
        broadcast=None if newest is None else _broadcast_info(group, newest, shown),
        aliases=[each for each in group.aliases if each != group.name],
    )


def unreadable(name: str, problem: str) -> GroupInfo:
    """Return what is shown of groups whose ledger cannot be read."""
    return GroupInfo(
        group=name, id="", owner="", created="", state="open", members=[], problem=problem
    )


def _broadcast_info(group: AgentGroup, progress: BroadcastProgress, shown: Shown) -> BroadcastInfo:
    broadcast, ends = progress.broadcast, progress.ends
    return BroadcastInfo(
        broadcast_id=broadcast.id,
        sender=_shown_tag(broadcast.sender, shown),
        at=broadcast.at,
        objective=broadcast.objective,
        is_over=progress.is_over,
        replies={
            handle: _status(ends[each]) if each in ends else "pending"
            for each, handle in handles_of(group, progress, shown).items()
        },
    )


def handles_of(group: AgentGroup, progress: BroadcastProgress, shown: Shown) -> dict[str, str]:
    """Return the current handles of the members of a broadcast, by their sessions."""
    return {each: shown(group.members[each].handle) for each in progress.broadcast.members}


def _status(end: BroadcastEnd) -> ReplyStatus:
    return "replied" if end.end == "completed" else end.end


def _shown_tag(sender: str, shown: Shown) -> str:
    kind, _, handle = sender.partition(":")
    return f"{kind}:{shown(handle)}" if kind == "agent" else sender


# Replies.


def replies(
    group: AgentGroup,
    progress: BroadcastProgress,
    texts: Sequence[str],
    shown: Shown,
    reducer: Reducer | None,
    *,
    timed_out: bool,
) -> GroupReplies:
    """Return the replies so far, whose ``texts`` are in their order.

    Without a ``reducer`` the first one is the result.
    """
    handles = handles_of(group, progress, shown)
    given = dict(zip((handles[each] for each in progress.replied), texts, strict=True))
    fit = fitted(given, REPLIES_BYTES)
    text = reduced(reducer, given) if reducer else next(iter(texts), None)
    members = _member_replies(group, progress, handles, given, fit)
    return GroupReplies(
        broadcast_id=progress.broadcast.id,
        by_member=fit,
        reduced=None if text is None else fitted({"": text}, REPLIES_BYTES)[""],
        order=[*given],
        metadata=RepliesMetadata(
            members=members, is_over=progress.is_over, timed_out=timed_out, reducer=reducer
        ),
    )


def order_of(
    group: AgentGroup, progress: BroadcastProgress, texts: Sequence[str], shown: Shown
) -> GroupOrder:
    """Return a broadcast with its replies, whose ``texts`` are in their order."""
    handles = handles_of(group, progress, shown)
    given = dict(zip((handles[each] for each in progress.replied), texts, strict=True))
    fit = fitted(given, ORDER_BYTES)
    info = _broadcast_info(group, progress, shown)
    return GroupOrder(
        broadcast_id=info.broadcast_id,
        sender=info.sender,
        at=info.at,
        objective=info.objective,
        is_over=info.is_over,
        ended=progress.ended if info.is_over else None,
        by_member=fit,
        order=[*given],
        members=_member_replies(group, progress, handles, given, fit),
        missing=[handles[each] for each in progress.pending],
    )


def _member_replies(
    group: AgentGroup,
    progress: BroadcastProgress,
    handles: Mapping[str, str],
    given: Mapping[str, str],
    fit: Mapping[str, str],
) -> dict[str, MemberReply]:
    return {
        handle: _member_reply(
            progress.ends.get(each),
            group.members[each].profile,
            is_cut=fit.get(handle) != given.get(handle),
        )
        for each, handle in handles.items()
    }


def _member_reply(end: BroadcastEnd | None, profile: str, *, is_cut: bool) -> MemberReply:
    if end is None:
        return MemberReply(status="pending", profile=profile)
    return MemberReply(
        status=_status(end),
        profile=profile,
        reason=end.reason[:REASON_CHARS],
        at=end.at,
        is_cut=is_cut or end.is_cut,
    )


def reduced(reducer: Reducer, texts: Mapping[str, str]) -> str | None:
    """Return one text made from the replies by handle, which are in their order; None of none."""
    if not texts:
        return None
    match reducer:
        case "concat":
            return "\n\n".join(texts.values())
        case "join_by_handle":
            ordered = sorted(texts, key=str.lower)
            return "\n\n".join(f"{each}:\n{texts[each]}" for each in ordered)
        case "last_wins":
            return [*texts.values()][-1]
        case "majority_vote":
            return _most_frequent([*texts.values()])


def _most_frequent(texts: Sequence[str]) -> str:
    """Return the most frequent reply; of equally frequent ones the one that came first.

    It is returned as its first sender wrote it.
    """
    votes = Counter(map(_vote, texts))
    most = max(votes.values())
    return next(each for each in texts if votes[_vote(each)] == most)


def _vote(text: str) -> str:
    """Return the text by which equal replies are found: without case and extra white space."""
    return " ".join(text.split()).casefold()


def fitted(texts: Mapping[str, str], limit: int) -> dict[str, str]:
    """Return the texts, the longest of them cut so that all together take ``limit`` bytes of JSON.

    A short text leaves its share to the others.
    """
    sizes = {name: json_size(text) for name, text in texts.items()}
    left, fits = limit, dict(texts)
    for number, name in enumerate(sorted(sizes, key=lambda each: sizes[each])):
        share = left // (len(sizes) - number)
        fits[name] = fitting(texts[name], share)
        left -= min(sizes[name], share)
    return fits


# The states of sessions, by their handles; None: it is not known.

States = Mapping[str, GroupMember | None]


def info_with(states: States, info: GroupInfo) -> GroupInfo:
    """Return a group with the states of its members."""
    members = [states.get(each.handle) or each for each in info.members]
    return attrs.evolve(info, members=members)


def replies_with(states: States, value: GroupReplies) -> GroupReplies:
    """Return replies with the states of the members that have not replied."""
    parts = {
        handle: _with_state(part, states.get(handle))
        for handle, part in value.metadata.members.items()
    }
    return attrs.evolve(value, metadata=attrs.evolve(value.metadata, members=parts))


def _with_state(part: MemberReply, member: GroupMember | None) -> MemberReply:
    if member is None:
        return part
    return attrs.evolve(part, state=member.state, reason=member.needs[:REASON_CHARS])


# Refusals.


def no_group(name: str, known: Sequence[str]) -> NotFound:
    """Return the error for a name that no group of the ``known`` ones has."""
    there = f"there are: {', '.join(sorted(known)[:MAX_KNOWN])}" if known else "there is none"
    hint = did_you_mean(name, known, there)
    return NotFound(f"there is no group {shorten(name)!r}; {hint}; aegis_group_spawn creates one")


def no_preset(name: str, known: Sequence[str]) -> NotFound:
    """Return the error for a preset that is not among the ``known`` ones."""
    hint = did_you_mean(name, known, f"there are: {', '.join(sorted(known)) or 'none'}")
    return NotFound(f"there is no preset {name!r} in groups.presets of .aegis.yaml; {hint}")


def no_broadcast(group: AgentGroup, id_: str | None) -> NotFound:
    """Return the error for a broadcast that a group has not, None for its newest."""
    if id_ is None:
        return NotFound(f"group {group.name!r} has had no broadcast; aegis_group_broadcast first")
    return NotFound(f"group {group.name!r} has no broadcast {id_}, or keeps it no more")


def is_dissolving(group: AgentGroup) -> Unavailable:
    """Return the error for a group that can be given neither members, orders nor a name."""
    return Unavailable(f"group {group.name!r} is being dissolved; choose another name, or wait")


def exists_already(group: AgentGroup) -> InvalidRequest:
    """Return the error for a group that is to be created, and exists."""
    return InvalidRequest(
        f"group {group.name!r} has {group.size} members already: add one with aegis_group_spawn, "
        "or dissolve it first with aegis_group_dissolve"
    )


def still_forming(group: AgentGroup) -> Busy:
    """Return the error for a group whose members are being started."""
    return Busy(f"members of group {group.name!r} are still being started; try again in a moment")


def in_flight(group: AgentGroup, progress: BroadcastProgress, shown: Shown) -> Busy:
    """Return the error for a group that has a broadcast already."""
    handles = handles_of(group, progress, shown)
    pending = [handles[each] for each in progress.pending]
    more = f" and {len(pending) - NAMED} others" if len(pending) > NAMED else ""
    return Busy(
        f"group {group.name!r} still waits for {', '.join(pending[:NAMED])}{more} in broadcast "
        f"{progress.broadcast.id}: wait with aegis_group_wait_all, or take the first reply and "
        "cancel the others with aegis_group_wait_any"
    )


def other_text(key: str, broadcast_id: str) -> InvalidRequest:
    """Return the error for a key that was used for another order."""
    return InvalidRequest(
        f"the key {key!r} belongs to broadcast {broadcast_id}, which has another text; choose "
        "another key"
    )
