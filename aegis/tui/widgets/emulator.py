"""The screen of a program: asciinema's emulator, and what it does not report about modes and marks.

Lines are numbered from the first line that the emulator was fed: a line keeps its number when it
scrolls out of the screen.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from typing import Any

from avt import Line, Vt  # type: ignore[attr-defined]
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

HISTORY = 1_000
"""Lines that scrolled out and are kept: some 12 KB each."""

SLICE_CHARS = 16 * 1024
MAX_MARK_CHARS = 64

_SEQUENCES = re.compile(
    r"\x1b\](?P<osc>\d+);(?P<text>[^\x07\x1b]*)(?:\x07|\x1b\\)|\x1b\[\?(?P<modes>[\d;]+)(?P<set>[hl])"
    r"|\x1bc|\x07"
)
_UNFINISHED = re.compile(r"\x1b(?:\][^\x07\x1b]{0,4096}\x1b?|\[\??[\d;]{0,32})?\Z")

ALTERNATE = frozenset({47, 1047, 1049})
MOUSE = frozenset({9, 1000, 1002, 1003})
PASTE, SGR_MOUSE, DRAG, MOTION = 2004, 1006, 1002, 1003


class EmulatedScreen:
    """The screen of ``cols`` by ``rows``, and the lines above it."""

    def __init__(self, cols: int = 80, rows: int = 24) -> None:
        self._vt = Vt(cols, rows, 0)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self.history: deque[Line] = deque(maxlen=HISTORY)
        self.scrolled = 0
        """Lines that scrolled out since the beginning."""
        self.changed: set[int] = set()
        """Rows of the screen that were drawn since ``changed`` was cleared."""
        self.modes: set[int] = set()
        self.title = ""
        self.bells = 0
        self.prompt_line: int | None = None
        """The line where the newest prompt began (mark A)."""
        self.output_line: int | None = None
        """The line where the output of the newest command began (mark C)."""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        cols, rows = self._vt.size
        return cols, rows

    @property
    def is_alternate(self) -> bool:
        """Whether a full-screen program is shown."""
        return bool(self.modes & ALTERNATE)

    @property
    def wants_mouse(self) -> bool:
        """Whether the program asked for the mouse."""
        return bool(self.modes & MOUSE)

    @property
    def has_application_arrows(self) -> bool:
        """Whether the program wants arrow keys as ESC O."""
        return bool(self._vt.cursor_key_app_mode)

    @property
    def cursor(self) -> tuple[int, int, bool]:
        """Row, column, and whether it is visible."""
        cursor = self._vt.cursor
        return cursor.row, min(cursor.col, self._vt.size[0] - 1), bool(cursor.visible)

    @property
    def first_line(self) -> int:
        """The number of the oldest line that is kept."""
        return self.scrolled - len(self.history)

    def reset(self, cols: int, rows: int) -> None:
        """Begin anew, for a drawing of the whole screen."""
        self.__init__(cols, rows)  # type: ignore[misc]
        self.changed.update(range(rows))

    def resize(self, cols: int, rows: int) -> None:
        """Change the size; lines are wrapped again."""
        row, _, _ = self.cursor
        at = self.scrolled + row
        below = [
            None if line is None else at - line for line in (self.prompt_line, self.output_line)
        ]
        self._vt.resize(cols, rows)
        now = self.scrolled + self.cursor[0]
        self.prompt_line, self.output_line = (
            None if each is None else max(self.scrolled, now - each) for each in below
        )
        self.changed.update(range(rows))

    def feed(self, data: bytes) -> None:
        """Take output of the program."""
        self.feed_text(self._decoder.decode(data))

    def feed_text(self, text: str) -> None:
        """Take output of the program as text."""
        text = self._rest + text
        cut = _UNFINISHED.search(text, max(0, len(text) - 4200))
        self._rest = text[cut.start() :] if cut else ""
        text = text[: cut.start()] if cut else text
        begin = 0
        for found in _SEQUENCES.finditer(text):
            if found["osc"] == "133":
                # The place of a mark is the cursor after everything before it.
                self._write(text[begin : found.start()])
                begin = found.end()
                self._mark(found["text"])
                continue
            if found["modes"] and not ALTERNATE.isdisjoint(_numbers(found["modes"])):
                # Lines that scrolled out before belong to the other screen.
                self._write(text[begin : found.start()])
                begin = found.start()
            self._note(found)
        self._write(text[begin:])

    def _write(self, text: str) -> None:
        for begin in range(0, len(text), SLICE_CHARS):
            rows, gone = self._vt.feed_str(text[begin : begin + SLICE_CHARS])
            self.changed.update(rows)
            if not self.modes & ALTERNATE and gone:
                self.history.extend(gone)
                self.scrolled += len(gone)

    def _mark(self, text: str) -> None:
        line = self.scrolled + self.cursor[0]
        if text.startswith("A"):
            self.prompt_line, self.output_line = line, None
        elif text.startswith("C"):
            self.output_line = line

    def _note(self, found: re.Match[str]) -> None:
        if found["modes"]:
            change = self.modes.update if found["set"] == "h" else self.modes.difference_update
            change(_numbers(found["modes"]))
        elif found["osc"] in ("0", "2"):
            self.title = found["text"][:256]
        elif found[0] == "\x07":
            self.bells += 1
        elif found[0] == "\x1bc":
            self.modes.clear()

    def last_row(self) -> int:
        """Return the last row with text, or with the cursor."""
        lines = self._vt.view()
        for row in range(len(lines) - 1, self.cursor[0], -1):
            if lines[row].text.strip():
                return row
        return self.cursor[0]

    def text(self, number: int) -> str:
        """Return the text of a line."""
        line = self._line(number)
        return "" if line is None else line.text.rstrip()

    def strip(self, number: int, *, has_cursor: bool) -> Strip:
        """Return a line as it is drawn; ``has_cursor`` shows the cursor if it is there."""
        line = self._line(number)
        if line is None:
            return Strip([], 0)
        row, column, is_visible = self.cursor
        is_here = has_cursor and is_visible and number == self.scrolled + row
        return self._drawn(line, column if is_here else None)

    def _line(self, number: int) -> Any:
        row = number - self.scrolled
        if 0 <= row < self._vt.size[1]:
            return self._vt[row]
        index = number - self.first_line
        return self.history[index] if 0 <= index < len(self.history) else None

    def _drawn(self, line: Any, cursor: int | None) -> Strip:
        if cursor is None and (dumped := dumped_segments(line)) is not None:
            return Strip(dumped, len(line))
        segments: list[Segment] = []
        column = 0
        for chunk in line.chunks(has_another_pen):
            style = style_of_pen(chunk[0].pen)
            at = -1 if cursor is None else cursor - column
            column += len(chunk)
            if not 0 <= at < len(chunk):
                segments.append(Segment(text_of(chunk), style))
                continue
            under = chunk[at : at + 2] if at + 1 < len(chunk) and not chunk[at + 1].width else None
            end = at + (2 if under else 1)
            reversed_ = style + Style(reverse=not style.reverse)
            segments += [
                Segment(text_of(chunk[:at]), style),
                Segment(text_of(chunk[at:end]) or " ", reversed_),
                Segment(text_of(chunk[end:]), style),
            ]
        return Strip([each for each in segments if each.text], column)


_SGR = re.compile(r"\\u\{1b\}\[([\d;:]*)m")
_ESCAPED = re.compile(r'\\(["\\])')


def dumped_segments(line: Any) -> list[Segment] | None:
    """Return the segments of a line by its ``repr``; None if that does not show them.

    Its ``repr`` has its text with an SGR sequence where the pen changes. The comparison of pens
    takes a call for each cell, and is twenty times slower. A text that is not that of the line, as
    by another version of the emulator, is noticed.
    """
    text = line.text
    if len(text) != len(line) or "u{1b}[" in text:
        return None
    if not text.isascii() and cell_len(text) != len(text):
        return None  # a character of another width than its cell
    begin, segments = 0, []
    parts = _SGR.split(repr(line)[6:-2])  # Line("…")
    for sgr, part in zip(["0", *parts[1::2]], parts[::2], strict=True):
        if part:
            shown = _ESCAPED.sub(r"\1", part) if "\\" in part else part
            style = _DUMPED.get(sgr)
            if style is None:
                if begin >= len(line):
                    return None
                if len(_DUMPED) > MAX_STYLES:
                    _DUMPED.clear()
                style = _DUMPED[sgr] = style_of_pen(line[begin].pen)
            segments.append(Segment(shown, style))
            begin += len(shown)
    return segments if "".join([each.text for each in segments]) == text else None


_DUMPED: dict[str, Style] = {}
"""Styles by the parameters of the sequence in the ``repr`` of a line."""

MAX_STYLES = 4_096
"""Styles that are kept: a program may show a picture in 24-bit colours."""

_STYLES: dict[str, Style] = {}


def style_of_pen(pen: Any) -> Style:
    """Return the style of a pen of the emulator."""
    key = repr(pen)  # a pen has no hash
    style = _STYLES.get(key)
    if style is None:
        if len(_STYLES) > MAX_STYLES:
            _STYLES.clear()
        style = _STYLES[key] = Style(
            color=_color(pen.foreground),
            bgcolor=_color(pen.background),
            bold=pen.bold or None,
            dim=pen.faint or None,
            italic=pen.italic or None,
            underline=pen.underline or None,
            blink=pen.blink or None,
            reverse=pen.inverse or None,
            strike=pen.strikethrough or None,
        )
    return style


def _numbers(modes: str) -> list[int]:
    return [int(mode) for mode in modes.split(";") if mode]


def has_another_pen(one: Any, other: Any) -> bool:
    """Return whether two cells of a line are in different chunks."""
    return bool(one.pen != other.pen)


def text_of(cells: Any) -> str:
    """Return the text of cells; a character of another width than its cell is replaced."""
    text = "".join([cell.char for cell in cells if cell.width])
    if text.isascii():
        return text
    # Such a character would move the rest of the line.
    if cell_len(text) == sum(cell.width for cell in cells if cell.width):
        return text
    return "".join(
        cell.char if cell_len(cell.char) == cell.width else "?" * cell.width
        for cell in cells
        if cell.width
    )


def _color(color: Any) -> str | None:
    if color is None:
        return None
    if type(color).__name__ == "RGB":
        return f"#{color._0:02x}{color._1:02x}{color._2:02x}"
    return f"color({color._0})"
