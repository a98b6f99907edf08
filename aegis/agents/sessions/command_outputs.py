"""``CommandOutputs``: the files with the output of released commands, one of each.

The transcript has only the end of a long output. A file is one line with a checksum, is not synced,
and is replaced by none after a kill in the middle. The newest ``MAX_KEPT`` of a session are kept.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.agents.drivers.terminals.run import StoredOutput
from aegis.hidden_urls import hide_session_urls
from aegis.journal.disk import Disk, make_directory, read_file, replace_file, storage_error
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import MAX_LINE_BYTES, DamagedLine, decode_line, encode_line

log = structlog.get_logger("aegis.agents")

DIRECTORY = "commands"
"""The directory of the files, in that of the session."""

SUFFIX = ".jsonl"

MAX_KEPT = 32

KEEP_S = 2.0

_NAME = re.compile(rf"term_(\d+)_(\d+){re.escape(SUFFIX)}")


class CommandOutputs:
    """The files of the session whose ``directory`` this is."""

    def __init__(self, directory: Path, flusher: Flusher) -> None:
        self._directory = directory / DIRECTORY
        self._flusher = flusher

    async def keep(self, id_: str, output: StoredOutput) -> None:
        """Store the output of the command ``id_``. If the disk refuses, it is lost and logged.

        A disk that stalls longer than ``KEEP_S`` may store it later.
        """
        hidden = attrs.evolve(output, output=hide_session_urls(output.output))
        line = encode_line(unstructure(hidden))
        keep = partial(_keep, self._flusher.disk, self._path(id_), line)
        try:
            with trio.move_on_after(KEEP_S):  # a release is answered within seconds
                await self._flusher.look(keep)
        except OSError as error:
            why = str(storage_error("write", self._path(id_), error))
            log.warning("output of a command not stored", command=id_, why=why)

    async def read(self, id_: str) -> StoredOutput | None:
        """Return the output of a released command; None if it is not kept.

        Raises ``StorageError``.
        """
        try:
            return await self._flusher.look(partial(_read, self._flusher.disk, self._path(id_)))
        except OSError as error:
            raise storage_error("read", self._path(id_), error) from error

    def _path(self, id_: str) -> Path:
        return self._directory / f"{id_}{SUFFIX}"


def _keep(disk: Disk, path: Path, line: bytes) -> None:
    make_directory(disk, path.parent, durable=False)
    replace_file(disk, path, [line], durable=False)
    kept = sorted(filter(None, map(_number, disk.list_directory(path.parent))))
    for _, _, name in kept[:-MAX_KEPT]:
        disk.unlink(path.parent / name)


def delete_unfinished(disk: Disk, sessions: Iterable[Path]) -> None:
    """Delete outputs of which a kill has left a part, as far as the disk permits. Blocking.

    No later output has their name, so none replaces them. ``sessions`` are the directories of
    sessions, which store nothing meanwhile.
    """
    for directory in sessions:
        with contextlib.suppress(OSError):  # most have no command, and so no directory of them
            for name in disk.list_directory(directory / DIRECTORY):
                if name.endswith(f"{SUFFIX}.new"):
                    disk.unlink(directory / DIRECTORY / name)


def _number(name: str) -> tuple[int, int, str] | None:
    found = _NAME.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2]), name)


def _read(disk: Disk, path: Path) -> StoredOutput | None:
    data = read_file(disk, path, max_bytes=MAX_LINE_BYTES)
    if data is None:
        return None
    try:
        fields: dict[str, Any] = decode_line(data)
        return structure(StoredOutput, fields)
    except (DamagedLine, CodecError):
        return None
