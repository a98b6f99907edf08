"""Finding the sequences that the daemon follows, however the stream is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.terminals.parse.control_sequences import (
    MAX_STRING_BYTES,
    Bell,
    ControlSequence,
    Csi,
    Dcs,
    Escape,
    Osc,
    SequenceScanner,
)

LONGEST = b"x" * MAX_STRING_BYTES

FOUND: list[tuple[bytes, ControlSequence]] = [
    (b"\x1b[c", Csi(b"", b"", b"c", 3)),
    (b"\x1b[0c", Csi(b"", b"0", b"c", 4)),
    (b"\x1b[>c", Csi(b">", b"", b"c", 4)),
    (b"\x1b[=c", Csi(b"=", b"", b"c", 4)),
    (b"\x1b[6n", Csi(b"", b"6", b"n", 4)),
    (b"\x1b[?6n", Csi(b"?", b"6", b"n", 5)),
    (b"\x1b[>0q", Csi(b">", b"0", b"q", 5)),
    (b"\x1b[?u", Csi(b"?", b"", b"u", 4)),
    (b"\x1b[?2026$p", Csi(b"?", b"2026", b"$p", 9)),
    (b"\x1b[!p", Csi(b"", b"", b"!p", 4)),
    (b"\x1b[18t", Csi(b"", b"18", b"t", 5)),
    (b"\x1b[?1;25h", Csi(b"?", b"1;25", b"h", 8)),
    (b"\x1b]11;?\x07", Osc(11, b"?", b"\x07", 7)),
    (b"\x1b]11;?\x1b\\", Osc(11, b"?", b"\x1b\\", 8)),
    (b"\x1b]4;1;?\x07", Osc(4, b"1;?", b"\x07", 8)),
    (b"\x1b]7;file:///a%20b\x07", Osc(7, b"file:///a%20b", b"\x07", 18)),
    (b"\x1b]7501;?\x07", Osc(7501, b"?", b"\x07", 9)),
    (b"\x1bP+q544e\x1b\\", Dcs(b"+q", b"544e", 10)),
    (b"\x1bP$qm\x1b\\", Dcs(b"$q", b"m", 7)),
    (b"\x1bc", Escape(b"c", 2)),
    (b"\x1b=", Escape(b"=", 2)),
    (b"\x1b(0", Escape(b"(0", 3)),
    (b"\x07", Bell(1)),
    (b"\x1b[>4;2m", Csi(b">", b"4;2", b"m", 7)),
    (b"\x1b[2;9r", Csi(b"", b"2;9", b"r", 6)),
    (b"\x1b[" + b"1;" * 32 + b"h", Csi(b"", b"1;" * 32, b"h", 67)),
    (b"\x1b]0;a title [c\x07", Osc(0, b"a title [c", b"\x07", 15)),
    (b"\x1b]133;A\x07", Osc(133, b"A", b"\x07", 8)),
    (b"\x1b]4;" + LONGEST + b"\x07", Osc(4, LONGEST, b"\x07", len(LONGEST) + 5)),
    (b"\x1b]4;" + LONGEST + b"\x1b\\", Osc(4, LONGEST, b"\x1b\\", len(LONGEST) + 6)),
]

NOT_FOUND = [
    b"plain text, [c and ]11;? without an escape",
    b"\x1b[31m\x1b[2J\x1b[1;1H\x1b[K",
    b"\x1b[2 q",
    b"\x1b]l;no number\x07",
    b"\x1b]\x07",
    b"\x1b]1337;a picture\x07",
    b"\x1b]133;C\x07",
    b"\x1b_Ga string\x07 that is not ended\x1b\\",
    b"\x1bPq\x07a picture\x1b\\",
    b"\x1bP+q54\x074e\x1b\\",
    b"\x1b[" + b"1;" * 33 + b"h",
    b"\x1b)0\x1bM\x1b7",
    b"\x1b]11;?",
    b"\x1b]11;?\x18",
    b"\x1b[\x1b]",
    b"\x9b" + b"c",
    b"\x1b]4;" + b"x" * (MAX_STRING_BYTES + 1) + b"\x07",
]


def scan(chunks: list[bytes], start: int = 0) -> list[ControlSequence]:
    scanner, found = SequenceScanner(), list[ControlSequence]()
    for chunk in chunks:
        found += scanner.feed(chunk, start)
        start += len(chunk)
    return found


def bytes_of(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


@pytest.mark.parametrize(("data", "sequence"), FOUND, ids=lambda each: repr(each)[:40])
def test_a_sequence_is_found_whole_and_byte_by_byte(data: bytes, sequence: ControlSequence) -> None:
    assert scan([data]) == [sequence]
    assert scan(bytes_of(data)) == [sequence]
    again = scan([b"text " + data + data])
    assert [type(each) for each in again] == [type(sequence)] * 2
    assert [each.end for each in again] == [5 + len(data), 5 + 2 * len(data)]


@pytest.mark.parametrize("data", NOT_FOUND, ids=lambda data: repr(data)[:40])
def test_anything_else_is_passed_over(data: bytes) -> None:
    assert scan([data]) == []
    assert scan(bytes_of(data)) == []


def test_an_escape_inside_a_string_begins_anew() -> None:
    assert scan([b"\x1b]11;\x1b[c?"]) == [Csi(b"", b"", b"c", 8)]
    assert scan([b"\x1b]0;a\x1b\x1b]0;b\x07"]) == [Osc(0, b"b", b"\x07", 12)]
    assert scan([b"\x1b]0;cut\x18\x07"]) == [Bell(9)]
    assert scan([b"\x1bP+q54\x1b]10;?\x07"]) == [Osc(10, b"?", b"\x07", 13)]


def test_the_place_of_a_sequence_counts_from_where_the_stream_began() -> None:
    assert scan([b"abc\x1b", b"[6", b"n"], start=1000) == [Csi(b"", b"6", b"n", 1007)]


def test_what_never_ends_is_not_kept() -> None:
    scanner = SequenceScanner()
    for _ in range(100):
        assert scanner.feed(b"\x1b]11;" + b"x" * 100_000, 0) == []
        assert scanner.is_within_sequence
    assert len(scanner._content) <= MAX_STRING_BYTES + 16
    assert scanner.feed(b"x" * 100_000, 0) == []
    assert scanner.feed(b"\x07\x1b[c", 0) == [Csi(b"", b"", b"c", 4)]


PIECES = st.sampled_from(
    [data for data, _ in FOUND] + NOT_FOUND + [b"\x1b", b"\x07", b"\\", b"[", b"]", b"P", b"0"]
)


@given(st.lists(PIECES, max_size=12).map(b"".join), st.data())
def test_the_result_is_the_same_however_the_stream_is_cut(data: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.sets(st.integers(0, len(data)))))
    bounds = [0, *cuts, len(data)]
    chunks = [data[a:b] for a, b in pairwise(bounds)]
    assert scan(chunks) == scan([data])
