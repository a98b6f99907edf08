"""A shell's pipeline and rules with a stand-in of their actor, and a clock that is set."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from pathlib import Path

import attrs

from aegis.terminals import messages as msg
from aegis.terminals.hooks.adapter import ShellAdapter
from aegis.terminals.parse import boundaries as bd
from aegis.terminals.parse.control_sequences import ControlSequence
from aegis.terminals.shell.pipeline import (
    PromptReached,
    ShellEvent,
    ShellOutput,
    ShellPipeline,
)
from aegis.terminals.shell.submissions import (
    LookAfter,
    PtyInput,
    ShellQuestion,
    SignalDue,
    Submissions,
)

SECRET = b"0123456789abcdef"
ADAPTER = ShellAdapter(secret=SECRET, argv=("bash",), directory=Path("/nonexistent"))


def mark(kind: str, number: int, rest: str = "") -> bytes:
    """Return a mark of the hook: ``C``, ``D;0``, ``P;k=l``."""
    return f"\x1b]133;{kind};n={SECRET.decode()};q={number}{rest}\x07".encode()


class DrivenShell:
    """Handles the events of a shell as its actor does.

    ``news`` is what the front is notified of, ``written`` what is typed, with its time; ``shown``
    is the output.
    """

    def __init__(self, adapter: ShellAdapter = ADAPTER) -> None:
        self.rules = Submissions(adapter)
        self.pipeline = ShellPipeline("one", self.rules, 0)
        self.now = 0.0
        self.waits_for_keys = self.is_in_front = True
        self.cwd = "/"
        self.news: list[object] = []
        self.written: list[tuple[float, bytes]] = []
        self.signalled: list[msg.SendSignal] = []
        self.sequences: list[ControlSequence] = []
        self.shown = b""
        self.timers: list[float] = []

    @property
    def keys(self) -> list[bytes]:
        """What was typed."""
        return [keys for _, keys in self.written]

    def handle(self, events: Iterable[ShellEvent]) -> None:
        """Handle ``events``."""
        for event in events:
            match event:
                case ShellOutput(data=data, sequences=sequences):
                    self.shown += data
                    assert all(each.end <= len(self.shown) for each in sequences)
                    self.sequences += sequences
                case PtyInput(data=data):
                    self.pipeline.typed(event)
                    self.written.append((self.now, data))
                case LookAfter(seconds=seconds):
                    heapq.heappush(self.timers, self.now + seconds)
                case PromptReached():
                    self.pipeline.cwd = self.cwd
                    self.news.append(event)
                case bd.CommandBegin():
                    self.handle(self.pipeline.begin(event, self.now))
                case SignalDue(request=request):
                    self.signalled.append(request)
                    if request.signal == "INT":
                        self.handle(self.rules.interrupted(request.writer, self.now))
                case ShellQuestion.IS_IN_FRONT:
                    self.handle(self.rules.probe() if self.is_in_front else ())
                case ShellQuestion.WAITS_FOR_KEYS:
                    self.handle(self.rules.ask(self.now, waits_for_keys=self.waits_for_keys))
                case _:
                    assert getattr(event, "raw_start", 0) <= len(self.shown)
                    self.news.append(_timeless(event))

    def feed(self, *chunks: bytes) -> None:
        """Take what the shell prints."""
        for data in chunks:
            if self.pipeline.pass_on(data):
                self.shown += data
                continue
            self.handle(self.pipeline.feed(data, self.now))
            self.handle(self.rules.release(self.now))
            self.handle(self.rules.typing_news())

    def feed_errors(self, data: bytes) -> None:
        """Take what it prints on the second PTY."""
        self.handle(self.pipeline.feed_errors(data, self.now))
        self.handle(self.rules.release(self.now))

    def press(self, keys: bytes, writer: str = "human") -> None:
        """Type keys."""
        self.handle(self.rules.keys(writer, keys, self.now))
        self.handle(self.rules.typing_news())

    def submit(self, call: int, cmd: str) -> None:
        """Submit a command."""
        self.handle(self.rules.submit(msg.Submit(call=call, cmd=cmd, writer="agent:ada")))

    def look(self) -> None:
        """Do what is due."""
        self.handle(self.rules.release(self.now))
        self.handle(self.pipeline.overdue(self.now))
        self.handle(self.rules.look(self.now))

    def pass_time(self, seconds: float) -> None:
        """Let so many seconds pass, and each timer go off in its time."""
        until = self.now + seconds
        while self.timers and self.timers[0] <= until:
            self.now = heapq.heappop(self.timers)
            self.look()
        self.now = until

    def of(self, kind: type) -> list[object]:
        """Return the news of one kind."""
        return [each for each in self.news if isinstance(each, kind)]


def _timeless(event: ShellEvent) -> object:
    match event:
        case msg.CommandStarted():
            return attrs.evolve(event, started_at="")
        case msg.CommandEnded() | msg.NothingRan():
            return attrs.evolve(event, finished_at="")
        case msg.TypingChanged(typing=typing) if typing is not None:
            return attrs.evolve(event, typing=attrs.evolve(typing, since=""))
        case _:
            return event
