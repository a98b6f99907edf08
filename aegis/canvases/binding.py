"""The settings of a canvas, ``meta.json``, and the files that may be canvases.

Reading and writing block: call these in a thread.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from aegis.canvases import faults
from aegis.errors import AlreadyExists, Forbidden, InvalidRequest, StorageError
from aegis.journal.disk import (
    Disk,
    make_directory,
    read_file,
    remove_tree,
    replace_file,
    shown,
    storage_error,
)
from aegis.journal.file_content import FilePlace
from aegis.journal.ledger import DamagedLine, decode_line, encode_line
from aegis.names import shorten
from aegis.path_text import is_utf8, path_of_text, text_of_path
from aegis.protocol.naming import is_name

META = "meta.json"
LEDGER = "ledger.jsonl"

MAX_META_BYTES = 64 * 1024

SUFFIXES = (".md", ".markdown")

VERSION = 1

_OURS = frozenset({".aegis", ".git"})


@attrs.frozen(kw_only=True)
class Bound:
    """The settings of a canvas, which never change; ``life`` is a part of the ids of its wakes."""

    name: str
    file: str
    created_at: str
    life: str


def file_of(given: str, root: str, directories: Sequence[str]) -> str:
    """Return the file that ``given`` names, as text: relative to the root, else absolute.

    It may be below ``root``, and below ``directories``. Raises ``InvalidRequest``.
    """
    shown = shorten(given)
    if not given or "\0" in given or not is_utf8(given):
        raise InvalidRequest(f"the file {shown!r} is no path; give one such as notes/plan.md")
    path = posixpath.normpath(posixpath.join(root, path_of_text(given)))
    base = base_of(path, root, directories)
    if base is None:
        raise InvalidRequest(
            f"the file {shown!r} is not below the project's root, {text_of_path(root)}; choose one "
            "that is, or have a person add its directory to canvases.directories in .aegis.yaml"
        )
    below = path[len(base) :].strip("/")
    if not _OURS.isdisjoint(below.split("/")):
        raise InvalidRequest(f"the file {shown!r} is in a directory of a program; choose another")
    if not below.lower().endswith(SUFFIXES):
        raise InvalidRequest(f"the file {shown!r} is no markdown file; its name must end with .md")
    return text_of_path(below if base == root else path)


def place_of(bound: Bound, root: str, directories: Sequence[str]) -> FilePlace:
    """Return the place of a canvas's file. Raises ``Forbidden`` if it is not allowed any more."""
    path = posixpath.join(root, path_of_text(bound.file))
    base = base_of(path, root, directories)
    if base is None:
        raise Forbidden("its directory is not in canvases.directories any more")
    return FilePlace(base, path[len(base) :].strip("/"), f".aegis-canvas-{bound.life}")


def base_of(path: str, root: str, directories: Sequence[str]) -> str | None:
    """Return the directory that a file is below; None if it may be no canvas."""
    for base in (root, *directories):
        if path.startswith(f"{base.rstrip('/')}/"):
            return base
    return None


def bound_elsewhere(name: str, file: str) -> AlreadyExists:
    """Return the error for a canvas that has another file."""
    return AlreadyExists(
        f"canvas {name!r} is bound to {shorten(file)!r} for good; choose another name, or leave "
        "the file out"
    )


def bound_already(name: str, file: str) -> AlreadyExists:
    """Return the error for a file that is another canvas."""
    return AlreadyExists(f"the file {shorten(file)!r} is canvas {name!r} already; open that one")


def meta_fields(bound: Bound) -> dict[str, object]:
    """Return the fields of ``meta.json``."""
    return {
        "version": VERSION,
        "name": bound.name,
        "file": bound.file,
        "created_at": bound.created_at,
        "life": bound.life,
    }


def bound_of(fields: Mapping[str, Any]) -> Bound | None:
    """Return the settings in the fields; None if they are of another kind."""
    match fields:
        case {
            "version": 1,
            "name": str(name),
            "file": str(file),
            "created_at": str(created),
            "life": str(life),
        } if is_name(name) and life.isalnum():
            return Bound(name=name, file=file, created_at=created, life=life)
    return None


def load_bound(disk: Disk, directory: Path) -> Bound | None:
    """Return the settings in the directory; None if it has none. Raises ``StorageError``."""
    path = directory / META
    try:
        data = read_file(disk, path, max_bytes=MAX_META_BYTES)
        fields = None if data is None else decode_line(data, disk.seal(path))
    except OSError as error:
        raise storage_error("read", path, error) from error
    except DamagedLine as damage:
        raise StorageError(
            f"{shown(path)} is damaged ({damage}): restore it from a backup, or move the directory "
            "away and open the canvas again"
        ) from None
    return None if fields is None else bound_of(fields)


def save_bound(disk: Disk, directory: Path, bound: Bound) -> None:
    """Write the settings of a new canvas, durably. Raises ``StorageError``, with nothing left."""
    path = directory / META
    try:
        faults.OPEN_BEFORE.hit(bound.name)
        make_directory(disk, directory)
        replace_file(disk, path, [encode_line(meta_fields(bound), disk.seal(path))])
    except OSError as error:
        _remove(disk, directory)
        raise storage_error("write", path, error) from error
    faults.OPEN_AFTER.hit(bound.name)


def _remove(disk: Disk, directory: Path) -> None:
    try:
        remove_tree(disk, directory)
    except OSError:
        return  # without a valid meta.json it is no canvas
