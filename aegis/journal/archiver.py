"""``Archiver``: moves what has ended, and is not kept, from its tables to an archive.

Rows are durable in the archive, with the entries of the index, before they are dropped from their
table. If the disk refuses, all is tried again later; a kill between the two steps leaves rows in
both, and the next start moves them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any

import attrs
import structlog
import trio

from actors import Context
from actors.errors import CodecError
from aegis.errors import StorageError
from aegis.journal.archive import Archive, Entries, Keep, NewestLines
from aegis.journal.flusher import Flusher
from aegis.journal.table import Row, Table, row_of

log = structlog.get_logger("aegis.journal")

AT_ONCE = 4_000
"""The things that are moved to one file of the archive at most.

Each file costs a list of all others and a new part of the index, so many small ones would let
things come faster than they leave.
"""

STEP_S = 0.001
"""Seconds of work on one step of the loop."""

CHARS_AT_ONCE = 4 * 1024 * 1024
"""The size from which on a file gets no further thing, as a look at one reads all of its file."""

AGAIN_S = 60.0
"""Seconds until things are moved that the disk has refused."""

SIZE_KEPT = 0.9
"""The part of the largest size that is kept once it was exceeded, so that there are few files."""


@attrs.frozen
class Leaving:
    """A thing that has ended: its ``rows`` in a table, and its ``entries`` in the index.

    The others are parts of the first row, which mean nothing without it. ``more`` returns other
    lines for the archive, in a thread. ``stays`` returns the row that takes the place of the first
    one; None if it is dropped, as all others are. In the archive the ids begin with the ``prefix``.
    """

    table: Table[Any]
    rows: tuple[Row, ...]
    entries: Entries
    more: Callable[[], Sequence[Mapping[str, Any]]] | None = None
    stays: Callable[[], Row | None] | None = None
    prefix: str = ""

    @property
    def is_at_rest(self) -> bool:
        """Whether its rows are durable, and nothing more is being written about them."""
        rows = self.table.rows
        return all(
            rows.get(each.id) is each and self.table.is_at_rest(each.id) for each in self.rows
        )

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines of its rows for the archive. Raises ``StorageError``."""
        whole = map(self.table.whole, self.rows)
        return [{**each, "id": f"{self.prefix}{each['id']}"} for each in whole]


