from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.terminals.parse.control_sequences import SequenceScanner
from aegis.terminals.screen.modes import KEPT, RESET, Modes, ModeWatch
from tests.aegis.terminals.screen.switches import switches_in

PIECES = [b"text", b"\x1b[?", b"1", b"2004", b"1000", b";", b"h", b"l", b"\x1b", b"=", b">", b"c"]
PIECES += [b"[!p", b"\n", b"[", b"0" * 80]


class Stream:
    """A terminal's output, and its modes."""

    def __init__(self) -> None:
        self.scanner, self._watch = SequenceScanner(), ModeWatch()

    def feed(self, data: bytes) -> None:
        for each in self.scanner.feed(data, 0):
            self._watch.follow(each)

    @property
    def now(self) -> Modes:
        return self._watch.now

    def sequences(self) -> str:
        return self._watch.sequences()


def on(data: bytes) -> str:
    watch = Stream()
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
    whole, pieces = Stream(), Stream()
    whole.feed(data)
    cut = draw.draw(st.integers(0, len(data)))
    pieces.feed(data[:cut])
    pieces.feed(data[cut:])
    assert pieces.sequences() == whole.sequences()


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join))
def test_fed_byte_by_byte_it_is_the_same(data: bytes) -> None:
    watch = Stream()
    for byte in data:
        watch.feed(bytes([byte]))
    assert watch.sequences() == on(data)


@pytest.mark.parametrize("mode", sorted(KEPT))
def test_every_mode_that_is_kept_is_told(mode: int) -> None:
    assert on(b"\x1b[?%dh" % mode) == f"\x1b[?{mode}h"


SWITCHES = [
    b"\x1b[?%d%s" % (mode, how) for mode in (1, 25, 7, 1000, 2004, 1049) for how in (b"h", b"l")
]
SWITCHES += [b"\x1b=", b"\x1b>", b"\x1b[>1u", b"\x1b[<u", b"\x1b[=5u", b"\x1b[=1;3u", b"\x1b[>4;2m"]
SWITCHES += [
    b"\x1b[>4m",
    b"\x1b[2;9r",
    b"\x1b[r",
    b"\x1b[4h",
    b"\x1b(0",
    b"\x1b(B",
    b"\x1bc",
    b"\x1b[!p",
]
switches = st.lists(st.sampled_from(SWITCHES), max_size=12).map(b"".join)


@given(switches, switches)
def test_what_was_switched_since_is_switched_back(before: bytes, since: bytes) -> None:
    watch = Stream()
    watch.feed(before)
    known = watch.now
    watch.feed(since)
    watch.feed(watch.now.restored(known))
    now = watch.now
    # What a program has switched off, beyond what it found, stays off.
    assert now.private == known.private
    assert now.keyboard == known.keyboard
    assert now.keyboards <= known.keyboards
    assert now.keys <= known.keys
    assert (now.scrolls, now.inserts, now.draws) <= (known.scrolls, known.inserts, known.draws)


def test_nothing_is_written_where_nothing_was_left_on() -> None:
    watch = Stream()
    watch.feed(b"\x1b[?1049h\x1b[?25l\x1b[3;9r\x1b[mtext\x1b[r\x1b[?25h\x1b[?1049l")
    assert watch.now.restored(RESET) == b""


SWITCHED: dict[str, tuple[bytes, list[tuple[int, bool]]]] = {
    "nothing": (b"plain\x1b[31m text\r\n", []),
    "1049": (b"ab\x1b[?1049hxy\x1b[?1049lz", [(10, True), (20, False)]),
    "1047 and 47": (b"\x1b[?1047h\x1b[?47l", [(8, True), (14, False)]),
    "among others": (b"\x1b[?1;1049;25h\x1b[?47;1l", [(13, True), (21, False)]),
    "other modes": (b"\x1b[?25h\x1b[?1048h\x1b[?2004h\x1b[?14049h\x1b[?104h\x1b[49h", []),
    "a reset": (b"\x1b[?1049h\x1bc", [(8, True), (10, False)]),
    "after a broken sequence": (b"\x1b[?10\x1b[?1049h", [(13, True)]),
    "cut off": (b"\x1b[?1049", []),
}


@pytest.mark.parametrize(("data", "switches"), SWITCHED.values(), ids=SWITCHED)
def test_switches_of_the_screen_are_found_at_their_place(
    data: bytes, switches: list[tuple[int, bool]]
) -> None:
    expected = [(offset + 1000, on) for offset, on in switches]
    assert [*switches_in(SequenceScanner().feed(data, 1000))] == expected
