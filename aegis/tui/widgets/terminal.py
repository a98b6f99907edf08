"""The lines of a terminal: past commands as blocks, a rule, and the live screen below it.

In raw mode, and while a full-screen program runs, the screen alone is shown.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from aegis.shown_text import escape_line
from aegis.tui.model.blocks import BlockHistory, CommandBlock, PastLine, Runs
from aegis.tui.model.times import elapsed
from aegis.tui.widgets.emulator import DRAG, MOTION, PASTE, SGR_MOUSE, EmulatedScreen
from aegis.tui.widgets.line_view import LineView, strip_of, style_of

FRAME_S = 1 / 60
_PLAIN = Style()
GUTTER = 2
"""Columns left of every line: the edge of a block."""

WHEEL_LINES = 3
PROMPT = "❯ "  # noqa: RUF001


class TerminalView(LineView, can_focus=True):
    """The past and the screen of one terminal."""

    DEFAULT_CSS = "TerminalView { height: 1fr; }"

    class Typed(Message):
        """Keys for the program."""

        def __init__(self, keys: bytes) -> None:
            super().__init__()
            self.keys = keys

    class Fitted(Message):
        """There is room for another size of the window."""

    class Copied(Message):
        """A block was clicked."""

        def __init__(self, text: str, what: str) -> None:
            super().__init__()
            self.text = text
            self.what = what

    class StylesWanted(Message):
        """Blocks are shown whose styles were not read."""

    class OlderWanted(Message):
        """The oldest block is shown, and the ledger has older ones."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 -- Textual's name
        super().__init__(id=id)
        self.emulator = EmulatedScreen()
        self.past = BlockHistory()
        self.command: str | None = None
        """The text of the command that runs; None: none does."""
        self.command_info = ""
        self.is_raw = False
        self._strips: dict[int, Strip] = {}
        self._drawn_as: tuple[tuple[int, int], Style] = ((0, 0), _PLAIN)
        """The columns and the style of the widget with which the strips were drawn."""
        self._live_from = (0, 0)
        self._frame: asyncio.TimerHandle | None = None
        self._drawn_at = 0.0
        self._cursor_line = 0
        self._shown_above = (0, False)
        self.is_ready = False
        """Whether there is a screen to show."""
        self.plain: dict[int, CommandBlock] = {}
        """Blocks that were shown without their styles, by their seq."""

    # The content, in lines.

    @property
    def shows_screen(self) -> bool:
        """Whether the screen alone is shown."""
        return self.is_raw or self.emulator.is_alternate

    def room(self) -> tuple[int, int]:
        """Return the columns and rows that a window may have here."""
        return max(2, self.scrollable_content_region.width - GUTTER), max(1, self.size.height)

    def _live_start(self) -> int:
        """Return the first line of the emulator that is below the rule."""
        emulator = self.emulator
        if self.shows_screen:
            return emulator.scrolled if emulator.is_alternate else emulator.first_line
        row = emulator.scrolled + emulator.cursor[0]
        mark = emulator.prompt_line if self.command is None else emulator.output_line
        if mark is None:
            # Nothing is known of where the prompt began: the blocks have all above it.
            mark = row if self.command is None else emulator.scrolled
        return max(emulator.first_line, min(mark, row))

    def _live_end(self) -> int:
        emulator = self.emulator
        if self.shows_screen:
            return emulator.scrolled + emulator.size[1]
        return emulator.scrolled + emulator.last_row() + 1

    def _above(self) -> int:
        """Return the number of lines above those of the emulator."""
        if self.shows_screen:
            return 0
        return len(self.past) + 1 + (self.command is not None)

    def count(self) -> int:
        if not self.is_ready and not self.past.blocks:
            return 0
        return self._above() + self._live_end() - self._live_start()

    def render_lines(self, crop: Region) -> list[Strip]:
        self._live_from = self._above(), self._live_start()
        return super().render_lines(crop)

    def drawn(self, number: int, columns: tuple[int, int], style: Style) -> Strip:
        above, start = self._live_from
        if number < above:
            return super().drawn(number, columns, style)
        return self._live_line(start + number - above, columns, style)

    def draw(self, number: int) -> Strip:
        past = len(self.past)
        if number < past:
            return self._past_line(self.past.line(number))
        return self._rule() if number == past else self._header()

    def _live_line(self, line: int, columns: tuple[int, int], style: Style) -> Strip:
        if self._drawn_as != (columns, style):
            self._drawn_as = columns, style
            self._strips.clear()
        strip = self._strips.get(line)
        if strip is None:
            drawn = self.emulator.strip(line, has_cursor=self.is_raw or self.command is not None)
            edge = "green" if self.command is not None and not self.shows_screen else "dim"
            glyph = "▎ " if not self.shows_screen else "  "
            # One strip, not one for each step: a strip has seven caches.
            segments = [Segment(glyph, style + style_of(edge))]
            segments += [Segment(text, style + (own or _PLAIN)) for text, own, _ in drawn]
            length = GUTTER + drawn.cell_length
            if length < columns[1]:
                segments.append(Segment(" " * (columns[1] - length), style))
            strip = Strip(segments, max(length, columns[1]))
            if columns[0] or length > columns[1]:
                strip = strip.crop(*columns)
            if len(self._strips) > 4 * HISTORY_STRIPS:
                self._strips.clear()
            self._strips[line] = strip
        return strip

    def _past_line(self, line: PastLine) -> Strip:
        block = line.block
        edge = ("▎ ", "green" if block.is_good else "red" if block.exit is not None else "yellow")
        width = self.scrollable_content_region.width
        match line.part:
            case "space":
                return strip_of(("", ""))
            case "header":
                return _with_right(
                    [edge, (PROMPT, "bold cyan"), (line.text, "bold")],
                    f"{block.writer} · {block.at}",
                    width,
                )
            case "footer":
                style = "green" if block.is_good else "bold red"
                note = " · output not kept here" if block.is_dropped else ""
                return strip_of(edge, (line.text, style), (note, "dim"), width=width)
        if block.runs is None:
            self._want_styles(block)
        pieces = [Segment(text, style or style_of("")) for text, style in line.pieces()]
        return Strip([*strip_of(edge), *pieces]).crop(0, width)

    def _want_styles(self, block: CommandBlock) -> None:
        if not self.plain:
            self.post_message(self.StylesWanted())
        self.plain[block.seq] = block

    def set_runs(self, block: CommandBlock, runs: dict[int, Runs]) -> None:
        """Take the styles of a block."""
        self.past.set_runs(block, runs)
        if runs and not self.shows_screen:
            self.update_lines()

    def _rule(self) -> Strip:
        width = self.scrollable_content_region.width
        word = "── live "
        return strip_of((word, "bold cyan"), ("─" * max(2, width - len(word)), "cyan"), width=width)

    def _header(self) -> Strip:
        width = self.scrollable_content_region.width
        parts = [("▎ ", "green"), (PROMPT, "bold cyan"), (escape_line(self.command or ""), "bold")]
        return _with_right(parts, self.command_info, width)

    # Changes of the content.

    def draw_screen(self, redraw: str, cols: int, rows: int) -> None:
        """Take a drawing of the whole screen."""
        self.emulator.reset(cols, rows)
        self.is_ready = True
        self.emulator.feed_text(redraw)
        self._strips.clear()
        self._draw_soon()

    def begin_output(self, cols: int, rows: int) -> None:
        """Take that the output of a command follows from its beginning."""
        self.emulator.reset(cols, rows)
        self.emulator.output_line = 0
        self.is_ready = True
        self._strips.clear()
        self.update_lines()

    def resize_window(self, cols: int, rows: int) -> None:
        """Take the size of the window."""
        if self.emulator.size != (cols, rows):
            self.emulator.resize(cols, rows)
            self._strips.clear()
            self.update_lines()

    def feed(self, data: bytes) -> None:
        """Take output; it is drawn with the next frame."""
        self.is_ready = True
        self.emulator.feed(data)
        self._draw_soon()

    def set_command(self, text: str | None) -> None:
        """Take the command that runs now; None: it ended."""
        if self.command == text:
            return
        if (self.command is None) != (text is None):
            self._strips.clear()
        self.command = text
        if text is None:
            self.command_info = ""
        self.update_lines()

    def set_command_info(self, writer: str, seconds: float | None) -> None:
        """Take who runs the command, and for how long."""
        took = "" if seconds is None else f" · {elapsed(seconds)}"
        info = f"{escape_line(writer)}{took}"
        if info != self.command_info:
            self.command_info = info
            if not self.shows_screen:
                self.update_lines({len(self.past) + 1})

    def add_blocks(self, blocks: Sequence[CommandBlock]) -> None:
        """Add finished commands."""
        self.past.append(blocks)
        self.update_lines()

    def add_older(self, blocks: Sequence[CommandBlock]) -> None:
        """Add older commands, read from the ledger, above the others."""
        moved = self.past.prepend(blocks)
        if not self.shows_screen:
            self.keep_place(moved)

    def set_raw(self, is_raw: bool) -> None:
        """Switch between the blocks and the screen alone."""
        if is_raw != self.is_raw:
            self.is_raw = is_raw
            self._strips.clear()
            self.follows = True
            self.update_lines()

    def _draw_soon(self) -> None:
        if self._frame is None:  # at once after a pause, else when the next frame is due
            wait = self._drawn_at + FRAME_S - time.monotonic()
            self._frame = asyncio.get_running_loop().call_later(max(wait, 0), self._draw_frame)

    def _draw_frame(self) -> None:
        self._frame, self._drawn_at = None, time.monotonic()
        if not self.is_attached:
            return
        emulator = self.emulator
        lines = {emulator.scrolled + row for row in emulator.changed}
        emulator.changed.clear()
        cursor = emulator.scrolled + emulator.cursor[0]
        lines |= {cursor, self._cursor_line}
        self._cursor_line = cursor
        for line in lines:
            self._strips.pop(line, None)
        above, start = self._above(), self._live_start()
        shown = (above - start, self.shows_screen)
        # A row of the view shows another line than before: all of it is drawn.
        changed = {line - start + above for line in lines} if shown == self._shown_above else None
        self._shown_above = shown
        self.update_lines(changed)

    def on_unmount(self) -> None:
        if self._frame is not None:
            self._frame.cancel()
            self._frame = None

    def on_resize(self) -> None:
        self.past.resize(self.scrollable_content_region.width - GUTTER)
        self._strips.clear()
        self.update_lines()
        self.post_message(self.Fitted())

    def on_top(self) -> None:
        if not self.shows_screen and self.past.has_older:
            self.post_message(self.OlderWanted())

    # Keys, paste and mouse for the program.

    def type_raw(self, keys: bytes) -> None:
        """Type keys as the own terminal sent them."""
        if self.emulator.has_application_arrows:
            # The own terminal does not know that the program wants ESC O.
            keys = _application_arrows(keys)
        self.post_message(self.Typed(keys))

    def paste(self, text: str) -> None:
        """Paste into the program."""
        self.post_message(self.Typed(self.pasted(text)))

    def pasted(self, text: str) -> bytes:
        """Return the keys of a paste into the program."""
        text = text.replace("\r\n", "\r").replace("\n", "\r")
        if PASTE in self.emulator.modes:
            # Nothing in the text may end the paste.
            text = f"\x1b[200~{text.replace(chr(27), '')}\x1b[201~"
        return text.encode(errors="replace")

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._mouse(event, event.button - 1, "M")

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self._mouse(event, event.button - 1, "m")

    def on_mouse_move(self, event: events.MouseMove) -> None:
        modes = self.emulator.modes
        if MOTION in modes or (DRAG in modes and event.button):
            self._mouse(event, 32 + (event.button - 1 if event.button else 3), "M")

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 64, b"\x1b[A")

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 65, b"\x1b[B")

    def _wheel(self, event: events.MouseEvent, button: int, arrow: bytes) -> None:
        if self._mouse(event, button, "M") or not self.emulator.is_alternate:
            return
        # As terminals do: a full-screen program without mouse gets arrows.
        self.type_raw(arrow * WHEEL_LINES)
        event.stop()
        event.prevent_default()

    def _mouse(self, event: events.MouseEvent, button: int, letter: str) -> bool:
        """Send a mouse event to the program; return whether it wants it."""
        if not (self.shows_screen and self.emulator.wants_mouse):
            return False
        cols, rows = self.emulator.size
        line = self._live_start() + self.scroll_offset.y + event.y
        column, row = event.x - GUTTER, line - self.emulator.scrolled
        if not (0 <= column < cols and 0 <= row < rows):
            return False
        button += 4 * event.shift + 8 * event.meta + 16 * event.ctrl
        if SGR_MOUSE in self.emulator.modes:
            keys = f"\x1b[<{button};{column + 1};{row + 1}{letter}".encode()
        elif column < 223 and row < 223:
            code = button if letter == "M" else (button & ~3) | 3
            keys = b"\x1b[M" + bytes([32 + code, 33 + column, 33 + row])
        else:
            return False
        self.post_message(self.Typed(keys))
        event.stop()
        event.prevent_default()
        return True

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if self.shows_screen or number >= len(self.past):
            return
        line = self.past.line(number)
        if line.part == "header":
            self.post_message(self.Copied(line.block.source or line.block.command, "the command"))
        elif line.part != "space" and line.block.copied:
            lines = len(line.block.copied.splitlines())
            self.post_message(self.Copied(line.block.copied, f"{lines} lines"))


HISTORY_STRIPS = 1_000

_ARROWS = {b"\x1b[" + letter: b"\x1bO" + letter for letter in (b"A", b"B", b"C", b"D", b"F", b"H")}


def _application_arrows(keys: bytes) -> bytes:
    for plain, application in _ARROWS.items():
        keys = keys.replace(plain, application)
    return keys


def _with_right(parts: list[tuple[str, str]], right: str, width: int) -> Strip:
    """Return a line with dim text at its right end, if there is room for it."""
    left = strip_of(*parts)
    room = width - left.cell_length
    if room < len(right) + 2:
        return left.crop(0, width)
    return strip_of(*parts, (" " * (room - len(right) - 1), ""), (f"{right} ", "dim"))
