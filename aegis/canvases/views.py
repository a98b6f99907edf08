"""The views of a canvas that clients get, and the refusals of writes. Pure."""

from __future__ import annotations

import json
from typing import Protocol

import attrs

from aegis.canvases.document import BODY, EMPTY, PREAMBLE, Document
from aegis.canvases.events import Job
from aegis.canvases.state import Bound, CanvasState
from aegis.errors import AegisError, Busy, InvalidRequest, NotFound
from aegis.names import nearest, shorten
from aegis.protocol.canvases import (
    CanvasChange,
    CanvasInfo,
    CanvasSection,
    CanvasSubscription,
    CanvasText,
    CanvasWritten,
)
from aegis.protocol.command import MAX_REPLY_BYTES
from aegis.shown_text import shortened

Reply = CanvasInfo | CanvasText | CanvasWritten | CanvasSubscription

MAX_TEXT_BYTES = MAX_REPLY_BYTES - 80 * 1024
"""The size of all texts in one reply, as JSON; the rest is room for names."""

MAX_NEWER_CHARS = 4_000
"""The part of a newer text that is in the refusal of a stale write."""


class View(Protocol):
    """A canvas, as the rules have it."""

    name: str
    file: str
    state: CanvasState
    document: Document | None


def info(canvas: View, bound: Bound, problem: str) -> CanvasInfo:
    """Return the canvas without its texts."""
    handles = sorted(each.handle for each in canvas.state.subscribers.values())
    names = canvas.document.names if canvas.document is not None else [*canvas.state.sections]
    last = canvas.state.last
    return CanvasInfo(
        name=canvas.name,
        file=canvas.file,
        sections=names,
        created_at=bound.created_at,
        rev=canvas.state.recorded,
        subscribers=handles,
        problem=problem,
        last=None if last is None else shown_change(canvas, last),
    )


def text_of(canvas: View, section: str | None) -> CanvasText:
    """Return the texts of all sections or of one. Raises ``NotFound``."""
    document = canvas.document or EMPTY
    names = document.names
    if section is not None:
        key = document.key(section)
        shown = document.shown(key)
        if shown not in names and key not in document.texts:
            raise unknown_section(canvas.name, section, names)
        names = [shown]
    room = MAX_TEXT_BYTES
    found = []
    for name in dict.fromkeys(names):
        key = document.key(name)
        text, is_cut = _fitting(document.texts.get(key, ""), room)
        room -= _size(text)
        known = canvas.state.sections.get(key)
        found.append(
            CanvasSection(
                section=name,
                text=text,
                rev=0 if known is None else known.rev,
                writer="" if known is None else known.writer,
                more=is_cut,
            )
        )
    return CanvasText(
        canvas=canvas.name, file=canvas.file, rev=canvas.state.recorded, sections=found
    )


def unknown_section(canvas: str, section: str, names: list[str]) -> NotFound:
    """Return the error for a section that does not exist."""
    close = nearest(section, names)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else _all_of(names)
    return NotFound(f"canvas {canvas!r} has no section {shorten(section)!r}; {hint}")


def _all_of(names: list[str]) -> str:
    shown = ", ".join(shorten(each, 40) for each in names[:10])
    return f"it has {shown}{', …' if len(names) > 10 else ''}"


def written(canvas: View, change: CanvasChange) -> CanvasWritten:
    """Return the reply to the writer of a change."""
    return CanvasWritten(
        ok=True,
        canvas=canvas.name,
        section=shown_name(canvas, change.section),
        op=change.op,
        writer=change.writer,
        rev=change.rev,
        added=change.added,
        removed=change.removed,
        timestamp=change.timestamp,
    )


def unchanged(canvas: View, job: Job, key: str, time: str) -> CanvasWritten:
    """Return the reply to a writer whose text is in the file already."""
    known = canvas.state.sections.get(key)
    return CanvasWritten(
        ok=True,
        canvas=canvas.name,
        section=shown_name(canvas, key),
        op="written" if job.kind == "write" else "appended",
        writer=job.writer,
        rev=0 if known is None else known.rev,
        added=0,
        removed=0,
        timestamp=time,
    )


def refusal(canvas: View, job: Job, key: str) -> AegisError | None:
    """Return why a write is refused for what others wrote; None if it is not."""
    if job.kind == "append" or job.force:
        return None
    known = canvas.state.sections.get(key)
    name = shorten(job.section or "")
    if known is None:
        if job.if_rev is None or job.if_rev == 0:
            return None
        return NotFound(
            f"canvas {canvas.name!r} has no section {name!r} any more; write it without if_rev to "
            "add it"
        )
    if job.if_rev == known.rev or (key == PREAMBLE and not known.text):
        return None
    # On one line, as every error is.
    newer = json.dumps(shortened(known.text, MAX_NEWER_CHARS), ensure_ascii=False)
    where = f"section {name!r} of canvas {canvas.name!r}"
    if job.if_rev is None:
        return InvalidRequest(
            f"{where} exists, at rev {known.rev} by {known.writer}: pass if_rev={known.rev} to "
            f"replace its text, which is now {newer}"
        )
    return Busy(
        f"{where} was written by {known.writer} since: it is at rev {known.rev}, not {job.if_rev}; "
        f"pass if_rev={known.rev} to replace its text, which is now {newer}"
    )


def shown_name(canvas: View, key: str) -> str:
    """Return the name of a section: the text of a file without headings is ``body``."""
    is_alone = key == PREAMBLE and len((canvas.document or EMPTY).sections) == 1
    return BODY if is_alone else key


def shown_change(canvas: View, change: CanvasChange) -> CanvasChange:
    """Return a change with the name of its section that clients see."""
    return attrs.evolve(change, section=shown_name(canvas, change.section))


def _fitting(text: str, room: int) -> tuple[str, bool]:
    """Return the beginning of ``text`` that takes at most ``room`` bytes of JSON."""
    if _size(text) <= room:
        return text, False
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _size(text[:middle]) <= room else (low, middle - 1)
    return text[:low], True


def _size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "backslashreplace"))
