"""Reading and writing of ``meta.json``, the settings with which a terminal was spawned."""

from __future__ import annotations

from pathlib import Path

import attrs

from aegis.errors import AegisError, Unavailable
from aegis.journal.disk import (
    APPEND,
    Disk,
    make_directory,
    read_file,
    remove_tree,
    replace_file,
    shown,
)
from aegis.journal.ledger import DamagedLine, decode_line, encode_line, seal_line
from aegis.path_text import path_of_text, text_of_path
from aegis.terminals.quarantine import quarantine
from aegis.terminals.settings import (
    META_VERSION,
    TerminalFiles,
    TerminalSettings,
    settings_from_meta,
)

MAX_META_BYTES = 4 * 1024 * 1024


def load_settings(
    disk: Disk, files: TerminalFiles, root: Path, earlier: tuple[str, ...] = ()
) -> TerminalSettings | None:
    """Return the settings of the terminal; None if the file is missing or damaged.

    ``earlier`` are the earlier paths of the root (``settings_from_meta``). A damaged file is
    quarantined. Raises ``Unavailable`` for a newer version, and ``OSError``.
    """
    data = read_file(disk, files.meta, max_bytes=MAX_META_BYTES)
    if data is None:
        return None
    try:
        fields = decode_line(data, disk.seal(files.meta))
    except DamagedLine as damage:
        quarantine(disk, files.meta, data, str(damage))
        return None
    version = fields.get("version")
    if type(version) is int and version > META_VERSION:
        raise Unavailable(
            f"{shown(files.meta)} is of version {version}, made by a newer aegis-actors: upgrade "
            "this one"
        )
    settings = settings_from_meta(fields, text_of_path(root), earlier)
    if settings is None:
        quarantine(disk, files.meta, data, "it does not hold the settings of a terminal")
    return settings


def saved_settings(disk: Disk, files: TerminalFiles, given: TerminalSettings) -> TerminalSettings:
    """Return ``given`` with the stored size, or unchanged if the file cannot be read."""
    try:
        saved = load_settings(disk, files, Path(path_of_text(given.root)))
    except (AegisError, OSError):
        return given
    return given if saved is None else attrs.evolve(given, rows=saved.rows, cols=saved.cols)


def save_settings(
    disk: Disk, files: TerminalFiles, settings: TerminalSettings, *, is_new: bool = False
) -> None:
    """Write ``meta.json``, durably; with an empty ledger if the terminal ``is_new``.

    Raises ``OSError``.
    """
    make_directory(disk, files.directory)
    if is_new:  # the sync of the directory that follows makes the name of the ledger durable too
        disk.close(disk.open(files.ledger, APPEND))
    replace_file(disk, files.meta, [seal_line(encode_line(settings.meta()), disk.seal(files.meta))])


def delete_unfinished(disk: Disk, files: TerminalFiles) -> None:
    """Delete the files of a new terminal if ``save_settings`` did not come to its end.

    Only an empty ledger and the settings that are not in place yet; nobody has used the terminal.
    Raises ``OSError``.
    """
    names = set(disk.list_directory(files.directory))
    made = {files.ledger.name, f"{files.meta.name}.new"}
    if names <= made and not read_file(disk, files.ledger, max_bytes=1):
        remove_tree(disk, files.directory)
