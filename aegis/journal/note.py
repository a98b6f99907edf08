"""A note: one small object on disk that is rewritten often, such as the current command.

A note is written from the loop and not synced, so it survives a killed process; ``sync`` makes it
survive a power loss too, and ``confirm`` does so for a note that an earlier process wrote. The two
slots of the file are written in turn, so that a write that a kill or a power loss interrupts leaves
the previous note readable. Each note has an increasing number; the valid slot with the highest
number is the note. A slot is one memory page and is written whole, so no end of an older and longer
note remains in it.

A note that is too long for a slot (a command of a megabyte) is written to a new file, and so is the
note after it: a file contains either two slots or one long note, never both. The first note of a
process, and the first note after the disk has refused an operation, go to a new file too. Until
that file is synced it is named ``<name>.next`` and the previous file is kept, because a power loss
may leave nothing of the new one; ``sync`` renames it. If both files exist, the valid note with the
highest number is used.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from aegis.journal import faults
from aegis.journal.disk import (
    Disk,
    install_file,
    make_directory,
    pwrite_all,
    read_file,
    storage_error,
    storage_errors,
)
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import (
    MAX_LINE_BYTES,
    DamagedLine,
    decode_line,
    encode_line,
)
from aegis.state.sealing import Seal

SLOT_BYTES = 4096
_EMPTY = b"\n".rjust(SLOT_BYTES)


@attrs.frozen
class _Slot:
    """A valid note; ``fields`` is ``None`` if it was cleared."""

    number: int
    fields: dict[str, Any] | None


def next_seq(
    ledger_last: int | None, note: Mapping[str, Any] | None, *, damaged_count: int = 0
) -> int:
    """Return the number of the next record: one more than the highest used number, 0 if none was.

    ``ledger_last`` is the ``seq`` of the ledger's last valid line. Each of the ``damaged_count``
    lines after it may have contained one more number, and the note contains that of the current
    command.
    """
    in_ledger = (-1 if ledger_last is None else ledger_last) + damaged_count
    in_note = note.get("seq") if note is not None else None
    return max(in_ledger, in_note if type(in_note) is int else -1) + 1


class Note:
    """The note of one terminal, or of another owner with one operation in progress at a time."""

    def __init__(self, path: Path, flusher: Flusher) -> None:
        # Not a Path: there are thousands of notes, and a Path takes as much memory as all the rest.
        self._path, self._name = str(path), path.name
        self.damaged = False
        """Whether a slot was not valid when the note was opened: its write was interrupted."""
        self._flusher = flusher
        self._disk: Disk = flusher.disk
        self._seal: Seal | None = None  # made when needed
        self._current = _Slot(0, None)
        self._number = 0
        """The highest number that a write has used, whether or not it succeeded."""
        self._fd: int | None = None
        self._slots = False
        self._keeps = False
        """Whether the named file is kept until a new one is synced, in case of a power loss."""
        self._is_aside = False
        self._renames = 0
        self._renames_synced = 0
        self._suspect = False
        self._confirmed = True
        self._closed = False

    @classmethod
    def open(cls, path: Path, flusher: Flusher) -> Note:
        """Open the note, or create an empty one. Raises ``StorageError``."""
        note = cls(path, flusher)
        with storage_errors("open", path):
            make_directory(note._disk, path.parent, durable=False)
            note._read()
        return note

    @property
    def is_blank(self) -> bool:
        """Whether no note was found, and none was written since; a cleared note is not blank."""
        return self._current.number == 0

    @property
    def path(self) -> Path:
        return Path(self._path)

    @property
    def _next(self) -> Path:
        """The path of a new file until it is synced."""
        return Path(f"{self._path}.next")

    def load(self) -> dict[str, Any] | None:
        """Return the fields as last written; ``None`` if there is no current command."""
        return self._current.fields

    def write(self, fields: Mapping[str, object]) -> None:
        """Replace the note without a sync; takes microseconds.

        Raises ``StorageError`` if the disk refuses (the previous note is then unchanged),
        ``ValueError`` or ``TypeError`` for fields that are not plain JSON.
        """
        self._put(dict(fields))

    async def write_synced(self, fields: Mapping[str, object]) -> None:
        """Replace the note durably: it is synced when this returns.

        A power loss at any moment leaves either the previous or the new note. No other write may
        run meanwhile. Raises ``StorageError``: then it is uncertain which of the two is on the
        disk.
        """
        if self.fits_in_place(fields):
            self._put(dict(fields))
            await self.sync()
        else:
            await self._replace_synced(dict(fields))

    def fits_in_place(self, fields: Mapping[str, object]) -> bool:
        """Return whether a ``write`` of ``fields`` would need no new file."""
        line = self._line(self._number + 1, dict(fields))
        return self._slots and not self._suspect and len(line) <= SLOT_BYTES

    def clear(self) -> None:
        """Record that there is no current command. Raises ``StorageError``."""
        if self._current.fields is not None:
            self._put(None)

    async def sync(self) -> None:
        """Return once the note would survive a power loss. Raises ``StorageError``.

        After a failure the next ``write`` makes a new file: the old pages may be lost.
        """
        assert not self._closed
        if self._fd is None or self._suspect:
            self._put(self._current.fields)
        try:
            await self._sync_name(await self._sync_file())
        except OSError as error:
            self._suspect = True
            raise storage_error("sync", self.path, error) from error

    async def confirm(self) -> None:
        """Return once the note that was found at the opening survives a power loss.

        Required before that note is shown to a client: an earlier process may have been killed
        between its write and its sync. Costs a sync of the file and one of its directory; nothing
        if there was no file, or after the first call. If the disk refuses a sync, the note is
        written to a new file, because a second sync of the same pages would prove nothing. No write
        may run meanwhile. Raises ``StorageError``: the note may be lost; the call may be repeated.
        """
        if self._confirmed:
            return
        if not self._suspect:
            try:
                await self._sync_found()
            except OSError:
                self._suspect = True
        if self._suspect:
            await self._replace_synced(self._current.fields)
        self._confirmed = True

    def close(self) -> None:
        """Close the file; its content remains."""
        self._closed = True
        self._close_file()

    async def _sync_file(self) -> int:
        """Sync the written data; return the number of files made so far."""
        renames = -1
        while renames != self._renames:  # otherwise another file has replaced this one
            assert self._fd is not None
            renames = self._renames
            await self._flusher.fdatasync(self._fd)
            if self._closed:  # the file of this name may now be a later one
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return renames

    async def _sync_name(self, renames: int) -> None:
        if self._is_aside:
            self._disk.rename(self._next, self.path)
            self._is_aside = False
        self._keeps = True
        if renames > self._renames_synced:
            await self._flusher.sync_directory(self.path.parent)
            self._renames_synced = renames

    async def _sync_found(self) -> None:
        fd = self._disk.open(self.path, os.O_RDONLY)
        try:
            await self._flusher.fdatasync(fd)
        finally:
            self._disk.close(fd)
        await self._flusher.sync_directory(self.path.parent)

    def _put(self, fields: dict[str, Any] | None) -> None:
        assert not self._closed
        slot = self._new_slot(fields)
        line = self._line(slot.number, fields)
        try:
            faults.NOTE_BEFORE.hit(self._name)
            if self._slots and not self._suspect and len(line) <= SLOT_BYTES:
                assert self._fd is not None
                offset = slot.number % 2 * SLOT_BYTES
                pwrite_all(self._disk, self._fd, _padded(line), offset)
            else:
                self._replace(slot.number, line)
            faults.NOTE_AFTER.hit(self._name)
        except OSError as error:
            self._suspect = True
            raise storage_error("write", self.path, error) from error
        self._current = slot

    async def _replace_synced(self, fields: dict[str, Any] | None) -> None:
        """Write a new file in a thread: it must be synced before it replaces the named file."""
        assert not self._closed
        slot = self._new_slot(fields)
        line = self._line(slot.number, fields)
        install = partial(
            install_file, self._disk, self.path, _content(slot.number, line), durable=True
        )
        try:
            faults.NOTE_BEFORE.hit(self._name)
            self._adopt(await self._flusher.call(install), line)
            self._keeps = True
            await self._flusher.sync_directory(self.path.parent)
            self._discard_next()
            faults.NOTE_AFTER.hit(self._name)
        except OSError as error:
            self._suspect = True
            raise storage_error("write", self.path, error) from error
        self._renames_synced = self._renames
        self._current = slot

    def _new_slot(self, fields: dict[str, Any] | None) -> _Slot:
        # A failed write may have reached the disk nevertheless. A later one with the same
        # number could not be distinguished from it, and the older of the two might be read.
        self._number += 1
        return _Slot(self._number, fields)

    def _line(self, number: int, fields: dict[str, Any] | None) -> bytes:
        if self._seal is None:
            self._seal = self._disk.seal(self.path)
        return encode_line({"number": number, "fields": fields}, self._seal)

    def _discard_next(self) -> None:
        if self._is_aside:
            self._is_aside = False
            with contextlib.suppress(OSError):  # its number is lower
                self._disk.unlink(self._next)

    def _replace(self, number: int, line: bytes) -> None:
        place = self._next if self._keeps else self.path
        self._adopt(install_file(self._disk, place, _content(number, line)), line)
        self._is_aside = self._keeps

    def _adopt(self, fd: int, line: bytes) -> None:
        """Use the new file, or close it if the note was closed while it was written."""
        self._close_file()
        self._fd, self._slots = fd, len(line) <= SLOT_BYTES
        self._renames += 1
        self._suspect = False
        if self._closed:
            self._close_file()

    def _read(self) -> None:
        data = read_file(self._disk, self.path, max_bytes=MAX_LINE_BYTES)
        beside = read_file(self._disk, self._next, max_bytes=MAX_LINE_BYTES)
        seal = self._disk.seal(self.path)
        slots = [] if data is None else _slots_in(data, seal)
        good = [slot for slot in slots if slot is not None]
        self.damaged = len(good) < len(slots)
        self._keeps = bool(good)
        if beside is not None:
            good += [slot for slot in _slots_in(beside, seal) if slot is not None]
            # It may be the newest note. The next file of this kind replaces it.
            self._is_aside = self._suspect = True
        self._confirmed = data is None and beside is None
        self._current = max(good, key=lambda slot: slot.number, default=self._current)
        self._number = self._current.number

    def _close_file(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            self._disk.close(fd)


def resealed_note(data: bytes, seal: Seal) -> bytes | None:
    """Return the file content with the same note and the code of ``seal``; None without a note."""
    good = [slot for slot in _slots_in(data, None) if slot is not None]
    if not good:
        return None
    last = max(good, key=lambda slot: slot.number)
    line = encode_line({"number": last.number, "fields": last.fields}, seal)
    return b"".join(_content(last.number, line))


def _slots_in(data: bytes, seal: Seal | None) -> list[_Slot | None]:
    """Return the slots of a file; None for one that is not valid."""
    first = data[: data.find(b"\n") + 1]
    pieces = [first] if len(first) > SLOT_BYTES else [data[:SLOT_BYTES], data[SLOT_BYTES:]]
    return [_parse(piece, seal) for piece in pieces if piece.strip(b" \n")]


def _parse(piece: bytes, seal: Seal | None) -> _Slot | None:
    try:
        fields = decode_line(piece[: piece.find(b"\n") + 1], seal)
    except DamagedLine:
        return None
    number, inner = fields.get("number"), fields.get("fields")
    if type(number) is not int or not isinstance(inner, dict | None):
        return None
    return _Slot(number, inner)


def _content(number: int, line: bytes) -> list[bytes]:
    """Return a file content with this note: two slots, one of them empty, or one long line."""
    if len(line) > SLOT_BYTES:
        return [line]
    return [_padded(line), _EMPTY] if number % 2 == 0 else [_EMPTY, _padded(line)]


def _padded(line: bytes) -> bytes:
    return line + b"\n".rjust(SLOT_BYTES - len(line)) if len(line) < SLOT_BYTES else line
