"""The form of a ledger: lines, damage, torn tails, and reading backwards."""

from __future__ import annotations

import re
import shutil
import subprocess
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.journal import ledger
from aegis.journal.ledger import (
    Damaged,
    DamagedLine,
    Line,
    Piece,
    decode_line,
    encode_line,
    judge,
    pieces_backward,
    scan,
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=8).filter(lambda key: key != "crc"), VALUES, max_size=5)

SAMPLE = {"seq": 7, "cmd": 'echo "ü\n{}"', "exit": None, "crcs": [1, {"a": "€"}]}


@given(OBJECTS)
def test_what_is_encoded_decodes_to_the_same_in_the_same_order(fields: dict[str, Any]) -> None:
    line = encode_line(fields)
    assert list(decode_line(line).items()) == list(fields.items())
    assert line.index(b"\n") == len(line) - 1


def test_a_line_is_compact_utf8_with_the_checksum_last() -> None:
    assert encode_line({"seq": 0, "cmd": "ü"}) == '{"seq":0,"cmd":"ü","crc":"50a7ccec"}\n'.encode()
    assert encode_line({}) == b'{"crc":"15d54739"}\n'


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.real
@pytest.mark.every_python
def test_jq_reads_a_ledger() -> None:
    lines = encode_line(SAMPLE) + encode_line({"seq": 8, "cmd": "\udc80"})
    told = subprocess.run(["jq", "-c", ".seq"], input=lines, capture_output=True, check=True)
    assert told.stdout == b"7\n8\n"


@pytest.mark.parametrize("text", ["a\udc80", "a\ud800b", "\udfff\udfff", "\ud800", "\\udc80"])
def test_lone_surrogates_come_back_as_they_were(text: str) -> None:
    line = encode_line({"cmd": text, text: 1})
    line.decode("utf-8")
    assert decode_line(line) == {"cmd": text, text: 1}


def test_a_split_pair_of_surrogates_comes_back_as_its_character() -> None:
    assert decode_line(encode_line({"cmd": "\ud83d\ude00"})) == {"cmd": "😀"}


def test_a_field_named_crc_is_refused() -> None:
    with pytest.raises(ValueError, match="may not have a field 'crc'"):
        encode_line({"crc": "x"})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_does_not_know_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_line({"duration_s": value})


def test_a_line_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MAX_LINE_BYTES", 100)
    encode_line({"a": "x" * 74})
    with pytest.raises(ValueError, match="may hold 100 bytes, not 101"):
        encode_line({"a": "x" * 75})


def test_a_command_of_a_million_escaped_characters_fits() -> None:
    fields = {"cmd": "\x01" * 1_000_000, "stdout": "\x01" * 65_536}
    assert decode_line(encode_line(fields)) == fields


def test_a_change_of_any_byte_shows() -> None:
    line = encode_line(SAMPLE)
    for place in range(len(line)):
        for flip in (0x01, 0x20, 0x80, line[place] ^ ord("\n")):
            if flip == 0:
                continue
            changed = bytearray(line)
            changed[place] ^= flip
            with pytest.raises(DamagedLine):
                decode_line(bytes(changed))


def test_a_missing_or_added_byte_shows_anywhere() -> None:
    line = encode_line(SAMPLE)
    for place in range(len(line)):
        for changed in (line[:place] + line[place + 1 :], line[:place] + b" " + line[place:]):
            with pytest.raises(DamagedLine):
                decode_line(changed)
    with pytest.raises(DamagedLine):
        decode_line(line + b"\n")


@pytest.mark.parametrize("body", [b"[1,2,", b"{nonsense,", b"", b'"text",'])
def test_a_right_checksum_over_something_else_is_damage(body: bytes) -> None:
    line = b'%b"crc":"%08x"}\n' % (body, zlib.crc32(body))
    with pytest.raises(DamagedLine, match="not JSON"):
        decode_line(line)


@given(st.binary(max_size=200))
def test_random_bytes_are_damage_and_nothing_else(data: bytes) -> None:
    with pytest.raises(DamagedLine):
        decode_line(data + b"\n")


@given(st.binary(max_size=300), st.integers(0, 10**9))
def test_a_scan_of_anything_accounts_for_every_byte(data: bytes, base: int) -> None:
    found = scan(data, base=base)
    spans = sorted((item.start, item.end) for item in found.lines + found.damaged)
    ends = [base, *(end for _, end in spans)]
    assert [start for start, _ in spans] == ends[:-1]
    assert found.whole == ends[-1]
    assert found.whole + found.torn == base + len(data)


