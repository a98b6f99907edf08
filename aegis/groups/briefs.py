"""The messages of groups: to members, to losers, and to the sender of a broadcast. Pure."""

from __future__ import annotations

from aegis.clock import utc_now
from aegis.groups.group import Broadcast, End, Group, Member
from aegis.protocol.groups import BroadcastToGroup
from aegis.protocol.inboxes import MAX_BODY_CHARS, Deliver

BEGINNING = "Your last message of this turn is your reply; nobody reads your other texts."

HEAD_CHARS = 2_000
"""The part of the message to the sender that is kept for its beginning."""


def brief(request: BroadcastToGroup) -> str:
    """Return the text that the members get."""
    parts = (
        ("Objective", request.objective),
        ("Output format", request.output_format),
        ("Tools", request.tool_guidance),
        ("Boundaries", request.boundaries),
    )
    given = [f"{title}:\n{text.strip()}" for title, text in parts if text.strip()]
    return "\n\n".join([BEGINNING, *given])


def order(group: Group, broadcast: Broadcast, member: Member) -> Deliver:
    """Return the message of a broadcast to one member; its id is the same in each life."""
    return Deliver(
        handle=member.handle,
        id=f"broadcast:{broadcast.id}/{member.session}",
        sender=f"group:{group.name}/broadcast:{broadcast.id}",
        body=broadcast.text,
        timestamp=broadcast.at,
    )


def cancellation(group: Group, broadcast: Broadcast, member: Member) -> Deliver:
    """Return the message to a member whose reply is not awaited any more."""
    return Deliver(
        handle=member.handle,
        id=f"cancel:{broadcast.id}/{member.session}",
        sender=f"group:{group.name}/cancel:{broadcast.id}",
        body=(
            f"{broadcast.ends[member.session].reason}: your reply to broadcast {broadcast.id} is "
            "not awaited any more. Do not work on it; there is nothing to answer."
        ),
        timestamp=utc_now(),
    )


def result(group: Group, broadcast: Broadcast, handles: dict[str, str]) -> Deliver:
    """Return the message to the sender of a broadcast that is over.

    ``handles`` are those of the members now, by their sessions.
    """
    replied = broadcast.replied
    has_failed = [each for each, end in broadcast.ends.items() if _is_failure(end)]
    lines = [
        f"broadcast {broadcast.id} is over: {len(replied)} of {len(broadcast.members)} members "
        "have replied",
        *(f"{handles[each]}: {_loss(end)}" for each, end in _without_reply(broadcast)),
    ]
    head = "\n".join(lines)[:HEAD_CHARS]
    share = (MAX_BODY_CHARS - len(head)) // max(1, len(replied)) - HEAD_CHARS // 8
    texts = [f"{handles[each]}:\n{broadcast.ends[each].text[:share]}" for each in replied]
    return Deliver(
        handle=broadcast.sender.removeprefix("agent:"),
        id=f"broadcast:{broadcast.id}/end",
        sender=f"group:{group.name}",
        body="\n\n".join([head, *texts])[:MAX_BODY_CHARS],
        timestamp=utc_now(),
        status="error" if has_failed or not replied else "ok",
    )


def _without_reply(broadcast: Broadcast) -> list[tuple[str, End]]:
    return [(each, end) for each, end in broadcast.ends.items() if end.end != "completed"]


def _is_failure(end: End) -> bool:
    return end.end != "completed" and not end.is_dropped


def _loss(end: End) -> str:
    return f"{end.end}, {end.reason}" if end.reason else end.end
