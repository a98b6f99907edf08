"""The views of a canvas that clients get, the refusals of writes, and the text of a wake. Pure.

The header line of a wake (sender and time) is rendered by the inbox. No line of it holds control
characters, line separators or bidirectional overrides: the text of a section must not rewrite the
message around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from aegis.canvases.document import BODY, EMPTY, PREAMBLE, Document
from aegis.canvases.revisions import Known, Revision
from aegis.errors import AegisError, Busy, InvalidRequest, NotFound
from aegis.names import did_you_mean, shorten
from aegis.protocol.canvases import (
    OUTSIDE,
    AppendToSection,
    CanvasChange,
    CanvasSection,
    CanvasText,
    CanvasWritten,
    WriteSection,
)
from aegis.protocol.command import MAX_REPLY_BYTES, fitting, json_size
from aegis.shown_text import shortened

MAX_TEXT_BYTES = MAX_REPLY_BYTES - 80 * 1024
"""The size of all texts in one reply, as JSON; the rest is room for names."""

MAX_NEWER_CHARS = 4_000
"""The part of a newer text that is in the refusal of a stale write."""

MAX_LINES = 6
MAX_LINE_CHARS = 200
MAX_SECTIONS = 5
MAX_NAMED = 20
"""The sections of one save whose texts are shown, and those beyond that are named."""
MAX_EXCERPT_CHARS = 4 * MAX_LINES * MAX_LINE_CHARS

_TAB_STOP = 8
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def text_of(
    canvas: str, file: str, known: Known, document: Document, section: str | None
) -> CanvasText:
    """Return the texts of all sections or of one. Raises ``NotFound``."""
    names = document.names
    if section is not None:
        key = document.key(section)
        shown = document.shown(key)
        if shown not in names and key not in document.texts:
            raise _unknown_section(canvas, section, names)
        names = [shown]
    room = MAX_TEXT_BYTES
    found = []
    for name in dict.fromkeys(names):
        key = document.key(name)
        text = document.texts.get(key, "")
        fit = fitting(text, room)
        room -= json_size(fit)
        newest = known.sections.get(key)
        found.append(
            CanvasSection(
                section=name,
                text=fit,
                rev=0 if newest is None else newest.number,
                writer="" if newest is None else newest.writer,
                more=fit != text,
            )
        )
    return CanvasText(canvas=canvas, file=file, rev=known.recorded, sections=found)


def _unknown_section(canvas: str, section: str, names: list[str]) -> NotFound:
    hint = did_you_mean(section, names, _all_of(names))
    return NotFound(f"canvas {canvas!r} has no section {shorten(section)!r}; {hint}")


def _all_of(names: list[str]) -> str:
    shown = ", ".join(shorten(each, 40) for each in names[:10])
    return f"it has {shown}{', …' if len(names) > 10 else ''}"


def change_of(revision: Revision, text: str | None, document: Document | None) -> CanvasChange:
    """Return a revision as clients see it, with this text."""
    return CanvasChange(
        rev=revision.number,
        section=shown_name(document, revision.section),
        op=revision.op,
        writer=revision.writer,
        added=revision.added,
        removed=revision.removed,
        timestamp=revision.timestamp,
        text=text,
        displaced=revision.is_displaced,
    )


def written(canvas: str, revision: Revision, document: Document | None) -> CanvasWritten:
    """Return the reply to the writer of a revision."""
    return CanvasWritten(
        ok=True,
        canvas=canvas,
        section=shown_name(document, revision.section),
        op=revision.op,
        writer=revision.writer,
        rev=revision.number,
        added=revision.added,
        removed=revision.removed,
        timestamp=revision.timestamp,
    )


def refusal(
    canvas: str, request: WriteSection | AppendToSection, known: Revision | None, text: str
) -> AegisError | None:
    """Return why a write is refused for what others wrote; None if it is not.

    ``known`` is the newest change of the section, ``text`` is what it has now.
    """
    if isinstance(request, AppendToSection) or request.force:
        return None
    name, if_rev = shorten(request.section), request.if_rev
    if known is None:
        if if_rev is None or if_rev == 0:
            return None
        return NotFound(
            f"canvas {canvas!r} has no section {name!r} any more; write it without if_rev to add it"
        )
    if if_rev == known.number or (known.section == PREAMBLE and not text):
        return None
    # On one line, as every error is.
    newer = json.dumps(shortened(text, MAX_NEWER_CHARS), ensure_ascii=False)
    where, rev = f"section {name!r} of canvas {canvas!r}", known.number
    if if_rev is None:
        return InvalidRequest(
            f"{where} exists, at rev {rev} by {known.writer}: pass if_rev={rev} to "
            f"replace its text, which is now {newer}"
        )
    return Busy(
        f"{where} was written by {known.writer} since: it is at rev {rev}, not {if_rev}; "
        f"pass if_rev={rev} to replace its text, which is now {newer}"
    )


def shown_name(document: Document | None, key: str) -> str:
    """Return the name of a section: the text of a file without headings is ``body``."""
    is_alone = key == PREAMBLE and len((document or EMPTY).sections) == 1
    return BODY if is_alone else key


# Wakes.


def excerpt(text: str | None) -> str | None:
    """Return the part of a text that is enough for a wake."""
    if text is None:
        return None
    lines = text[:MAX_EXCERPT_CHARS].split("\n", MAX_LINES + 1)[:MAX_LINES]
    return "\n".join(line[: 2 * MAX_LINE_CHARS] for line in lines)


def wake_body(changes: Sequence[CanvasChange]) -> str:
    """Return the body of the message about the changes of one write or save."""
    blocks = [_block(each) for each in changes[:MAX_SECTIONS]]
    more = [f'"{_safe(each.section)}"' for each in changes[MAX_SECTIONS:]]
    if more:
        named = ", ".join(more[:MAX_NAMED]) + (" …" if len(more) > MAX_NAMED else "")
        blocks.append(f"and {len(more)} more sections: {named}")
    return "\n\n".join(blocks)


def _block(change: CanvasChange) -> str:
    counts = f"(+{change.added} / -{change.removed} lines)"
    lines = [f'section "{_safe(change.section)}"', f"{_done_by(change)} {counts}"]
    if change.text:
        lines += ["──", *map(_safe, change.text.split("\n", MAX_LINES)[:MAX_LINES])]
    return "\n".join(lines)


def wake_id(canvas: str, life: str, rev: int, handle: str) -> str:
    """Return the id of the wake of ``handle`` about the change ``rev``; the same at each try."""
    return f"canvas:{canvas}/{life}/{rev}/{handle}"


def _done_by(change: CanvasChange) -> str:
    if change.displaced:
        return "written outside at the same moment, and not in the file: see aegis_canvas_history"
    by = change.writer if change.writer != OUTSIDE else "another program, outside"
    return f"{change.op} by {by}"


def _safe(line: str) -> str:
    line = _UNSAFE.sub(" ", line.expandtabs(_TAB_STOP))
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + "…"
