"""Which bytes of the output an emulator is fed, and when. Pure.

Emulating costs fifty times what reading from the PTY does, so it is done where somebody sees it:

- While a full-screen program shows the alternate screen, everything is fed as it comes: such a
  program draws once and then changes single cells.
- The main screen is fed when it is asked for: what came since the last time, if that is at most
  ``WINDOW_BYTES``; else only that much of the newest, on an empty screen (``Skip``), and the screen
  is partial. It is brought up to date before the alternate screen begins, so that it is there
  again when the program ends.
- Whoever falls more than ``MAX_BEHIND_BYTES`` behind on the alternate screen skips as well.

Switches and new sizes take effect at their place in the stream.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

SLICE_BYTES = 2048
"""The most that is fed before others have their turn."""

WINDOW_BYTES = 65_536
"""What is fed of a longer stretch: its end."""

MAX_BEHIND_BYTES = 262_144
"""How far the alternate screen may be behind the output."""

MAX_EVENTS = 1000
"""Switches and sizes that wait to be reached; with more, all of it is skipped."""


@attrs.frozen
class Feed:
    """Feed the bytes of ``[start, end)``."""

    start: int
    end: int


@attrs.frozen
class Skip:
    """Go on near ``to``, on an empty screen: the ``alternate`` one or the main one."""

    to: int
    alternate: bool


@attrs.frozen
class Resize:
    """The window has this size from here on."""

    rows: int
    cols: int


Step: TypeAlias = Feed | Skip | Resize


@attrs.frozen
class _Switch:
    alternate: bool


class Feeding:
    """The way of one emulator along the output, which began at ``origin``."""

    def __init__(self, origin: int) -> None:
        self.fed = origin
        self._position = origin
        self.alternate = False
        """Which screen is shown where the emulator is."""
        self._shows_alternate = False
        """Which one is shown at the end of the output."""
        # No deque: an empty one takes 760 bytes, and hardly any terminal ever has an event here.
        self._events: list[tuple[int, _Switch | Resize]] = []
        self._jumps = False

    def output(self, end: int) -> None:
        """The output reaches to ``end`` now."""
        self._position = end

    def switched(self, offset: int, *, alternate: bool) -> None:
        """From ``offset`` on another screen is shown."""
        self._shows_alternate = alternate
        self._add(offset, _Switch(alternate))

    def resized(self, rows: int, cols: int) -> None:
        """From the end of the output on the window has another size."""
        self._add(self._position, Resize(rows, cols))

    def _add(self, offset: int, event: _Switch | Resize) -> None:
        if len(self._events) >= MAX_EVENTS:
            sizes = [each for each in self._events if isinstance(each[1], Resize)]
            self._events = sizes[-1:]
            self._jumps = True
        self._events.append((offset, event))

    @property
    def must_reach(self) -> int:
        """How far the emulator has to be fed though nobody asks."""
        if self._shows_alternate:
            return self._position
        if not self._events:
            return self.fed
        switches = (offset for offset, event in self._events if isinstance(event, _Switch))
        return max(switches, default=self.fed)

    @property
    def is_in_between(self) -> bool:
        """Whether something has changed just where the emulator is, and it was not told yet."""
        return self._jumps or any(offset <= self.fed for offset, _ in self._events[:1])

    def behind(self, target: int) -> int:
        """How many bytes are missing until ``target``."""
        return max(target - self.fed, 0)

    def next(self, target: int) -> Step | None:
        """What to do next to get to ``target``; None: it is there."""
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
        place = min(self._events[0][0], end) if self._events else end
        return Feed(self.fed, min(self.fed + SLICE_BYTES, place))

    def _end_of_stretch(self, target: int) -> int:
        """How far the screen that is shown now is shown, at most ``target``."""
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
        """The emulator was fed to ``offset``, or skipped to it."""
        self.fed = offset


def safe_start(data: bytes) -> int:
    """Where in ``data``, cut off at any byte, an emulator may begin.

    An ESC begins anew whatever was before; else a line feed is in no character and hardly ever in
    a sequence; else the first byte that begins a character.
    """
    escape = data.find(b"\x1b")
    if escape >= 0:
        return escape
    line_feed = data.find(b"\n")
    if line_feed >= 0:
        return line_feed + 1
    return next((index for index, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
