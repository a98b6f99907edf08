"""Canvases: markdown files that several write, section by section, and the commands on them."""

from __future__ import annotations

from typing import Literal

import attrs

from aegis.path_text import MAX_PATH_CHARS
from aegis.protocol.command import Command, at_most_chars, between, described, matching
from aegis.protocol.inboxes import MAX_BODY_CHARS
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE

CanvasOp = Literal["written", "appended", "changed", "removed"]
"""The kind of a change of a section. ``changed`` and ``removed``: in the file, by a program."""

SECTION_PATTERN = r"\S|\S[^\x00-\x1f\x7f-\x9f\u2028\u2029]{0,198}\S"
SECTION_RULE = "the text of a '## ' heading: 1 to 200 characters on one line, without ## itself"
MAX_SECTION_NAMES = 100
MAX_REVISION = 2**53

OUTSIDE = "outside"
"""The writer of a change that another program made in the file."""

_NAME = described("A canvas of aegis_canvas_list.", "Its name.", pattern=f"^{NAME_PATTERN}$")
_SECTION = described(
    "The text of a '## ' heading. _preamble: what is before the first; body: all without one.",
    "The text of a '## ' heading; _preamble: before the first; body: all without one.",
    pattern=f"^({SECTION_PATTERN})$",
)


@attrs.frozen(kw_only=True)
class CanvasInfo:
    """A canvas: its file, below the project's root unless it is absolute, and its sections.

    ``rev`` counts the changes. ``problem`` says why the file cannot be used now. ``last`` is the
    newest change.
    """

    name: str
    file: str
    sections: list[str]
    created_at: str
    rev: int
    subscribers: list[str]
    problem: str = ""
    last: CanvasChange | None = None


@attrs.frozen(kw_only=True)
class CanvasChange:
    """A change of a section: ``rev`` is its number, ``writer`` is ``agent:alice`` or ``outside``.

    ``text`` is the new text of the section, or what was appended; null: it is gone. ``displaced``:
    a text that another program wrote at the same moment, and that is not in the file.
    """

    rev: int
    section: str
    op: CanvasOp
    writer: str
    added: int
    removed: int
    timestamp: str
    text: str | None
    displaced: bool = False


@attrs.frozen(kw_only=True)
class CanvasSection:
    """A section: its text, the ``rev`` of its last change, and who wrote that.

    ``more``: the text is cut, as the reply would be too large.
    """

    section: str
    text: str
    rev: int
    writer: str
    more: bool = False


@attrs.frozen(kw_only=True)
class CanvasText:
    """The sections of a canvas. ``rev`` is that of its newest change."""

    canvas: str
    file: str
    rev: int
    sections: list[CanvasSection]


@attrs.frozen(kw_only=True)
class CanvasWritten:
    """A change that is in the file; ``added`` and ``removed`` count lines."""

    ok: bool
    canvas: str
    section: str
    op: CanvasOp
    writer: str
    rev: int
    added: int
    removed: int
    timestamp: str


@attrs.frozen(kw_only=True)
class CanvasSubscription:
    """A subscription to a canvas; ``sections`` are all if null."""

    ok: bool
    canvas: str
    subscribed: bool
    sections: list[str] | None


@attrs.frozen(kw_only=True)
class CanvasList:
    """Canvases, in the order of their names."""

    result: list[CanvasInfo]


@attrs.frozen(kw_only=True)
class CanvasHistory:
    """Changes, the newest first; ``more``: there are older ones, before the rev ``before``.

    Then ``result`` may be shorter than its limit, or empty: the archive was read for a while.
    ``gone``: older ones were deleted, as the archive has a limit.
    """

    canvas: str
    result: list[CanvasChange]
    more: bool = False
    before: int | None = None
    gone: bool = False


@attrs.frozen(kw_only=True)
class OpenCanvas(Command[CanvasInfo]):
    """Open a canvas: a markdown file that you and others write section by section.

    The first call names its file, which is created with the first section if it is missing. Later
    calls need no file: a canvas keeps it.
    """

    name: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(f"Its name: {NAME_RULE}.", "Its name.", pattern=f"^{NAME_PATTERN}$"),
    )
    file: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_PATH_CHARS),
        metadata=described("Its .md file, relative to the project's root."),
    )


@attrs.frozen(kw_only=True)
class ReadCanvas(Command[CanvasText]):
    """Return the sections of a canvas, or one, with the rev that replacing it needs."""

    name: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_NAME)
    section: str | None = attrs.field(
        default=None, validator=matching(SECTION_PATTERN, SECTION_RULE), metadata=_SECTION
    )


@attrs.frozen(kw_only=True)
class WriteSection(Command[CanvasWritten]):
    """Add a section to a canvas, or replace its text if you pass the rev that you read.

    If another has written it since, nothing is written and you get the newer text.
    """

    name: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_NAME)
    section: str = attrs.field(validator=matching(SECTION_PATTERN, SECTION_RULE), metadata=_SECTION)
    content: str = attrs.field(
        validator=at_most_chars(MAX_BODY_CHARS),
        metadata=described(
            "The text under the heading, without '## ' lines.", "Without '## ' lines."
        ),
    )
    if_rev: int | None = attrs.field(
        default=None,
        validator=between(0, MAX_REVISION, "(a rev)"),
        metadata=described(
            "The section's rev that you read; a new section needs none.",
            "The rev that you read.",
            minimum=0,
        ),
    )
    force: bool = attrs.field(
        default=False,
        metadata=described(
            "True: replace the section, whichever revision it has.", "Replace any rev."
        ),
    )


@attrs.frozen(kw_only=True)
class AppendToSection(Command[CanvasWritten]):
    """Append lines to a section of a canvas, which is added if it is new. Needs no rev."""

    name: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_NAME)
    section: str = attrs.field(validator=matching(SECTION_PATTERN, SECTION_RULE), metadata=_SECTION)
    text: str = attrs.field(
        validator=at_most_chars(MAX_BODY_CHARS),
        metadata=described("The lines, without '## ' lines."),
    )


@attrs.frozen(kw_only=True)
class SubscribeCanvas(Command[CanvasSubscription]):
    """Be woken by each change of a canvas that is not your own."""

    name: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_NAME)
    sections: list[str] | None = attrs.field(
        default=None, metadata=described("Only these sections; default: all.")
    )


@attrs.frozen(kw_only=True)
class UnsubscribeCanvas(Command[CanvasSubscription]):
    """Be woken no more by a canvas."""

    name: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_NAME)


@attrs.frozen(kw_only=True)
class ListCanvases(Command[CanvasList]):
    """List the canvases of the project with their files and sections."""


@attrs.frozen(kw_only=True)
class GetCanvasHistory(Command[CanvasHistory]):
    """Return the newest changes of a canvas or of one section, with their texts and writers."""

    name: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_NAME)
    section: str | None = attrs.field(
        default=None, validator=matching(SECTION_PATTERN, SECTION_RULE), metadata=_SECTION
    )
    limit: int = attrs.field(
        default=20,
        validator=between(1, 1000, "changes"),
        metadata=described("Maximum number of changes.", minimum=1, maximum=1000),
    )
    before: int | None = attrs.field(
        default=None,
        validator=between(1, MAX_REVISION, "(a rev)"),
        metadata=described("Only changes before this rev.", minimum=1),
    )
