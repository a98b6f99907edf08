"""The choice of the bytes that an emulator is fed, and when. Pure.

Emulation costs fifty times as much as reading from the PTY, so it is done only where it is seen:

- On the alternate screen all output is fed as it comes: a full-screen program draws once and then
  changes single cells.
- The main screen is fed on request: the output since the last time, if that is at most
  ``WINDOW_BYTES``; else only the newest ``WINDOW_BYTES``, on an empty screen (``Skip``), and the
  screen is partial. It is brought up to date before the alternate screen begins, so that it can be
  shown when the program ends.
- An emulator more than ``MAX_BEHIND_BYTES`` behind on the alternate screen skips as well.

Switches and new sizes take effect at their place in the stream.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

SLICE_BYTES = 2048
"""Limit of bytes fed before other tasks run."""

WINDOW_BYTES = 65_536
"""Limit of bytes fed on request: the newest ones."""

MAX_BEHIND_BYTES = 262_144
"""Limit of bytes that the alternate screen may be behind the output."""

MAX_EVENTS = 1000
"""Limit of pending switches and sizes; beyond it the output is skipped."""


@attrs.frozen
class Feed:
    """Feed the bytes of ``[start, end)``."""

    start: int
    end: int


@attrs.frozen
class Skip:
    """Continue near ``to`` on an empty screen: the ``alternate`` or the main one."""

    to: int
    alternate: bool


@attrs.frozen
class Resize:
    """Change the size of the window."""

    rows: int
    cols: int


Step: TypeAlias = Feed | Skip | Resize


@attrs.frozen
class _Switch:
    alternate: bool


class Feeding:
    """The progress of one emulator along the output, which began at ``origin``."""

    def __init__(self, origin: int) -> None:
        self.fed = origin
        self._position = origin
        self.alternate = False
        """Whether the alternate screen is shown at the emulator's position."""
        self._shows_alternate = False
        """Whether the alternate screen is shown at the end of the output."""
        # No deque: an empty one takes 760 bytes, and few terminals ever have an event here.
        self._events: list[tuple[int, _Switch | Resize]] = []
        self._jumps = False

    def output(self, end: int) -> bool:
        """Note that the output reaches ``end``; return whether to feed without a request."""
        self._position = end
        # Nearly always false, which takes no further call.
        return (self._shows_alternate or self._events != []) and self.must_reach > self.fed

    def switched(self, offset: int, *, alternate: bool) -> None:
        """Note a switch of the screen at ``offset``."""
        self._shows_alternate = alternate
        self._add(offset, _Switch(alternate))

    def resized(self, rows: int, cols: int) -> None:
        """Note a new size of the window at the end of the output."""
        self._add(self._position, Resize(rows, cols))

    def _add(self, offset: int, event: _Switch | Resize) -> None:
        if len(self._events) >= MAX_EVENTS:
            sizes = [each for each in self._events if isinstance(each[1], Resize)]
            self._events = sizes[-1:]
            self._jumps = True
        self._events.append((offset, event))

    @property
    def must_reach(self) -> int:
        """The offset up to which the emulator must be fed without a request."""
        if self._shows_alternate:
            return self._position
        if not self._events:
            return self.fed
        switches = (offset for offset, event in self._events if isinstance(event, _Switch))
        return max(switches, default=self.fed)

    @property
    def is_in_between(self) -> bool:
        """Whether a change at the emulator's position is not applied yet."""
        return self._jumps or any(offset <= self.fed for offset, _ in self._events[:1])

    def behind(self, target: int) -> int:
        """Return the number of bytes until ``target``."""
        return max(target - self.fed, 0)

    def next(self, target: int) -> Step | None:
        """Return the next step towards ``target``; None if it is reached."""
        if self._jumps:
            return self._jump()
        while self._events and self._events[0][0] <= self.fed:
            _, event = self._events.pop(0)
            if isinstance(event, Resize):
                return event
            self.alternate = event.alternate
        if self.fed >= target:
            return None
        end = self._end_of_stretch(target)
        if end - self.fed > (MAX_BEHIND_BYTES if self.alternate else WINDOW_BYTES):
            return Skip(end - WINDOW_BYTES, self.alternate)
        stop = min(self._events[0][0], end) if self._events else end
        return Feed(self.fed, min(self.fed + SLICE_BYTES, stop))

    def _end_of_stretch(self, target: int) -> int:
        """Return the end of the current screen's output, at most ``target``."""
        for offset, event in self._events:
            if isinstance(event, _Switch):
                return min(offset, target)
        return target

    def _jump(self) -> Skip:
        self._jumps = False
        self._events = [each for each in self._events if isinstance(each[1], Resize)]
        self.alternate = self._shows_alternate
        return Skip(self._position, self.alternate)

    def reached(self, offset: int) -> None:
        """Note that the emulator was fed, or skipped, to ``offset``."""
        self.fed = offset


def safe_start(data: bytes) -> int:
    """Return an offset where an emulator may begin; ``data`` may begin within a sequence."""
    # An ESC begins a sequence after any bytes; a line feed is in no character and hardly ever in a
    # sequence; else the first byte that begins a character.
    escape = data.find(b"\x1b")
    if escape >= 0:
        return escape
    line_feed = data.find(b"\n")
    if line_feed >= 0:
        return line_feed + 1
    return next((index for index, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
