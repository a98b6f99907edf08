"""``Group``: one group as it is stored, with its members and broadcasts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from aegis.turns.watch import TurnEnd, TurnOutcome

MAX_REPLY_CHARS = 50_000
"""The longest reply that is kept; the transcript of the member has all of it."""

MAX_BROADCASTS = 50
MAX_KEPT_CHARS = 2 * 1024 * 1024
"""Broadcasts of a group that are kept in memory, and the size of their texts, but always one."""

Phase = Literal["open", "dissolving", "dissolved"]


@attrs.frozen(kw_only=True)
class Member:
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
    members: tuple[Member, ...]
    by: str | None


@attrs.frozen(kw_only=True)
class End:
    """The end of one member's part in a broadcast; ``at`` is UTC, ISO 8601 with ``Z``.

    ``seq`` is the entry of its transcript. ``is_dropped``: the group awaits it no more.
    ``is_withdrawn``: the member has been notified of that, or need not be.
    """

    end: TurnEnd
    at: str
    text: str = attrs.field(default="", repr=False)
    reason: str = ""
    seq: int = 0
    is_cut: bool = False
    is_dropped: bool = False
    is_withdrawn: bool = True


@attrs.frozen(kw_only=True)
class Broadcast:
    """One broadcast. ``members`` are the ids of sessions, ``ends`` their ends in their order."""

    id: str
    sender: str
    callback: bool
    key: str | None
    objective: str = attrs.field(repr=False)
    text: str = attrs.field(repr=False)
    at: str
    members: tuple[str, ...]
    ends: Mapping[str, End] = attrs.field(factory=dict)
    is_notified: bool = False

    @property
    def pending(self) -> list[str]:
        """The members whose replies are awaited."""
        return [each for each in self.members if each not in self.ends]

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
    def is_settled(self) -> bool:
        """Whether nothing is left to do for it."""
        is_done = self.is_notified or not self.callback
        return self.is_over and is_done and not self.to_withdraw

    @property
    def size(self) -> int:
        """The length of its texts."""
        return len(self.text) + sum(len(each.text) for each in self.ends.values())


@attrs.frozen(kw_only=True)
class Group:
    """One group. ``id`` and ``address``, its first name, never change; ``aliases`` are all others.

    ``owner`` is the sender tag of its creator. ``forming`` are by their ids, ``members`` by those
    of their sessions, ``broadcasts`` by theirs, the oldest first.
    """

    id: str
    address: str
    name: str
    owner: str
    created: str
    phase: Phase = "open"
    aliases: tuple[str, ...] = ()
    members: Mapping[str, Member] = attrs.field(factory=dict)
    forming: Mapping[str, Forming] = attrs.field(factory=dict)
    broadcasts: Mapping[str, Broadcast] = attrs.field(factory=dict)

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it is left: it was dissolved, or no member of it could be started."""
        if self.phase == "dissolved":
            return all(each.is_settled for each in self.broadcasts.values())
        return not self.members and not self.forming

    @property
    def newest(self) -> Broadcast | None:
        """The newest broadcast."""
        return [*self.broadcasts.values()][-1] if self.broadcasts else None

    @property
    def current(self) -> Broadcast | None:
        """The broadcast to which replies are awaited."""
        return None if self.newest is None or self.newest.is_over else self.newest

    @property
    def size(self) -> int:
        """The number of its members, those that are being started too."""
        return len(self.members) + sum(len(each.members) for each in self.forming.values())

    def seen(self, session: str) -> int:
        """Return the newest entry of a member's transcript that an earlier reply was read from."""
        ends = (each.ends.get(session) for each in self.broadcasts.values())
        return max((each.seq for each in ends if each is not None), default=0)

    def known(self, key: str | None, sender: str) -> Broadcast | None:
        """Return the broadcast to which the sender has given this key; None without one."""
        named = (each for each in self.broadcasts.values() if key is not None and each.key == key)
        return next((each for each in named if each.sender == sender), None)

    def kept(self) -> Group:
        """Return the group without its oldest settled broadcasts beyond the limits."""
        kept = dict(self.broadcasts)
        size = sum(each.size for each in kept.values())
        for each in [*kept.values()][:-1]:
            if len(kept) <= MAX_BROADCASTS and size <= MAX_KEPT_CHARS:
                break
            if each.is_settled:
                del kept[each.id]
                size -= each.size
        return self if len(kept) == len(self.broadcasts) else attrs.evolve(self, broadcasts=kept)


def end_of(outcome: TurnOutcome, now: str) -> End:
    """Return the end of a member's part in a broadcast, from the outcome of its turn."""
    return End(
        end=outcome.end,
        at=now,
        text=outcome.text[:MAX_REPLY_CHARS],
        reason=outcome.reason,
        seq=outcome.seq,
        is_cut=outcome.is_cut or len(outcome.text) > MAX_REPLY_CHARS,
    )
