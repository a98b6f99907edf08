"""A canvas with a file, a disk, a ledger and inboxes in memory, for tests of the rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import attrs

from aegis.canvases import events as e
from aegis.canvases.differences import differences
from aegis.canvases.document import parse
from aegis.canvases.examining import found_in
from aegis.canvases.history import History
from aegis.canvases.rules import LOOK, Canvas
from aegis.canvases.state import Bound, CanvasState
from aegis.canvases.wake_text import wake_id
from aegis.errors import AegisError
from aegis.journal.file_content import FileContent, Look, digest_of
from aegis.journal.ledger import Append
from aegis.protocol.canvases import CanvasChange

BOUND = Bound(name="plan", file="plan.md", created_at="2026-05-22T14:00:00Z", life="abc")
SUBSCRIBERS = ("ada", "bob")

Work = e.Examine | e.Compare | e.Exchange | e.Discard


@attrs.define
class World:
    """What outlives the daemon: the file, the file beside it, the ledger and the inboxes.

    ``work`` are actions that threads would do, ``unsynced`` lines that the disk may lose.
    """

    file: bytes | None = None
    swap: bytes | None = None
    is_open: bool = False
    durable: list[dict[str, Any]] = attrs.field(factory=list)
    unsynced: deque[Append] = attrs.field(factory=deque)
    work: deque[Work] = attrs.field(factory=deque)
    later: list[e.Resume | e.Asked] = attrs.field(factory=list)
    answers: dict[int, Any] = attrs.field(factory=dict)
    woken: dict[str, dict[str, CanvasChange]] = attrs.field(factory=dict)
    kept: list[bytes] = attrs.field(factory=list)
    now: float = 0.0
    callers: int = 0
    before_exchange: Callable[[], None] | None = None
    canvas: Canvas = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.start()

    # The daemon.

    def start(self) -> None:
        """Start a canvas over the ledger, and look at the file."""
        state = CanvasState()
        for line in self.durable:
            state.apply(line)
        assert state.skipped == 0
        self.canvas = Canvas(BOUND, state)
        self.wake()
        self.handle(e.Asked(job=LOOK))

    def kill(self, kept_lines: int = 0) -> None:
        """End the canvas; only so many of the unsynced lines are on the disk."""
        for action in [*self.unsynced][:kept_lines]:
            self.durable.append(dict(action.line))
        self.unsynced.clear()
        self.work.clear()
        self.later.clear()
        self.is_open = False

    def handle(self, event: e.Event) -> None:
        self.now += 0.01
        for action in self.canvas.handle(event, self.now, "2026-05-22T14:00:00Z"):
            self.perform(action)

    def perform(self, action: e.Action) -> None:
        match action:
            case Append():
                self.unsynced.append(action)
            case e.Later(event=event):
                self.later.append(event)
            case e.Return(caller=caller, value=value):
                self.answers[caller] = value
            case e.Fail(caller=caller, error=error):
                self.answers[caller] = error
            case e.Changed():
                self.wake()
            case _:
                self.work.append(action)

    def wake(self) -> None:
        """Deliver what subscribers are owed; an inbox drops the ids that it knows."""
        for key, subscriber in self.canvas.state.subscribers.items():
            if self.canvas.state.is_subscribing(key):
                continue
            inbox = self.woken.setdefault(subscriber.handle, {})
            for change in self.canvas.state.owed:
                if change.rev > subscriber.confirmed and subscriber.wants(change):
                    inbox.setdefault(wake_id("plan", "abc", change.rev, subscriber.handle), change)

    def confirm(self) -> None:
        rev = self.canvas.state.recorded
        self.handle(e.Confirmed(revs=dict.fromkeys(SUBSCRIBERS, rev)))

    # The disk and the threads.

    def sync(self) -> None:
        """Make the oldest unsynced line durable."""
        action = self.unsynced.popleft()
        self.durable.append(dict(action.line))
        self.handle(e.Synced(number=action.number))

    def refuse(self) -> None:
        """Refuse all unsynced lines, as a full disk does."""
        self.unsynced.clear()
        self.handle(e.Refused(sentence="the disk is full"))

    def do_work(self, *, failure: str = "") -> None:
        """Do what a thread would; ``failure``: an error "before" or "after" an exchange."""
        match self.work.popleft():
            case e.Examine() as action:
                self.handle(e.Examined(found=found_in(self.look(), action)))
            case e.Compare(before=before, after=after):
                self.handle(e.Compared(differences=differences(before, after)))
            case e.Exchange(data=data, expected=expected):
                self.exchange(data, expected, failure)
            case e.Discard(keep_as=keep_as):
                if keep_as:
                    assert self.swap is not None
                    self.kept.append(self.swap)
                self.swap = None
                self.handle(e.Discarded())

    def look(self) -> Look:
        return Look(file=FileContent(self.file, is_open=self.is_open), swap=FileContent(self.swap))

    def exchange(self, data: bytes, expected: str, failure: str) -> None:
        if self.before_exchange is not None:
            self.before_exchange()
        if failure == "before":
            self.handle(e.ExchangeEnded(outcome="unclear", error="the disk is full"))
        elif self.is_open:
            self.handle(e.ExchangeEnded(outcome="open"))
        elif digest_of(self.file) != expected:
            self.handle(e.ExchangeEnded(outcome="changed"))
        else:
            self.file = data
            error = "the disk fails" if failure == "after" else ""
            outcome = e.ExchangeEnded(outcome="unclear" if error else "exchanged", error=error)
            self.handle(outcome)

    def run(self) -> None:
        """Do everything until nothing is left to do."""
        while self.work or self.unsynced or self.later:
            if self.work:
                self.do_work()
            elif self.unsynced:
                self.sync()
            else:
                self.handle(self.later.pop(0))

    # Clients.

    def ask(self, job: e.Job) -> int:
        self.callers += 1
        self.handle(e.Asked(job=attrs.evolve(job, caller=self.callers)))
        return self.callers

    def write(self, section: str, text: str, **more: Any) -> int:
        given = {"writer": "agent:ada", **more}
        return self.ask(e.Job(kind="write", section=section, text=text, **given))

    def append(self, section: str, text: str, writer: str = "agent:ada") -> int:
        return self.ask(e.Job(kind="append", section=section, text=text, writer=writer))

    def subscribe(self, handle: str, sections: list[str] | None = None) -> int:
        self.callers += 1
        self.handle(e.Subscribing(handle=handle, sections=sections, caller=self.callers))
        return self.callers

    def answer(self, caller: int) -> Any:
        """The answer after everything is done. Raises the error."""
        self.run()
        answer = self.answers[caller]
        if isinstance(answer, AegisError):
            raise answer
        return answer

    # What is known afterwards.

    @property
    def text(self) -> str:
        return "" if self.file is None else self.file.decode()

    def history(self) -> list[CanvasChange]:
        """All changes that the durable ledger tells of, oldest first."""
        history = History(keys=frozenset(), found=deque(), limit=10**6)
        for line in self.durable:
            history.apply(line)
        return [*history.found]

    def texts_ever(self) -> set[str]:
        """Every text of a section that is in the file or in the history."""
        found = {each.text for each in self.history() if each.text is not None}
        if self.file is not None:
            found |= set(parse(self.file).texts.values())
        for data in self.kept:
            found |= set(parse(data).texts.values())
        return found


def is_same(world: World) -> bool:
    """Whether the canvas knows the file as it is."""
    state = world.canvas.state
    if state.digest != digest_of(world.file):
        return False
    return world.file is None or parse(world.file).texts == state.texts