def test_a_tail_torn_at_any_byte_leaves_the_lines_before_it() -> None:
    first, last = encode_line({"seq": 0}), encode_line(SAMPLE)
    for cut in range(len(last)):
        found = scan(first + last[:cut])
        assert [line.fields for line in found.lines] == [{"seq": 0}]
        assert (found.damaged, found.whole, found.torn) == ((), len(first), cut)
    assert [line.fields for line in scan(first + last).lines] == [{"seq": 0}, SAMPLE]


def test_damage_at_any_byte_costs_no_other_line() -> None:
    lines = [encode_line({"seq": seq, "cmd": "x"}) for seq in range(3)]
    for place in range(len(lines[1]) - 1):
        middle = bytearray(lines[1])
        middle[place] ^= 0x04
        found = scan(lines[0] + bytes(middle) + lines[2])
        assert [line.fields["seq"] for line in found.lines] == [0, 2]
        assert found.damaged
        assert found.torn == 0


def test_a_lost_newline_damages_the_two_lines_that_it_parted() -> None:
    lines = [encode_line({"seq": seq}) for seq in range(4)]
    found = scan(lines[0] + lines[1][:-1] + b" " + lines[2] + lines[3])
    assert [line.fields["seq"] for line in found.lines] == [0, 3]
    assert [(item.start, item.end) for item in found.damaged] == [
        (len(lines[0]), sum(map(len, lines[:3])))
    ]


@pytest.mark.long
@given(st.lists(OBJECTS, max_size=6), st.data())
def test_any_crash_prefix_folds_to_the_acknowledged_lines_and_at_most_one_more(
    objects: list[dict[str, Any]], data: st.DataObject
) -> None:
    # Each line is appended after the one before was acknowledged; the crash cuts the last append.
    lines = [encode_line(fields) for fields in objects]
    acknowledged = data.draw(st.integers(0, len(lines)))
    synced = sum(map(len, lines[:acknowledged]))
    under_way = len(lines[acknowledged]) if acknowledged < len(lines) else 0
    cut = data.draw(st.integers(synced, synced + under_way))
    found = scan(b"".join(lines)[:cut])
    assert [line.fields for line in found.lines] in (
        objects[:acknowledged],
        objects[: acknowledged + 1],
    )
    assert found.damaged == ()


@given(st.binary(max_size=400).map(lambda data: data.replace(b"\x01", b"\n")), st.integers(1, 50))
def test_backward_pieces_are_the_same_whatever_the_block_size(data: bytes, block: int) -> None:
    def read_at(offset: int, size: int) -> bytes:
        assert offset >= 0
        assert offset + size <= len(data)
        return data[offset : offset + size]

    pieces = list(pieces_backward(read_at, len(data), block_bytes=block))[::-1]
    assert [piece.data for piece in pieces] == re.findall(rb"[^\n]*\n|[^\n]+", data)
    assert [data[piece.start : piece.end] for piece in pieces] == [piece.data for piece in pieces]
    assert [piece.whole for piece in pieces] == [data[p.end - 1 : p.end] == b"\n" for p in pieces]


def test_stopping_early_reads_only_the_last_blocks() -> None:
    data = b"".join(encode_line({"seq": seq}) for seq in range(10_000))
    read: list[int] = []

    def read_at(offset: int, size: int) -> bytes:
        read.append(size)
        return data[offset : offset + size]

    last = next(pieces_backward(read_at, len(data), block_bytes=512))
    assert isinstance(judge(last), Line)
    assert sum(read) <= 513


def test_a_piece_longer_than_any_line_is_let_go_and_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger, "MAX_LINE_BYTES", 100)
    first, last = encode_line({"seq": 0}), encode_line({"seq": 1})
    data = first + b"x" * 100 + b"\n" + last
    pieces = list(pieces_backward(lambda at, n: data[at : at + n], len(data), block_bytes=16))
    judged = [judge(piece) for piece in pieces]
    assert [type(item) for item in judged] == [Line, Damaged, Line]
    assert pieces[1] == Piece(len(first), len(first) + 101, None, whole=True)
    assert judged[1] == Damaged(len(first), len(first) + 101, "it is longer than any line may be")
