"""The evidence about canvases: writes, edits by other programs, reads, and the end. Pure."""

from __future__ import annotations

import attrs

from aegis.protocol.canvases import CanvasChange
from tests.chaos.checking.observations import UNKNOWN, Span


@attrs.frozen(kw_only=True)
class CanvasWrite:
    """A write or an append (``is_append``) of a client; ``token`` is in its text and in no other.

    ``done``: None if unknown, False if refused; ``rev`` is the revision in the answer. ``is_bound``
    says that the write names the revision that it replaces, ``if_rev``, or none for a new section.
    """

    canvas: str
    section: str
    token: str
    is_append: bool = False
    is_bound: bool = True
    if_rev: int | None = None
    done: bool | None = None
    rev: int | None = None
    span: Span = UNKNOWN


@attrs.frozen(kw_only=True)
class OutsideEdit:
    """An edit of the file by another program; ``token`` is in its text.

    Unless it ``is_synced``, a loss of power may take it, and the whole text of the file.
    """

    canvas: str
    token: str
    is_synced: bool = True
    span: Span = UNKNOWN


@attrs.frozen(kw_only=True)
class CanvasSeen:
    """A section in an answer to a read."""

    canvas: str
    section: str
    rev: int
    text: str
    span: Span = UNKNOWN


@attrs.frozen(kw_only=True)
class CanvasSubscribing:
    """A subscription of ``handle``, to one section or to all, or its end (not ``on``)."""

    canvas: str
    handle: str
    on: bool
    done: bool | None
    section: str | None = None
    span: Span = UNKNOWN

    def wants(self, section: str) -> bool:
        """Return whether a change of a section wakes the subscriber."""
        return self.on and self.section in (None, section)


@attrs.frozen(kw_only=True)
class CanvasFound:
    """A canvas at the end: all changes, the oldest first, its sections, and the text of its file.

    ``beside`` are the names of files that an exchange left beside it.
    """

    canvas: str
    changes: tuple[CanvasChange, ...]
    sections: tuple[CanvasSeen, ...]
    file: str
    beside: tuple[str, ...] = ()
    problem: str = ""


@attrs.frozen(kw_only=True)
class CanvasEvidence:
    """Everything about canvases. ``stuck`` names the requests without an answer at the end."""

    writes: tuple[CanvasWrite, ...] = ()
    edits: tuple[OutsideEdit, ...] = ()
    seen: tuple[CanvasSeen, ...] = ()
    subscribed: tuple[CanvasSubscribing, ...] = ()
    found: tuple[CanvasFound, ...] = ()
    stuck: tuple[str, ...] = ()


@attrs.define(kw_only=True)
class CanvasNotes:
    """The log of clients about canvases; the fields are those of ``CanvasEvidence``."""

    writes: list[CanvasWrite] = attrs.field(factory=list)
    edits: list[OutsideEdit] = attrs.field(factory=list)
    seen: list[CanvasSeen] = attrs.field(factory=list)
    subscribed: list[CanvasSubscribing] = attrs.field(factory=list)
    found: list[CanvasFound] = attrs.field(factory=list)
    stuck: list[str] = attrs.field(factory=list)

    def evidence(self) -> CanvasEvidence:
        """Return the log as evidence."""
        return CanvasEvidence(
            writes=tuple(self.writes),
            edits=tuple(self.edits),
            seen=tuple(self.seen),
            subscribed=tuple(self.subscribed),
            found=tuple(self.found),
            stuck=tuple(self.stuck),
        )
