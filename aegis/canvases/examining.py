"""Reading and exchanging the file of a canvas. Blocking: call these in a thread."""

from __future__ import annotations

from pathlib import Path

import attrs

from aegis.canvases.document import (
    EMPTY,
    MAX_FILE_BYTES,
    Document,
    NotCanvas,
    appended,
    changed_lines,
    parse,
    written,
)
from aegis.canvases.revisions import Revision, revisions_before
from aegis.errors import AegisError
from aegis.journal import shared_files
from aegis.journal.disk import Disk, storage_errors
from aegis.journal.file_content import (
    NO_FILE,
    Exchanged,
    FileContent,
    FilePlace,
    Look,
    digest_of,
)
from aegis.journal.folding import exists, lines_of
from aegis.journal.rotation import previous_of
from aegis.path_text import path_of_text
from aegis.protocol.canvases import AppendToSection, WriteSection
from aegis.state.state_files import UnsafeFile


@attrs.frozen(kw_only=True)
class Composed:
    """The file as a write would leave it; ``text`` is that of its section."""

    document: Document
    data: bytes
    digest: str
    key: str
    text: str
    added: int
    removed: int


@attrs.frozen(kw_only=True)
class FoundFile:
    """The file now. ``problem`` says why it cannot be used. ``composed``: the file with the write.

    ``swap`` is the digest of a file that an exchange left, ``swap_texts`` are its sections; None if
    that is no canvas. ``is_open``: a program may be writing to one of the two.
    """

    problem: str = ""
    is_open: bool = False
    digest: str = NO_FILE
    document: Document = EMPTY
    swap: str = NO_FILE
    swap_texts: dict[str, str] | None = None
    composed: Composed | AegisError | None = None


def examine(
    disk: Disk,
    place: FilePlace,
    write: WriteSection | AppendToSection | None,
    *,
    known_digest: str = NO_FILE,
    known: Document | None = None,
    is_unclear: bool = False,
) -> FoundFile:
    """Return the file as it is, and with the write.

    ``known`` is the content with the digest. ``is_unclear``: an exchange may not have been synced,
    so the names are synced first.
    """
    try:
        look = shared_files.look(disk, place, MAX_FILE_BYTES, durable=is_unclear)
    except FileNotFoundError:
        return FoundFile(problem="its directory does not exist: create it")
    except UnsafeFile as error:
        why = error.strerror
        return FoundFile(problem=f"{why}; put a regular file below directories in its place")
    except OSError as error:
        return FoundFile(problem=f"its file cannot be read: {error.strerror}")
    if look.file.is_open or look.swap.is_open:
        return FoundFile(is_open=True)
    is_known = known is not None and look.file.digest == known_digest
    try:
        document = known if known is not None and is_known else _document(look)
    except NotCanvas as error:
        return FoundFile(problem=str(error))
    return FoundFile(
        digest=look.file.digest,
        document=document,
        swap=look.swap.digest,
        swap_texts=_texts(look.swap),
        composed=None if write is None else _composed(document, write),
    )


def exchange(disk: Disk, place: FilePlace, data: bytes, before: str) -> Exchanged:
    """Put new content in place of that with the digest ``before``. Raises ``StorageError``."""
    with storage_errors("write", Path(place.path)):
        return shared_files.exchange(disk, place, data, before, MAX_FILE_BYTES)


def discard(disk: Disk, place: FilePlace, keep_as: str = "") -> None:
    """Remove what an exchange left, or keep it under this name. Raises ``StorageError``."""
    with storage_errors("remove what an exchange left beside", Path(place.path)):
        shared_files.discard(disk, place, path_of_text(keep_as))


def older_revisions(disk: Disk, path: Path) -> list[Revision]:
    """Return the changes in the file before the ledger ``path``, of a version before tables.

    Raises ``StorageError``.
    """
    previous = previous_of(path)
    if not exists(disk, previous):
        return []
    lines = lines_of(disk, previous, None, [], sealed_as=path)
    return revisions_before(each.fields for each in lines)


def _document(look: Look) -> Document:
    return EMPTY if look.file.data is None else parse(look.file.data)


def _texts(swap: FileContent) -> dict[str, str] | None:
    try:
        return None if swap.data is None else parse(swap.data).texts
    except NotCanvas:
        return None


def _composed(document: Document, request: WriteSection | AppendToSection) -> Composed | AegisError:
    """Return the file with the write, or why it cannot be written."""
    section = request.section
    try:
        if isinstance(request, AppendToSection):
            new = appended(document, section, request.text)
        else:
            new = written(document, section, request.content)
    except AegisError as error:
        return error
    key = document.key(section)
    before, after = document.texts.get(key, ""), new.texts.get(key, "")
    added, removed = changed_lines(before, after)
    data = new.data
    return Composed(
        document=new,
        data=data,
        digest=digest_of(data),
        key=key,
        text=after,
        added=added,
        removed=removed,
    )
