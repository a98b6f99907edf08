"""``Table``: the rows of a durable entity, which are the fold of one ledger.

    table = Table(path, Task, flusher, context, changed=self._look, lost=self._derive)
    await table.open()
    table.put(task, then=partial(self._stored, task.id), reply=reply)
    table.fact(task_id, partial(completed, result=result), then=self._ended)

Each change is one line of the ledger: ``{"id": …, "set": {fields that changed}}``, or
``{"id": …, "drop": true}``. Four rules hold for every entity:

1. ``rows`` have each change at once; ``shown`` has only what would survive a loss of power. What
   follows from a change (``then``) happens once its line is durable, in the order of lines.
2. If the disk refuses, a change that was not durable never happened: its caller gets a
   ``StorageError`` and its row is what it was. Once the disk accepts again, ``lost`` is called, and
   the owner derives everything from the rows as it does when it starts. So no change needs code
   that undoes it.
3. A fact is what has happened outside already: an agent has done its task, a file was exchanged.
   The disk cannot refuse it. It is a function of the row, applied to the row as it is without the
   changes that were refused, and the first thing written when the disk accepts again. It must
   follow from a durable row: only a crash loses it, and then that row says that it may have been.
   A fact may be a row of its own.
   (About a row that is not durable yet it holds as long as that row: it is refused with it.)
4. A long text is not in memory: a ``StoredText`` is its beginning and its place in the ledger. Of
   a ``StoredDocument`` only the place is in memory.

A ledger of which most is out of date is replaced by one with the rows alone (``compact``). Neither
a crash nor a disk that refuses loses anything meanwhile, and no client sees it.
"""

from __future__ import annotations

import contextlib
import math
import os
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, get_args

import attrs
import structlog
import trio

from actors import Context, Reply
from actors.codec import resolved_fields, structure, unstructure
from actors.errors import CodecError
from aegis.errors import StorageError
from aegis.journal import faults
from aegis.journal.appender import Appender, Position
from aegis.journal.disk import (
    Disk,
    discard_file,
    read_exactly,
    shown,
    storage_error,
    storage_errors,
    sync_directory,
    write_all,
)
from aegis.journal.flusher import Flusher
from aegis.journal.folding import lines_of, log_damage
from aegis.journal.ledger import (
    Damaged,
    DamagedLine,
    Line,
    decode_line,
    encode_line,
    seal_new_line,
)
from aegis.journal.rotation import next_of
from aegis.state.sealing import Seal

log = structlog.get_logger("aegis.journal")

REOPEN_S = 5.0
"""Seconds between two attempts to use a ledger that the disk refused."""

HEAD_CHARS = 200
"""The part of a text that is in memory."""

COMPACT_BYTES = 64 * 1024
"""The size of a ledger from which on it is replaced when most of it is out of date."""

COMPACT_AGAIN_S = 60.0
"""Seconds until a ledger is replaced whose replacement the disk has refused."""

FRESH = os.O_CREAT | os.O_TRUNC
BATCH_ROWS = 8
BATCH_CHARS = 16 * 1024
MOVED_AT_ONCE = 256
"""The work of one step of a compaction: about a millisecond, for which others wait."""


class Row(Protocol):
    """A frozen attrs class with an immutable ``id``, unique in its table."""

    @property
    def id(self) -> str:
        """The id of the row."""
        ...


R = TypeVar("R", bound=Row)

Then = Callable[[], None]
"""Called on the event loop once a line is durable."""

Fields = Mapping[str, Any]
Documents = Mapping[str, Mapping[str, Any]]
Upgrade = Callable[[Fields, Documents], Sequence[Fields]]
"""Returns a line of an older form as lines of today's, given the rows so far; none to skip it."""


@attrs.define(eq=False)
class LedgerFile:
    """A file that is or was the ledger: the current one, or one that was replaced.

    A replaced one, open as ``fd``, is closed with the last text that is in it.
    """

    shift: int = 0
    fd: int | None = None
    closed: Then | None = None

    def replaced(self, fd: int, close: Callable[[int], None]) -> None:
        """Read the texts that are in it from ``fd`` from now on."""
        self.fd, self.closed = fd, weakref.finalize(self, close, fd)


