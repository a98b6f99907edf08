"""Reading the transcript of a closed session that is in the archive. Blocking, for a thread.

The functions raise ``StorageError``; and ``NotFound`` if the texts were deleted, as the archive has
a limit.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from aegis.agents.sessions.followers import BATCH_BYTES, first_news
from aegis.agents.sessions.past import SessionPast, carried
from aegis.agents.sessions.transcript import (
    NEWEST,
    TRANSCRIPT,
    EntryPage,
    ShownPart,
    carried_in,
    reply_of,
    taken,
)
from aegis.errors import NotFound
from aegis.journal.disk import (
    Disk,
    is_there,
    make_directory,
    replace_file,
    storage_error,
    sync_directory,
)
from aegis.journal.packed_ledger import TRANSCRIPTS, LedgerPart, PackedLedger
from aegis.journal.purging import PREFIX
from aegis.journal.reader import MAX_READ_BYTES
from aegis.journal.rotation import AFTER, previous_of, settle_rotation
from aegis.protocol import agents as api
from aegis.protocol.feeds import FollowSession, SessionNews, SessionPlace


@attrs.frozen
class ArchivedTranscript:
    """The transcript of the session ``id``, ``handle``, whose own directory was ``files``.

    ``archive`` is the directory of all archives.
    """

    disk: Disk
    archive: Path
    files: Path
    handle: str

    @property
    def directory(self) -> Path:
        """The directory of the archived transcripts of all sessions."""
        return self.archive / TRANSCRIPTS

    @property
    def packed(self) -> PackedLedger:
        """Its parts in the archive."""
        path = self.files / TRANSCRIPT
        return PackedLedger(self.disk, self.directory, self.files.name, path)

    def parts(self) -> list[LedgerPart]:
        """Return the parts with entries."""
        parts = self.packed.parts()
        if not parts:
            raise NotFound(
                f"the transcript of {self.handle!r} was deleted with the archive, which has a "
                "limit: see keep.archive_bytes"
            )
        return parts

    def read(self, message: api.ReadSession) -> api.Transcript:
        """Return the entries that a command reads."""
        if message.since is None:
            return reply_of(self._newest(message.last_n or NEWEST), message)
        return reply_of(self._since(message.since, MAX_READ_BYTES), message)

    def follow(self, request: FollowSession) -> SessionNews:
        """Answer the request of a stream."""
        newest = self.parts()[-1].last
        if request.place is None:
            return first_news(request, ShownPart(seq=newest, end=0, synced=0, file="archived"))
        if request.place.seq >= newest:
            return SessionNews(entries=[], place=request.place, newest=newest, is_over=True)
        found = self._since(request.place.seq, BATCH_BYTES)
        if not found.records:  # the rest is damaged
            place = SessionPlace(seq=newest)
            return SessionNews(entries=[], place=place, newest=newest, is_over=True)
        entries = api.transcript_of(found.records, more=False).result
        missed = max(0, found.place.seq - request.place.seq - len(entries))
        return SessionNews(entries=entries, place=found.place, newest=newest, missed=missed)

    def past(self) -> SessionPast:
        """Return the fold of the transcript; an empty one if it was deleted."""
        line = self.packed.fold()
        carried_past = None if line is None else carried_in(line)
        return SessionPast() if carried_past is None else carried_past

    # Moving.

    def is_in_place(self) -> bool:
        """Return whether the transcript is in the directory of its session."""
        try:
            return is_there(self.disk, self.files / TRANSCRIPT)
        except OSError as error:
            raise storage_error("read", self.files, error) from error

    def store(self) -> Iterator[LedgerPart]:
        """Store the parts, one in each step, durably; the directory of the session stays.

        Does nothing if it is not there.
        """
        path = self.files / TRANSCRIPT
        if not self.is_in_place():
            return
        settle_rotation(self.disk, path)
        past, newest = SessionPast(), 0

        def take(line: dict[str, Any]) -> None:
            nonlocal past, newest
            past, newest = taken(past, line), line.get("seq", newest)

        def fold() -> dict[str, Any]:
            return {"kind": "head", AFTER: newest, "past": carried(past)}

        yield from self.packed.store([previous_of(path), path], take, fold)

    def restore(self) -> None:
        """Make the directory of the session anew, durably, unless it is there."""
        if self.is_in_place():
            return
        parts, packed = self.parts(), self.packed
        directory = self.files.parent
        # A kill leaves a directory that the next start deletes.
        fresh = directory / f"{PREFIX}{uuid.uuid4().hex}"
        try:
            make_directory(self.disk, fresh)
            replace_file(self.disk, fresh / TRANSCRIPT, map(packed.restored, parts))
            self.disk.rename(fresh, self.files)
            sync_directory(self.disk, directory)
        except OSError as error:
            raise storage_error("restore", self.files, error) from error

    # Entries.

    def _newest(self, count: int) -> EntryPage:
        found: list[dict[str, Any]] = []
        size = newest = 0
        for part in reversed(self.parts()):
            newest = newest or part.last
            for record, length in self.packed.lines(part, backward=True):
                if "seq" not in record:
                    continue
                size += length
                if len(found) == count or (found and size > MAX_READ_BYTES):
                    more = len(found) < count
                    return EntryPage(records=found[::-1], place=SessionPlace(seq=newest), more=more)
                found.append(record)
        return EntryPage(records=found[::-1], place=SessionPlace(seq=newest), more=False)

    def _since(self, since: int, max_bytes: int) -> EntryPage:
        """Return the entries after ``since``; if they are too long, the oldest that fit."""
        found: list[dict[str, Any]] = []
        size = 0
        for part in self.parts():
            for record, length in self.packed.lines(part) if part.last > since else ():
                if record.get("seq", 0) <= since:
                    continue
                size += length
                if found and size > max_bytes:
                    return _entries(found, since, more=True)
                found.append(record)
        return _entries(found, since, more=False)


def _entries(records: list[dict[str, Any]], since: int, *, more: bool) -> EntryPage:
    seq = records[-1]["seq"] if records else since
    return EntryPage(records=records, place=SessionPlace(seq=seq), more=more)
