"""``workspace.json``: the names of the open terminals, which the next ``up`` starts again.

    {"version": 1, "terminals": ["build", "web"], "mac": "…"}

A change is acknowledged once a file that contains it is synced. Changes during a write are written
together afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import structlog
import trio

from aegis.errors import StartupError, StorageError
from aegis.journal.disk import (
    Disk,
    make_directory,
    read_file,
    replace_file,
    storage_errors,
    sync_found,
)
from aegis.journal.flusher import Flusher
from aegis.names import shorten
from aegis.protocol.naming import is_name, name_key
from aegis.state.sealing import Seal, document_fits, sealed_document
from aegis.terminals import faults
from aegis.terminals.quarantine import quarantine

log = structlog.get_logger("aegis.terminals")

WORKSPACE_VERSION = 1
MAX_WORKSPACE_BYTES = 16 * 1024 * 1024


class DamagedWorkspace(ValueError):
    """The file is damaged; the text is a short reason."""


class NewerWorkspace(ValueError):
    """The file was written by a newer version of aegis-actors; the text is that version."""


class OpenNames:
    """The names of the open terminals, in memory and on disk. For one Trio loop."""

    def __init__(
        self, path: Path, flusher: Flusher, names: Iterable[str], *, was_missing: bool = False
    ) -> None:
        self.path = path
        self.was_missing = was_missing
        """Whether there was no file when it was opened."""
        self._flusher = flusher
        self._names = {name_key(name): name for name in names}
        self._perhaps_on_disk = set(self._names)
        self._changes = 0
        self._changes_saved = 0
        self._saving = trio.Lock()

    @classmethod
    async def open(cls, path: Path, flusher: Flusher) -> OpenNames:
        """Read the file; a damaged one is quarantined.

        Raises ``StartupError`` if it cannot be read, or if a newer aegis-actors wrote it.
        """
        names = await flusher.call(partial(_load, flusher.disk, path))
        return cls(path, flusher, names or [], was_missing=names is None)

    @property
    def names(self) -> list[str]:
        """The names of the terminals that are to be open, sorted."""
        return sorted(self._names.values())

    def may_restore(self, name: str) -> bool:
        """Whether the file may name this terminal, so that the next ``up`` would start it."""
        return name_key(name) in self._names or name_key(name) in self._perhaps_on_disk

    async def add(self, name: str) -> None:
        """Add the name durably. Raises ``StorageError``: then the name is not added."""
        self._names[name_key(name)] = name
        try:
            await self._save_or_refuse()
        except StorageError:
            self._names.pop(name_key(name), None)
            raise

    async def remove(self, name: str) -> None:
        """Remove the name durably.

        Raises ``StorageError`` if the disk refuses; the next change that is saved removes it.
        """
        self._names.pop(name_key(name), None)
        if self.may_restore(name):
            await self._save_or_refuse()

    async def clear(self) -> None:
        """Remove all names durably. Raises ``StorageError``."""
        self._names.clear()
        if self._perhaps_on_disk:
            await self._save_or_refuse()

    async def _save_or_refuse(self) -> None:
        with storage_errors("write", self.path):
            await self._save()

    async def _save(self) -> None:
        """Return once a file with every change so far is synced."""
        self._changes += 1
        change = self._changes
        async with self._saving:
            if self._changes_saved < change:
                await self._write()

    async def _write(self) -> None:
        changes, names, keys = self._changes, list(self._names.values()), set(self._names)
        # Until the write has succeeded, either file may be the one on disk.
        self._perhaps_on_disk |= keys
        faults.WORKSPACE_BEFORE.hit()
        await self._flusher.call(partial(_store, self._flusher.disk, self.path, names))
        faults.WORKSPACE_AFTER.hit()
        self._perhaps_on_disk, self._changes_saved = keys, changes


def encode_workspace(names: Iterable[str], seal: Seal | None = None) -> bytes:
    """Return the content of the file."""
    document = {"version": WORKSPACE_VERSION, "terminals": sorted(names)}
    # Not indented: Python's encoder for that takes a millisecond for a thousand names.
    return (json.dumps(sealed_document(document, seal)) + "\n").encode()


def decode_workspace(data: bytes, seal: Seal | None = None) -> list[str]:
    """Return the names in the file, without invalid and repeated ones.

    Raises ``DamagedWorkspace`` or ``NewerWorkspace``.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise DamagedWorkspace("it is not JSON") from None
    version = document.get("version") if isinstance(document, dict) else None
    if type(version) is not int:
        raise DamagedWorkspace("it does not say its version")
    if version > WORKSPACE_VERSION:
        raise NewerWorkspace(str(version))
    if not document_fits(document, seal):
        raise DamagedWorkspace("it was not written by a daemon of this state")
    names = document.get("terminals")
    if not isinstance(names, list):
        raise DamagedWorkspace("it does not list terminals")
    good = [name for name in names if isinstance(name, str) and is_name(name)]
    return list({name_key(name): name for name in good}.values())


def _load(disk: Disk, path: Path) -> list[str] | None:
    """Return the names in the file; None if it does not exist."""
    try:
        data = read_file(disk, path, max_bytes=MAX_WORKSPACE_BYTES)
        if data is None:
            return None
        sync_found(disk, path)
        try:
            return decode_workspace(data, disk.seal(path))
        except DamagedWorkspace as damage:
            quarantine(disk, path, data, str(damage))
            return []
    except NewerWorkspace as newer:
        raise StartupError(
            f"{path} is of version {shorten(str(newer), 20)}, made by a newer aegis-actors: "
            "upgrade this one"
        ) from None
    except OSError as error:
        raise StartupError(
            f"cannot read {path}: {error.strerror}; it names the terminals to start: put it right, "
            "or move it away to start with none"
        ) from error


def _store(disk: Disk, path: Path, names: Iterable[str]) -> None:
    make_directory(disk, path.parent)
    replace_file(disk, path, [encode_workspace(names, disk.seal(path))])