@attrs.define
class StoredText:
    """A text of a row: its beginning, its length, and a digest of all of it.

    ``whole`` is the text itself until it is written; then the line at the positions
    ``[start, start + size)`` of the ledger has it, and ``Table.text`` reads it. All versions of a
    row share the text, and only its table changes it: its place, once the ledger was replaced.
    """

    head: str
    chars: int
    digest: str
    start: int = 0
    size: int = 0
    whole: str | None = attrs.field(default=None, repr=False, eq=False)
    file: LedgerFile | None = attrs.field(default=None, init=False, repr=False, eq=False)

    @classmethod
    def of(cls, text: str) -> StoredText:
        """Return a text that is not written yet."""
        return cls(text[:HEAD_CHARS], len(text), digest_of(text), whole=text)


@attrs.define(weakref_slot=False)
class StoredDocument:
    """A document of a row, of which only the place is in memory.

    ``whole`` is the document until it is written; then the line at the positions
    ``[start, start + size)`` has it, and ``Table.lines_of`` reads it.
    """

    start: int = 0
    size: int = 0
    # Not of ``__init__``, so that the codec passes over both.
    whole: Fields | None = attrs.field(default=None, init=False, repr=False, eq=False)
    file: LedgerFile | None = attrs.field(default=None, init=False, repr=False, eq=False)

    @classmethod
    def of(cls, document: Fields) -> StoredDocument:
        """Return a document that is not written yet."""
        stored = cls()
        stored.whole = document
        return stored

    @property
    def chars(self) -> int:
        """The size of the line, for the work of a compaction."""
        return self.size


Stored = StoredText | StoredDocument


