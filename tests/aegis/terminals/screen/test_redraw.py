from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.terminals.screen.choice import new_emulator
from aegis.terminals.screen.emulator import Screenshot
from aegis.terminals.screen.redraw import plain_drawing, redrawn, unfinished_bytes

ROWS, COLS = 6, 20
PIECES = st.sampled_from(
    [
        "word ",
        "é漢字",
        "\r\n",
        "\x1b[3;5H",
        "\x1b[2J",
        "\x1b[K",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[?25l",
        "\x1b[?25h",
        "\x1b[?7l",
        "\x1b[2;4r",
        "\x1b[?6h",
        "\x1b]2;a title\x07",
        "\x1b(0lqk",
        "\x1b[4h",
        "x" * 45,
    ]
)


def shot_of(text: str, before: str = "") -> Screenshot:
    emulator = new_emulator(ROWS, COLS)
    emulator.feed(before.encode())
    emulator.feed(text.encode())
    return emulator.screen()


@given(st.lists(PIECES, max_size=12).map("".join), st.lists(PIECES, max_size=6).map("".join))
def test_what_is_drawn_on_any_screen_looks_the_same(text: str, other: str) -> None:
    shot = shot_of(text)
    drawn = redrawn(plain_drawing(shot), shot, "")
    assert shot_of(drawn, before=other) == shot


def test_modes_come_after_the_lines_and_the_reset() -> None:
    shot = shot_of("hello")
    text = redrawn(plain_drawing(shot), shot, "\x1b[?2004h")
    assert text.endswith("\x1b[1;1Hhello\x1b[1;6H\x1b]2;\x1b\\\x1b[?2004h\x1b[?25h")
    assert text.index("\x1b[?2004l") < text.index("\x1b[?2004h")


@pytest.mark.parametrize(
    ("newest", "count"),
    [
        (b"", 0),
        (b"text", 0),
        (b"text\x1b", 1),
        (b"text\x1b[", 2),
        (b"text\x1b[38;5", 6),
        (b"text\x1b[?2004", 7),
        (b"text\x1b[31m", 0),
        (b"text\x1b(", 2),
        (b"text\x1b(0", 0),
        (b"text\x1b]2;a tit", 9),
        (b"text\x1b]2;a title\x07", 0),
        (b"text\x1bPq#0", 5),
        (b"text\x1b]2;a title\x1b", 12),
        (b"text\x1b]2;a title\x1b\\", 0),
        ("é".encode()[:1], 1),
        ("漢".encode()[:2], 2),
        ("😀".encode()[:3], 3),
        ("😀".encode(), 0),
        (b"\xff", 0),
    ],
)
def test_what_is_cut_off_at_the_end_is_counted(newest: bytes, count: int) -> None:
    assert unfinished_bytes(newest) == count


@given(st.lists(PIECES, max_size=12).map("".join).map(str.encode), st.data())
def test_bytes_that_go_on_where_the_drawing_says_give_the_screen_of_all(
    data: bytes, draw: st.DataObject
) -> None:
    cut = draw.draw(st.integers(0, len(data)))
    first = new_emulator(ROWS, COLS)
    first.feed(data[:cut])
    text = redrawn(plain_drawing(first.screen()), first.screen(), "")
    on = new_emulator(ROWS, COLS)
    on.feed(text.encode() + data[cut - unfinished_bytes(data[:cut]) : cut])
    drawn = on.screen()
    assert (drawn.lines, drawn.cursor) == (first.screen().lines, first.screen().cursor)
