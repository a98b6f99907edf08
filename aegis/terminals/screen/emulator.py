"""The screen emulator: a stream of bytes in, a screen of rows and columns out. Pure.

``ScreenEmulator`` is the part that all libraries share: the two screens and the switch between
them, the title, the cursor's visibility, the size, and the recovery from a failure of the library.
A ``Grid`` is one screen of cells, by one of the libraries.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

import attrs

from aegis.terminals.screen import sequences as sq
from aegis.terminals.screen.widths import truncate_to_width

MAX_TITLES = 10
"""Limit of the stack of titles."""

SCREEN, SCREEN_CLEARED, CURSOR, SCREEN_AND_CURSOR = 47, 1047, 1048, 1049
"""Private modes of the alternate screen: its text kept, cleared, cursor only, both."""

VISIBLE, ORIGIN, WRAP = 25, 6, 7

_ERASES_ALL = re.compile(r"\x1b\[2J")
_REGIONS = re.compile(r"\x1b\[([0-9]*)(?:;([0-9]*)[0-9;]*)?r")
_POSITIONS = re.compile(r"\x1b\[[0-9;]*[Hf]")


@attrs.frozen(kw_only=True)
class Screenshot:
    """A screen at one moment.

    ``cursor`` is its row and column, both from 0, within the screen also behind a full line.
    ``lines`` are ``rows`` texts without trailing blanks. ``alternate``: the alternate screen is
    shown, and ``beneath`` has the lines of the main screen. ``partial``: some text may be missing
    or misplaced.
    """

    rows: int
    cols: int
    cursor: tuple[int, int]
    cursor_visible: bool
    title: str
    alternate: bool
    partial: bool
    lines: tuple[str, ...]
    beneath: tuple[str, ...] = ()


class Emulator(Protocol):
    """A screen that is fed with output."""

    def feed(self, data: bytes) -> None:
        """Take the next chunk of the stream. Never raises."""

    def resize(self, rows: int, cols: int) -> None:
        """Change the size of the window; lines are not wrapped again."""

    def skip(self, *, alternate: bool) -> None:
        """Note missing bytes: the screen after them, ``alternate`` or not, is empty and partial."""

    def screen(self) -> Screenshot:
        """Return the screen as it is now."""

    def take_failure(self) -> str | None:
        """Return the library's last exception since the last call, for the log."""


class Grid(Protocol):
    """One screen of cells."""

    def write(self, passage: str) -> None:
        """Write text, controls and sequences of a ``sequences.GridOutput``; whole characters."""

    def cursor(self) -> tuple[int, int]:
        """Return row and column, from 0."""

    def lines(self) -> list[str]:
        """Return the text of each row."""

    def wraps_next(self) -> bool:
        """Return whether the cursor is behind a full line, so that the next character wraps."""

    def let_wrap(self) -> None:
        """Move the cursor from the last column to behind the full line."""


NewGrid = Callable[[int, int], Grid]
"""Makes an empty grid, by rows and columns."""


