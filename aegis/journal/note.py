"""A note: one small object on disk that is written anew often, such as what is in flight.

Written from the loop and not synced, it survives a killed process; ``sync`` makes it survive a
power loss too, and ``confirm`` does so for what an earlier life has left. A note fills one of two
slots in turn, so that a write which is cut short, by a kill or by a power loss, leaves the note
before it readable. Each carries a number that rises; the highest one that checks is the note. A
slot is one memory page, written whole: no rest of an older and longer note stays behind in it.

A note too long for a slot (a command of a megabyte) goes into a new file, and so does the next one
after it: a file holds either two slots or one long note, never a mix. So does the first note of a
life, and what is written after the disk has refused something. While that file is not synced it
stands beside the one before it, as ``<name>.next``, for a loss of power may leave nothing of it;
``sync`` gives it the name. Of two files the highest number that checks is the note as well.
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
)
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import (
    MAX_LINE_BYTES,
    DamagedLine,
    decode_line,
    encode_line,
    seal_line,
)
from aegis.state.sealing import Seal

SLOT_BYTES = 4096
_EMPTY = b"\n".rjust(SLOT_BYTES)


@attrs.frozen
class _Slot:
    """A note that checks: ``fields`` is ``None`` where it was cleared."""

    number: int
    fields: dict[str, Any] | None


def next_seq(
    ledger_last: int | None, note: Mapping[str, Any] | None, *, damaged_count: int = 0
) -> int:
    """The number of the next record: one above all that were ever given, 0 if none was.

    ``ledger_last`` is the ``seq`` of the ledger's last good line. Each of the ``damaged_count``
    lines behind it may have held one more, and the note holds that of the command in flight.
    """
    in_ledger = (-1 if ledger_last is None else ledger_last) + damaged_count
    in_note = note.get("seq") if note is not None else None
    return max(in_ledger, in_note if type(in_note) is int else -1) + 1


class Note:
    """The note of one terminal (or of whatever has one thing in flight at a time)."""

    def __init__(self, path: Path, flusher: Flusher) -> None:
        # Not the path itself: there are thousands of notes, and it takes as much as all the rest.
        self._path, self._name = str(path), path.name
        self.damaged = False
        """Whether a slot did not check when the note was opened: its write was cut short."""
        self._flusher = flusher
        self._disk: Disk = flusher.disk
        self._current = _Slot(0, None)
        self._number = 0
        """The highest number that a write has used, whether or not it succeeded."""
        self._fd: int | None = None
        self._slots = False
        self._keeps = False
        """Whether a file has the name of which a loss of power may leave more than of a new one."""
        self._is_aside = False
        self._renames = 0
        self._renames_synced = 0
        self._suspect = False
        self._confirmed = True
        self._closed = False

    @classmethod
    def open(cls, path: Path, flusher: Flusher) -> Note:
        """Open the note, or make an empty one. Raises ``StorageError``."""
        note = cls(path, flusher)
        try:
            make_directory(note._disk, path.parent, durable=False)
            note._read()
        except OSError as error:
            raise storage_error("open", path, error) from error
        return note

    @property
    def is_blank(self) -> bool:
        """Whether no note was found, nor written since; a cleared note is one."""
        return self._current.number == 0

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self._path)

    @property
    def _next(self) -> Path:
        """Where a new file stands until it is synced."""
        return Path(f"{self._path}.next")

    def load(self) -> dict[str, Any] | None:
        """The fields of the note as last written; ``None`` if nothing is in flight."""
        return self._current.fields

    def write(self, fields: Mapping[str, object]) -> None:
        """Put a new note in the place of the one before; microseconds, not synced.

        Raises ``StorageError`` if the disk refuses (the note before it still stands),
        ``ValueError`` or ``TypeError`` for fields that are not plain JSON.
        """
        self._put(dict(fields))

    async def write_synced(self, fields: Mapping[str, object]) -> None:
        """Put a new note in the place of the one before, for good: synced when this returns.

        A loss of power at any moment leaves one of the two. Nothing else may be written meanwhile.
        Raises ``StorageError``: it is then not certain which of the two is on the disk.
        """
        if self.fits_in_place(fields):
            self._put(dict(fields))
            await self.sync()
        else:
            await self._replace_synced(dict(fields))

    def fits_in_place(self, fields: Mapping[str, object]) -> bool:
        """Whether a ``write`` of these would change a slot only, and not take a new file."""
        line = self._line(self._number + 1, dict(fields))
        return self._slots and not self._suspect and len(line) <= SLOT_BYTES

    def clear(self) -> None:
        """Say that nothing is in flight. Raises ``StorageError``."""
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
        """Return once what was there when the note was opened survives a loss of power.

        For who shows it: an earlier life may have been killed between its write and its sync. Costs
        a sync of the file and one of its directory, and nothing where there was no file, or after
        the first time. Where the disk refuses one of them the note goes into a new file, for a
        second sync of the same pages would prove nothing. Nothing may be written meanwhile.
        Raises ``StorageError``: what is shown may be lost; it may be tried again.
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
        """Close the file; what it says stays."""
        self._closed = True
        self._close_file()

    async def _sync_file(self) -> int:
        """Sync what is written; gives the count of files that there have been."""
        renames = -1
        while renames != self._renames:  # else another file has taken the place of this one
            assert self._fd is not None
            renames = self._renames
            await self._flusher.fdatasync(self._fd)
            if self._closed:  # what has the name of the new file now may be a successor's
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
        """In a thread: what takes the place of a file by its name must be synced before that."""
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
        # A write that fails may have reached the disk all the same. A later one with its number
        # could not be told from it, and the older of the two might be read.
        self._number += 1
        return _Slot(self._number, fields)

    def _line(self, number: int, fields: dict[str, Any] | None) -> bytes:
        line = encode_line({"number": number, "fields": fields})
        return seal_line(line, self._disk.seal(self.path))

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
        """A new file is in place. It may come when the note was closed: nobody needs it then."""
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
            # It may be the note. The next file of this kind takes its place.
            self._is_aside = self._suspect = True
        self._confirmed = data is None and beside is None
        self._current = max(good, key=lambda slot: slot.number, default=self._current)
        self._number = self._current.number

    def _close_file(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            self._disk.close(fd)


def resealed_note(data: bytes, seal: Seal) -> bytes | None:
    """The content of a file with the same note and the code of ``seal``; None if it holds none."""
    good = [slot for slot in _slots_in(data, None) if slot is not None]
    if not good:
        return None
    last = max(good, key=lambda slot: slot.number)
    line = encode_line({"number": last.number, "fields": last.fields})
    return b"".join(_content(last.number, seal_line(line, seal)))


def _slots_in(data: bytes, seal: Seal | None) -> list[_Slot | None]:
    """What the slots of a file hold; None for one that does not check."""
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
    """A whole file with this note: two slots, the other one empty, or the one long line."""
    if len(line) > SLOT_BYTES:
        return [line]
    return [_padded(line), _EMPTY] if number % 2 == 0 else [_EMPTY, _padded(line)]


def _padded(line: bytes) -> bytes:
    return line + b"\n".rjust(SLOT_BYTES - len(line)) if len(line) < SLOT_BYTES else line
