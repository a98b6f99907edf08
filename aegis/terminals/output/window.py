"""``Window``: the size of a terminal's window, its owner, the title, the bell, and who types."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter

import trio

from aegis.clock import utc_now
from aegis.protocol.feeds import OwnedSize, SizeAt, View
from aegis.protocol.terminals import NeedsInput, State, Typing
from aegis.terminals.parse.control_sequences import Bell, ControlSequence, Escape, Osc

MAX_TITLE_BYTES = 4094
"""A longer title is ignored."""

MAX_TITLE_CHARS = 256
"""The rest of a title is not shown."""

TYPING_S = 3.0
"""Seconds without keys after which a writer no longer counts as typing."""

MAX_SIZES = 256
"""Sizes that are kept; of older output the oldest kept size is reported."""


class Window:
    """The window of a terminal whose output begins at ``cursor``.

    ``look_after`` has ``look_at_typist`` called after some seconds.
    """

    def __init__(
        self, rows: int, cols: int, cursor: int, *, look_after: Callable[[float], None]
    ) -> None:
        self.rows, self.cols = rows, cols
        self.sizes = WindowSizes(cursor, cols, rows)
        self.owner: OwnedSize | None = None
        self.title, self.bells = "", 0
        self._typist = Typist()
        self._look_after = look_after
        self._look_is_due = False

    def follow(self, sequence: ControlSequence) -> None:
        """Take the title or the bell, if ``sequence`` of the output is one."""
        match sequence:
            case Bell():
                self.bells += 1
            case Osc(number=0 | 2, content=content) if len(content) <= MAX_TITLE_BYTES:
                self.title = clean_title(content)
            case Escape(final=b"c"):
                self.title = ""

    def size(self) -> tuple[int, int]:
        """Return the rows and columns."""
        return self.rows, self.cols

    def resize(self, rows: int, cols: int, cursor: int) -> None:
        """Note the size from the offset ``cursor`` on, the end of the output."""
        self.rows, self.cols = rows, cols
        self.sizes.resized(cursor, cols, rows)

    def typed(self, writer: str) -> None:
        """Note keys of ``writer``."""
        self._typist.typed(writer, trio.current_time(), utc_now())
        self._look()

    def look_at_typist(self) -> None:
        """Forget a writer who paused, or look again later."""
        self._look_is_due = False
        self._look()

    def _look(self) -> None:
        left_s = self._typist.check(trio.current_time())
        if left_s is not None and not self._look_is_due:
            self._look_is_due = True
            self._look_after(left_s)

    def view(self, state: State, needs_input: NeedsInput | None, typing: Typing | None) -> View:
        """Return the view for watchers; ``typing`` is the unfinished line at the prompt."""
        return View(
            cols=self.cols,
            rows=self.rows,
            state=state,
            needs_input=needs_input,
            title=self.title,
            bells=self.bells,
            typing=typing or self._typist.typing,
            size_owner=self.owner,
        )


class Typist:
    """The writer whose keys follow each other now; times are monotonic seconds."""

    def __init__(self) -> None:
        self.typing: Typing | None = None
        self._last_at = 0.0

    def typed(self, writer: str, moment_s: float, now: str) -> None:
        """Note keys of ``writer``; ``now`` is the time for clients."""
        is_another = self.typing is None or self.typing.writer != writer
        if is_another or moment_s - self._last_at >= TYPING_S:
            self.typing = Typing(writer=writer, since=now)
        self._last_at = moment_s

    def check(self, moment_s: float) -> float | None:
        """Forget a writer who paused; return the seconds until the next check, None: none."""
        if self.typing is None:
            return None
        left = self._last_at + TYPING_S - moment_s
        if left > 0:
            return left
        self.typing = None
        return None


class WindowSizes:
    """The sizes since the offset ``cursor``, where the window has ``cols`` and ``rows``."""

    def __init__(self, cursor: int, cols: int, rows: int) -> None:
        self._sizes = [SizeAt(cursor=cursor, cols=cols, rows=rows)]

    def resized(self, cursor: int, cols: int, rows: int) -> None:
        """Note the size from ``cursor`` on, the end of the output."""
        newest = self._sizes[-1]
        if (newest.cols, newest.rows) == (cols, rows):
            return
        if newest.cursor == cursor:
            self._sizes.pop()
        self._sizes.append(SizeAt(cursor=cursor, cols=cols, rows=rows))
        del self._sizes[:-MAX_SIZES]

    def within(self, begin: int, end: int) -> tuple[SizeAt, ...]:
        """Return the size at ``begin`` and the later ones up to ``end``, each with its offset."""
        first = bisect_right(self._sizes, begin, key=attrgetter("cursor"))
        at_begin = self._sizes[max(first - 1, 0)]
        later = [size for size in self._sizes[first:] if size.cursor <= end]
        if first == 0 and later:  # output before the first known size
            later = later[1:]
        return (SizeAt(cursor=begin, cols=at_begin.cols, rows=at_begin.rows), *later)


def clean_title(content: bytes) -> str:
    """Return the text of a title without control, format and bidi characters."""
    text = content.decode("utf-8", "replace")
    kept = (char for char in text if unicodedata.category(char)[0] != "C")
    return "".join(kept).strip()[:MAX_TITLE_CHARS]
