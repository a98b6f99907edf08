"""The rules of one canvas: a state machine that knows neither disk nor inboxes. Pure.

``handle`` takes one event and returns the actions that follow, in order. Requests that need the
file are jobs, done one after another:

    a job        → Examine: the file is read, and what the job would make of it is computed
    an edit by another program → Later, until the file is quiet → Compare → Append(outside)
                   → Synced → subscribers are notified
    a read       → Return
    a write      → Append(intent) → Synced → Exchange → Append(done), Return, subscribers

An exchange that ended unclearly, because of the disk or of a kill, is judged at the next
examination: by the digests of the file and of the file that an exchange leaves beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Literal

import attrs

from aegis.canvases import events as e
from aegis.canvases import state as ledger
from aegis.canvases import views
from aegis.canvases.changes import intended, outside_changes
from aegis.canvases.differences import Difference
from aegis.canvases.document import Document
from aegis.canvases.state import Bound, CanvasState, Intent
from aegis.errors import AegisError, Busy, StorageError, Unavailable
from aegis.journal.file_content import NO_FILE
from aegis.journal.ledger import Append
from aegis.protocol.canvases import CanvasChange, CanvasInfo, CanvasSubscription
from aegis.protocol.naming import name_key

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
"""Seconds until an edit is looked for again, if a program was writing or the disk refused."""

Phase = Literal[
    "idle", "examining", "comparing", "noting", "displaced", "keeping", "intending", "exchanging",
    "discarding", "pausing", "settling"
]  # fmt: skip

LOOK = e.Job(kind="look")


class Canvas:
    """The canvas of ``bound`` with the state of its ledger."""

    def __init__(self, bound: Bound, state: CanvasState) -> None:
        self.bound = bound
        self.name = bound.name
        self.file = bound.file
        self.state = state
        self.document: Document | None = None
        """The content of the file with the digest of the state; None: it was not read yet."""
        self.problem = ""
        self.newest_done = 0
        """The revision of the newest change that is in the file; its line may not be synced yet."""
        self._jobs: deque[e.Job] = deque()
        self._job = LOOK
        self._phase: Phase = "idle"
        self._began = 0.0
        self._found = e.Found()
        self._pauses = 0
        self._seen = ""  # the digest of a change by another program that is not judged yet
        self._written: CanvasChange | None = None
        self._revision = state.rev
        self._numbers = 0
        self._waiting_for = 0
        self._own = 0  # the revision of the job's change, once it is intended
        self._lines: dict[int, tuple[ledger.Line, int | None]] = {}
        self._out: list[e.Action] = []
        self._now, self._time = 0.0, ""

    def handle(self, event: e.Event, now: float, time: str) -> list[e.Action]:
        """Return the actions that follow from ``event`` at ``now``, in seconds of any clock.

        ``time`` is the wall-clock time as text, for records.
        """
        self._out, self._now, self._time = [], now, time
        match event:
            case e.Asked(job=job):
                self._ask(job)
            case e.Subscribing() | e.Unsubscribing() | e.Confirmed():
                self._subscribe(event)
            case e.Synced(number=number):
                self._synced(number)
            case e.Refused(sentence=sentence):
                self._refused(sentence)
            case _:
                self._continue(event)
        return self._out

    def _continue(self, event: e.Event) -> None:
        match event:
            case e.Resume() if self._phase == "pausing":
                self._examine()
            case e.Resume(pause=pause) if self._phase == "settling" and pause == self._pauses:
                self._examine()
            case e.Examined(found=found) if self._phase == "examining":
                self._examined(found)
            case e.Compared(differences=found) if self._phase == "comparing":
                self._note_outside(found)
            case e.Compared(differences=found) if self._phase == "displaced":
                self._note_displaced(found)
            case e.ExchangeEnded() if self._phase == "exchanging":
                self._exchanged(event)
            case e.Discarded(error=error) if self._phase == "discarding":
                if error:
                    self._fail(StorageError(error))
                else:
                    self._examine()

    # Jobs.

    def _ask(self, job: e.Job) -> None:
        if job.kind == "look" and LOOK in self._jobs:
            return
        if self._phase == "pausing" and job.kind in ("read", "open") and self.document is not None:
            self._out.append(self._answer(job))  # not behind a write that waits for a program
            return
        if len(self._jobs) >= MAX_JOBS and job.caller is not None:
            error = Busy(f"{MAX_JOBS} requests wait for canvas {self.name!r}; try again later")
            self._out.append(e.Fail(caller=job.caller, error=error))
            return
        self._jobs.append(job)
        if self._phase == "settling" and self._job is LOOK and job is not LOOK:
            # A caller does not wait behind a look, which is made again after it.
            self._jobs.append(LOOK)
            self._phase = "idle"
        self._next()

    def _next(self) -> None:
        if self._phase == "idle" and self._jobs:
            self._job, self._began = self._jobs.popleft(), self._now
            self._own, self._written, self._seen = 0, None, ""
            self._examine()

    def _examine(self) -> None:
        self._phase = "examining"
        self._out.append(
            e.Examine(
                job=self._job,
                digest=self.state.digest,
                document=self.document,
                is_unclear=self.state.intent is not None,
            )
        )

    def _finish(self) -> None:
        self._phase = "idle"
        self._next()

    def _fail(self, error: AegisError) -> None:
        if self._job.caller is not None:
            self._out.append(e.Fail(caller=self._job.caller, error=error))
        self._finish()

    def _look_again(self) -> None:
        self._out.append(e.Later(seconds=LOOK_AGAIN_S, event=e.Asked(job=LOOK)))

    # The file.

    def _examined(self, found: e.Found) -> None:
        if found.problem != self.problem:
            self.problem = found.problem
            self._out.append(e.Changed())
        if found.problem:
            self._fail(Unavailable(f"canvas {self.name!r} cannot be used: {found.problem}"))
        elif found.is_open:
            self._wait_for_writer()
        elif self._is_settled(found):
            assert found.document is not None
            if not self._is_changed(found):
                self.document = found.document
                self._proceed(found)
            elif self._is_quiet_file(found):
                self._found, self._phase = found, "comparing"
                self._out.append(e.Compare(before=self.state.texts, after=found.document.texts))
            else:
                is_gone = not found.document.data
                self._seen, self._phase = found.digest, "settling"
                self._pauses += 1
                seconds = GONE_S if is_gone else QUIET_S
                self._out.append(e.Later(seconds=seconds, event=e.Resume(pause=self._pauses)))

    def _is_changed(self, found: e.Found) -> bool:
        """Return whether another program has changed the file.

        Or whether this version finds other sections in it than the one that read it before.
        """
        assert found.document is not None
        is_first = self.document is None
        return found.digest != self.state.digest or (
            is_first and found.document.texts != self.state.texts and self.state.rev > 0
        )

    def _is_quiet_file(self, found: e.Found) -> bool:
        """Return whether a changed file can be judged: what a program does in steps is one save."""
        assert found.document is not None
        if self.state.rev == 0 or found.digest == self._seen:
            return True
        # A caller waits only for a file that is gone or empty: another may change all the time.
        is_asked = self._job.kind != "look" and bool(found.document.data)
        return is_asked or self._now - self._began > PATIENCE_S

    def _wait_for_writer(self) -> None:
        """Wait for a program that has the file open for writing, or answer without the file."""
        if self._job.kind == "look":
            self._look_again()
            self._finish()
        elif self._job.kind in ("read", "open") and self.document is not None:
            self._proceed(e.Found())
        elif self._now - self._began < PATIENCE_S:
            self._pause()
        else:
            self._fail(
                Busy(
                    f"another program has the file of canvas {self.name!r} open for writing; try "
                    "again when it has closed it"
                )
            )

    def _pause(self) -> None:
        self._phase = "pausing"
        self._out.append(e.Later(seconds=PAUSE_S, event=e.Resume()))

    def _is_settled(self, found: e.Found) -> bool:
        """Judge what an earlier exchange left; return whether the job may go on now."""
        intent, texts = self.state.intent, self.state.texts
        known = {self.state.digest, self.state.previous, NO_FILE, *self.state.beside}
        if intent is not None:
            # Without a file beside it, a file with neither digest was changed since. The write may
            # have been acknowledged, and its ``done`` lost with the power: it counts as written.
            is_pending = found.swap == intent.after and found.digest != intent.after
            is_untouched = found.digest == intent.before != found.swap
            self._judge(intent, found, is_done=not is_pending and not is_untouched)
        if found.swap == NO_FILE:
            return True
        if found.swap in known:
            self._discard()
        elif found.swap_texts is None:  # no text, so that it cannot be in the history
            self._discard(f"displaced-{found.swap[:12]}-of-canvas-{self.name}")
        else:
            self._found, self._phase = found, "displaced"
            self._out.append(e.Compare(before=texts, after=found.swap_texts))
        return False

    def _judge(self, intent: Intent, found: e.Found, *, is_done: bool) -> None:
        if is_done:
            self._done()
            self._written = intent.change
            # The document must not be older than the state: a reader would get its text with the
            # newer revision, and the next write would be made from it.
            self.document = found.document if found.digest == intent.after else None
        else:
            self._drop()

    def _drop(self) -> None:
        """Note that the intended change is not in the file."""
        intent, self.state.intent = self.state.intent, None
        if intent is not None:
            self._write(ledger.dropped_line(intent.change))

    def _done(self) -> CanvasChange:
        """Note that the intended change is in the file; its text is on the disk."""
        change = self.state.finish()
        assert change is not None
        self.newest_done = change.rev
        self._write(ledger.done_line(change))
        self._out.append(e.Changed(changes=(change,)))
        return change

    def _discard(self, keep_as: str = "") -> None:
        self._phase = "discarding"
        self._out.append(e.Discard(keep_as=keep_as))

    # Edits of other programs.

    def _note_outside(self, found: tuple[Difference, ...]) -> None:
        changes = outside_changes(found, self._new_revision, self._time)
        line = ledger.outside_line(changes, self.state.digest, self._found.digest)
        self._phase = "noting"
        self._await(line)

    def _note_displaced(self, found: tuple[Difference, ...]) -> None:
        """Keep the texts of a file that is not under its name any more."""
        changes = [
            attrs.evolve(each, displaced=True)
            for each in outside_changes(found, self._new_revision, self._time)
            if each.text is not None
        ]
        self._phase = "keeping"
        self._await(ledger.displaced_line(changes, self._found.swap))

    # What a job does.

    def _proceed(self, found: e.Found) -> None:
        job = self._job
        if job.kind == "look":
            self._finish()
        elif self._written is not None and self._written.rev == self._own:
            self._return(views.written(self, self._written))
        elif job.kind in ("read", "open"):
            self._out.append(self._answer(job))
            self._finish()
        else:
            self._intend(found)

    def _answer(self, job: e.Job) -> e.Return | e.Fail:
        """Return the answer to a request that only reads, from the last known content."""
        assert job.caller is not None
        try:
            value = self.info() if job.kind == "open" else views.text_of(self, job.section)
        except AegisError as error:
            return e.Fail(caller=job.caller, error=error)
        return e.Return(caller=job.caller, value=value)

    def _intend(self, found: e.Found) -> None:
        job, new = self._job, found.new
        key = self._key(job)
        error = views.refusal(self, job, key)
        if error is None and isinstance(new, AegisError):
            error = new
        if error is not None:
            self._fail(error)
            return
        assert isinstance(new, e.New)
        if new.digest == found.digest:
            self._return(views.unchanged(self, job, key, self._time))
            return
        intent = intended(job, new, self._new_revision(), found.digest, self._time)
        self._found, self._phase, self._own = found, "intending", intent.change.rev
        self._await(ledger.intent_line(intent))

    def _key(self, job: e.Job) -> str:
        assert job.section is not None
        return job.section if self.document is None else self.document.key(job.section)

    def _exchanged(self, event: e.ExchangeEnded) -> None:
        new = self._found.new
        assert isinstance(new, e.New)
        if event.error:
            # The outcome is not known: the next examination finds it.
            self._fail(StorageError(event.error))
            self._ask(LOOK)
        elif event.outcome == "exchanged":
            self.document = new.document
            self._return(views.written(self, self._done()))
        elif event.outcome == "unclear":
            self._examine()
        else:
            self._drop()
            self._try_again(event.outcome)

    def _try_again(self, outcome: str) -> None:
        """Examine a file again that another program has changed, or has open for writing."""
        if self._now - self._began > PATIENCE_S:
            self._fail(
                Busy(f"other programs keep changing the file of canvas {self.name!r}; try again")
            )
            self._ask(LOOK)
        elif outcome == "open":
            self._pause()
        else:
            self._examine()

    def _return(self, value: views.Reply) -> None:
        if self._job.caller is not None:
            self._out.append(e.Return(caller=self._job.caller, value=value))
        self._finish()

    # Subscribers.

    def _subscribe(self, event: e.Subscribing | e.Unsubscribing | e.Confirmed) -> None:
        match event:
            case e.Confirmed(revs=revs):
                known = {each.handle: each.confirmed for each in self.state.subscribers.values()}
                news = {who: rev for who, rev in revs.items() if known.get(who, rev) < rev}
                for handle, rev in news.items():
                    self.state.confirm(handle, rev)
                if news:
                    self._write(ledger.confirmed_line(news))
            case e.Subscribing(handle=handle, sections=sections, caller=caller):
                is_new = name_key(handle) not in self.state.subscribers
                if is_new and len(self.state.subscribers) >= MAX_SUBSCRIBERS:
                    error = Unavailable(
                        f"{MAX_SUBSCRIBERS} handles subscribe to canvas {self.name!r} already; one "
                        "of them must aegis_canvas_unsubscribe first"
                    )
                    self._out.append(e.Fail(caller=caller, error=error))
                else:
                    rev = self.state.begin_subscribing(handle)
                    self._write(ledger.subscribed_line(handle, sections, rev), caller)
            case e.Unsubscribing(handle=handle, caller=caller):
                self._write(ledger.unsubscribed_line(handle), caller)

    def _subscribed(self, line: Mapping[str, object], caller: int) -> None:
        self.state.apply(line)
        key, rev = name_key(str(line["handle"])), line.get("rev")
        if line["kind"] == "subscribed" and isinstance(rev, int):
            self.state.subscribing.remove((key, rev))
        known = self.state.subscribers.get(key)
        sections = None if known is None or known.sections is None else [*known.sections]
        value = CanvasSubscription(
            ok=True, canvas=self.name, subscribed=known is not None, sections=sections
        )
        # Those that happened during the sync, for which the subscriber was not woken yet.
        owed = tuple(self.state.owed) if known is not None else ()
        self._out += [e.Changed(changes=owed), e.Return(caller=caller, value=value)]

    def info(self) -> CanvasInfo:
        """Return the canvas as clients see it."""
        return views.info(self, self.bound, self.problem)

    # The ledger.

    def _new_revision(self) -> int:
        self._revision += 1
        return self._revision

    def _write(self, line: ledger.Line, caller: int | None = None) -> int:
        self._numbers += 1
        self._lines[self._numbers] = (line, caller)
        self._out.append(Append(number=self._numbers, line=line))
        return self._numbers

    def _await(self, line: ledger.Line) -> None:
        self._waiting_for = self._write(line)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is in progress and every line is synced: the ledger may be rotated."""
        return self._phase == "idle" and not self._lines and self.state.intent is None

    def _synced(self, number: int) -> None:
        line, caller = self._lines.pop(number)
        if caller is not None:
            self._subscribed(line, caller)
        elif self._phase in ("noting", "keeping", "intending") and number == self._waiting_for:
            self.state.apply(line)
            self._noted(line)

    def _noted(self, line: Mapping[str, object]) -> None:
        if self._phase == "intending":
            new = self._found.new
            assert isinstance(new, e.New)
            self._phase = "exchanging"
            self._out.append(e.Exchange(data=new.data, expected=self._found.digest))
            return
        changes = tuple(ledger.changes_of(line))
        self._out.append(e.Changed(changes=changes))
        if self._phase == "keeping":
            self._discard()
        else:
            self.document = self._found.document
            self._proceed(self._found)

    def _refused(self, sentence: str) -> None:
        lines, self._lines = self._lines, {}
        for _, caller in lines.values():
            if caller is not None:
                self._out.append(e.Fail(caller=caller, error=StorageError(sentence)))
        if self.state.subscribing:
            self.state.subscribing.clear()
            self._out.append(e.Changed(changes=tuple(self.state.owed)))
        if self._phase in ("noting", "keeping", "intending"):
            if self._phase != "intending":
                self._look_again()
            self._fail(StorageError(sentence))
