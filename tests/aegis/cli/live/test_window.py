"""What a window shows, and how it is left."""

from __future__ import annotations

import pytest

from aegis.cli.live.window import WindowModes


@pytest.mark.parametrize(
    ("written", "is_alternate"),
    [
        (b"text", False),
        (b"\x1b[?1049h", True),
        (b"\x1b[?47h", True),
        (b"\x1b[?2004;1047h", True),
        (b"\x1b[?1049h\x1b[?1049l", False),
        (b"\x1b[?1049h\x1b[?25l", True),
        (b"\x1b[?1049h\x1bc", False),
        (b"\x1b[?104;9h\x1b[1049h", False),
    ],
)
def test_it_knows_which_screen_shows(written: bytes, is_alternate: bool) -> None:
    window = WindowModes()
    window.feed(written)
    assert window.is_alternate is is_alternate


def test_it_is_left_below_what_was_shown() -> None:
    window = WindowModes()
    left = window.leaving()
    assert left.endswith(b"\x1b[999;1H\r\n")
    assert b"?1049l" not in left


def test_a_full_screen_program_is_taken_away_once() -> None:
    window = WindowModes()
    window.feed(b"\x1b[?1049h")
    left = window.leaving()
    assert left.endswith(b"\x1b[?1049l\r\n")
    assert b"?1049l" not in window.leaving()


@pytest.mark.parametrize("mode", [1, 1000, 1002, 1003, 1004, 1006, 2004, 2026])
def test_what_a_program_switched_on_is_switched_off(mode: int) -> None:
    assert f"\x1b[?{mode}l".encode() in WindowModes().leaving()


def test_a_notice_over_a_full_screen_program_leaves_the_cursor_alone() -> None:
    window = WindowModes()
    assert window.notice("gone") == b"\x18\x1b[0m\r\ngone\x1b[K\r\n"
    window.feed(b"\x1b[?1049h")
    notice = window.notice("gone")
    assert notice.startswith(b"\x18\x1b7")
    assert notice.endswith(b"\x1b8")
    assert window.cleared(24) == b""


def test_the_keyboard_is_reset_only_where_a_program_has_switched_it() -> None:
    window = WindowModes()
    assert b"u" not in window.leaving()
    window.feed(b"\x1b[?1049h\x1b[>1u")
    left = window.leaving()
    first, _, second = left.partition(b"\x1b[?1049l")
    assert b"\x1b[=0u" in first
    assert b"\x1b[=0u" in second
