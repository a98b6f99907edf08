"""Groups: committees of agent sessions, and the commands to brief them and to gather replies."""

from __future__ import annotations

from typing import Literal

import attrs

from aegis.protocol.agent_states import AgentState
from aegis.protocol.command import (
    MAX_TIMEOUT_S,
    Command,
    at_most_chars,
    between,
    described,
    matching,
)
from aegis.protocol.inboxes import MAX_KEY_CHARS
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE

Reducer = Literal["concat", "join_by_handle", "last_wins", "majority_vote"]
"""The way in which replies become one text.

``concat``: all, in the order of their arrival. ``join_by_handle``: all, in the order of the
handles, each below its handle. ``last_wins``: the last. ``majority_vote``: the most frequent one,
apart from case and white space; of equally frequent ones the one that came first.
"""

ReplyStatus = Literal["pending", "replied", "failed", "interrupted", "cancelled", "limited", "lost"]
"""The status of a member in a broadcast.

``failed``, ``interrupted``, ``limited``: its turn ended without a reply. ``cancelled``: it was not
awaited any more. ``lost``: its session is closed, or cannot be used.
"""

BROADCAST_PATTERN = r"[0-9A-HJKMNP-TV-Z]{26}"
BROADCAST_RULE = "a broadcast_id from aegis_group_broadcast: 26 digits and capital letters"

MAX_OBJECTIVE_CHARS = 200_000
MAX_PART_CHARS = 20_000
MAX_MEMBERS = 32
WAIT_S = 50.0

_GROUP = described("The group's name.", pattern=f"^{NAME_PATTERN}$")
_NEW_GROUP = described(
    f"The group's name: {NAME_RULE}.", "The group's name.", pattern=f"^{NAME_PATTERN}$"
)
_BROADCAST = described(
    "A broadcast's id; default: the newest of the group.", pattern=f"^{BROADCAST_PATTERN}$"
)


@attrs.frozen(kw_only=True)
class GroupMember:
    """A member of a group. ``state`` is that of its session; null where it was not asked for.

    ``needs`` says what a blocked or limited session waits for, or why it cannot be used.
    """

    handle: str
    profile: str
    state: AgentState | None = None
    needs: str = ""


@attrs.frozen(kw_only=True)
class BroadcastInfo:
    """A broadcast to a group; ``objective`` is its beginning.

    ``replies`` has the status of each member by its handle. ``is_over``: no reply to it is
    awaited any more.
    """

    broadcast_id: str
    sender: str
    at: str
    objective: str
    is_over: bool
    replies: dict[str, ReplyStatus]


@attrs.frozen(kw_only=True)
class GroupInfo:
    """A group. ``id`` never changes; ``aliases`` are former names.

    ``owner`` created it: ``human`` or ``agent:HANDLE``. ``forming`` sessions are being started for
    it. ``dissolving``: its members are being closed. ``broadcast`` is the newest one. ``problem``
    says why its ledger could not be read.
    """

    group: str
    id: str
    owner: str
    created: str
    state: Literal["open", "dissolving", "dissolved"]
    members: list[GroupMember]
    forming: int = 0
    broadcast: BroadcastInfo | None = None
    aliases: list[str] = attrs.field(factory=list)
    problem: str = ""


@attrs.frozen(kw_only=True)
class GroupList:
    """Groups, in the order of their names; ``more``: others were left out because of the size."""

    result: list[GroupInfo]
    more: bool = False


@attrs.frozen(kw_only=True)
class BroadcastSent:
    """A broadcast that is stored; its members get it now."""

    broadcast_id: str


@attrs.frozen(kw_only=True)
class MemberReply:
    """The part of one member in a broadcast.

    ``reason`` says why there is no reply. Of a pending member, ``state`` is that of its session,
    and ``reason`` what a blocked or limited one waits for. ``at`` is the moment of its end, UTC,
    ISO 8601 with ``Z``. ``is_cut``: the reply is longer than is shown here; the member's transcript
    has all of it.
    """

    status: ReplyStatus
    profile: str
    reason: str = ""
    state: AgentState | None = None
    at: str | None = None
    is_cut: bool = False


@attrs.frozen(kw_only=True)
class RepliesMetadata:
    """The members of a broadcast by their handles.

    ``is_over``: no reply is awaited any more. ``timed_out``: the time of the call passed before.
    ``reducer`` is the one that was used, null without one.
    """

    members: dict[str, MemberReply]
    is_over: bool
    timed_out: bool
    reducer: Reducer | None = None


@attrs.frozen(kw_only=True)
class GroupReplies:
    """The replies to one broadcast so far: the last message of each member's turn, by its handle.

    ``order`` are the handles in the order of the replies. ``reduced`` is one text, made from them;
    null before the first.
    """

    broadcast_id: str
    by_member: dict[str, str]
    reduced: str | None
    order: list[str]
    metadata: RepliesMetadata


@attrs.frozen(kw_only=True)
class GroupOrder:
    """An order that a group got by a broadcast, with the replies; ``objective`` is its beginning.

    ``by_member`` has the replies by handle, in all at most 16,000 bytes, and ``order`` the handles
    in the order of the replies. ``members`` says more of each (``is_cut`` of a reply that is longer
    than is shown here), ``missing`` are those whose replies are awaited. ``ended`` is the time of
    the last reply; null as long as one is awaited.
    """

    broadcast_id: str
    sender: str
    at: str
    objective: str
    is_over: bool
    ended: str | None
    by_member: dict[str, str]
    order: list[str]
    members: dict[str, MemberReply]
    missing: list[str]