class ScreenEmulator:
    """An ``Emulator`` over the grids that ``new_grid`` makes."""

    def __init__(self, rows: int, cols: int, new_grid: NewGrid) -> None:
        self._rows, self._cols = rows, cols
        self._new_grid = new_grid
        self._splitter = sq.SequenceSplitter()
        self._partial = {False: False, True: False}
        self._failure: str | None = None
        self._begin()

    def _begin(self) -> None:
        """Reset to the state of a new terminal."""
        self._grids: dict[bool, Grid] = {False: self._new_grid(self._rows, self._cols)}
        self._saved: tuple[int, int] | None = None
        self._alternate = False
        self._visible = True
        self._wraps = True
        self._title = ""
        self._titles: deque[str] = deque(maxlen=MAX_TITLES)
        self._knows_text = self._knows_cursor = False

    @property
    def _grid(self) -> Grid:
        return self._grids[self._alternate]

    def feed(self, data: bytes) -> None:
        """Take the next chunk of the stream. Never raises."""
        for part in self._splitter.feed(data):
            with _Contained() as outcome:
                self._take(part)
            if outcome.error is not None:
                self._fail(outcome.error)

    def _take(self, part: sq.Part) -> None:
        match part:
            case sq.GridOutput(text=text):
                self._write(text)
            case sq.PrivateModes(modes=modes, on=on):
                for mode in modes:
                    self._set_mode(mode, on=on)
            case sq.Title(text=text):
                self._title = text
            case sq.TitleStack(push=True):
                self._titles.append(self._title)
            case sq.TitleStack():
                self._title = self._titles.pop() if self._titles else self._title
            case sq.SoftReset():
                self._visible = True
                self._grid.write("\x1b[!p")
            case sq.Reset():
                self._partial = {False: False, True: False}
                self._begin()

    def _write(self, passage: str) -> None:
        if "\x1b[" in passage:
            passage = _REGIONS.sub(self._usable_region, passage)
        self._grid.write(passage)
        if self._partial[self._alternate]:
            self._look_for_certainty(passage)

    def _usable_region(self, found: re.Match[str]) -> str:
        """Return a scroll region (DECSTBM) within the screen; nothing for less than two rows."""
        top, bottom = int(found[1] or 0) or 1, int(found[2] or 0) or self._rows
        bottom = min(bottom, self._rows)
        return f"\x1b[{top};{bottom}r" if top < bottom else ""

    def _look_for_certainty(self, text: str) -> None:
        """Clear ``partial`` once the screen was erased and the cursor was positioned."""
        self._knows_text |= _ERASES_ALL.search(text) is not None
        self._knows_cursor |= _POSITIONS.search(text) is not None
        if self._knows_text and self._knows_cursor:
            self._partial[self._alternate] = False

    def _set_mode(self, mode: int, *, on: bool) -> None:
        if mode == VISIBLE:
            self._visible = on
        elif mode in (ORIGIN, WRAP):
            self._wraps = on if mode == WRAP else self._wraps
            self._grid.write(f"\x1b[?{mode}{_letter(on)}")
        elif mode == CURSOR:
            self._grid.write("\x1b7" if on else "\x1b8")
        elif mode in (SCREEN, SCREEN_CLEARED, SCREEN_AND_CURSOR):
            self._enter(mode) if on else self._leave(mode)

    def _enter(self, mode: int) -> None:
        row, col = self._grid.cursor()
        wraps_next = self._grid.wraps_next()
        if mode == SCREEN_AND_CURSOR:
            self._grid.write("\x1b7")
            if not self._alternate:
                self._saved = (row, col)
        elif self._alternate:
            return
        if mode == SCREEN_AND_CURSOR or True not in self._grids:
            self._grids[True] = self._new_grid(self._rows, self._cols)
            self._partial[True] = False
        self._show(alternate=True, row=row, col=col)
        if wraps_next:
            self._grid.let_wrap()

    def _leave(self, mode: int) -> None:
        row, col = self._grid.cursor()
        if self._alternate:
            if mode == SCREEN_CLEARED:
                del self._grids[True]
            self._show(alternate=False, row=row, col=col)
        if mode == SCREEN_AND_CURSOR:
            self._grid.write(f"\x1b8\x1b[?7{_letter(self._wraps)}")
            self._saved = None

    def _show(self, *, alternate: bool, row: int, col: int) -> None:
        self._alternate = alternate
        self._knows_text = self._knows_cursor = False
        self._grid.write(f"\x1b[?7{_letter(self._wraps)}\x1b[{row + 1};{col + 1}H")

    def resize(self, rows: int, cols: int) -> None:
        """Change the size of the window; lines are not wrapped again.

        As in xterm, lines are truncated at the right and below, or above as far as the cursor needs
        it. Margins and tab stops are reset.
        """
        if (rows, cols) == (self._rows, self._cols):
            return
        self._rows, self._cols = rows, cols
        with _Contained() as outcome:
            for alternate, grid in list(self._grids.items()):
                saved = None if alternate else self._saved
                self._grids[alternate] = self._resized(grid, saved)
        if outcome.error is not None:
            self._fail(outcome.error)

    def _resized(self, old: Grid, saved: tuple[int, int] | None) -> Grid:
        row, col = old.cursor()
        lines = old.lines()
        above = max(row - self._rows + 1, 0)
        new = self._new_grid(self._rows, self._cols)
        new.write("\x1b[?7l")
        for index, line in enumerate(lines[above : above + self._rows]):
            new.write(f"\x1b[{index + 1}H{truncate_to_width(line.rstrip(' '), self._cols)}")
        if saved is not None:
            new.write(f"\x1b[?7h\x1b[{max(saved[0] - above, 0) + 1};{saved[1] + 1}H\x1b7")
        new.write(f"\x1b[?7{_letter(self._wraps)}\x1b[{row - above + 1};{col + 1}H")
        return new

    def skip(self, *, alternate: bool) -> None:
        """Note missing bytes: the screen after them, ``alternate`` or not, is empty and partial."""
        self._splitter = sq.SequenceSplitter()
        if self._alternate and not alternate:
            self._leave(SCREEN_CLEARED)
        self._alternate = alternate
        self._grids[alternate] = self._new_grid(self._rows, self._cols)
        self._partial[alternate] = True
        self._visible = self._wraps = True
        self._knows_text = self._knows_cursor = False

    def _fail(self, error: BaseException) -> None:
        """Start again with empty, partial screens: the library's state cannot be trusted."""
        self._failure = f"{type(error).__name__}: {error}"
        alternate, title = self._alternate, self._title
        self._begin()
        self._title = title
        self._partial = {False: True, True: alternate}
        if alternate:
            self._grids[True] = self._new_grid(self._rows, self._cols)
            self._alternate = True

    def screen(self) -> Screenshot:
        """Return the screen as it is now."""
        with _Contained() as outcome:
            return self._screenshot()
        assert outcome.error is not None
        self._fail(outcome.error)
        return self._screenshot()

    def take_failure(self) -> str | None:
        """Return the library's last exception since the last call, for the log."""
        failure, self._failure = self._failure, None
        return failure

    def _screenshot(self) -> Screenshot:
        return Screenshot(
            rows=self._rows,
            cols=self._cols,
            cursor=self._grid.cursor(),
            cursor_visible=self._visible,
            title=self._title,
            alternate=self._alternate,
            partial=self._partial[self._alternate],
            lines=_texts(self._grid),
            beneath=_texts(self._grids[False]) if self._alternate else (),
        )


def _texts(grid: Grid) -> tuple[str, ...]:
    return tuple(line.rstrip() for line in grid.lines())


def _letter(on: bool) -> str:
    return "h" if on else "l"


class _Contained:
    """A block whose exception is stored in ``error`` instead of raised."""

    # A panic of a library written in Rust is a ``BaseException`` whose class cannot be imported.

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> _Contained:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, Exception) or (kind and kind.__name__ == "PanicException"):
            self.error = error
        return self.error is not None