class Archiver:
    """The things of one kind that have ended and are in a table, and the ``archive`` of others.

    Several may have one archive. A part of a file that a kill has left is deleted here, which
    blocks: make one at the start of its owner.

    ``find`` returns a thing by its id, None if it has not ended. ``leave`` is called before its
    rows are dropped, ``left`` once that is durable. ``max_size`` limits the sizes of those that
    are kept, besides ``keep``.
    """

    def __init__(
        self,
        archive: Archive,
        keep: Keep,
        flusher: Flusher,
        context: Context,
        *,
        find: Callable[[str], Leaving | None],
        leave: Callable[[str], None],
        left: Callable[[str], object] | None = None,
        max_size: float = float("inf"),
    ) -> None:
        self._archive = archive
        archive.delete_unfinished()
        self._keep, self._flusher = keep, flusher
        self._start_soon = context.start_soon
        self._find, self._leave, self._left = find, leave, left
        self._max_size = max_size
        self._ended: dict[str, float] = {}  # the moments of their ends
        self._is_sorted, self._latest = True, 0.0
        self._sizes: dict[str, int] = {}
        self._size = 0
        self._is_moving = False

    # What has ended and is in a table.

    def __contains__(self, id_: object) -> bool:
        """Return whether a thing was added, and neither removed nor moved."""
        return id_ in self._ended

    def add(self, id_: str, ended: float, size: int = 0) -> None:
        """Add a thing that is at rest, and ``ended`` in this second since 1970. Idempotent.

        The second is 0 if it is not known. What is not at rest when it is to be moved, is removed:
        add it again once it is.
        """
        if id_ not in self._ended:
            self._is_sorted = self._is_sorted and ended >= self._latest
            self._latest = max(self._latest, ended)
            self._ended[id_] = ended
            self._sizes[id_] = size
            self._size += size
            self._move_soon()

    def remove(self, id_: str) -> None:
        """Remove a thing that is about to change. Idempotent."""
        self._ended.pop(id_, None)
        self._size -= self._sizes.pop(id_, 0)

    def newest_first(self) -> list[str]:
        """Return all ids."""
        newest_last = sorted(self._ended.items(), key=itemgetter(1, 0))
        return [each for each, _ in reversed(newest_last)]

    # What is in the archive.

    async def entry(self, name: str) -> dict[str, Any] | None:
        """Return an entry of the index; None if there is none. Raises ``StorageError``."""
        if self._archive.lacks(name):
            return None
        return await self._flusher.look(partial(self._archive.entry, name))

    async def row(self, row: Any, entry: Mapping[str, Any], row_id: str) -> Any:
        """Return the row of this class and id in the file of an entry, with its whole texts.

        None if the file was deleted, or is not understood. Raises ``StorageError``.
        """
        fields = await self._flusher.look(partial(self._archive.row, entry["in"], row_id))
        line = None if fields is None else {"id": row_id, "set": fields}
        return None if line is None else understood(row, line)

    async def rows(self, row: Any, entry: Mapping[str, Any], row_id: str) -> list[Any]:
        """Return the row of this id and its parts, whose ids are below its own. As ``row``."""
        lines = await self.lines(entry, row_id)
        found = (understood(row, each) for each in lines)
        return [each for each in found if each is not None]

    async def lines(self, entry: Mapping[str, Any], row_id: str) -> list[dict[str, Any]]:
        """Return the lines of a row and of its parts. Raises ``StorageError``."""
        return await self._flusher.look(partial(self._archive.rows_of, entry["in"], row_id))

    def newest_lines(self, entry: Mapping[str, Any] | None = None) -> NewestLines:
        """Return all lines, the newest first; with an ``entry``, not those of newer files."""
        return NewestLines(self._archive, None if entry is None else entry["in"])

    # Moving.

    def _move_soon(self) -> None:
        """Start to move the due things, once those that are being read were added."""
        has_many = len(self._ended) > self._keep.newest and self._may_be_due()
        if (has_many or self._size > self._max_size) and not self._is_moving:
            self._is_moving = True
            self._start_soon(self._move)

    def _may_be_due(self) -> bool:
        """Return False if even the oldest thing is to be kept: then no others are looked at."""
        if not self._is_sorted or len(self._ended) > self._keep.most:
            return True
        return self._keep.is_old(next(iter(self._ended.values())), time.time())

    async def _move(self) -> None:
        try:
            while due := self._due():
                for at in range(0, len(due), AT_ONCE):
                    await self._move_some(due[at : at + AT_ONCE])
        except StorageError as error:
            log.warning("nothing archived", kind=self._archive.directory.name, why=str(error))
            self._start_soon(self._move_later)
        else:
            self._is_moving = False

    def _due(self) -> list[str]:
        """Return what is to be moved, the oldest first."""
        if not self._is_sorted:  # they were read, or restored, or the clock was set back
            self._ended = dict(sorted(self._ended.items(), key=itemgetter(1)))
            self._is_sorted = True
        count = 0
        if len(self._ended) > self._keep.newest:
            count = self._keep.count([*self._ended.values()], time.time())
        return [*islice(self._ended, max(count, self._too_large()))]

    def _too_large(self) -> int:
        """Return how many of the oldest are to be moved because all together are too large."""
        count, size = 0, self._size
        if size > self._max_size:
            for each in self._ended:
                if size <= SIZE_KEPT * self._max_size:
                    break
                size -= self._sizes.get(each, 0)
                count += 1
        return count

    async def _move_later(self) -> None:
        await trio.sleep(AGAIN_S)
        await self._move()

    async def _move_some(self, ids: list[str]) -> None:
        """Move things from their tables to the archive. Raises ``StorageError``."""
        found: dict[str, Leaving] = {}
        lines: list[Any] = []
        entries: dict[str, Any] = {}
        moments: list[float] = []
        size, steps = 0, _Steps()
        for each in ids:
            if size >= CHARS_AT_ONCE:
                break  # the others are due all the same
            leaving = self._find(each)
            if leaving is None or not leaving.is_at_rest:
                self.remove(each)
                continue
            _raise_problem(leaving)  # otherwise each attempt would add it to the archive
            try:
                whole = leaving.lines()
            except StorageError as error:
                log.warning("not archived, as a text is damaged", id=each, why=str(error))
                self.remove(each)
                continue
            moments.append(self._ended.get(each, 0.0))
            more = () if leaving.more is None else await self._flusher.look(leaving.more)
            lines += [*whole, *more]
            size += sum(map(_chars, [*whole, *more]))
            found[each] = leaving
            entries |= leaving.entries
            await steps.pause()  # its texts are read from the disk
        if found:
            ended = max(moments) if all(moments) else 0.0
            await self._flusher.call(partial(self._archive.add, lines, entries, ended))
        dropped: list[trio.Event] = []
        for each, leaving in found.items():
            _raise_problem(leaving)
            if leaving.is_at_rest:  # a person may have retried it
                dropped.append(trio.Event())
                self._drop(each, leaving, dropped[-1])
            await steps.pause()
        with trio.move_on_after(AGAIN_S):  # the disk may refuse, and restore them
            for each_dropped in dropped:
                await each_dropped.wait()

    def _drop(self, id_: str, leaving: Leaving, dropped: trio.Event) -> None:
        self.remove(id_)
        stays = None if leaving.stays is None else leaving.stays()
        self._leave(id_)
        *others, last = leaving.rows
        for each in others:  # a loss of power may leave parts without the first, never it alone
            leaving.table.drop(each.id)
        then = partial(self._dropped, id_, dropped)
        if stays is None:
            leaving.table.drop(last.id, then)
        else:
            leaving.table.put(stays, then)

    def _dropped(self, id_: str, dropped: trio.Event) -> None:
        dropped.set()
        if self._left is not None:
            self._left(id_)


class _Steps:
    """Work that lets other tasks run each ``STEP_S`` seconds, not after each small part of it."""

    def __init__(self) -> None:
        self._began = trio.current_time()

    async def pause(self) -> None:
        if trio.current_time() >= self._began + STEP_S:
            await trio.lowlevel.checkpoint()
            self._began = trio.current_time()


def _chars(line: Mapping[str, Any]) -> int:
    return sum(len(each) for each in line["set"].values() if isinstance(each, str))


def understood(row: Any, line: Mapping[str, Any]) -> Any:
    """Return the row of a line of the archive; None if this version does not understand it."""
    try:
        return row_of(row, line)
    except CodecError as error:
        log.warning("row not understood", id=line["id"], why=str(error))
        return None


def _raise_problem(leaving: Leaving) -> None:
    if leaving.table.problem:
        raise StorageError(leaving.table.problem)
