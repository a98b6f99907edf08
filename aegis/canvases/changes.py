"""The records of changes: of a job, and of an edit by another program. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aegis.canvases.differences import Difference
from aegis.canvases.document import plain
from aegis.canvases.events import Job, New
from aegis.canvases.state import Intent
from aegis.protocol.canvases import OUTSIDE, CanvasChange


def intended(job: Job, new: New, rev: int, before: str, time: str) -> Intent:
    """Return the intent of a job to make ``new`` of the content with the digest ``before``."""
    change = CanvasChange(
        rev=rev,
        section=new.key,
        op="written" if job.kind == "write" else "appended",
        writer=job.writer,
        added=new.added,
        removed=new.removed,
        timestamp=time,
        text=new.text if job.kind == "write" else plain(job.text),
    )
    return Intent(change=change, section_text=new.text, before=before, after=new.digest)


def outside_changes(
    found: Iterable[Difference], new_revision: Callable[[], int], time: str
) -> list[CanvasChange]:
    """Return the changes that another program made, each with a revision of its own."""
    return [
        CanvasChange(
            rev=new_revision(),
            section=each.section,
            op="removed" if each.text is None else "changed",
            writer=OUTSIDE,
            added=each.added,
            removed=each.removed,
            timestamp=time,
            text=each.text,
        )
        for each in found
    ]
