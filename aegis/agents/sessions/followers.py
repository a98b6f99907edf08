"""``TranscriptFollowers``: the streams that follow the transcript of one session.

No stream has a buffer: each request has its place. While there are followers, the newest lines are
kept in memory for all of them; a follower that is further behind is served from the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import Reply
from aegis.agents.sessions.transcript import (
    ShownPart,
    TranscriptWriter,
    next_entries,
    shown_of_closed,
)
from aegis.errors import AegisError, Busy, InvalidRequest
from aegis.journal.disk import Disk
from aegis.journal.flusher import Flusher
from aegis.protocol.agents import TranscriptEntry, entry_of, transcript_of
from aegis.protocol.feeds import FollowSession, SessionNews, SessionPlace

MAX_FOLLOWERS = 256
"""Streams that may wait for entries of one session."""

BATCH_BYTES = 64 * 1024
"""The size of the lines in one answer, but always one."""

TAIL_BYTES = 64 * 1024
"""The size of the lines that are kept in memory."""

TAIL_S = 10.0
"""Seconds after the last request from which on no line is kept in memory."""


@attrs.define
class _Line:
    seq: int
    end: int
    size: int
    stored: Mapping[str, Any]
    entry: TranscriptEntry | None = None

    def shown(self) -> TranscriptEntry:
        """Return the entry of the line, which is made once."""
        if self.entry is None:
            self.entry = entry_of({**self.stored, "seq": self.seq})
        return self.entry


class TranscriptTail:
    """The newest lines of a transcript, at most ``TAIL_BYTES``. Pure."""

    def __init__(self) -> None:
        self._lines: deque[_Line] = deque()
        self._size = 0
        self._after: int | None = None  # every line after this seq is here; None: none is kept

    def begin(self, seq: int) -> None:
        """Keep the lines after ``seq``, the newest one."""
        if self._after is None:
            self._after = seq

    def end(self) -> None:
        """Keep nothing from now on."""
        self._lines.clear()
        self._size, self._after = 0, None

    def add(self, seq: int, stored: Mapping[str, Any], size: int, end: int) -> None:
        """Keep an entry as it is stored, and drop the oldest ones if there are too many."""
        if self._after is None:
            return
        self._lines.append(_Line(seq, end, size, stored))
        self._size += size
        while self._size > TAIL_BYTES:
            dropped = self._lines.popleft()
            self._size -= dropped.size
            self._after = dropped.seq

    def news(self, place: SessionPlace, shown: ShownPart) -> SessionNews | None:
        """Return the entries after ``place``; None if some of them are not kept here."""
        if self._after is None or place.seq < self._after:
            return None
        newer = takewhile(lambda line: line.seq > place.seq, reversed(self._lines))
        lines = [each for each in newer if each.seq <= shown.seq]  # newest first
        if not lines:
            return None
        last = lines[0]
        return _news(
            [each.shown() for each in reversed(lines)],
            place,
            SessionPlace(seq=last.seq, offset=last.end, file=shown.file),
            shown,
        )


@attrs.frozen
class _TranscriptFollower:
    place: SessionPlace
    reply: Reply[SessionNews]


class TranscriptFollowers:
    """The streams that follow ``transcript``. Reads run in tasks of ``start_soon``."""

    def __init__(self, transcript: TranscriptWriter, start_soon: Callable[..., object]) -> None:
        self._transcript = transcript
        self._start_soon = start_soon
        self._tail = TranscriptTail()
        self._file = transcript.file
        self._asked_at = 0.0
        self._waiting: list[_TranscriptFollower] = []
        transcript.on_line = self._keep

    def take(self, request: FollowSession, reply: Reply[SessionNews]) -> None:
        """Answer now, or once there are entries. Raises ``InvalidRequest``, ``Busy``."""
        shown = self._shown()
        if request.place is None:
            reply.send(first_news(request, shown))
            return
        self._asked_at = trio.current_time()
        self._tail.begin(self._transcript.newest)
        follower = _TranscriptFollower(request.place, reply)
        if not self._is_served(follower, shown):
            self._make_room()
            self._waiting.append(follower)

    def look(self) -> None:
        """Answer the streams for which there are entries now."""
        if self._waiting:
            shown = self._shown()
            self._waiting = [each for each in self._waiting if not self._is_served(each, shown)]

    def close(self) -> None:
        """Answer the waiting streams that the session is closed."""
        self.look()
        shown = self._transcript.shown
        for each in self._waiting:
            each.reply.send(
                SessionNews(entries=[], place=each.place, newest=shown.seq, is_over=True)
            )
        self._waiting.clear()

    def _keep(self, seq: int, stored: Mapping[str, Any], size: int, end: int) -> None:
        self._drop_lost()
        if not self._waiting and trio.current_time() > self._asked_at + TAIL_S:
            self._tail.end()
        self._tail.add(seq, stored, size, end)

    def _shown(self) -> ShownPart:
        self._drop_lost()
        return self._transcript.shown

    def _drop_lost(self) -> None:
        """Keep nothing of another file, or of entries that the disk has lost."""
        if self._transcript.file != self._file:
            self._tail.end()
            self._file = self._transcript.file

    def _is_served(self, follower: _TranscriptFollower, shown: ShownPart) -> bool:
        """Answer a stream, or begin to read for it, if there are entries."""
        if follower.reply.is_settled:
            return True
        if follower.place.seq >= shown.seq:
            return False
        news = self._tail.news(follower.place, shown)
        if news is not None:
            follower.reply.send(news)
        else:
            self._start_soon(self._read, follower)
        return True

    async def _read(self, follower: _TranscriptFollower) -> None:
        try:
            news = await self._transcript.look(partial(read_news, follower.place))
        except AegisError as error:
            follower.reply.fail(error)
        else:
            follower.reply.send(news)

    def _make_room(self) -> None:
        if len(self._waiting) >= MAX_FOLLOWERS:
            self._waiting = [each for each in self._waiting if not each.reply.is_settled]
        if len(self._waiting) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} streams follow this session already; close one first")


def first_news(request: FollowSession, shown: ShownPart) -> SessionNews:
    """Return the place at which a stream begins. Raises ``InvalidRequest``."""
    since = request.since
    if since is not None and since > shown.seq:
        raise InvalidRequest(
            f"the transcript of {request.handle!r} ends with entry {shown.seq}, before since="
            f"{since}; leave since out, or read the newest entries with last_n"
        )
    seq = max(0, shown.seq - request.last_n) if since is None else since
    return SessionNews(entries=[], place=SessionPlace(seq=seq), newest=shown.seq)


async def follow_closed(path: Path, flusher: Flusher, request: FollowSession) -> SessionNews:
    """Answer the request for a session that has no actor. Raises ``AegisError``."""
    shown = await flusher.look(partial(shown_of_closed, flusher.disk, path))
    if request.place is None:
        return first_news(request, shown)
    if request.place.seq < shown.seq:
        read = partial(read_news, request.place, flusher.disk, path, shown)
        return await flusher.look(read)
    return SessionNews(entries=[], place=request.place, newest=shown.seq, is_over=True)


def read_news(place: SessionPlace, disk: Disk, path: Path, shown: ShownPart) -> SessionNews:
    """Return the next entries after ``place`` from the files. Raises ``StorageError``."""
    found = next_entries(disk, path, place, shown, BATCH_BYTES)
    return _news(transcript_of(found.records, more=False).result, place, found.place, shown)


def _news(
    entries: list[TranscriptEntry], place: SessionPlace, end: SessionPlace, shown: ShownPart
) -> SessionNews:
    missed = max(0, end.seq - place.seq - len(entries))
    return SessionNews(entries=entries, place=end, newest=shown.seq, missed=missed)
