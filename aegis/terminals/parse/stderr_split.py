"""The output of a shell as events in order: one stream, or two where standard error is split. Pure.

Bash draws its prompt and its line where standard error goes. So the hook splits the two streams as
late as it can, by a key behind the submitted text, and reports that on the first PTY (``P;k=a``).
From there until the command begins (C) the shell writes to the second PTY only, and bytes of the
first wait. When the command has ended the hook reports it on both (D), the second PTY first: the
end on the first one waits for that. All other bytes of the second PTY are standard error.

Zsh draws on a descriptor of its own. Its hook splits the streams after the line was read
(``P;k=e``), and the start comes on the first PTY: until then the second one waits. It ends as in
bash.

Each wait is bounded: ``release_all`` ends it, called by the owner of the clock.
"""

from __future__ import annotations

import enum
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import attrs

from aegis.terminals.parse.osc133 import Event, Mark, MarkParser, PasteMode, Text

MAX_WAITING_BYTES = 1024 * 1024
"""Limit of waiting bytes: above it all of them are passed on."""


@attrs.frozen
class ErrorText:
    """Bytes of standard error."""

    data: bytes


class Stage(enum.Enum):
    """The state of the two streams.

    ``SUBMITTED``: a submission was sent, and the second PTY may be read before the first reports
    the split. ``READING``: bash reads the line, on the second PTY. ``SPLIT``: zsh has split the
    streams, and the start of the command will come on the first one. ``ENDED``: the end of the
    command came on the second one.
    """

    MERGED = "merged"
    SUBMITTED = "submitted"
    READING = "reading"
    SPLIT = "split"
    RUNNING = "running"
    ENDED = "ended"


class StderrSplit:
    """The events of the two streams of one shell, put in order."""

    def __init__(self) -> None:
        self.stage = Stage.MERGED
        self._waiting: deque[Event] = deque()
        self._waiting_bytes = 0
        self._ahead: list[Event] = []
        self._end: Mark | None = None
        self._number = 0

    @property
    def is_waiting(self) -> bool:
        """Whether events of one stream wait for the other."""
        return bool(self._waiting or self._ahead)

    def submitted(self) -> None:
        """Note that a submission is sent to the shell."""
        self.stage = Stage.SUBMITTED

    def feed_output(self, events: Sequence[Event]) -> Iterator[Event | ErrorText]:
        """Take events of the first PTY; yield the ones to handle now."""
        for event in events:
            self._waiting.append(event)
            self._waiting_bytes += _size(event)
        yield from self._release()
        if self._waiting_bytes > MAX_WAITING_BYTES:
            yield from self.release_all()

    def feed_errors(self, events: Sequence[Event]) -> Iterator[Event | ErrorText]:
        """Take events of the second PTY; yield the ones to handle now, of both."""
        if self.stage in (Stage.SUBMITTED, Stage.SPLIT):
            self._ahead += events
            self._waiting_bytes += sum(map(_size, events))
        else:
            yield from self._take_errors(events)
        if self._waiting_bytes > MAX_WAITING_BYTES:
            yield from self.release_all()

    def _take_errors(self, events: Sequence[Event]) -> Iterator[Event | ErrorText]:
        for event in events:
            if isinstance(event, Mark):
                yield from self._errors_mark(event)
                yield from self._release()
            elif isinstance(event, PasteMode) and self._may_edit_on_errors():
                yield event
            else:
                yield ErrorText(event.data)

    def _may_edit_on_errors(self) -> bool:
        """Whether the line editor may be the writer of a paste mode on the second PTY."""
        # While the streams are merged the hook's shell edits on the first PTY. What it wrote to the
        # second one before it read the hook may be read only now: it has accepted no line since.
        return self.stage is not Stage.MERGED or not self._number

    def release_all(self) -> Iterator[Event | ErrorText]:
        """Yield all waiting events. A submission may still be on its way."""
        then = Stage.SUBMITTED if self.stage is Stage.SUBMITTED else Stage.MERGED
        self.stage, self._end = Stage.MERGED, None
        yield from self._take_ahead()
        yield from self._release()
        self.stage = then if self.stage is Stage.MERGED else self.stage

    def _take_ahead(self) -> Iterator[Event | ErrorText]:
        ahead, self._ahead = self._ahead, []
        self._waiting_bytes -= sum(map(_size, ahead))
        yield from self._take_errors(ahead)

    def _release(self) -> Iterator[Event | ErrorText]:
        while self._waiting:
            if self.stage is Stage.SPLIT and _is_end(self._waiting[0]):
                yield from self._begin()
                continue
            if not self._is_due(self._waiting[0]):
                return
            event = self._waiting.popleft()
            self._waiting_bytes -= _size(event)
            yield event
            yield from self._output_passed(event)

    def _is_due(self, event: Event) -> bool:
        if self.stage is Stage.READING:
            return False
        return not (_is_end(event) and self.stage is Stage.RUNNING)

    def _begin(self) -> Iterator[Event | ErrorText]:
        self.stage = Stage.RUNNING
        yield from self._take_ahead()

    def _output_passed(self, event: Event) -> Iterator[Event | ErrorText]:
        if not isinstance(event, Mark):
            return
        if event.kind in "CD":
            self._number = max(self._number, event.number)
        if event.kind == "D" and self.stage is not Stage.SUBMITTED:
            self.stage, self._end = Stage.MERGED, None
        elif event.params.get("k") == "a":
            self.stage = Stage.READING
            yield from self._take_ahead()
        elif event.params.get("k") == "e":
            self.stage = Stage.SPLIT
        elif event.kind == "C" and self.stage is Stage.SPLIT:
            yield from self._begin()

    def _errors_mark(self, mark: Mark) -> Iterator[Event]:
        """Take a mark of the second PTY. A prompt comes there only while the streams are split."""
        if self.stage is Stage.MERGED or (mark.kind in "CD" and mark.number <= self._number):
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
            self.stage = Stage.MERGED
            yield mark


