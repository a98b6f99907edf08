from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.terminals.screen.modes import KEPT, ModeWatch

PIECES = [b"text", b"\x1b[?", b"1", b"2004", b"1000", b";", b"h", b"l", b"\x1b", b"=", b">", b"c"]
PIECES += [b"[!p", b"\n", b"[", b"0" * 80]


def on(data: bytes) -> str:
    watch = ModeWatch()
    watch.feed(data)
    return watch.sequences()


@pytest.mark.parametrize(
    ("data", "sequences"),
    [
        (b"", ""),
        (b"\x1b[?2004h", "\x1b[?2004h"),
        (b"\x1b[?2004h\x1b[?2004l", ""),
        (b"\x1b[?1h\x1b=", "\x1b=\x1b[?1h"),
        (b"\x1b[?1h\x1b=\x1b>", "\x1b[?1h"),
        (b"\x1b[?1000;1006h", "\x1b[?1000h\x1b[?1006h"),
        (b"\x1b[?1000;1006h\x1b[?1000l", "\x1b[?1006h"),
        (b"\x1b[?25h\x1b[?1049h\x1b[?7h", ""),
        (b"\x1b[?1;2004h\x1b=\x1bc", ""),
        (b"\x1b[?1;2004h\x1b=\x1b[!p", "\x1b[?2004h"),
        (b"\x1b[?;1h", "\x1b[?1h"),
        (b"\x1b[?99999999999h", ""),
    ],
)
def test_what_is_on_is_known(data: bytes, sequences: str) -> None:
    assert on(data) == sequences


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join), st.data())
def test_cuts_of_the_stream_change_nothing(data: bytes, draw: st.DataObject) -> None:
    whole, pieces = ModeWatch(), ModeWatch()
    whole.feed(data)
    cut = draw.draw(st.integers(0, len(data)))
    pieces.feed(data[:cut])
    pieces.feed(data[cut:])
    assert pieces.sequences() == whole.sequences()


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join))
def test_fed_byte_by_byte_it_is_the_same(data: bytes) -> None:
    watch = ModeWatch()
    for byte in data:
        watch.feed(bytes([byte]))
    assert watch.sequences() == on(data)


@pytest.mark.parametrize("mode", sorted(KEPT))
def test_every_mode_that_is_kept_is_told(mode: int) -> None:
    assert on(b"\x1b[?%dh" % mode) == f"\x1b[?{mode}h"
