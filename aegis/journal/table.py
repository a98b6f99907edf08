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
4. A long text is not in memory: a ``StoredText`` is its beginning and its place in the ledger.
"""

from __future__ import annotations

import contextlib
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
from aegis.journal.appender import Appender, Position
from aegis.journal.disk import Disk, read_exactly, shown, storage_error
from aegis.journal.flusher import Flusher
from aegis.journal.folding import lines_of, log_damage
from aegis.journal.ledger import Damaged, DamagedLine, Line, decode_line, encode_line

log = structlog.get_logger("aegis.journal")

REOPEN_S = 5.0
"""Seconds between two attempts to use a ledger that the disk refused."""

HEAD_CHARS = 200
"""The part of a text that is in memory."""


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


@attrs.frozen
class StoredText:
    """A text of a row: its beginning, its length, and a digest of all of it.

    ``whole`` is the text itself until it is written; then the line at ``[start, start + size)`` of
    the ledger has it, and ``Table.text`` reads it.
    """

    head: str
    chars: int
    digest: str
    start: int = 0
    size: int = 0
    whole: str | None = attrs.field(default=None, repr=False, eq=False)

    @classmethod
    def of(cls, text: str) -> StoredText:
        """Return a text that is not written yet."""
        return cls(text[:HEAD_CHARS], len(text), digest_of(text), whole=text)


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
        changed: Then,
        lost: Then,
        upgrade: Upgrade | None = None,
    ) -> None:
        self._path, self._row, self._flusher = path, row, flusher
        self._start_soon = context.start_soon
        self._changed, self._lost, self._upgrade = changed, lost, upgrade
        self._appender: Appender | None = None
        self._written: deque[_Written[R]] = deque()
        self._facts: deque[_Fact[R]] = deque()
        self._trying = trio.Lock()
        self._is_retrying = False
        self._durable: dict[str, R | None] = {}
        """The durable versions of the rows with lines that are not durable; None: there is none."""
        self.rows: dict[str, R] = {}
        """The rows with all changes, in the order of their first lines.

        A row comes last whose ``drop`` the disk has refused.
        """
        self.problem = ""
        """Why the ledger cannot be used now, as a sentence; empty if it can."""

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
        try:
            data = read_exactly(self._flusher.disk, self._appender.fd, text.size, text.start)
            found = _text_in(decode_line(data), field)
        except OSError as error:
            raise storage_error("read", self._path, error) from error
        except DamagedLine as damage:
            raise self._damaged(text, str(damage)) from damage
        if found is None or digest_of(found) != text.digest:
            raise self._damaged(text, "another line is there")
        return found

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
        appender = await Appender.open(self._path, self._flusher)
        with contextlib.ExitStack() as undo:
            undo.callback(appender.close)
            read = partial(
                read_rows, self._flusher.disk, self._path, appender.synced, self._row, self._upgrade
            )
            self.rows = await self._flusher.look(read)
            undo.pop_all()
        appender.start(self._start_soon)
        appender.on_outcome = self._settle
        self._appender = appender

    @property
    def is_open(self) -> bool:
        """Whether the rows were read."""
        return self._appender is not None

    def close(self) -> None:
        """Close the ledger, without a sync of what is not durable."""
        if self._appender is not None:
            self._appender.on_outcome = None
            self._appender.close()

    # Changes.

    def put(self, row: R, then: Then | None = None, reply: Reply[Any] | None = None) -> bool:
        """Add or replace a row; return whether the disk has not refused it so far.

        Call ``then`` once it is durable. If it never is, fail ``reply`` with a ``StorageError``.
        """
        return self._change(row.id, row, then, reply)

    def drop(self, row_id: str, then: Then | None = None, reply: Reply[Any] | None = None) -> bool:
        """Remove a row; otherwise as ``put``."""
        return self._change(row_id, None, then, reply)

    def _change(
        self, row_id: str, row: R | None, then: Then | None, reply: Reply[Any] | None
    ) -> bool:
        if self.problem:
            _fail(reply, self.problem)
            return False
        return self._append(row_id, row, then, reply)

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

    def settled(self, then: Then, reply: Reply[Any] | None = None) -> None:
        """Call ``then`` once all changes so far are durable; otherwise fail ``reply``."""
        if self._written:
            self._written.append(_Written(None, "", None, then, reply))
        else:
            then()

    def forget(self, row_id: str) -> None:
        """Remove a row from memory, not from the ledger. Requires that it is durable."""
        assert row_id not in self._durable
        del self.rows[row_id]

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
        self, row_id: str, row: R | None, then: Then | None, reply: Reply[Any] | None
    ) -> bool:
        assert self._appender is not None, "a table is open before it is changed"
        before = self.rows.get(row_id)
        if row is before:
            if then is not None:
                self.settled(then, reply)
            return True
        line = {"id": row_id, "drop": True} if row is None else _change_of(before, row)
        try:
            position = self._appender.append(encode_line(line))
        except StorageError as error:
            self._refused(error)
            _fail(reply, str(error))
            return False
        self._durable.setdefault(row_id, before)
        if row is None:
            del self.rows[row_id]
        else:
            row = self.rows[row_id] = _placed(row, position)
        self._written.append(_Written(position, row_id, row, then, reply))
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
        done = "written" if self.is_open else "read"
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


def read_rows(
    disk: Disk, path: Path, end: int, row: Any, upgrade: Upgrade | None = None
) -> dict[str, Any]:
    """Return the rows in the first ``end`` bytes of a ledger, by their ids. Blocking.

    A damaged line is logged and skipped, and so is a row that this version does not understand.
    Raises ``StorageError``.
    """
    found: dict[str, dict[str, Any]] = {}
    texts = {name for each in _classes(row) for name in _texts_of(each)}
    damaged: list[Damaged] = []
    skipped = 0
    for line in lines_of(disk, path, end, damaged):
        of_today: Sequence[Fields] = (line.fields,)
        if upgrade is not None and "kind" in line.fields:
            of_today = upgrade(line.fields, found)
        applied = [_apply(each, line, found, texts) for each in of_today]
        skipped += not applied or not all(applied)
    log_damage(path, damaged, skipped)
    return dict(_structured(row, found, path))


def _apply(
    fields: Mapping[str, Any], line: Line, found: dict[str, dict[str, Any]], texts: set[str]
) -> bool:
    match fields:
        case {"id": str(row_id), "set": dict(changes)}:
            row = found.setdefault(row_id, {"id": row_id})
            for name, value in changes.items():
                if name in texts and isinstance(value, str):
                    text = attrs.evolve(
                        StoredText.of(value),
                        start=line.start,
                        size=line.end - line.start,
                        whole=None,
                    )
                    row[name] = attrs.asdict(text)
                else:
                    row[name] = value
        case {"id": str(row_id), "drop": True}:
            found.pop(row_id, None)
        case _:
            return False
    return True


def _structured(row: Any, found: Documents, path: Path) -> Iterator[tuple[str, Any]]:
    for row_id, fields in found.items():
        try:
            yield row_id, structure(row, fields)
        except CodecError as error:
            log.warning("row not understood", file=shown(path), id=row_id, why=str(error))


def _change_of(before: Row | None, row: Row) -> dict[str, Any]:
    """Return the line that turns one row into another; None: that adds the row."""
    old = {} if before is None else unstructure(before)
    fields = unstructure(row)
    defaults = {} if before is not None else _defaults_of(type(row))
    texts = _texts_of(type(row))
    changes: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "id" or (value == old[name] if old else defaults.get(name, ...) == value):
            continue
        if name in texts and value is not None:
            value = value["whole"]
            assert value is not None, "a text that has changed is whole"
        changes[name] = value
    return {"id": row.id, "set": changes}


def _placed(row: R, position: Position) -> R:
    """Return a row whose texts are in the line at ``position``."""
    places: dict[str, StoredText] = {}
    for name in _texts_of(type(row)):
        text = getattr(row, name)
        if text is not None and text.whole is not None:
            size = position.end - position.start
            places[name] = attrs.evolve(text, start=position.start, size=size, whole=None)
    return attrs.evolve(row, **places) if places else row  # type: ignore[misc]


def _text_in(line: Mapping[str, Any], field: str) -> str | None:
    """Return the text of this field in a line of any form: in it, or in an object in it."""
    for each in (line, *(value for value in line.values() if isinstance(value, dict))):
        if isinstance(each.get(field), str):
            return str(each[field])
    return None


def _same(row: R) -> R:
    return row


def _classes(row: Any) -> tuple[Any, ...]:
    return get_args(row) or (row,)


@cache
def _texts_of(row: type) -> tuple[str, ...]:
    fields = resolved_fields(row)
    return tuple(each.name for each in fields if StoredText in _classes(each.type))


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