def _is_end(event: Event) -> bool:
    return isinstance(event, Mark) and event.kind == "D"


def _size(event: Event) -> int:
    return len(event.visible if isinstance(event, Mark) else event.data)


SPLIT_WAIT_S = 1.0
"""Time, in seconds, that output waits for earlier bytes on the PTY of standard error."""


class ShellStreams:
    """The parsers of one shell whose marks hold ``secret``; ``split``: it uses two PTYs.

    Without ``split`` all bytes of the second PTY are standard error.
    """

    def __init__(self, secret: bytes, *, split: bool) -> None:
        self._parser = MarkParser(secret)
        self._split: StderrSplit | None = None
        if split:
            self._split, self._error_parser = StderrSplit(), MarkParser(secret)
        self._waits_until = math.inf
        self._probe_echo = b""

    @property
    def is_passing(self) -> bool:
        """Whether a chunk without an ESC is one ``Text`` as it is."""
        return not (self._split or self._probe_echo or self._parser.is_within_sequence)

    def feed(self, data: bytes) -> Iterable[Event | ErrorText]:
        """Parse ``data`` of the PTY; return the events to handle now."""
        events = self._without_echo(self._parser.feed(data))
        return events if self._split is None else self._split.feed_output(events)

    def feed_errors(self, data: bytes) -> Iterable[Event | ErrorText]:
        """Parse ``data`` of the PTY of standard error; return the events to handle now, of both."""
        if self._split is None:
            return [ErrorText(data)]
        return self._split.feed_errors(self._error_parser.feed(data))

    def submitted(self) -> None:
        """Note that a submission is sent to the shell."""
        if self._split is not None:
            self._split.submitted()

    def probed(self, key: bytes) -> None:
        """Note that a probe key is sent to the shell: its echo is removed until it is answered."""
        # The shell may have begun a line that was typed ahead. Then the tty echoes the key into the
        # output of that command, in caret notation.
        if key.startswith(b"\x1b"):
            self._probe_echo = key.replace(b"\x1b", b"^[")

    def _without_echo(self, events: Sequence[Event]) -> Sequence[Event]:
        return [*self._filtered(events)] if self._probe_echo else events

    def _filtered(self, events: Sequence[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, Text) and self._probe_echo:
                kept = event.data.replace(self._probe_echo, b"")
                if kept:
                    yield attrs.evolve(event, data=kept)
                continue
            if isinstance(event, Mark) and event.params.get("k") == "l":
                self._probe_echo = b""
            yield event

    @property
    def is_waiting(self) -> bool:
        """Whether output of one PTY waits for the other."""
        return self._split is not None and self._split.is_waiting

    def begins_to_wait(self, now: float) -> bool:
        """Return whether a wait began: call ``overdue`` after ``SPLIT_WAIT_S`` seconds."""
        if not self.is_waiting:
            self._waits_until = math.inf
            return False
        if self._waits_until < math.inf:
            return False
        self._waits_until = now + SPLIT_WAIT_S
        return True

    def overdue(self, now: float) -> Iterable[Event | ErrorText]:
        """Return the events that have waited for ``SPLIT_WAIT_S``."""
        if self._split is None or now < self._waits_until:
            return ()
        self._waits_until = math.inf
        return self._split.release_all()

    def close(self) -> Iterable[Event | ErrorText]:
        """Yield everything that is left after the shell's end, incomplete sequences too."""
        if self._split is not None:
            yield from self._split.feed_errors(self._error_parser.close())
            yield from self._split.release_all()
        yield from self._parser.close()
