"""The title of the window and the bell, found in any chunks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.terminals.parse.headline import MAX_TITLE_BYTES, MAX_TITLE_CHARS, Headline


def headline(data: bytes, size: int | None = None) -> tuple[str, int]:
    watch = Headline()
    step = size or max(len(data), 1)
    for start in range(0, len(data), step):
        watch.feed(data[start : start + step])
    return watch.title, watch.bells


@pytest.mark.parametrize("size", [None, 1, 2, 3])
@pytest.mark.parametrize(
    ("data", "title", "bells"),
    [
        (b"plain", "", 0),
        (b"a\x07b\x07", "", 2),
        (b"\x1b]2;vim\x07", "vim", 0),
        (b"\x1b]0;one\x1b\\\x1b]2;two\x1b\\", "two", 0),
        (b"\x1b]133;A\x07\x07", "", 1),
        (b"\x1bPq\x07data\x1b\\", "", 0),
        (b"\x1b]2;cut\x18\x07", "", 1),
        (b"\x1b]2;cut\x1b[1m\x07", "", 1),
        (b"\x1b]2;x\x07\x1bc", "", 0),
        ("\x1b]2;a\u202eb\u200bc\x1b\\".encode(), "abc", 0),
        (b"\x1b]2;" + b"t" * 2 * MAX_TITLE_BYTES + b"\x07\x07", "", 1),
        (b"\x1b]2;" + b"t" * MAX_TITLE_CHARS + b"more\x07", "t" * MAX_TITLE_CHARS, 0),
    ],
)
def test_titles_and_bells(data: bytes, title: str, bells: int, size: int | None) -> None:
    assert headline(data, size) == (title, bells)


PIECES = [b"\x1b", b"]", b"2;", b"t", b"\x07", b"\\", b"P", b"c", b"\x18", b"a"]


@given(st.lists(st.sampled_from(PIECES)).map(b"".join), st.integers(1, 4))
def test_the_chunks_make_no_difference(data: bytes, size: int) -> None:
    assert headline(data, size) == headline(data)


def test_a_change_is_reported_once() -> None:
    watch = Headline()
    assert watch.feed(b"\x1b]2;a\x07")
    assert not watch.feed(b"text \x1b[1m")
    assert not watch.feed(b"\x1b]2;a\x07")
    assert watch.feed(b"\x07")
