"""Reading and writing of ``meta.json``, the settings of a canvas. Blocking: call it in a thread."""

from __future__ import annotations

from pathlib import Path

from aegis.canvases import faults
from aegis.canvases.opening import bound_of, meta_fields
from aegis.canvases.state import Bound
from aegis.errors import StorageError
from aegis.journal.disk import (
    Disk,
    make_directory,
    read_file,
    remove_tree,
    replace_file,
    shown,
    storage_error,
)
from aegis.journal.ledger import DamagedLine, decode_line, encode_line, seal_line

META = "meta.json"
LEDGER = "ledger.jsonl"

MAX_META_BYTES = 64 * 1024


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
        replace_file(disk, path, [seal_line(encode_line(meta_fields(bound)), disk.seal(path))])
    except OSError as error:
        _remove(disk, directory)
        raise storage_error("write", path, error) from error
    faults.OPEN_AFTER.hit(bound.name)


def _remove(disk: Disk, directory: Path) -> None:
    try:
        remove_tree(disk, directory)
    except OSError:
        return  # without a valid meta.json it is no canvas
