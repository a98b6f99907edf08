"""Standard error on a PTY of its own: two streams of one shell, made one in the right order. Pure.

Bash draws its prompt and its line where standard error goes. So the hook parts the two streams as
late as it can, by a key behind the submitted text, and says so on the first PTY (``P;k=a``). From
there until the command begins (C) the shell speaks on the second PTY alone, and what comes on the
first waits. When the command has ended the hook says so on both (D), the second PTY first: the end
on the first one waits for it. Whatever else comes on the second PTY is standard error.

Zsh draws elsewhere. Its hook parts the streams when the line was read (``P;k=e``), and the start
comes on the first PTY: until then the second one waits. It ends as in bash.

Nothing waits for ever: ``give_up`` lets everything go, for whoever sees the time.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator, Sequence

import attrs

from aegis.terminals.parse.osc133 import Event, Mark, PasteMode

MAX_WAITING_BYTES = 1024 * 1024
"""More than this does not wait: something else than a command has come between."""


@attrs.frozen
class ErrorText:
    """Bytes of standard error."""

    data: bytes


class Stage(enum.Enum):
    """Where the two streams stand.

    ``SENT``: a submission is on its way, and the second PTY may be read before the first has said
    that they part. ``PARTED``: they have, and the start of the command comes on the first one.
    ``ENDED``: the second one has told the end of the command.
    """

    TOGETHER = "together"
    SENT = "sent"
    READING = "reading"
    PARTED = "parted"
    RUNNING = "running"
    ENDED = "ended"


class Apart:
    """Puts the events of the two streams of one shell in order."""

    def __init__(self) -> None:
        self.stage = Stage.TOGETHER
        self._waiting: deque[Event] = deque()
        self._waiting_bytes = 0
        self._ahead: list[Event] = []
        self._end: Mark | None = None
        self._number = 0

    @property
    def is_waiting(self) -> bool:
        """Whether something of one stream waits for the other."""
        return bool(self._waiting or self._ahead)

    def submitted(self) -> None:
        """A submission goes to the shell."""
        self.stage = Stage.SENT

    def first(self, events: Sequence[Event]) -> Iterator[Event | ErrorText]:
        """Events of the first PTY; gives what may be handled now."""
        for event in events:
            self._waiting.append(event)
            self._waiting_bytes += _size(event)
        yield from self._release()
        if self._waiting_bytes > MAX_WAITING_BYTES:
            yield from self.give_up()

    def second(self, events: Sequence[Event]) -> Iterator[Event | ErrorText]:
        """Events of the second PTY; gives what may be handled now, of the first one too."""
        if self.stage in (Stage.SENT, Stage.PARTED):
            self._ahead += events
            self._waiting_bytes += sum(map(_size, events))
        else:
            yield from self._take_second(events)
        if self._waiting_bytes > MAX_WAITING_BYTES:
            yield from self.give_up()

    def _take_second(self, events: Sequence[Event]) -> Iterator[Event | ErrorText]:
        for event in events:
            if isinstance(event, Mark):
                yield from self._second_mark(event)
                yield from self._release()
            elif isinstance(event, PasteMode):
                yield event
            else:
                yield ErrorText(event.data)

    def give_up(self) -> Iterator[Event | ErrorText]:
        """What waits has waited long enough. A submission may still be on its way."""
        then = Stage.SENT if self.stage is Stage.SENT else Stage.TOGETHER
        self.stage, self._end = Stage.TOGETHER, None
        yield from self._take_ahead()
        yield from self._release()
        self.stage = then if self.stage is Stage.TOGETHER else self.stage

    def _take_ahead(self) -> Iterator[Event | ErrorText]:
        ahead, self._ahead = self._ahead, []
        self._waiting_bytes -= sum(map(_size, ahead))
        yield from self._take_second(ahead)

    def _release(self) -> Iterator[Event | ErrorText]:
        while self._waiting:
            if self.stage is Stage.PARTED and _is_end(self._waiting[0]):
                yield from self._begin()
                continue
            if not self._is_due(self._waiting[0]):
                return
            event = self._waiting.popleft()
            self._waiting_bytes -= _size(event)
            yield event
            yield from self._first_passed(event)

    def _is_due(self, event: Event) -> bool:
        if self.stage is Stage.READING:
            return False
        return not (_is_end(event) and self.stage is Stage.RUNNING)

    def _begin(self) -> Iterator[Event | ErrorText]:
        self.stage = Stage.RUNNING
        yield from self._take_ahead()

    def _first_passed(self, event: Event) -> Iterator[Event | ErrorText]:
        if not isinstance(event, Mark):
            return
        if event.kind in "CD":
            self._number = max(self._number, event.number)
        if event.kind == "D" and self.stage is not Stage.SENT:
            self.stage, self._end = Stage.TOGETHER, None
        elif event.params.get("k") == "a":
            self.stage = Stage.READING
            yield from self._take_ahead()
        elif event.params.get("k") == "e":
            self.stage = Stage.PARTED
        elif event.kind == "C" and self.stage is Stage.PARTED:
            yield from self._begin()

    def _second_mark(self, mark: Mark) -> Iterator[Event]:
        """A mark on the second PTY. There is a prompt only if nobody put the streams together."""
        if self.stage is Stage.TOGETHER or (mark.kind in "CD" and mark.number <= self._number):
            return
        if mark.kind == "D":
            self.stage, self._end, self._number = Stage.ENDED, mark, mark.number
        elif mark.kind == "C":
            self.stage, self._number = Stage.RUNNING, mark.number
            yield mark
        elif mark.kind == "P":
            yield mark
        elif self._end is not None:
            yield self._end
            self._end = None
            yield mark
        elif self.stage is Stage.ENDED:
            self.stage = Stage.TOGETHER
            yield mark


def _is_end(event: Event) -> bool:
    return isinstance(event, Mark) and event.kind == "D"


def _size(event: Event) -> int:
    return len(event.visible if isinstance(event, Mark) else event.data)
