"""``SessionArchiver``: moves the transcripts of closed sessions to the archive, and back.

    the transcript is stored in parts, durably → the directory is renamed, durably → it is deleted

While the directory is there, it counts: a kill before the rename leaves parts that the next move
replaces, one after it a directory that the next start deletes. A session that is opened again gets
its directory back before.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import structlog
import trio

from aegis.agents.directory.roster import Member, Roster
from aegis.agents.sessions.archived import ArchivedTranscript
from aegis.agents.sessions.transcript import TRANSCRIPT
from aegis.errors import StorageError
from aegis.journal.archive import Keep
from aegis.journal.disk import stored_names
from aegis.journal.flusher import Flusher
from aegis.journal.old_files import delete_oldest
from aegis.journal.purging import delete, take_name
from aegis.journal.reader import LedgerReader

log = structlog.get_logger("aegis.agents")

AGAIN_S = 60.0
"""Seconds until a session is moved that the disk has refused."""

AT_ONCE = 50
"""Sessions that are moved before the size of the archive is looked at."""

_ID = re.compile(r"[0-9a-f]{32}")


class SessionArchiver:
    """The transcripts of closed sessions, in ``directory`` as far as ``keep`` says, else archived.

    ``is_at_rest`` returns whether a session has no actor. ``lock`` is held while one is opened
    again, or marked as purged.
    """

    def __init__(
        self,
        *,
        directory: Path,
        archive: Path,
        keep: Keep,
        flusher: Flusher,
        lock: trio.Lock,
        roster: Callable[[], Roster],
        is_at_rest: Callable[[str], bool],
        start_soon: Callable[..., object],
    ) -> None:
        self._directory, self._archive, self._keep = directory, archive, keep
        self._flusher, self._lock, self._roster = flusher, lock, roster
        self._is_at_rest, self._start_soon = is_at_rest, start_soon
        self._in_place: dict[str, float | None] = {}  # the moments of the ends that are known
        self._is_found = self._is_moving = False
        self._opening: set[str] = set()

    def of(self, member: Member) -> ArchivedTranscript:
        """Return the transcript of a session, which may be in its directory or in the archive."""
        return self._stored(member.id, member.handle)

    def _stored(self, id_: str, handle: str = "") -> ArchivedTranscript:
        files = self._directory / id_
        return ArchivedTranscript(self._flusher.disk, self._archive, files, handle)

    @asynccontextmanager
    async def restored(self, member: Member) -> AsyncIterator[None]:
        """Have the transcript of a closed session in its directory inside the block.

        Raises ``AegisError``.
        """
        self._opening.add(member.id)
        try:
            if member.cmd is None:
                async with self._lock:
                    await self._flusher.call(self.of(member).restore)
                    self._in_place.setdefault(member.id, time.time())
            yield
        finally:
            self._opening.discard(member.id)

    # Moving.

    def look(self, ended: Member | None = None) -> None:
        """Move the oldest closed sessions if there are too many; one may have just ``ended``."""
        if ended is not None and ended.is_closed and ended.cmd is None:
            self._in_place.pop(ended.id, None)
            self._in_place[ended.id] = time.time()
        most = min(self._keep.newest, self._keep.most)
        if len(self._roster().closed) > most and not self._is_moving:
            self._is_moving = True
            self._start_soon(self._work)

    async def _work(self) -> None:
        while True:
            try:
                if not self._is_found:
                    await self._find()
                while due := await self._due():
                    for each in due[:AT_ONCE]:
                        await self._move(each)
                    limit, state = self._keep.archive_bytes, self._archive.parent
                    oldest = partial(delete_oldest, self._flusher.disk, state, limit)
                    await self._flusher.call(oldest)
            except (StorageError, OSError) as error:
                log.warning("no session archived", why=str(error))
                await trio.sleep(AGAIN_S)
            else:
                break
        self._is_moving = False

    async def _find(self) -> None:
        """Find the transcripts that are in their directories. Raises ``StorageError``."""
        found = set(await self._flusher.look(self._found))
        roster = self._roster()
        # Those that the roster has dropped are the oldest. If it has dropped none, others are of
        # lines of the roster that were damaged, and a copy of it may have them.
        older = sorted(found.difference(roster.by_id)) if roster.has_dropped else []
        closed = [each for each in roster.closed if each in found]
        before = dict.fromkeys(each for each in (*older, *closed) if each not in self._in_place)
        self._in_place = {**before, **self._in_place}
        self._is_found = True

    def _found(self) -> list[str]:
        names = stored_names(self._flusher.disk, self._directory)
        ids = [each for each in names if _ID.fullmatch(each)]
        return [each for each in ids if self._stored(each).is_in_place()]

    async def _due(self) -> list[str]:
        """Return the sessions to move, the oldest first."""
        count = len(self._in_place) - min(self._keep.newest, self._keep.most)
        over = [*self._in_place][: max(0, count)]
        for each in over:
            if self._in_place[each] is None:
                self._in_place[each] = await self._flusher.look(partial(self._ended, each))
        now = time.time()
        ended = [self._in_place.get(each) or 0.0 for each in over]
        newer = [now] * (len(self._in_place) - len(over))
        return over[: self._keep.count([*ended, *newer], now)]

    def _ended(self, id_: str) -> float:
        """Return the moment of the last entry of a transcript."""
        reader = LedgerReader(self._directory / id_ / TRANSCRIPT, disk=self._flusher.disk)
        last = next(iter(reader.last_n(1).records), {}).get("at")
        return float(last) if isinstance(last, int | float) else 0.0

    async def _move(self, id_: str) -> None:
        """Move a transcript to the archive. Raises ``StorageError``, ``OSError``."""
        stored, call, disk = self._stored(id_), self._flusher.call, self._flusher.disk
        count, doomed = 0, None
        if self._is_free(id_):
            parts = stored.store()
            while await call(partial(next, parts, None)) is not None:
                count += 1
        async with self._lock:
            if count and self._is_free(id_):
                doomed = await call(partial(take_name, disk, stored.files))
            elif count or self._is_purged(id_):  # it was opened again, or purged, meanwhile
                await call(stored.packed.delete)
            self._in_place.pop(id_, None)
        if doomed is not None:
            await call(partial(delete, disk, doomed))

    def _is_purged(self, id_: str) -> bool:
        member = self._roster().by_id.get(id_)
        return member is not None and member.is_purged

    def _is_free(self, id_: str) -> bool:
        """Return whether nothing uses the directory of a session, and it may be moved."""
        member = self._roster().by_id.get(id_)
        is_over = member is None or (member.is_closed and not member.is_purged)
        return is_over and self._is_at_rest(id_) and id_ not in self._opening
