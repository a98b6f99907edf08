"""Output for a window that must not answer."""

from __future__ import annotations

import pytest

from aegis.cli.live.queries import MAX_STRING_BYTES, QueryFilter

QUESTIONS = [
    b"\x05",
    b"\x1bZ",
    b"\x1b[c",
    b"\x1b[0c",
    b"\x1b[>c",
    b"\x1b[=0c",
    b"\x1b[5n",
    b"\x1b[6n",
    b"\x1b[?6n",
    b"\x1b[?996n",
    b"\x1b[>q",
    b"\x1b[>0q",
    b"\x1b[?u",
    b"\x1b[>1u",
    b"\x1b[=5;1u",
    b"\x1b[<u",
    b"\x1b[>4;2m",
    b"\x1b[?4m",
    b"\x1b[?2026$p",
    b"\x1b[4$p",
    b"\x1b[1$w",
    b"\x1b[14t",
    b"\x1b[14;2t",
    b"\x1b[18t",
    b"\x1b[21t",
    b"\x1b[1;1;1;1;1;1*y",
    b"\x1b[0x",
    b"\x1b[?1;1;0S",
    b"\x1b[#R",
    b"\x1b[1'|",
    b"\x1b]4;1;?\x07",
    b"\x1b]4;1;rgb:ff/ff/ff;2;?\x07",
    b"\x1b]10;?\x1b\\",
    b"\x1b]11;?\x07",
    b"\x1b]52;c;?\x07",
    b"\x1b]7501;?\x07",
    b"\x1b]1337;ReportCellSize\x07",
    b"\x1bP+q544e\x1b\\",
    b"\x1bP$qm\x1b\\",
]

OTHERS = [
    b"plain text, caf\xc3\xa9, 20\xc2\xb0",
    b"\x1b[31;1mred\x1b[0m\x1b[4m",
    b"\x1b[38:2::1:2:3m",
    b"\x1b[2J\x1b[H\x1b[10;20H\x1b[?25l\x1b[K",
    b"\x1b[?1049h\x1b[?2004h\x1b[?1006;1000h",
    b"\x1b[u\x1b[s",
    b"\x1b[2 q",
    b"\x1b[1q",
    b"\x1b[!p",
    b"\x1b[3S",
    b"\x1b[22;0t\x1b[23;0t",
    b"\x1b[?0c",
    b"\x1b]0;is this a title?\x07",
    b"\x1b]2;?\x07",
    b"\x1b]7;file:///tmp?\x07",
    b"\x1b]8;;http://host/?q=?\x07link\x1b]8;;\x07",
    b"\x1b]133;D;0\x07",
    b"\x1b]11;#000000\x07",
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1bPq#0;2;0;0;0#0~~\x1b\\",
    b"\x1b(B\x0f\x1b7\x1b8\x1b=\x1b>",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_left_out(question: bytes) -> None:
    assert QueryFilter().feed(b"a" + question + b"b") == b"ab"


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_that_comes_byte_by_byte_is_left_out(question: bytes) -> None:
    cleaned = QueryFilter()
    assert b"".join(cleaned.feed(bytes([each])) for each in b"a" + question + b"b") == b"ab"


@pytest.mark.parametrize("other", OTHERS)
def test_everything_else_is_shown_as_it_came(other: bytes) -> None:
    assert QueryFilter().feed(other + b".") == other + b"."
    cleaned = QueryFilter()
    assert b"".join(cleaned.feed(bytes([each])) for each in other + b".") == other + b"."


def test_a_picture_that_would_be_answered_becomes_a_string_that_nobody_knows() -> None:
    assert QueryFilter().feed(b"\x1b_Gi=1,a=q;AAAA\x1b\\.") == b"\x1b_Xi=1,a=q;AAAA\x1b\\."


@pytest.mark.parametrize("begun", [b"\x9b6n", b"\x9d11;?\x07", b"\x90$qm\x1b\\", b"\x9a"])
def test_what_begins_with_a_single_character_for_two_begins_nothing(begun: bytes) -> None:
    shown = QueryFilter().feed("é\xc2".encode("latin-1") + begun + b".")
    assert b"\xc2" not in shown


def test_a_string_without_an_end_is_not_held_back_for_ever() -> None:
    cleaned = QueryFilter()
    shown = cleaned.feed(b"\x1b]11;")
    for _ in range(20):
        shown += cleaned.feed(b"x" * 1000)
    assert len(shown) >= 20_000 - MAX_STRING_BYTES - 16


def test_a_flood_of_beginnings_takes_no_time_that_grows_with_its_square() -> None:
    cleaned = QueryFilter()
    flood = b"\x1b]4;" * 500_000
    assert len(cleaned.feed(flood)) + len(b"\x1b]4;") >= len(flood)
