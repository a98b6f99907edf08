"""The events of groups, and the actions that follow from them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from aegis.errors import AegisError
from aegis.groups.group import Forming, Group, Member
from aegis.journal.ledger import Append
from aegis.protocol.groups import (
    BroadcastSent,
    BroadcastToGroup,
    GroupInfo,
    GroupReplies,
    WaitForAll,
    WaitForAny,
)
from aegis.turns.watch import TurnOutcome

# Events. A ``caller`` is a number under which the actor keeps a reply. A ``group`` is an id, but
# the name of one where a client names it.


@attrs.frozen(kw_only=True)
class Loaded:
    """The groups of one ledger; ``problem`` says why it could not be read."""

    address: str
    groups: Sequence[Group] = ()
    problem: str = ""


@attrs.frozen(kw_only=True)
class Recovering:
    """The ledgers of all groups were read."""

    ledgers: Sequence[Loaded]


@attrs.frozen(kw_only=True)
class Spawning:
    """A client starts members of the group ``name``; ``id`` is that of a new group.

    ``must_be_new``: there may be no group of this name.
    """

    name: str
    id: str
    owner: str
    forming: Forming
    must_be_new: bool
    caller: int


@attrs.frozen(kw_only=True)
class Formed:
    """The sessions of new members are open; ``members`` have their handles."""

    group: str
    id: str
    members: Sequence[Member]


@attrs.frozen(kw_only=True)
class NotFormed:
    """A session could not be opened."""

    group: str
    id: str
    error: AegisError


@attrs.frozen(kw_only=True)
class Unformed:
    """The sessions of members that were not all opened are closed."""

    group: str
    id: str


@attrs.frozen(kw_only=True)
class Broadcasting:
    """A client gives the members an order; ``id`` is the id that it gets if it is new."""

    request: BroadcastToGroup
    id: str
    sender: str
    caller: int


@attrs.frozen(kw_only=True)
class Ended:
    """The outcome of a member's turn."""

    group: str
    broadcast: str
    member: str
    outcome: TurnOutcome


@attrs.frozen(kw_only=True)
class Withdrawn:
    """A member has been interrupted and notified that its reply is not awaited any more."""

    group: str
    broadcast: str
    member: str


@attrs.frozen(kw_only=True)
class Notified:
    """The sender has been notified that a broadcast is over."""

    group: str
    broadcast: str


@attrs.frozen(kw_only=True)
class Waiting:
    """A client waits for replies."""

    request: WaitForAll | WaitForAny
    caller: int


@attrs.frozen(kw_only=True)
class GivingUp:
    """The caller has waited for the replies long enough."""

    caller: int


@attrs.frozen(kw_only=True)
class Dissolving:
    """A client dissolves a group."""

    name: str
    caller: int


@attrs.frozen(kw_only=True)
class Closed:
    """The members of a group that is dissolved are closed."""

    group: str


@attrs.frozen(kw_only=True)
class Renaming:
    """A client renames a group."""

    name: str
    new_name: str
    caller: int


@attrs.frozen(kw_only=True)
class Synced:
    """The line of this number is durable."""

    number: int


@attrs.frozen(kw_only=True)
class Refused:
    """The disk refused: no line of this ledger without ``Synced`` is in it."""

    address: str
    sentence: str


@attrs.frozen(kw_only=True)
class Again:
    """It is time to write the lines that the disk refused."""


Event = (
    Recovering
    | Spawning
    | Formed
    | NotFormed
    | Unformed
    | Broadcasting
    | Ended
    | Withdrawn
    | Notified
    | Waiting
    | GivingUp
    | Dissolving
    | Closed
    | Renaming
    | Synced
    | Refused
    | Again
)


# Actions.


@attrs.frozen(kw_only=True)
class Write:
    """Append a line to the ledger of ``address``."""

    address: str
    append: Append


@attrs.frozen(kw_only=True)
class Form:
    """Open the sessions of members, if they are not; ``Formed`` or ``NotFormed`` follows."""

    group: Group
    forming: Forming


@attrs.frozen(kw_only=True)
class Unform:
    """Close the sessions of members that were not all opened; ``Unformed`` follows."""

    group: Group
    forming: Forming


@attrs.frozen(kw_only=True)
class Follow:
    """Deliver a broadcast to a member, and report the outcome of its turn: ``Ended``."""

    group: Group
    broadcast: str
    member: Member


@attrs.frozen(kw_only=True)
class Withdraw:
    """Interrupt a member whose reply is not awaited any more, and notify it; then ``Withdrawn``."""

    group: Group
    broadcast: str
    member: Member


@attrs.frozen(kw_only=True)
class Notify:
    """Notify the sender of a broadcast that it is over; ``Notified`` follows."""

    group: Group
    broadcast: str


@attrs.frozen(kw_only=True)
class Close:
    """Close all members of a group; ``Closed`` follows."""

    group: Group


@attrs.frozen(kw_only=True)
class Return:
    """Answer the caller; ``ask`` are the sessions, by handle, whose states are to be filled in."""

    caller: int
    value: GroupInfo | GroupReplies | BroadcastSent
    ask: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Fail:
    """Fail the caller's request."""

    caller: int
    error: AegisError


@attrs.frozen(kw_only=True)
class Changed:
    """A group, by its id, has changed."""

    group: str


@attrs.frozen(kw_only=True)
class Release:
    """Close a ledger: no group of it is left."""

    address: str


@attrs.frozen(kw_only=True)
class WriteAgain:
    """Send ``Again`` after a moment."""


Action = (
    Write
    | Form
    | Unform
    | Follow
    | Withdraw
    | Notify
    | Close
    | Return
    | Fail
    | Changed
    | Release
    | WriteAgain
)
