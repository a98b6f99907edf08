"""``CanvasActor``: the actor of one canvas, between its writers, its file and its subscribers.

Requests that need the file are jobs, and one coroutine does one after another:

    a job      → the file is read; an edit of another program in it is recorded, once it is quiet
    a read     → the answer
    a write    → "intended" is durable → the file is exchanged → "done", the answer, the wakes

An exchange is a fact: the disk cannot refuse it. One that ended unclearly, because of the disk or
of a kill, is judged when the file is read the next time.
"""

from __future__ import annotations

import contextlib
import re
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio

from actors import Actor, ActorError, Reply
from aegis.canvases import examining, faults, revisions, views
from aegis.canvases.binding import Bound, place_of
from aegis.canvases.document import BODY, EMPTY, PREAMBLE, Document, differences, plain
from aegis.canvases.examining import Composed, FoundFile
from aegis.canvases.messages import CanvasReport, LookNow, SendReport, WatchFile
from aegis.canvases.past import ChangesReply, NewestFirst
from aegis.canvases.revisions import (
    KIND,
    MAX_HISTORY_CHARS,
    CanvasRow,
    FileVersion,
    Known,
    Revision,
    Subscriber,
    outside_revisions,
    section_text,
    subscriber_id,
    writer_of,
)
from aegis.canvases.wakes import Wakes
from aegis.clock import moment_of, utc_now
from aegis.errors import AegisError, Busy, InvalidRequest, StorageError, Unavailable
from aegis.journal.archive import Archive, Keep
from aegis.journal.archiver import Archiver, Leaving, understood
from aegis.journal.file_content import NO_FILE, Exchanged
from aegis.journal.flusher import Flusher
from aegis.journal.rotation import previous_of, settle_rotation
from aegis.journal.table import StoredText, Table
from aegis.names import shorten
from aegis.path_text import is_utf8
from aegis.protocol.canvases import (
    MAX_SECTION_NAMES,
    SECTION_PATTERN,
    SECTION_RULE,
    AppendToSection,
    CanvasChange,
    CanvasHistory,
    CanvasInfo,
    CanvasSubscription,
    CanvasText,
    CanvasWritten,
    GetCanvasHistory,
    OpenCanvas,
    ReadCanvas,
    SubscribeCanvas,
    UnsubscribeCanvas,
    WriteSection,
)
from aegis.protocol.naming import name_key
from aegis.protocol.resources import CanvasResource
from aegis.publishing import publish_change

log = structlog.get_logger("aegis.canvases")

MAX_JOBS = 256
"""Requests of one canvas that wait for the one in progress."""

MAX_SUBSCRIBERS = 256

PATIENCE_S = 5.0
"""Seconds that a write waits for another program that changes the file."""

PAUSE_S = 0.05
"""Seconds between two examinations of a file that another program has open for writing."""

QUIET_S = 0.1
"""Seconds for which a file that another program has changed must stay as it is to be judged."""

GONE_S = 1.0
"""The same for a file that is gone or empty.

Many programs save a file by removing it and making it anew, ``git checkout`` for example.
"""

LOOK_AGAIN_S = 1.0
"""Seconds until an edit is looked for again, if a program was writing."""

FIRST_WATCH_S = 1.0
POLL_S = 5.0
"""Seconds between two looks at a file that cannot be watched, and between two tries to watch it.

The first wait is shorter, and doubled each time.
"""

HISTORY_S = 1.0
"""Seconds after which a history is sent with what was found in the archive."""

LINES_AT_ONCE = 16
"""The lines of the archive that are read in one step, for which others may wait."""

MAX_UNUSED = 8
"""The numbers in a row that belong to writes that are not in the file, at most: a guess."""

_SECTION = re.compile(SECTION_PATTERN)

Write = WriteSection | AppendToSection
Job = OpenCanvas | ReadCanvas | Write
Command = Job | SubscribeCanvas | UnsubscribeCanvas | GetCanvasHistory
CanvasMessage = Command | LookNow | SendReport


