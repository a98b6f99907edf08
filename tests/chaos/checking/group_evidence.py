"""The evidence about groups: broadcasts, the replies that clients got, and the end. Pure."""

from __future__ import annotations

import attrs

from tests.chaos.checking.observations import Span


@attrs.frozen(kw_only=True)
class GroupSent:
    """A broadcast of a client; ``token`` is its order, ``id`` None without an answer."""

    group: str
    token: str
    sender: str
    span: Span
    id: str | None
    key: str | None = None
    callback: bool = True


@attrs.frozen(kw_only=True)
class GroupReply:
    """A reply that a client got: the text of ``member`` to the broadcast ``id``."""

    id: str
    member: str
    text: str


@attrs.frozen(kw_only=True)
class GroupEvidence:
    """Everything about groups.

    ``members`` are the handles of all members that any answer named, and the ids of all sessions in
    the ledgers; ``open`` are the groups that are open at the end, ``dissolved`` those that a client
    asked to dissolve: another group may have the name then. ``stuck`` names what does not come to
    rest in the undisturbed last life.
    """

    sent: tuple[GroupSent, ...] = ()
    replies: tuple[GroupReply, ...] = ()
    members: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    dissolved: frozenset[str] = frozenset()
    stuck: tuple[str, ...] = ()


@attrs.define(kw_only=True)
class GroupNotes:
    """The log of clients about groups; the fields are those of ``GroupEvidence``."""

    sent: list[GroupSent] = attrs.field(factory=list)
    replies: list[GroupReply] = attrs.field(factory=list)
    members: set[str] = attrs.field(factory=set)
    open: set[str] = attrs.field(factory=set)
    dissolved: set[str] = attrs.field(factory=set)
    stuck: list[str] = attrs.field(factory=list)

    def evidence(self) -> GroupEvidence:
        """Return the log as evidence."""
        return GroupEvidence(
            sent=tuple(self.sent),
            replies=tuple(self.replies),
            members=frozenset(self.members),
            open=frozenset(self.open),
            dissolved=frozenset(self.dissolved),
            stuck=tuple(self.stuck),
        )