@attrs.frozen(kw_only=True)
class GroupOrders:
    """Orders of a group, the newest first; ``more``: older ones were left out."""

    group: str
    result: list[GroupOrder]
    more: bool = False


@attrs.frozen(kw_only=True)
class SpawnIntoGroup(Command[GroupInfo]):
    """Start an agent session as a member of a group, which is created with its first member.

    Members wait for aegis_group_broadcast. They count to your limits like sessions that you spawn.
    """

    group: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_NEW_GROUP)
    profile: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described("A profile of aegis_list_agents.", pattern=f"^{NAME_PATTERN}$"),
    )
    handle: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "A new handle for it; default: a generated one.", pattern=f"^{NAME_PATTERN}$"
        ),
    )


@attrs.frozen(kw_only=True)
class SpawnMixedGroup(Command[GroupInfo]):
    """Create a group with several members at once: either all of them start, or none.

    Name the profiles, or a preset of the project's configuration.
    """

    group: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_NEW_GROUP)
    profiles: list[str] = attrs.field(
        factory=list,
        metadata=described("The profile of each member; the same one may be repeated."),
    )
    preset: str | None = attrs.field(
        default=None,
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            "A preset of groups.presets in .aegis.yaml, instead of profiles.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )


@attrs.frozen(kw_only=True)
class BroadcastToGroup(Command[BroadcastSent]):
    """Give all members of a group the same order. The reply comes at once.

    With callback you get a message when every member has replied, or will not. Wait for the replies
    with aegis_group_wait_all or aegis_group_wait_any. A group has one broadcast at a time.
    """

    group: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_GROUP)
    objective: str = attrs.field(
        validator=at_most_chars(MAX_OBJECTIVE_CHARS),
        metadata=described("The whole order: members know nothing of your conversation."),
    )
    output_format: str = attrs.field(
        default="",
        validator=at_most_chars(MAX_PART_CHARS),
        metadata=described("The form of the reply, which is a member's last message."),
    )
    tool_guidance: str = attrs.field(
        default="",
        validator=at_most_chars(MAX_PART_CHARS),
        metadata=described("The tools and sources to use."),
    )
    boundaries: str = attrs.field(
        default="",
        validator=at_most_chars(MAX_PART_CHARS),
        metadata=described("What not to do, and when to stop."),
    )
    callback: bool = attrs.field(
        default=True, metadata=described("False: no message when all have replied.")
    )
    key: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_KEY_CHARS),
        metadata=described("A name of your choice: calling again with it sends nothing again."),
    )


@attrs.frozen(kw_only=True)
class WaitForGroup(Command[GroupReplies]):
    """A wait for the replies to a broadcast."""

    group: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_GROUP)
    timeout: float = attrs.field(
        default=WAIT_S,
        validator=between(0, MAX_TIMEOUT_S, "seconds"),
        metadata=described("Seconds to wait.", minimum=0, maximum=MAX_TIMEOUT_S),
    )
    broadcast_id: str | None = attrs.field(
        default=None,
        validator=matching(BROADCAST_PATTERN, BROADCAST_RULE),
        metadata=_BROADCAST,
    )


@attrs.frozen(kw_only=True)
class WaitForAll(WaitForGroup):
    """Wait until every member has replied, or will not. You can repeat it.

    After timeout seconds you get the replies so far; metadata names those that are missing, and
    what each waits for.
    """

    reducer: Reducer = attrs.field(
        default="concat",
        metadata=described("How the replies become one text."),
    )


@attrs.frozen(kw_only=True)
class WaitForAny(WaitForGroup):
    """Wait until one member has replied. You can repeat it.

    With cancel_losers the others are not awaited any more: their turns are interrupted, and they
    get a message about it.
    """

    cancel_losers: bool = attrs.field(
        default=True, metadata=described("False: the others continue.")
    )


@attrs.frozen(kw_only=True)
class OnGroup(Command[GroupInfo]):
    """A command on one group."""

    group: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_GROUP)


@attrs.frozen(kw_only=True)
class ShowGroup(OnGroup):
    """Return a group with the states of its members and of its newest broadcast."""


@attrs.frozen(kw_only=True)
class ListGroupOrders(Command[GroupOrders]):
    """List the orders that a group got by broadcasts, the newest first, with the replies.

    Those in the archive are left out; aegis_group_wait_all returns the replies to one of them.
    """

    group: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_GROUP)
    before: str | None = attrs.field(
        default=None,
        validator=matching(BROADCAST_PATTERN, BROADCAST_RULE),
        metadata=described("Only orders before this broadcast.", pattern=f"^{BROADCAST_PATTERN}$"),
    )
    limit: int = attrs.field(
        default=10,
        validator=between(1, 100, "orders"),
        metadata=described("Maximum number of orders.", minimum=1, maximum=100),
    )


@attrs.frozen(kw_only=True)
class DissolveGroup(OnGroup):
    """End a group: its members are closed, and replies are not awaited any more.

    Their transcripts are kept.
    """


@attrs.frozen(kw_only=True)
class RenameGroup(Command[GroupInfo]):
    """Give a group another name. The old one stays an alias of it.

    Its members and its broadcasts stay as they are.
    """

    group: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_GROUP)
    new_name: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            f"Another name: {NAME_RULE}.", "Another name.", pattern=f"^{NAME_PATTERN}$"
        ),
    )


@attrs.frozen(kw_only=True)
class ListGroups(Command[GroupList]):
    """List the groups, each with its members and its newest broadcast."""
