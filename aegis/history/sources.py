"""``Search``, and the sources that it reads: each from the newest to the oldest, in small steps."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort, insort_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol, TypeVar

import attrs
import structlog
import trio

from actors import Request
from aegis.errors import StorageError
from aegis.journal.archive import Archive, end_of_day
from aegis.journal.flusher import Flusher
from aegis.journal.segments import SegmentReader, UnpackedSegments
from aegis.protocol.history import (
    MAX_TEXT_CHARS,
    HistoryEntry,
    HistoryKind,
    ListEnded,
)
from aegis.protocol.naming import name_key
from aegis.protocol.requests import Answerer
from aegis.turns.services import Services

log = structlog.get_logger("aegis.history")

T = TypeVar("T")

STEP_LINES = 64
STEP_BYTES = 64 * 1024
"""The lines that are read in one step: about a millisecond, for which others may wait."""

STEP_FILES = 16
"""The files of an archive of which the header is read in one step."""

MAX_HELD = 10_000
"""The entries of an archive that wait for newer ones: about 15 MB if their texts are long.

They are as many only if the rows of about a hundred inboxes were archived in another order than
they came. The newest do not wait then, so they may come before a newer one, or twice.
"""

MAX_PROBLEMS = 20
"""Sources of which a page says that they cannot be read."""

PAUSE_S = 0.001
"""Seconds between two steps, so that a search takes at most half of a processor."""

ASK_S = 5.0
"""Seconds in which a service has to answer; a search continues without it."""


LATEST = "9"
"""A time after all others."""


@attrs.frozen
class Wanted:
    """The filter of a search; ``word`` is in lower case, times are UTC, ISO 8601."""

    name: str | None = None
    word: str | None = None
    exit: int | None = None
    since: str = ""
    until: str = LATEST

    def has(self, entry: HistoryEntry) -> bool:
        """Return whether an entry is looked for."""
        return (
            self.since <= entry.at <= self.until
            and (self.exit is None or entry.exit == self.exit)
            and (self.name is None or name_key(entry.name) == name_key(self.name))
            and (self.word is None or self.word in entry.text.lower())
        )


def command_entry(terminal: str, record: Mapping[str, Any]) -> HistoryEntry | None:
    """Return the command of a record; None if it has none, or has not ended."""
    match record:
        case {"seq": int(seq), "cmd": str(text), "finished_at": str(at), "writer": str(writer)}:
            exit_code, began = record.get("exit"), record.get("started_at")
            return HistoryEntry(
                kind="command",
                at=at,
                name=terminal,
                id=str(seq),
                text=text[:MAX_TEXT_CHARS],
                by=writer,
                outcome=str(record.get("end") or "exited"),
                exit=exit_code if type(exit_code) is int else None,
                began=began if isinstance(began, str) else None,
            )
    return None


EntryOf = Callable[[Mapping[str, Any], Answerer | None], HistoryEntry | None]
"""Returns the entry of a line of the archive; None if a caller, None for a person, has none."""


@attrs.frozen
class EndedKind:
    """A kind of ended rows: the service that has the newest, and the kind of those archived."""

    kind: HistoryKind
    service: str
    archive: str
    entry_of: EntryOf


class Source(Protocol):
    """Entries that a search looks for, the newest first.

    ``reached`` is a moment after which it has no further entry, as far as it knows.
    """

    reached: str

    async def step(self) -> list[HistoryEntry] | None:
        """Read for about a millisecond; return what was found, None after the last entry.

        Raises ``StorageError``.
        """
        ...


class Commands:
    """The commands in the ledger of a terminal, and in its segments."""

    def __init__(
        self,
        flusher: Flusher,
        path: Path,
        terminal: str,
        wanted: Wanted,
        unpacked: UnpackedSegments,
    ) -> None:
        self._flusher = flusher
        self._reader = SegmentReader(path, disk=flusher.disk, unpacked=unpacked)
        self._terminal, self._wanted = terminal, wanted
        self._before: int | None = None
        self.reached = LATEST

    async def step(self) -> list[HistoryEntry] | None:
        return await self._flusher.look(self._read)

    def _read(self) -> list[HistoryEntry] | None:
        # By number, not by offset: files are split, compressed and deleted meanwhile.
        reading = self._reader.last_now(STEP_LINES, before=self._before, max_bytes=STEP_BYTES)
        numbers = [each["seq"] for each in reading.records if type(each.get("seq")) is int]
        if not numbers or self._before == 0:
            return None
        self._before = min(numbers)
        found: list[HistoryEntry] = []
        for record in reversed(reading.records):
            entry = command_entry(self._terminal, record)
            if entry is None:
                continue
            self.reached = min(self.reached, entry.at)
            if entry.at < self._wanted.since:
                self._before = 0
                break
            if self._wanted.has(entry):
                found.append(entry)
        return found


class StoredEntries(Protocol):
    """The entries in a ledger, from the newest to the oldest."""

    def step(self, max_lines: int, max_bytes: int) -> list[HistoryEntry] | None:
        """Return the entries in so many lines more; None after the oldest.

        Blocking. Raises ``StorageError``.
        """
        ...


class SentMessages:
    """The messages of an inbox."""

    def __init__(self, flusher: Flusher, stored: StoredEntries, wanted: Wanted) -> None:
        self._flusher, self._stored, self._wanted = flusher, stored, wanted
        self._is_over = False
        self.reached = LATEST

    async def step(self) -> list[HistoryEntry] | None:
        return None if self._is_over else await self._flusher.look(self._read)

    def _read(self) -> list[HistoryEntry] | None:
        entries = self._stored.step(STEP_LINES, STEP_BYTES)
        if entries is None:
            return None
        if entries:
            # A message that was sent again has its first time.
            entries.sort(key=attrgetter("at"), reverse=True)
            self.reached = min(self.reached, entries[0].at)
            self._is_over = self.reached < self._wanted.since
        return [each for each in entries if self._wanted.has(each)]


class ArchivedRows:
    """The rows of one kind in the archive.

    They are in the order in which they were archived, those of several inboxes mixed. So an entry
    is held until no file that is not read yet has a newer one.
    """

    def __init__(
        self,
        flusher: Flusher,
        archive: Archive,
        wanted: Wanted,
        entry_of: EntryOf,
        by: Answerer | None,
    ) -> None:
        self._flusher, self._wanted = flusher, wanted
        self._entry_of, self._by = entry_of, by
        self._archive = archive
        # Before when all rows had ended, whether its header says so, and its name; the next is
        # the last. A header is read once the day of its file is reached.
        self._files: list[tuple[str, bool, str]] | None = None
        self._lines: Iterator[Mapping[str, Any]] = iter(())
        self._held: list[HistoryEntry] = []  # the oldest first
        self.reached = LATEST

    async def step(self) -> list[HistoryEntry] | None:
        return await self._flusher.look(self._read)

    def _read(self) -> list[HistoryEntry] | None:
        if self._files is None:
            self._files = sorted((end_of_day(each), False, each) for each in self._archive.files())
        lines, by_time = [*islice(self._lines, STEP_LINES)], attrgetter("at")
        for each in lines:
            entry = self._entry_of(each, self._by)
            if entry is not None and self._wanted.has(entry):
                insort_left(self._held, entry, key=by_time)
        if len(lines) < STEP_LINES:
            self._begin_next(self._files)
        if not self.reached and not self._held:
            return None
        first = min(bisect_left(self._held, self.reached, key=by_time), MAX_HELD)
        found = self._held[first:]
        del self._held[first:]
        return found[::-1]

    def _begin_next(self, files: list[tuple[str, bool, str]]) -> None:
        """Begin to read the file that may have the newest rows, if it is found in this step."""
        self._lines = iter(())
        for _ in range(STEP_FILES):
            if not files or files[-1][0] < self._wanted.since:
                self.reached = ""
                return
            self.reached, is_known, name = files.pop()
            if is_known:
                self._lines = self._archive.rows(name)
                return
            ended = self._archive.ended_before(name)
            if ended is not None:
                insort(files, (ended, True, name))


class LiveRows:
    """The ended rows of one kind that are in tables of a service."""

    def __init__(
        self, services: Services, service: str, wanted: Wanted, by: Answerer | None
    ) -> None:
        self._services, self._service, self._wanted, self._by = services, service, wanted, by
        self._ids: deque[str] | None = None
        self.reached = LATEST

    async def step(self) -> list[HistoryEntry] | None:
        if self._ids is None:
            self._ids = deque((await ask_service(self._services, self._service, ListEnded())).ids)
        ids = [self._ids.popleft() for _ in range(min(STEP_LINES, len(self._ids)))]
        if not ids:
            return None
        request = ListEnded(ids=ids, by=self._by)
        entries = (await ask_service(self._services, self._service, request)).entries
        self.reached = min([self.reached, *(each.at for each in entries)])
        if self.reached < self._wanted.since:
            self._ids.clear()
        return [each for each in entries if self._wanted.has(each)]


async def ask_service(services: Services, service: str, request: Request[T]) -> T:
    """Return the answer of a service. Raises ``StorageError``."""
    with trio.move_on_after(ASK_S):  # a desk may be unable to read its ledger
        return await services.answer(service, request, ASK_S)
    raise StorageError(f"the service {service!r} does not answer")


class Search:
    """The entries of several sources, the newest first, each once.

    The sources are read back in time together, so that what is found first is found soon.
    """

    def __init__(self, sources: list[Source], problems: Sequence[str] = ()) -> None:
        self._buffers = [_Buffer(each) for each in sources]  # a heap: all are equal at first
        self._newest = ""
        self._seen: set[tuple[str, str, str]] = set()
        self._problems = [*problems]

    def take_problems(self) -> list[str]:
        """Return why sources were left out since the last call."""
        taken, self._problems = self._problems, []
        return taken

    async def page(self, limit: int, seconds: float) -> tuple[list[HistoryEntry], bool]:
        """Return up to ``limit`` entries that are found in time, and whether there may be others.

        A source that cannot be read is left out, with its reason in ``take_problems``.
        """
        found: list[HistoryEntry] = []
        until = trio.current_time() + seconds
        while len(found) < limit:
            if not self._buffers:
                return found, False
            if self._buffers[0].entries:
                found += self._next()
                continue
            await self._read(self._buffers[0])
            if trio.current_time() >= until:
                break
        return found, True

    async def _read(self, buffer: _Buffer) -> None:
        try:
            entries = await buffer.source.step()
        except StorageError as error:
            log.warning("history incomplete", why=str(error))
            if len(self._problems) < MAX_PROBLEMS:
                self._problems.append(str(error))
            entries = None
        await trio.sleep(PAUSE_S)
        heapq.heappop(self._buffers)
        if entries is not None:
            buffer.entries.extend(entries)
            heapq.heappush(self._buffers, buffer)

    def _next(self) -> list[HistoryEntry]:
        buffer = heapq.heappop(self._buffers)
        entry = buffer.entries.popleft()
        heapq.heappush(self._buffers, buffer)
        if entry.at != self._newest:
            self._newest = entry.at
            self._seen.clear()
        # A row may be in its table and in the archive, if a daemon was killed in between.
        key = (entry.kind, entry.name, entry.id)
        if key in self._seen:
            return []
        self._seen.add(key)
        return [entry]


@attrs.define(eq=False)
class _Buffer:
    source: Source
    entries: deque[HistoryEntry] = attrs.field(factory=deque)

    def __lt__(self, other: _Buffer) -> bool:
        """Return whether its next entry is the newer one, or may be."""
        return self.next_at > other.next_at

    @property
    def next_at(self) -> str:
        """The moment of its next entry, or one that is not before it."""
        return self.entries[0].at if self.entries else self.source.reached
