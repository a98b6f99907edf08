"""Reading and exchanging the file of a canvas. Blocking: call these in a thread."""

from __future__ import annotations

from pathlib import Path

from aegis.canvases import events as e
from aegis.canvases.differences import changed_lines, differences
from aegis.canvases.document import (
    EMPTY,
    MAX_FILE_BYTES,
    Document,
    NotCanvas,
    appended,
    parse,
    written,
)
from aegis.errors import AegisError
from aegis.journal import shared_files
from aegis.journal.disk import Disk, storage_error
from aegis.journal.file_content import FileContent, FilePlace, Look, digest_of
from aegis.path_text import path_of_text
from aegis.state.state_files import UnsafeFile

Work = e.Examine | e.Compare | e.Exchange | e.Discard


def done(disk: Disk, place: FilePlace, action: Work) -> e.Event:
    """Carry out an action; return its result."""
    match action:
        case e.Examine():
            return e.Examined(found=examine(disk, place, action))
        case e.Compare(before=before, after=after):
            return e.Compared(differences=differences(before, after))
        case e.Exchange():
            return exchange(disk, place, action)
        case e.Discard():
            return discard(disk, place, action)


def examine(disk: Disk, place: FilePlace, action: e.Examine) -> e.Found:
    """Return the file as it is, and what the job would make of it."""
    try:
        look = shared_files.look(disk, place, MAX_FILE_BYTES, durable=action.is_unclear)
        return found_in(look, action)
    except FileNotFoundError:
        return e.Found(problem="its directory does not exist: create it")
    except UnsafeFile as error:
        why = error.strerror
        return e.Found(problem=f"{why}; put a regular file below directories in its place")
    except OSError as error:
        return e.Found(problem=f"its file cannot be read: {error.strerror}")


def found_in(look: Look, action: e.Examine) -> e.Found:
    """Return what the contents mean for a canvas, and what the job would make of them. Pure."""
    if look.file.is_open or look.swap.is_open:
        return e.Found(is_open=True)
    try:
        document = _document(look.file, action)
    except NotCanvas as error:
        return e.Found(problem=str(error))
    return e.Found(
        digest=look.file.digest,
        document=document,
        swap=look.swap.digest,
        swap_texts=_texts(look.swap),
        new=_new(document, action.job),
    )


def exchange(disk: Disk, place: FilePlace, action: e.Exchange) -> e.ExchangeEnded:
    """Put the new content in place of the old."""
    try:
        outcome = shared_files.exchange(disk, place, action.data, action.expected, MAX_FILE_BYTES)
    except OSError as error:
        return e.ExchangeEnded(outcome="unclear", error=str(_refusal("write", place, error)))
    return e.ExchangeEnded(outcome=outcome)


def discard(disk: Disk, place: FilePlace, action: e.Discard) -> e.Discarded:
    """Remove what an exchange left."""
    try:
        shared_files.discard(disk, place, path_of_text(action.keep_as))
    except OSError as error:
        return e.Discarded(error=str(_refusal("remove what an exchange left beside", place, error)))
    return e.Discarded()


def _refusal(action: str, place: FilePlace, error: OSError) -> AegisError:
    return storage_error(action, Path(place.path), error)


def _document(found: FileContent, action: e.Examine) -> Document:
    if found.data is None:
        return EMPTY
    if action.document is not None and found.digest == action.digest:
        return action.document
    return parse(found.data)


def _texts(swap: FileContent) -> dict[str, str] | None:
    try:
        return None if swap.data is None else parse(swap.data).texts
    except NotCanvas:
        return None


def _new(document: Document, job: e.Job) -> e.New | AegisError | None:
    """Return the file as the job would leave it, or why it cannot."""
    if job.kind not in ("write", "append"):
        return None
    assert job.section is not None
    change = written if job.kind == "write" else appended
    try:
        new = change(document, job.section, job.text)
    except AegisError as error:
        return error
    key = document.key(job.section)
    before, after = document.texts.get(key, ""), new.texts.get(key, "")
    added, removed = changed_lines(before, after)
    data = new.data
    return e.New(
        document=new,
        data=data,
        digest=digest_of(data),
        key=key,
        text=after,
        added=added,
        removed=removed,
    )
