"""The screen of a program, its marks and its modes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style

from aegis.tui.widgets.emulator import (
    HISTORY,
    EmulatedScreen,
    dumped_segments,
    has_another_pen,
    style_of_pen,
    text_of,
)

STREAM = (
    "\x1b]133;A\x07$ \x1b]133;B\x07make\r\n\x1b]133;C\x1b\\one\r\n\x1b[31mtwo\x1b[0m\r\n"
    "\x1b]0;title\x07\x1b[?2004h\x1b[?1002;1006h\x07日本 \r\n"
)


def state(emulator: EmulatedScreen) -> tuple[object, ...]:
    lines = [emulator.text(emulator.first_line + each) for each in range(10)]
    marks = emulator.prompt_line, emulator.output_line
    return lines, marks, emulator.modes, emulator.title, emulator.bells, emulator.cursor


def fed(*pieces: bytes, cols: int = 20, rows: int = 10) -> EmulatedScreen:
    emulator = EmulatedScreen(cols, rows)
    for piece in pieces:
        emulator.feed(piece)
    return emulator


@given(st.lists(st.integers(0, len(STREAM.encode())), max_size=8))
def test_a_stream_that_is_cut_anywhere_is_the_same(cuts: list[int]) -> None:
    data = STREAM.encode()
    places = sorted({0, len(data), *cuts})
    pieces = [data[one:other] for one, other in itertools.pairwise(places)]
    assert state(fed(*pieces)) == state(fed(data))


def test_marks_are_lines_that_keep_their_number_when_they_scroll_out() -> None:
    emulator = fed(STREAM.encode(), cols=20, rows=4)
    assert (emulator.prompt_line, emulator.output_line) == (0, 1)
    emulator.feed(b"x\r\n" * 20)
    assert emulator.text(1) == "one"
    assert emulator.scrolled == 21
    assert emulator.first_line == 0


def test_history_is_bounded() -> None:
    emulator = fed(b"line\r\n" * (HISTORY + 50))
    assert len(emulator.history) == HISTORY
    assert emulator.first_line == emulator.scrolled - HISTORY


def test_lines_of_a_full_screen_program_are_no_history() -> None:
    emulator = fed(b"before\r\n\x1b[?1049h" + b"inside\r\n" * 50)
    shown = emulator.is_alternate, emulator.scrolled
    emulator.feed(b"\x1b[?1049l")
    assert shown == (True, 0)
    assert (emulator.is_alternate, emulator.text(0)) == (False, "before")


def test_lines_before_a_full_screen_program_in_one_read_are_history() -> None:
    emulator = fed(b"".join(b"%d\r\n" % each for each in range(20)) + b"\x1b[?1049hprogram")
    assert emulator.scrolled == 11


def test_a_resize_moves_the_marks_with_the_cursor() -> None:
    emulator = fed(b"x\r\n" * 5 + b"\x1b]133;A\x07$ ")
    emulator.resize(30, 5)
    assert emulator.prompt_line == emulator.scrolled + emulator.cursor[0]
    assert emulator.text(emulator.prompt_line) == "$"


@pytest.mark.parametrize("char", ["e\u0301", "\u202e", "\u200d"])
def test_a_character_of_another_width_moves_nothing(char: str) -> None:
    emulator = fed(f"a{char}b|".encode())
    strip = emulator.strip(0, has_cursor=False)
    assert sum(len(segment.text) for segment in strip) == strip.cell_length


def test_colours_and_the_cursor_are_drawn() -> None:
    emulator = fed(b"\x1b[31;1mred\x1b[38;2;1;2;3mtrue\x1b[0m")
    segments = [(each.text, str(each.style)) for each in emulator.strip(0, has_cursor=True)]
    assert segments[:2] == [("red", "bold color(1)"), ("true", "bold #010203")]
    assert any("reverse" in style for _, style in segments)
    assert not any("reverse" in str(each.style) for each in emulator.strip(0, has_cursor=False))


def test_the_cursor_on_a_wide_character_covers_it() -> None:
    emulator = fed("日本\x1b[1G".encode())
    segments = [(each.text, str(each.style)) for each in emulator.strip(0, has_cursor=True)]
    assert segments[0] == ("日", "reverse")


SGRS = ["0", "1", "2", "3", "4", "5", "7", "9", "31", "92", "44", "105", "38;5;200", "48;2;1;2;3"]
PIECES = ["plain", 'a "b"', "\\", "\\u{1b}[0m", "'", "日本", "e\u0301", "│", "\t", "🟢", "  "]


@given(st.lists(st.sampled_from([*PIECES, *(f"\x1b[{each}m" for each in SGRS)]), max_size=30))
def test_a_line_by_its_dump_is_the_line_by_its_cells(parts: list[str]) -> None:
    emulator = EmulatedScreen(60, 4)
    emulator.feed_text("".join(parts))
    is_plain = not {"日本", "🟢", "e\u0301", "\\u{1b}[0m"} & {*parts}
    for row in range(4):
        line = emulator._line(row)
        dumped = dumped_segments(line)
        assert dumped is not None or not is_plain
        if dumped is not None:
            assert columns_of(dumped) == columns_of(
                [
                    Segment(text_of(chunk), style_of_pen(chunk[0].pen))
                    for chunk in line.chunks(has_another_pen)
                ]
            )


def columns_of(segments: list[Segment]) -> list[tuple[str, Style | None]]:
    return [(char, each.style) for each in segments for char in each.text]
