"""Groups and replies as clients see them. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import attrs

from aegis.groups.group import Broadcast, End, Group
from aegis.groups.reducers import Reply, reduced
from aegis.protocol.groups import (
    BroadcastInfo,
    GroupInfo,
    GroupMember,
    GroupReplies,
    MemberReply,
    Reducer,
    RepliesMetadata,
    ReplyStatus,
)

OBJECTIVE_CHARS = 200
"""The part of an objective that is shown."""

REPLIES_BYTES = 150_000
"""The size, as JSON, of all replies in one answer, and again of the text made from them."""

REASON_CHARS = 500

Shown = Callable[[str], str]
"""Returns the current handle of a session, by its first one."""


def group_info(group: Group, shown: Shown) -> GroupInfo:
    """Return a group as clients see it, without the states of its sessions."""
    members = [
        GroupMember(handle=shown(each.handle), profile=each.profile)
        for each in group.members.values()
    ]
    newest = group.newest
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


def unreadable(address: str, problem: str) -> GroupInfo:
    """Return what is shown of groups whose ledger cannot be read."""
    return GroupInfo(
        group=address,
        id="",
        owner="",
        created="",
        state="open",
        members=[],
        problem=problem,
    )


def handles_of(group: Group, broadcast: Broadcast, shown: Shown) -> dict[str, str]:
    """Return the current handles of the members of a broadcast, by their sessions."""
    return {each: shown(group.members[each].handle) for each in broadcast.members}


def replies(
    group: Group, broadcast: Broadcast, shown: Shown, reducer: Reducer | None, *, timed_out: bool
) -> GroupReplies:
    """Return the replies so far; without a ``reducer`` the first one is the result."""
    handles = handles_of(group, broadcast, shown)
    order = [handles[each] for each in broadcast.replied]
    texts = {handles[each]: broadcast.ends[each].text for each in broadcast.replied}
    cut = fitted(texts, REPLIES_BYTES)
    given = [Reply(handle, texts[handle]) for handle in order]
    text = reduced(reducer, given) if reducer else given[0].text if given else None
    members = {
        handles[each]: member_reply(
            broadcast.ends.get(each),
            group.members[each].profile,
            is_cut=cut.get(handles[each]) != texts.get(handles[each]),
        )
        for each in broadcast.members
    }
    return GroupReplies(
        broadcast_id=broadcast.id,
        by_member=cut,
        reduced=None if text is None else fitted({"": text}, REPLIES_BYTES)[""],
        order=order,
        metadata=RepliesMetadata(
            members=members,
            is_over=broadcast.is_over,
            timed_out=timed_out,
            reducer=reducer,
        ),
    )


def member_reply(end: End | None, profile: str, *, is_cut: bool) -> MemberReply:
    """Return the part of one member in a broadcast; None: it is pending."""
    if end is None:
        return MemberReply(status="pending", profile=profile)
    return MemberReply(
        status=_status(end),
        profile=profile,
        reason=end.reason[:REASON_CHARS],
        at=end.at,
        is_cut=is_cut or end.is_cut,
    )


def fitted(texts: Mapping[str, str], limit: int) -> dict[str, str]:
    """Return the texts, the longest of them cut so that all together take ``limit`` bytes of JSON.

    A short text leaves its share to the others.
    """
    sizes = {name: _size(text) for name, text in texts.items()}
    left, fits = limit, dict(texts)
    for number, name in enumerate(sorted(sizes, key=lambda each: sizes[each])):
        share = left // (len(sizes) - number)
        if sizes[name] > share:
            fits[name] = _cut(texts[name], share)
        left -= min(sizes[name], share)
    return fits


def _cut(text: str, limit: int) -> str:
    """Return the longest beginning of a text that takes at most ``limit`` bytes of JSON."""
    least, most = 0, min(len(text), limit)
    while least < most:
        middle = (least + most + 1) // 2
        if _size(text[:middle]) <= limit:
            least = middle
        else:
            most = middle - 1
    return text[:least]


def _size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _broadcast_info(group: Group, broadcast: Broadcast, shown: Shown) -> BroadcastInfo:
    handles = handles_of(group, broadcast, shown)
    ends = broadcast.ends
    return BroadcastInfo(
        broadcast_id=broadcast.id,
        sender=_shown_tag(broadcast.sender, shown),
        at=broadcast.at,
        objective=broadcast.objective[:OBJECTIVE_CHARS],
        is_over=broadcast.is_over,
        replies={
            handles[each]: _status(ends[each]) if each in ends else "pending"
            for each in broadcast.members
        },
    )


def _status(end: End) -> ReplyStatus:
    return "replied" if end.end == "completed" else end.end


def _shown_tag(sender: str, shown: Shown) -> str:
    kind, _, handle = sender.partition(":")
    return f"{kind}:{shown(handle)}" if kind == "agent" else sender


def sessions_of(group: Group, shown: Shown) -> dict[str, str]:
    """Return the sessions of the members of a group, by their current handles."""
    return {shown(each.handle): each.session for each in group.members.values()}


States = Mapping[str, GroupMember | None]
"""The states of sessions by their handles; None: it is not known."""


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