def digest_of(text: str) -> str:
    """Return a digest that is different for each text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@attrs.frozen
class _Written(Generic[R]):
    """A line that is not durable yet, with its row after it; without a position, a wait."""

    position: Position | None
    row_id: str
    row: R | None
    then: Then | None
    reply: Reply[Any] | None


@attrs.frozen(eq=False)
class _Fact(Generic[R]):
    """A fact that is not durable yet; ``new`` is the row to change if there is none."""

    row_id: str
    change: Callable[[R], R]
    then: Then | None
    new: R | None = None


class Table(Generic[R]):
    """The rows of class ``row`` (or of a union of tagged ones) in the ledger ``path``.

    ``changed`` is called when ``shown`` has changed, ``lost`` when the disk accepts again after it
    has refused. ``upgrade`` reads the lines of ledgers that an older version has written.
    """

    def __init__(
        self,
        path: Path,
        row: Any,
        flusher: Flusher,
        context: Context,
        *,
        changed: Then = lambda: None,
        lost: Then = lambda: None,
        upgrade: Upgrade | None = None,
    ) -> None:
        self._path, self._row, self._flusher = path, row, flusher
        self._start_soon = context.start_soon
        self._changed, self._lost, self._upgrade = changed, lost, upgrade
        self._appender: Appender | None = None
        self._written: deque[_Written[R]] = deque()
        self._facts: deque[_Fact[R]] = deque()
        self._trying = trio.Lock()
        self._accepted = trio.Event()
        """Set unless there is a problem."""
        self._accepted.set()
        self._is_retrying = False
        self._file = LedgerFile()
        self._replaced: weakref.WeakSet[LedgerFile] = weakref.WeakSet()
        self._waste = 0
        """The bytes of the ledger that are out of date, approximately."""
        self._may_compact = self._is_compacting = False
        self._compact_after = -math.inf
        self._durable: dict[str, R | None] = {}
        """The durable versions of the rows with lines that are not durable; None: there is none."""
        self.rows: dict[str, R] = {}
        """The rows with all changes, in the order of their first lines.

        A row comes last whose ``drop`` the disk has refused.
        """
        self.problem = ""
        """Why the ledger cannot be used now, as a sentence; empty if it can."""
        self.refusal = ""
        """The reason of the disk, as a sentence for the caller of a change."""

    # Reading.

    def shown(self, row_id: str) -> R | None:
        """Return the durable version of a row; None if there is none."""
        if row_id in self._durable:
            return self._durable[row_id]
        return self.rows.get(row_id)

    def all_shown(self) -> Iterator[R]:
        """Yield the durable versions of all rows."""
        for row_id, row in self.rows.items():
            durable = self._durable.get(row_id, row)
            if durable is not None:
                yield durable

    def text(self, text: StoredText, field: str) -> str:
        """Return the whole of a text, which is in a line's field of this name.

        Raises ``StorageError`` if it cannot be read any more.
        """
        if text.whole is not None:
            return text.whole
        if text.chars <= len(text.head):
            return text.head
        assert self._appender is not None, "a row with a place comes from an open ledger"
        file = self._file if text.file is None else text.file
        return self._read(text, field, self._appender.fd if file.fd is None else file.fd)

    def text_or_head(self, text: StoredText, field: str) -> str:
        """Return the whole of a text, or its beginning if it cannot be read any more."""
        try:
            return self.text(text, field)
        except StorageError as error:
            log.warning("text not read", file=shown(self._path), why=str(error))
            return text.head

    def _read(self, text: StoredText, field: str, fd: int) -> str:
        shift = self._file.shift if text.file is None else text.file.shift
        try:
            data = read_exactly(self._flusher.disk, fd, text.size, text.start - shift)
            found = _text_in(decode_line(data), field, text.digest)
        except OSError as error:
            raise storage_error("read", self._path, error) from error
        except DamagedLine as damage:
            raise self._damaged(text, str(damage)) from damage
        if found is None:
            raise self._damaged(text, "another line is there")
        return found

    def lines_of(self, stored: Sequence[StoredDocument]) -> list[Fields | str]:
        """Return the lines that have these documents; for a damaged one, the reason.

        Raises ``StorageError``.
        """
        assert self._appender is not None, "a row with a place comes from an open ledger"
        places = [self._place_of(each, self._appender.fd) for each in stored]
        return _lines_at(self._flusher.disk, self._path, places)

    async def lines_of_many(self, stored: Sequence[StoredDocument]) -> list[Fields | str]:
        """Return the same as ``lines_of``, read in a thread."""
        while all(each.file is None or each.file.fd is None for each in stored):
            file = self._file
            places = [self._place_of(each, -1)[1:] for each in stored]
            # Not by the descriptor, which may be closed while the thread reads.
            read = partial(_lines_in, self._flusher.disk, self._path, places)
            found = await self._flusher.look(read)
            if self._file is file:
                return found
        return self.lines_of(stored)  # the ledger was replaced meanwhile

    def _place_of(self, stored: StoredDocument, fd: int) -> tuple[int, int, int]:
        file = self._file if stored.file is None else stored.file
        return fd if file.fd is None else file.fd, stored.start - file.shift, stored.size

    def _stored(self, stored: Stored, field: str) -> object:
        if isinstance(stored, StoredText):
            return self.text(stored, field)
        if stored.whole is not None:
            return stored.whole
        [line] = self.lines_of([stored])
        return _document_in(line, field, self._path)

    def whole(self, row: R) -> dict[str, Any]:
        """Return the line that would add a row, with its texts. Raises ``StorageError``."""
        return _change_of({}, row, self._stored)

    def _damaged(self, text: StoredText, why: str) -> StorageError:
        where = f"bytes {text.start} to {text.start + text.size} of {shown(self._path)}"
        return StorageError(f"{where} are damaged ({why}); a copy of the state may have them whole")

    # Opening and closing.

    async def open(self) -> None:
        """Open or create the ledger, and read the rows; try it again if it has a ``problem``.

        If the disk refuses, ``problem`` says so, and it is tried again every ``REOPEN_S`` seconds.
        """
        if self._appender is not None and not self.problem:
            return
        async with self._trying:
            if self.problem:
                await self._try_again()
            elif self._appender is None:
                try:
                    await self._open()
                except StorageError as error:
                    self._has_problem(error)

    async def _open(self) -> None:
        disk = self._flusher.disk
        appender = await Appender.open(self._path, self._flusher)
        with contextlib.ExitStack() as undo:
            undo.callback(appender.close)
            await self._flusher.call(partial(settle_replacement, disk, self._path))
            read = partial(_read, disk, self._path, appender.synced, self._row, self._upgrade)
            found = await self._flusher.look(read)
            undo.pop_all()
        self.rows, self._file = found.rows, found.file
        self._waste, self._may_compact = found.waste, found.is_whole
        appender.start(self._start_soon)
        appender.on_outcome = self._settle
        self._appender = appender
        self._compact_if_worth()

    @property
    def is_whole(self) -> bool:
        """Whether it is open, and each of its lines was understood."""
        return self._may_compact

    @property
    def is_open(self) -> bool:
        """Whether the rows were read."""
        return self._appender is not None

    def discard(self) -> None:
        """Close the ledger, and delete it if it has no row. Blocking.

        One with lines that were not understood is not deleted: a person may need them.
        """
        is_useless = self.is_whole and not self.rows and not self._written
        self.close()
        if is_useless and self.is_open:
            with contextlib.suppress(OSError):  # a later start deletes it
                self._flusher.disk.unlink(self._path)

    def close(self) -> None:
        """Close the ledger, without a sync of what is not durable."""
        self._may_compact = False
        if self._appender is not None:
            self._appender.on_outcome = None
            self._appender.close()
        for file in self._replaced:
            if file.closed is not None:
                file.closed()

    # Changes.

    def put(
        self,
        row: R,
        then: Then | None = None,
        reply: Reply[Any] | None = None,
        *,
        is_deferred: bool = False,
    ) -> bool:
        """Add or replace a row; return whether the disk has not refused it so far.

        Call ``then`` once it is durable. If it never is, fail ``reply`` with a ``StorageError``.
        ``is_deferred``: it becomes durable with the next change that is not, or by ``sync``.
        """
        if self.problem:
            _fail(reply, self.refusal)
            return False
        return self._append(row.id, row, then, reply, syncs=not is_deferred)

    def sync(self) -> None:
        """Make deferred changes durable."""
        if self._written and not self.problem and self._appender is not None:
            self._appender.request_sync()

    def drop(self, row_id: str, then: Then | None = None, reply: Reply[Any] | None = None) -> bool:
        """Remove a row; otherwise as ``put``."""
        if self.problem:
            _fail(reply, self.refusal)
            return False
        return self._append(row_id, None, then, reply)

    def fact(self, row_id: str, change: Callable[[R], R], then: Then | None = None) -> None:
        """Apply to a row what has happened outside. Call ``then`` once it is durable.

        ``change`` may be called again, for the row without what was refused meanwhile. If it
        returns the row that it got, nothing is written.
        """
        self._note(_Fact(row_id, change, then))

    def add_fact(self, row: R, then: Then | None = None) -> None:
        """Add a row about what has happened outside, unless there is one with its id.

        Call ``then`` once there is a durable one. A row that the disk refuses makes room for this.
        """
        self._note(_Fact(row.id, _same, then, row))

    def _note(self, fact: _Fact[R]) -> None:
        self._facts.append(fact)
        if self.problem:
            self._lay(fact)
        else:
            self._write_fact(fact)

    def has_fact(self, row_id: str) -> bool:
        """Return whether a fact about this row is not durable yet."""
        return any(each.row_id == row_id for each in self._facts)

    def is_at_rest(self, row_id: str) -> bool:
        """Return whether a row is durable, and nothing more is being written about it."""
        row = self.rows.get(row_id)
        return row is not None and row is self.shown(row_id) and not self.has_fact(row_id)

    def settled(self, then: Then, reply: Reply[Any] | None = None) -> None:
        """Call ``then`` once all changes so far are durable; otherwise fail ``reply``."""
        if self._written:
            self._written.append(_Written(None, "", None, then, reply))
        else:
            then()

    async def accepts(self) -> None:
        """Wait until the disk accepts changes."""
        while True:
            await self._accepted.wait()
            if not self.problem:  # the disk may have refused again meanwhile
                return

    async def durable(self) -> None:
        """Wait until all changes so far are durable, however long the disk refuses.

        Changes that it refuses meanwhile are gone then; facts are written.
        """
        while True:
            await self.accepts()
            reply: Reply[None] = Reply()
            self.settled(partial(reply.send, None), reply)
            with contextlib.suppress(StorageError):
                return await reply.wait()

    def _write_fact(self, fact: _Fact[R]) -> bool:
        row = fact.change(self._row_of(fact))
        return self._append(fact.row_id, row, partial(self._fact_durable, fact), None)

    def _row_of(self, fact: _Fact[R]) -> R:
        """Return the row that a fact is about, as it is now."""
        if fact.new is not None:
            return self.rows.get(fact.row_id, fact.new)
        return self.rows[fact.row_id]

    def _fact_durable(self, fact: _Fact[R]) -> None:
        self._facts.remove(fact)  # usually the first: facts are written in their order
        if fact.then is not None:
            fact.then()

    def _lay(self, fact: _Fact[R]) -> None:
        """Apply a fact to the rows, not to the ledger."""
        self._durable.setdefault(fact.row_id, self.rows.get(fact.row_id))
        self.rows[fact.row_id] = fact.change(self._row_of(fact))

    def _append(
        self,
        row_id: str,
        row: R | None,
        then: Then | None,
        reply: Reply[Any] | None,
        *,
        syncs: bool = True,
    ) -> bool:
        assert self._appender is not None, "a table is open before it is changed"
        before = self.rows.get(row_id)
        if row is before:
            if then is not None:
                self.settled(then, reply)
            return True
        old: Fields = {} if before is None else unstructure(before)
        line = {"id": row_id, "drop": True} if row is None else _change_of(old, row)
        try:
            position = self._appender.append(encode_line(line))
        except StorageError as error:
            self._refused(error)
            _fail(reply, str(error))
            return False
        if old:
            self._waste += _waste_of(old, line, position.end - position.start)
        self._durable.setdefault(row_id, before)
        if row is None:
            del self.rows[row_id]
        else:
            row = self.rows[row_id] = _placed(row, position, self._file)
        self._written.append(_Written(position, row_id, row, then, reply))
        if syncs:
            self._appender.request_sync()
        return True

    # What became of the lines.

    def _settle(self) -> None:
        """Do what follows from the lines that are durable now, in their order."""
        assert self._appender is not None
        has_changed = False
        try:
            while self._written and self._is_durable(self._written[0].position):
                line = self._written.popleft()
                if line.position is not None:
                    has_changed = True
                    self._is_shown(line)
                if line.then is not None:
                    line.then()
        except StorageError as error:
            self._refused(error)
        if has_changed:
            self._changed()
            self._compact_if_worth()

    def _is_durable(self, position: Position | None) -> bool:
        assert self._appender is not None
        return position is None or self._appender.is_synced(position)

    def _is_shown(self, line: _Written[R]) -> None:
        if self.rows.get(line.row_id) is line.row:
            self._durable.pop(line.row_id, None)
        else:  # a later line about the same row is not durable yet
            self._durable[line.row_id] = line.row

    def _refused(self, error: StorageError) -> None:
        """Take back what is not durable, except for facts."""
        written, self._written = self._written, deque()
        self._restore()
        facts, self._facts = self._facts, deque()
        for fact in facts:
            if fact.new is not None or fact.row_id in self.rows:
                self._facts.append(fact)
                self._lay(fact)
        for line in written:
            _fail(line.reply, str(error))
        self._has_problem(error)
        self._changed()

    def _has_problem(self, error: StorageError) -> None:
        if not self._is_retrying:
            self._is_retrying = True
            self._start_soon(self._retry)
        if self._accepted.is_set():
            self._accepted = trio.Event()
        done = "written" if self.is_open else "read"
        self.refusal = str(error)
        self.problem = (
            f"its ledger cannot be {done}, which is tried again every {REOPEN_S:g} seconds: {error}"
        )

    async def _retry(self) -> None:
        while self.problem:
            await trio.sleep(REOPEN_S)
            await self.open()
        self._is_retrying = False

    async def _try_again(self) -> None:
        try:
            await (self._open() if self._appender is None else self._appender.recover())
        except StorageError as error:
            self._has_problem(error)
            return
        if self._write_facts():
            self.problem = ""
            self._accepted.set()
            self._lost()
            self._changed()

    def _write_facts(self) -> bool:
        """Write the facts, before anything else; return False if the disk refuses."""
        facts = [*self._facts]
        self._restore()
        return all(map(self._write_fact, facts))

    def _restore(self) -> None:
        """Make the rows what is durable."""
        for row_id, row in self._durable.items():
            if row is None:
                self.rows.pop(row_id, None)
            else:
                self.rows[row_id] = row
        self._durable.clear()

    # Compaction.

    def _compact_if_worth(self) -> None:
        assert self._appender is not None
        length = self._appender.length
        is_worth = length >= COMPACT_BYTES and 2 * self._waste > length
        if is_worth and trio.current_time() >= self._compact_after:
            self.compact()

    def compact(self) -> None:
        """Replace the ledger by one with the durable rows alone, in the background.

        Does nothing if the ledger has lines that were not understood: they would be lost.
        """
        if self._may_compact and not self._is_compacting and not self.problem:
            self._is_compacting = True
            self._start_soon(self._compact)

    async def _compact(self) -> None:
        try:
            await self._replace_ledger()
        except (StorageError, OSError) as error:
            if isinstance(error, OSError):
                error = storage_error("compact", self._path, error)
            self._compact_after = trio.current_time() + COMPACT_AGAIN_S
            log.warning("ledger not compacted", file=shown(self._path), why=str(error))
        finally:
            self._is_compacting = False

    async def _replace_ledger(self) -> None:
        appender, disk, call = self._appender, self._flusher.disk, self._flusher.call
        assert appender is not None
        # Of one moment: the rows are what the lines before this position result in.
        since, before, waste = appender.synced, appender.length, self._waste
        rows = [*self.all_shown()]
        fresh = next_of(self._path)
        faults.COMPACT_BEFORE.hit(self._path.name)
        with contextlib.ExitStack() as undo:
            # Not the appender's own descriptor, which it closes when the disk refuses.
            source = disk.dup(appender.fd)
            undo.callback(disk.close, source)
            fd = await call(partial(disk.open, fresh, os.O_RDWR | os.O_APPEND | FRESH))
            undo_fresh = undo.enter_context(contextlib.ExitStack())
            undo_fresh.callback(discard_file, disk, fd, fresh)
            writer = _RowsWriter(disk, fd, disk.seal(self._path), partial(self._text_from, source))
            for batch in _batches(rows):
                await call(partial(writer.write, batch))
            replaced = self._file

            def replace(old: int) -> None:
                undo_fresh.pop_all()
                self._replaced.add(replaced)
                replaced.replaced(old, self._flusher.close_soon)
                self._file = LedgerFile(appender.shift)
                self._waste -= waste

            await appender.replace(fresh, fd, since, replace)
        await self._move_texts(replaced, writer)
        log.debug("ledger compacted", file=shown(self._path), bytes=writer.size, had=before)

    def _text_from(self, source: int, text: Stored, field: str) -> object:
        """Return a text of a durable row while its ledger is being replaced. Blocking."""
        if isinstance(text, StoredDocument):
            place = self._place_of(text, source)
            [line] = _lines_at(self._flusher.disk, self._path, [place])
            return _document_in(line, field, self._path)
        return text.head if text.chars <= len(text.head) else self._read(text, field, source)

    async def _move_texts(self, replaced: LedgerFile, writer: _RowsWriter) -> None:
        """Note the places of all texts in the new file; until then they are read from the old."""
        file = self._file
        rows = [*self.rows.values(), *self._durable.values(), *(e.row for e in self._written)]
        moved = zip(writer.texts, writer.offsets, writer.sizes, strict=True)
        for count, (text, offset, size) in enumerate(moved):
            text.file, text.start, text.size = file, file.shift + offset, size
            if count % MOVED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        for count, row in enumerate(rows):
            for text in () if row is None else _texts_in(row).values():
                if text.file is replaced:
                    text.file = file  # its line was copied: the position is the same
            if count % MOVED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()


@attrs.define
class _RowsWriter:
    """The writer of the first part of a new ledger: one line for each row. Blocking.

    ``offsets`` and ``sizes`` are those of the lines of the ``texts``.
    """

    disk: Disk
    fd: int
    seal: Seal | None
    text_of: Callable[[Stored, str], object]
    size: int = 0
    # Not one tuple for each text: thousands of them would make the garbage collector busy.
    texts: list[Stored] = attrs.field(factory=list)
    offsets: array[int] = attrs.field(factory=lambda: array("Q"))
    sizes: array[int] = attrs.field(factory=lambda: array("Q"))

    def write(self, rows: Sequence[Row]) -> None:
        lines = b""
        for row in rows:
            line = seal_new_line(encode_line(_change_of({}, row, self.text_of)), self.seal)
            for text in _texts_in(row).values():
                self.texts.append(text)
                self.offsets.append(self.size + len(lines))
                self.sizes.append(len(line))
            lines += line
        write_all(self.disk, self.fd, lines)
        self.size += len(lines)


def _batches(rows: Sequence[R]) -> Iterator[list[R]]:
    """Yield the rows in parts whose work takes about a millisecond, or one long text."""
    batch: list[R] = []
    chars = 0
    for row in rows:
        batch.append(row)
        chars += sum(each.chars for each in _texts_in(row).values())
        if len(batch) == BATCH_ROWS or chars >= BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def settle_replacement(disk: Disk, path: Path) -> None:
    """Complete a replacement that was cut: make its name durable, delete its rest. Blocking."""
    with storage_errors("open", path):
        with contextlib.suppress(FileNotFoundError):
            disk.unlink(next_of(path))
        sync_directory(disk, path.parent)


@attrs.define
class _Found:
    """The content of a ledger: rows, and the bytes that are out of date, approximately.

    ``is_whole`` unless some lines were not understood.
    """

    rows: dict[str, Any]
    file: LedgerFile
    waste: int = 0
    is_whole: bool = True


def read_rows(
    disk: Disk, path: Path, end: int | None, row: Any, upgrade: Upgrade | None = None
) -> dict[str, Any]:
    """Return the rows in the first ``end`` bytes of a ledger, or all, by their ids. Blocking.

    A damaged line is logged and skipped, and so is a row that this version does not understand.
    Raises ``StorageError``.
    """
    return _read(disk, path, end, row, upgrade).rows


def read_text(disk: Disk, path: Path, text: StoredText, field: str) -> str:
    """Return the whole text of a row from ``read_rows``; of a damaged one the beginning. Blocking.

    Raises ``StorageError``.
    """
    if text.whole is not None or text.chars <= len(text.head):
        return text.head if text.whole is None else text.whole
    [line] = _lines_in(disk, path, [(text.start, text.size)])
    found = _text_in(line, field, text.digest)
    return text.head if found is None else found


def _read(disk: Disk, path: Path, end: int | None, row: Any, upgrade: Upgrade | None) -> _Found:
    found: dict[str, dict[str, Any]] = {}
    texts = {name for each in _classes(row) for name in _fields_of(each, StoredText)}
    documents = {name for each in _classes(row) for name in _fields_of(each, StoredDocument)}
    damaged: list[Damaged] = []
    skipped = waste = 0
    for line in lines_of(disk, path, end, damaged):
        of_today: Sequence[Fields] = (line.fields,)
        if upgrade is not None and "kind" in line.fields:
            of_today = upgrade(line.fields, found)
        size = line.end - line.start
        for fields in of_today:
            if (before := found.get(str(fields.get("id")))) is not None:
                waste += _waste_of(before, fields, size)
            skipped += not _apply(fields, line, found, texts, documents)
            size = 0  # of the other lines of today that it results in
        skipped += not of_today
    log_damage(path, damaged, skipped)
    file, count = LedgerFile(), len(found)
    rows = dict(_structured(row, found, path, file))
    is_whole = not (damaged or skipped) and len(rows) == count
    return _Found(rows, file, waste, is_whole)


def _waste_of(before: Fields, line: Fields, size: int) -> int:
    """Return about how much less a ledger needs than it has once this line changes a row."""
    changes = line.get("set", before)
    old = sum(_weight(name, before[name]) for name in changes if name in before)
    return size + old - sum(_weight(*each) for each in changes.items() if "set" in line)


def _weight(name: str, value: Any) -> int:
    """Return about how many bytes a field needs; of what is stored, the line that has it."""
    if isinstance(value, dict) and value.keys() >= {"start", "size"}:
        return int(value["size"])
    text = str(value)
    return len(name) + 4 + len(text if text.isascii() else text.encode("utf-8", "surrogatepass"))


def row_of(row: Any, line: Fields) -> Any:
    """Return the row that a line adds, with its whole texts. Raises ``CodecError``."""
    texts = {name for each in _classes(row) for name in _texts_of(each)}
    fields = {"id": line["id"], **line["set"]}
    for name in texts & fields.keys():
        if isinstance(fields[name], str):
            fields[name] = unstructure(StoredText.of(fields[name]))
    return structure(row, fields)


def _apply(
    fields: Mapping[str, Any],
    line: Line,
    found: dict[str, dict[str, Any]],
    texts: set[str],
    documents: set[str],
) -> bool:
    match fields:
        case {"id": str(row_id), "set": dict(changes)}:
            row = found.setdefault(row_id, {"id": row_id})
            for name, value in changes.items():
                if name in documents and isinstance(value, dict):
                    row[name] = {"start": line.start, "size": line.end - line.start}
                elif name in texts and isinstance(value, str):
                    text = StoredText.of(value)
                    text.start, text.size, text.whole = line.start, line.end - line.start, None
                    row[name] = unstructure(text)
                else:
                    row[name] = value
        case {"id": str(row_id), "drop": True}:
            found.pop(row_id, None)
        case _:
            return False
    return True


def _structured(
    row: Any, found: dict[str, dict[str, Any]], path: Path, file: LedgerFile
) -> Iterator[tuple[str, Any]]:
    """Yield the rows, which are taken out of ``found``: never is all in memory twice."""
    for row_id in [*found]:
        fields = found.pop(row_id)
        try:
            read = structure(row, fields)
        except CodecError as error:
            log.warning("row not understood", file=shown(path), id=row_id, why=str(error))
            continue
        for text in _texts_in(read).values():
            text.file = file
        yield row_id, read


def _whole(text: Stored, _: str) -> object:
    assert text.whole is not None, "a text that has changed is whole"
    return text.whole


def _change_of(
    old: Fields, row: Row, text_of: Callable[[Stored, str], object] = _whole
) -> dict[str, Any]:
    """Return the line that changes a row with the ``old`` fields; without any, that adds it."""
    fields = unstructure(row)
    defaults = {} if old else _defaults_of(type(row))
    texts = _texts_of(type(row))
    changes: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "id" or (value == old[name] if old else defaults.get(name, ...) == value):
            continue
        if name in texts and value is not None:
            value = text_of(getattr(row, name), name)
        changes[name] = value
    return {"id": row.id, "set": changes}


def _placed(row: R, position: Position, file: LedgerFile) -> R:
    """Return a row whose texts are in the line at ``position``."""
    if not _texts_of(type(row)):
        return row
    places: dict[str, Stored] = {}
    start, size = position.start, position.end - position.start
    for name, text in _texts_in(row).items():
        if text.whole is not None:
            if isinstance(text, StoredDocument):
                place: Stored = StoredDocument(start, size)
            else:
                place = attrs.evolve(text, start=start, size=size, whole=None)
            place.file, places[name] = file, place
    return attrs.evolve(row, **places) if places else row  # type: ignore[misc]


def _text_in(part: object, field: str, digest: str) -> str | None:
    """Return the text of this field with this digest in a line of any form, however deep in it."""
    if isinstance(part, dict):
        text = part.get(field)
        if isinstance(text, str) and digest_of(text) == digest:
            return text
        part = [*part.values()]
    if not isinstance(part, list):
        return None
    found = (_text_in(each, field, digest) for each in part)
    return next((each for each in found if each is not None), None)


def _lines_at(disk: Disk, path: Path, places: Sequence[tuple[int, int, int]]) -> list[Fields | str]:
    """Return the lines at these descriptors, offsets and sizes. Raises ``StorageError``."""
    with storage_errors("read", path):
        ends = {fd: disk.size(fd) for fd in {each[0] for each in places}}
        return [
            _line_at(disk, fd, start, size) if start + size <= ends[fd] else "the file ends before"
            for fd, start, size in places
        ]


def _lines_in(disk: Disk, path: Path, places: Sequence[tuple[int, int]]) -> list[Fields | str]:
    with storage_errors("read", path):
        fd = disk.open(path, os.O_RDONLY)
    try:
        return _lines_at(disk, path, [(fd, *each) for each in places])
    finally:
        disk.close(fd)


def _line_at(disk: Disk, fd: int, start: int, size: int) -> Fields | str:
    try:
        return decode_line(read_exactly(disk, fd, size, start))
    except DamagedLine as damage:
        return str(damage)


def _document_in(line: Fields | str, field: str, path: Path) -> object:
    if isinstance(line, str):
        raise StorageError(f"a line of {shown(path)} is damaged: {line}")
    return line["set"][field] if "set" in line else line


def _same(row: R) -> R:
    return row


def _classes(row: Any) -> tuple[Any, ...]:
    return get_args(row) or (row,)


@cache
def _texts_of(row: type) -> tuple[str, ...]:
    return (*_fields_of(row, StoredText), *_fields_of(row, StoredDocument))


def _fields_of(row: type, stored: type[Stored]) -> list[str]:
    return [each.name for each in resolved_fields(row) if stored in _classes(each.type)]


def _texts_in(row: Row) -> dict[str, Stored]:
    texts = {name: getattr(row, name) for name in _texts_of(type(row))}
    return {name: text for name, text in texts.items() if text is not None}


@cache
def _defaults_of(row: type) -> dict[str, Any]:
    """Return the fields that a line need not have, as documents."""
    return {
        each.name: each.default
        for each in resolved_fields(row)
        if each.default is not attrs.NOTHING and not isinstance(each.default, attrs.Factory)  # type: ignore[arg-type]
    }


def _fail(reply: Reply[Any] | None, sentence: str) -> None:
    if reply is not None:
        reply.fail(StorageError(sentence))
