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
    """An edit of the file by another program, which synced it; ``token`` is in its text."""

    canvas: str
    token: str
    span: Span = UNKNOWN


@attrs.frozen(kw_only=True)
class CanvasSeen:
    """A section in an answer to a read."""

    canvas: str
    section: str
    rev: int
    text: str


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
    found: tuple[CanvasFound, ...] = ()
    stuck: tuple[str, ...] = ()


@attrs.define(kw_only=True)
class CanvasNotes:
    """The log of clients about canvases; the fields are those of ``CanvasEvidence``."""

    writes: list[CanvasWrite] = attrs.field(factory=list)
    edits: list[OutsideEdit] = attrs.field(factory=list)
    seen: list[CanvasSeen] = attrs.field(factory=list)
    found: list[CanvasFound] = attrs.field(factory=list)
    stuck: list[str] = attrs.field(factory=list)

    def evidence(self) -> CanvasEvidence:
        """Return the log as evidence."""
        return CanvasEvidence(
            writes=tuple(self.writes),
            edits=tuple(self.edits),
            seen=tuple(self.seen),
            found=tuple(self.found),
            stuck=tuple(self.stuck),
        )