@attrs.frozen
class Pause:
    """The file cannot be used for some seconds; ``is_open``: a program has it open for writing."""

    seconds: float
    is_open: bool = False


@attrs.define(eq=False)
class Attempt:
    """A request that needs the file, or a look at it without a ``job``, and how far it is.

    It began at a moment of Trio's clock. ``seen`` is the digest of an edit that must stay as it is
    to be judged, ``own`` is the revision of a write.
    """

    job: Job | None = None
    reply: Reply[Any] | None = None
    began: float = 0.0
    seen: str = ""
    own: Revision | None = None


class CanvasActor(Actor[CanvasMessage]):
    """The canvas ``bound`` with the ledger ``path``.

    Its file is below ``root``, or below one of ``directories``.
    """

    def __init__(
        self,
        *,
        bound: Bound,
        path: Path,
        root: str,
        directories: tuple[str, ...],
        archive: Path,
        keep: Keep,
        flusher: Flusher,
    ) -> None:
        self._bound, self._name = bound, bound.name
        self._path, self._root, self._directories = path, root, directories
        self._archive, self._keep = archive, keep
        self._flusher = flusher
        self._is_ready = False
        self._known = Known()
        self._document: Document | None = None
        """The content of the file with the digest that is known; None: it was not read yet."""
        self._problem = ""
        self._jobs: deque[Attempt] = deque()
        self._is_working = self._is_pausing = self._is_looking_later = False
        self._subscribers: set[str] = set()
        """The ids of the rows of subscribers, also of those that are not durable."""
        self._ended, self._ended_at = 0, 0.0
        """The newest change that may move to the archive, and its time or a later one."""

    async def setup(self) -> None:
        """Register the canvas and open it. If the disk refuses, each request tries again."""
        self.context.register("canvas", name_key(self._name))
        self._table: Table[Any] = Table(
            self._path,
            CanvasRow,
            self._flusher,
            self.context,
            changed=self._changed,
            lost=self._lost,
            upgrade=revisions.line_of_today,
        )
        self._archiver = Archiver(
            Archive(
                self._archive,
                f"{KIND}{self._name}-{self._bound.life}",
                self._flusher.disk,
                self._keep.archive_bytes,
            ),
            self._keep,
            self._flusher,
            self.context,
            find=self._leaving,
            leave=lambda row_id: self._known.leave(self._table.rows[row_id]),
            max_size=MAX_HISTORY_CHARS,
        )
        self._wakes = Wakes(
            self._bound,
            self._table,
            self._subscribers,
            self.context,
            after=lambda rev: [self._table.rows[str(each)] for each in self._known.after(rev)],
            shown=self._shown,
        )
        with contextlib.suppress(StorageError, Unavailable):
            await self._open()

    async def teardown(self) -> None:
        self._table.close()

    async def receive(self, message: CanvasMessage) -> None:
        """Handle a message of a client, of the desk or of the watcher."""
        if not self._is_ready:
            await self._open()
        match message:
            case SubscribeCanvas():
                await self._subscribe(message)
            case UnsubscribeCanvas(from_handle=handle):
                await self._table.open()
                key, reply = subscriber_id(handle or revisions.HUMAN), self.defer(message)
                self._table.drop(key, partial(self._subscribed, key, reply), reply)
            case GetCanvasHistory():
                history = partial(self._history, message)
                self.context.start_soon(self._answer, history, self.defer(message))
            case LookNow(is_lost=is_lost):
                if is_lost:
                    self.context.start_soon(self._watch)
                self._look_soon()
            case SendReport():
                self._report()
                self._look_soon()
            case _:
                self._ask(message)

    async def _answer(self, work: Any, reply: Reply[Any]) -> None:
        try:
            value = await work()
        except AegisError as error:
            reply.fail(error)
        else:
            reply.send(value)

    # The ledger.

    async def _open(self) -> None:
        """Open the ledger and look at the file. Raises ``StorageError``, ``Unavailable``."""
        try:
            self._place = place_of(self._bound, self._root, self._directories)
        except AegisError as error:
            raise Unavailable(f"canvas {self._name!r} cannot be used: {error}") from None
        disk = self._flusher.disk
        if not self._table.is_open:
            await self._flusher.call(partial(settle_rotation, disk, self._path))
        await self._table.open()
        if not self._table.is_open:
            raise StorageError(self._table.refusal)
        await self._take_over()
        self._is_ready = True
        self._derive()
        self.context.start_soon(self._watch)

    async def _take_over(self) -> None:
        """Take over the changes in the older file of a ledger that was written before tables."""
        disk, previous = self._flusher.disk, previous_of(self._path)
        older = await self._flusher.look(partial(examining.older_revisions, disk, self._path))
        known = {key: row for key, row in self._table.rows.items() if isinstance(row, Revision)}
        rows = [each for each in older if _digest(known.get(each.id)) != _digest(each)]
        # If the disk refuses, it is taken over by the next life.
        with contextlib.suppress(StorageError, OSError):
            if rows:
                await self._store(*rows)
            if older:
                await self._flusher.call(partial(disk.unlink, previous))

    def _derive(self) -> None:
        """Derive everything from the rows: at the start, and once the disk accepts again."""
        rows = [*self._table.rows.values()]
        before, self._known = self._known, Known(rows)
        if self._known.digest != before.digest:
            self._document = None
        self._subscribers.update(each.id for each in rows if isinstance(each, Subscriber))
        self._wakes.push()
        self._ended, self._ended_at = 0, 0.0
        self._archive_old()
        self._report()
        self._look_soon()

    def _lost(self) -> None:
        if self._is_ready:
            self._derive()

    def _changed(self) -> None:
        if self._is_ready and self._wakes.is_waiting:
            self._wakes.push()

    async def _store(self, *rows: Any) -> None:
        """Add rows, and wait until they are durable. Raises ``StorageError``."""
        await self._table.open()  # a disk that has refused is tried again
        stored: Reply[None] = Reply()
        for row in rows[:-1]:
            self._table.put(row)
        self._table.put(rows[-1], partial(stored.send, None), stored)
        await stored.wait()

    def _texts(self) -> dict[str, str]:
        """Return the last known text of each section."""
        if self._document is not None:
            return dict(self._document.texts)
        found = {}
        for name, each in self._known.sections.items():
            field = "text" if each.section_text is None else "section_text"
            with contextlib.suppress(StorageError):  # a damaged one is taken from the file again
                found[name] = self._table.text(section_text(each), field)
        return found

    # Subscribers.

    async def _subscribe(self, message: SubscribeCanvas) -> None:
        sections, handle = _checked(message.sections), message.from_handle or revisions.HUMAN
        await self._table.open()  # a disk that has refused is tried again
        key, rev = subscriber_id(handle), self._known.recorded
        known = self._table.rows.get(key)
        if known is None:
            count = sum(each in self._table.rows for each in self._subscribers)
            if count >= MAX_SUBSCRIBERS:
                raise Unavailable(
                    f"{MAX_SUBSCRIBERS} handles subscribe to canvas {self._name!r} already; one "
                    "of them must aegis_canvas_unsubscribe first"
                )
            row = Subscriber(id=key, handle=handle, sections=sections, confirmed=rev)
        else:
            row = known.again(sections, rev)
        reply = self.defer(message)
        self._subscribers.add(key)
        self._table.put(row, partial(self._subscribed, key, reply), reply)

    def _subscribed(self, key: str, reply: Reply[CanvasSubscription]) -> None:
        """Answer once a subscription, or its end, is durable."""
        known = self._table.shown(key)
        if known is None and key not in self._table.rows:
            self._subscribers.discard(key)
        sections = None if known is None or known.sections is None else [*known.sections]
        self._wakes.push()  # those that happened meanwhile
        self._report()
        reply.send(
            CanvasSubscription(
                ok=True, canvas=self._name, subscribed=known is not None, sections=sections
            )
        )

    # Jobs.

    def _ask(self, message: Job) -> None:
        texts = [getattr(message, name, None) or "" for name in ("section", "content", "text")]
        if not all(map(is_utf8, texts)) or "\0" in "".join(texts[1:]):
            raise InvalidRequest(
                "the text is not valid Unicode, or has a NUL; send it without surrogates and NULs"
            )
        if self._is_pausing and not isinstance(message, Write) and self._document is not None:
            # Not behind a write that waits for a program.
            reply: Reply[Any] = self.defer(message)
            reply.send(self._read(message))
            return
        if len(self._jobs) >= MAX_JOBS:
            raise Busy(f"{MAX_JOBS} requests wait for canvas {self._name!r}; try again later")
        self._begin(Attempt(message, self.defer(message)))

    def _look_soon(self) -> None:
        """Look at the file, unless that will be done anyway."""
        if not self._is_looking_later and all(each.job is not None for each in self._jobs):
            self._begin(Attempt(None))

    def _begin(self, attempt: Attempt) -> None:
        self._jobs.append(attempt)
        if not self._is_working:
            self._is_working = True
            self.context.start_soon(self._work)

    async def _work(self) -> None:
        while self._jobs:
            attempt = self._jobs.popleft()
            attempt.began = attempt.began or trio.current_time()
            if attempt.reply is None:
                await self._look(attempt)
            else:
                await self._answer(partial(self._do, attempt), attempt.reply)
        self._is_working = False

    async def _do(self, attempt: Attempt) -> Any:
        if isinstance(attempt.job, Write):
            return await self._write(attempt.job, attempt)
        await self._current_file(attempt)
        return self._read(attempt.job)

    def _read(self, job: Job | None) -> CanvasInfo | CanvasText:
        """Return the answer to a request that only reads, from the last known content."""
        if not isinstance(job, ReadCanvas):
            return self._info()
        document = self._document or EMPTY
        return views.text_of(self._name, self._bound.file, self._known, document, job.section)

    async def _look(self, attempt: Attempt) -> None:
        """Record an edit of another program, if there is one.

        A caller does not wait behind a look: it is made again after a pause. If the disk refuses
        an edit, everything is derived, and looked at, once the disk accepts again.
        """
        with contextlib.suppress(AegisError):
            found = await self._examine(attempt)
            if isinstance(found, Pause):
                self._is_looking_later = True
                self._jobs = deque(each for each in self._jobs if each.job is not None)
                self.context.start_soon(self._look_later, found, attempt)

    async def _look_later(self, pause: Pause, attempt: Attempt) -> None:
        await trio.sleep(LOOK_AGAIN_S if pause.is_open else pause.seconds)
        self._is_looking_later = False
        self._begin(attempt)

    # The file.

    async def _current_file(self, attempt: Attempt) -> FoundFile:
        """Return the file once each edit in it is recorded; for a reader, perhaps as it was last.

        Raises ``Unavailable``, ``StorageError``, and ``Busy`` if a program has it open for long.
        """
        while isinstance(found := await self._examine(attempt), Pause):
            if found.is_open:
                if not isinstance(attempt.job, Write) and self._document is not None:
                    return FoundFile()
                self._check_patience(
                    attempt,
                    f"another program has the file of canvas {self._name!r} open for writing; try "
                    "again when it has closed it",
                )
            await self._pause(found)
        return found

    async def _pause(self, pause: Pause) -> None:
        self._is_pausing = pause.is_open
        await trio.sleep(pause.seconds)
        self._is_pausing = False

    def _check_patience(self, attempt: Attempt, sentence: str) -> None:
        """Raise ``Busy`` if a caller has waited long enough for other programs."""
        if trio.current_time() - attempt.began < PATIENCE_S:
            return
        if self._is_pending(attempt):
            raise Unavailable(f"{sentence}; whether it has the write is not known yet")
        raise Busy(sentence)

    def _is_pending(self, attempt: Attempt) -> bool:
        """Return whether a write of this attempt may be in the file."""
        own, intent = attempt.own, self._known.intent
        return own is not None and intent is not None and own.id == intent.id

    async def _examine(self, attempt: Attempt) -> FoundFile | Pause:
        """Read the file, judge what an exchange has left, and record an edit that is quiet."""
        while True:
            found = await self._read_file(attempt.job)
            if found.problem != self._problem:
                self._problem = found.problem
                self._report()
            if found.problem:
                raise Unavailable(f"canvas {self._name!r} cannot be used: {found.problem}")
            if found.is_open:
                return Pause(PAUSE_S, is_open=True)
            texts = self._texts() if found.swap != NO_FILE else {}
            self._judge(found)
            if found.swap == NO_FILE:
                break
            await self._put_away(found, texts)
        if self._is_changed(found):
            if not self._is_quiet(attempt, found):
                attempt.seen = found.digest
                return Pause(QUIET_S if found.document.data else GONE_S)
            await self._record(found)
        names, self._document = self._names(), found.document
        if names != self._names():
            self._report()  # the order of the ledger, at the start, may not be that of the file
        return found

    async def _read_file(self, job: Job | None) -> FoundFile:
        examine = partial(
            examining.examine,
            self._flusher.disk,
            self._place,
            job if isinstance(job, Write) else None,
            known_digest=self._known.digest,
            known=self._document,
            is_unclear=self._known.intent is not None,
        )
        return await self._flusher.call(examine)

    def _judge(self, found: FoundFile) -> None:
        """Find out whether a write that may be in the file is in it."""
        intent = self._known.intent
        if intent is None:
            return
        if not revisions.is_in_file(intent, found.digest, found.swap):
            self._drop(intent)
            return
        # The document must not be older than the revision: a reader would get its text with the
        # newer revision, and the next write would be made from it.
        self._done(intent, found.document if found.digest == intent.after else None)

    def _is_changed(self, found: FoundFile) -> bool:
        """Return whether another program has changed the file.

        Or whether this version finds other sections in it than the one that read it before.
        """
        if found.digest != self._known.digest:
            return True
        is_first = self._document is None and self._known.newest > 0
        return is_first and found.document.texts != self._texts()

    def _is_quiet(self, attempt: Attempt, found: FoundFile) -> bool:
        """Return whether a changed file can be judged: what a program does in steps is one save."""
        if self._known.newest == 0 or found.digest == attempt.seen:
            return True
        # A caller waits only for a file that is gone or empty: another may change all the time.
        is_asked = attempt.job is not None and bool(found.document.data)
        return is_asked or trio.current_time() - attempt.began > PATIENCE_S

    async def _record(self, found: FoundFile) -> None:
        """Record an edit of another program. Raises ``StorageError``."""
        known, number = self._known, self._known.newest + 1
        compare = partial(differences, self._texts(), found.document.texts)
        rows = [*outside_revisions(await self._flusher.call(compare), number, utc_now())]
        newest = max(known.newest, *(each.number for each in rows), 0)
        file = attrs.evolve(known.file.with_beside(known.digest), rev=newest, digest=found.digest)
        await self._take(rows, file, found.document)

    async def _put_away(self, found: FoundFile, texts: dict[str, str]) -> None:
        """Remove the file beside the file; keep what is in it, if that is not known.

        Raises ``StorageError``.
        """
        keep_as = ""
        if found.swap not in self._known.beside:
            if found.swap_texts is None:  # no text, so that it cannot be in the history
                keep_as = f"displaced-{found.swap[:12]}-of-canvas-{self._name}"
            else:
                compare = partial(differences, texts, found.swap_texts)
                kept = await self._flusher.call(compare)
                number = self._known.newest + 1
                rows = outside_revisions(kept, number, utc_now(), displaced=found.swap)
                new = [each for each in rows if not self._is_recorded(each)]
                await self._take(new, self._known.file.with_beside(found.swap), None)
        discard = partial(examining.discard, self._flusher.disk, self._place, keep_as)
        await self._flusher.call(discard)

    def _is_recorded(self, displaced: Revision) -> bool:
        """Return whether a kill has cut the lines of a displaced file behind that of this text."""
        rows = (self._table.rows[str(each)] for each in self._known.numbers)
        same = (each for each in rows if each.is_displaced and each.before == displaced.before)
        return (displaced.section, _digest(displaced)) in {
            (each.section, _digest(each)) for each in same
        }

    async def _take(
        self, rows: list[Revision], file: FileVersion, document: Document | None
    ) -> None:
        """Record what another program has written. Raises ``StorageError``."""
        await self._store(*rows, file)
        for each in rows:
            self._known.take(self._table.rows[each.id])
        self._known.take_file(file)
        if document is not None:
            self._document = document
        self._has_changed()

    def _has_changed(self) -> None:
        """Notify subscribers and lists of changes; perhaps old ones are archived now."""
        self._wakes.push()
        self._report()
        self._archive_old()
        for row_id in self._known.take_useless():
            if row_id in self._table.rows:
                self._table.drop(row_id)

    # The archive.

    def _archive_old(self) -> None:
        """Let the changes move to the archive that no subscriber and no exchange needs."""
        rows = map(self._table.rows.get, self._subscribers)
        confirmed = [each.confirmed for each in rows if each is not None]
        has = min(confirmed, default=self._known.newest)
        for number in self._known.ended(self._ended, has):
            row = self._table.rows[str(number)]
            if not self._table.is_at_rest(row.id):
                break  # a later one would be archived before it
            # A clock that was set back must not mix their order in the archive.
            self._ended_at = max(self._ended_at, moment_of(row.timestamp).timestamp())
            self._archiver.add(row.id, self._ended_at, self._known.numbers[number])
            self._ended = number

    def _leaving(self, row_id: str) -> Leaving | None:
        """Return a change as the archive gets it; the text of a section stays in the ledger."""
        row = self._table.rows.get(row_id)
        if not isinstance(row, Revision) or row.number not in self._known.numbers:
            return None

        def stays() -> Revision | None:
            return revisions.as_base(row) if self._known.is_text(row) else None

        return Leaving(self._table, (row,), {row_id: {}}, stays=stays)

    # Writes.

    async def _write(self, job: Write, attempt: Attempt) -> CanvasWritten:
        """Write a section. Raises ``AegisError``."""
        while True:
            try:
                found = await self._current_file(attempt)
            except Busy:
                if attempt.own is not None:
                    await self._settled()
                raise
            if attempt.own is not None and attempt.own.number in self._known.numbers:
                return views.written(self._name, attempt.own, self._document)
            composed = self._composed(job, found)
            if composed.digest == found.digest:
                return self._unchanged(job, composed)
            own = attempt.own = self._intended(job, composed, found.digest)
            await self._store(own)
            self._known.intend(own)
            outcome = await self._exchange(composed, found.digest)
            if outcome == "exchanged":
                self._done(own, composed.document)
                return views.written(self._name, own, self._document)
            if outcome != "unclear":
                self._drop(own)
                await self._try_again(attempt, outcome)

    def _composed(self, job: Write, found: FoundFile) -> Composed:
        """Return the file with the write. Raises why it is refused."""
        document = self._document or EMPTY
        key = document.key(job.section)
        text = document.texts.get(key, "")
        error = views.refusal(self._name, job, self._known.sections.get(key), text)
        if error is not None:
            raise error
        if isinstance(found.composed, AegisError):
            raise found.composed
        assert found.composed is not None, "the file was read for a write"
        return found.composed

    def _unchanged(self, job: Write, composed: Composed) -> CanvasWritten:
        """Return the reply to a writer whose text is in the file already."""
        revision = self._intended(job, composed, "")
        known = self._known.sections.get(composed.key)
        done = views.written(self._name, revision, self._document)
        rev = 0 if known is None else known.number
        return attrs.evolve(done, rev=rev, added=0, removed=0)

    def _intended(self, job: Write, composed: Composed, before: str) -> Revision:
        """Return the revision that a write will be, of the file with the digest ``before``."""
        text, whole = StoredText.of(composed.text), None
        if isinstance(job, AppendToSection):
            text, whole = StoredText.of(plain(job.text)), text
        return Revision(
            id=str(self._known.newest + 1),
            section=composed.key,
            op="written" if whole is None else "appended",
            writer=writer_of(job.from_handle),
            added=composed.added,
            removed=composed.removed,
            timestamp=utc_now(),
            text=text,
            section_text=whole,
            phase="intended",
            before=before,
            after=composed.digest,
        )

    async def _exchange(self, composed: Composed, before: str) -> Exchanged:
        """Exchange the file. Raises ``StorageError``: then the next look finds out what it is."""
        faults.WRITE_BEFORE.hit(self._name)
        exchange = partial(
            examining.exchange, self._flusher.disk, self._place, composed.data, before
        )
        try:
            # In a thread to its end, even if this incarnation ends: the next one must not meet a
            # late exchange.
            outcome = await self._flusher.call(exchange)
        except StorageError:
            self._look_soon()
            raise
        faults.WRITE_AFTER.hit(self._name)
        return outcome

    def _done(self, revision: Revision, document: Document | None) -> None:
        """Note that a write is in the file, whose content is the ``document``."""
        self._table.fact(revision.id, lambda row: attrs.evolve(row, phase="done"))
        self._known.take(self._table.rows[revision.id])
        self._document = document
        self._has_changed()

    def _drop(self, revision: Revision) -> None:
        """Note that a write is not in the file."""
        self._table.fact(revision.id, lambda row: attrs.evolve(row, phase="dropped"))
        self._known.drop(revision)

    async def _try_again(self, attempt: Attempt, outcome: Exchanged) -> None:
        """Wait until a file that was changed in the exchange may be tried again."""
        try:
            self._check_patience(
                attempt,
                f"other programs keep changing the file of canvas {self._name!r}; try again",
            )
        except Busy:
            await self._settled()
            self._look_soon()
            raise
        if outcome == "open":
            await self._pause(Pause(PAUSE_S, is_open=True))

    async def _settled(self) -> None:
        """Wait until it is durable that a write is not in the file. Raises ``StorageError``.

        Otherwise a loss of power might make it look like one whose "done" was lost.
        """
        if self._table.problem:
            raise StorageError(self._table.refusal)
        settled: Reply[None] = Reply()
        self._table.settled(partial(settled.send, None), settled)
        await settled.wait()

    # What clients see.

    def _shown(self, revision: Revision) -> CanvasChange:
        """Return a change with the first lines of its text."""
        return views.change_of(revision, views.excerpt(self._text(revision)), self._document)

    def _text(self, revision: Revision) -> str | None:
        return None if revision.text is None else self._table.text_or_head(revision.text, "text")

    def _names(self) -> list[str]:
        """Return the names of the sections."""
        return [*self._known.sections] if self._document is None else self._document.names

    def _info(self) -> CanvasInfo:
        shown = map(self._table.shown, self._subscribers)
        last = self._known.last
        return CanvasInfo(
            name=self._name,
            file=self._bound.file,
            sections=self._names(),
            created_at=self._bound.created_at,
            rev=self._known.recorded,
            subscribers=sorted(each.handle for each in shown if each is not None),
            problem=self._problem,
            last=None if last is None else self._shown(last),
        )

    def _report(self) -> None:
        publish_change(self.context.system, CanvasResource(self._name))
        desk = self.context.system.registry.find("service", "canvases")
        if desk is not None:
            with contextlib.suppress(ActorError):  # it asks again when it is restarted
                desk.tell(CanvasReport(info=self._info()))

    async def _history(self, message: GetCanvasHistory) -> CanvasHistory:
        """Return the newest changes that fit into a reply, with their texts."""
        newest = self._known.newest + 1
        before = newest if message.before is None else min(newest, message.before)
        changes = NewestFirst(before, [self._table.rows[str(n)] for n in self._known.numbers])
        page = ChangesReply(self._name, message.limit, before)
        if not await self._fill(page, changes, message.section):
            return page.reply(more=True)
        until = trio.current_time() + HISTORY_S
        lines = self._archiver.newest_lines(await self._archiver.entry(str(before)))
        while not changes.is_complete:
            some = await self._flusher.look(partial(lines.some, LINES_AT_ONCE))
            changes.is_complete = some is None
            rows = [understood(CanvasRow, each) for each in some or ()]
            changes.add(each for each in rows if isinstance(each, Revision))
            has_room = await self._fill(page, changes, message.section)
            if not has_room or (trio.current_time() >= until and page.looked < before):
                return page.reply(more=True)
        return page.reply(more=False, gone=await self._is_gone(page.looked))

    async def _fill(self, page: ChangesReply, changes: NewestFirst, section: str | None) -> bool:
        """Add changes of a section, or of all; return False at the first without room."""
        keys = {section, PREAMBLE} if section == BODY else {section}
        for each in changes.take():
            if section is None or each.section in keys:
                if page.is_full or not page.take(
                    views.change_of(each, self._text(each), self._document)
                ):
                    return False
                await trio.lowlevel.checkpoint()  # texts are read from the disk
            page.looked = each.number
        return True

    async def _is_gone(self, oldest: int) -> bool:
        """Return whether older changes than this one were deleted with the archive."""
        for number in range(oldest - 1, max(0, oldest - 1 - MAX_UNUSED), -1):
            if await self._archiver.entry(str(number)) is not None:
                return True
        return False

    # The directory.

    async def _watch(self) -> None:
        """Have the directory of the file watched; until it is, look at the file again and again."""
        delay, problem, logged = FIRST_WATCH_S, "the watcher does not run", ""
        while True:
            watcher = self.context.system.registry.find("service", "canvas-watcher")
            if watcher is not None:
                request = WatchFile(name=self._name, place=self._place)
                with contextlib.suppress(ActorError):
                    problem = await watcher.ask(request)
            if not problem:
                self._look_soon()  # for an edit before the watch began
                return
            if problem != logged:
                why, logged = shorten(problem), problem
                log.warning("file not watched", canvas=self._name, why=why, looks_s=POLL_S)
            await trio.sleep(delay)
            self._look_soon()
            delay = min(POLL_S, 2 * delay)


def _digest(revision: Revision | None) -> object:
    """Return what distinguishes a revision from what another file of the ledger has of it."""
    if revision is None:
        return None
    text = None if revision.text is None else revision.text.digest
    return (revision.phase, text, revision.section_text is None)


def _checked(sections: list[str] | None) -> tuple[str, ...] | None:
    """Return the names of sections, each once. Raises ``InvalidRequest``."""
    if sections is None:
        return None
    if not 0 < len(sections) <= MAX_SECTION_NAMES:
        raise InvalidRequest(
            f"name 1 to {MAX_SECTION_NAMES} sections, or leave sections out for all"
        )
    for each in sections:
        if _SECTION.fullmatch(each) is None or not is_utf8(each):
            raise InvalidRequest(f"a section must be {SECTION_RULE}, not {shorten(each)!r}")
    return tuple(dict.fromkeys(sections))
