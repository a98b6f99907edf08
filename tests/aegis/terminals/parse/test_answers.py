"""What the terminal answers: one table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.terminals.parse.answers import MAX_NAMES, Answers, ReportedModes, colour
from aegis.terminals.parse.control_sequences import SequenceScanner


class Asked:
    """A terminal of 24 rows and 80 columns, the cursor in row 3, column = offset."""

    def __init__(self) -> None:
        self.modes = ReportedModes()
        self._scanner = SequenceScanner()
        self._answers = Answers(
            size=lambda: (24, 80), cursor_at=lambda end: (3, end), modes=self.modes
        )

    def ask(self, data: bytes) -> bytes:
        answers = [
            self._answers.answer(sequence)
            for sequence in self._scanner.feed(data, 0)
            if not self.modes.follow(sequence)
        ]
        return b"".join(answers)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (b"\x1b[c", b"\x1b[?62;22c"),
        (b"\x1b[0c", b"\x1b[?62;22c"),
        (b"\x1b[>c", b"\x1b[>1;10;0c"),
        (b"\x1b[=c", b"\x1bP!|00000000\x1b\\"),
        (b"\x1b[5n", b"\x1b[0n"),
        (b"\x1b[6n", b"\x1b[3;4R"),
        (b"ab\x1b[?6n", b"\x1b[?3;7R"),
        (b"\x1b[?996n", b"\x1b[?997;1n"),
        (b"\x1b[>q", b"\x1bP>|aegis-actors\x1b\\"),
        (b"\x1b[>0q", b"\x1bP>|aegis-actors\x1b\\"),
        (b"\x1b[?u", b"\x1b[?0u"),
        (b"\x1b[14t", b"\x1b[4;384;640t"),
        (b"\x1b[15t", b"\x1b[5;384;640t"),
        (b"\x1b[16t", b"\x1b[6;16;8t"),
        (b"\x1b[18t", b"\x1b[8;24;80t"),
        (b"\x1b[19t", b"\x1b[9;24;80t"),
        (b"\x1b]7501;?\x07", b"\x1b]7501;?\x07"),
        (b"\x1b]7501;?\x1b\\", b"\x1b]7501;?\x1b\\"),
        (b"\x1b]10;?\x07", b"\x1b]10;rgb:e5e5/e5e5/e5e5\x07"),
        (b"\x1b]11;?\x1b\\", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
        (b"\x1b]12;?\x07", b"\x1b]12;rgb:e5e5/e5e5/e5e5\x07"),
        (
            b"\x1b]10;?;?\x07",
            b"\x1b]10;rgb:e5e5/e5e5/e5e5\x07\x1b]11;rgb:0000/0000/0000\x07",
        ),
        (b"\x1b]4;1;?\x07", b"\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        (
            b"\x1b]4;0;?;255;?\x07",
            b"\x1b]4;0;rgb:0000/0000/0000\x07\x1b]4;255;rgb:eeee/eeee/eeee\x07",
        ),
        (b"\x1bP+q544e\x1b\\", b"\x1bP1+r544e=787465726D2D323536636F6C6F72\x1b\\"),
        (b"\x1bP+q436F;4142\x1b\\", b"\x1bP1+r436F=323536\x1b\\\x1bP0+r4142\x1b\\"),
        (b"\x1bP+q5\x1b\\", b"\x1bP0+r\x1b\\"),
        (b'\x1bP$q"p\x1b\\', b'\x1bP1$r62;1"p\x1b\\'),
        (b"\x1bP$qm\x1b\\", b"\x1bP0$r\x1b\\"),
    ],
)
def test_a_question_has_its_answer(question: bytes, answer: bytes) -> None:
    assert Asked().ask(question) == answer


@pytest.mark.parametrize(
    "data",
    [
        b"\x1b[1c",
        b"\x1b[7n",
        b"\x1b[u",
        b"\x1b[>1u",
        b"\x1b[21t",
        b"\x1b[8;50;100t",
        b"\x1b[22;0t",
        b"\x1b[p",
        b"\x1b]11;#123456\x07",
        b"\x1b]4;1;#123456\x07",
        b"\x1b]4;256;?\x07",
        b"\x1b]4;\xb2;?\x07",
        b"\x1b]7501;state=working\x07",
        b"\x1b]7;file:///tmp\x07",
    ],
)
def test_what_is_no_question_has_none(data: bytes) -> None:
    assert Asked().ask(data) == b""


def test_the_answers_come_in_the_order_of_the_questions() -> None:
    asked = b"\x1b]7501;?\x07 \x1b]10;?\x07\x1b[c text \x1b[5n"
    assert Asked().ask(asked) == (
        b"\x1b]7501;?\x07\x1b]10;rgb:e5e5/e5e5/e5e5\x07\x1b[?62;22c\x1b[0n"
    )


@pytest.mark.parametrize(
    ("before", "question", "answer"),
    [
        (b"", b"\x1b[?25$p", b"\x1b[?25;1$y"),
        (b"\x1b[?25l", b"\x1b[?25$p", b"\x1b[?25;2$y"),
        (b"\x1b[?25l\x1b[?25h", b"\x1b[?25$p", b"\x1b[?25;1$y"),
        (b"\x1b[?1049;2004h", b"\x1b[?2004$p\x1b[?1049$p", b"\x1b[?2004;1$y\x1b[?1049;1$y"),
        (b"\x1b[?2004h\x1b[!p", b"\x1b[?2004$p", b"\x1b[?2004;2$y"),
        (b"\x1b[?2004h\x1bc", b"\x1b[?2004$p", b"\x1b[?2004;2$y"),
        (b"\x1b[?2027h", b"\x1b[?2027$p", b"\x1b[?2027;0$y"),
        (b"\x1b[?1016h", b"\x1b[?1016$p", b"\x1b[?1016;0$y"),
        (b"\x1b[4h", b"\x1b[4$p", b"\x1b[4;1$y"),
        (b"\x1b[?4h", b"\x1b[4$p", b"\x1b[4;2$y"),
        (b"\x1b[h\x1b[;h", b"\x1b[0$p", b"\x1b[0;0$y"),
    ],
)
def test_modes_are_told_as_programs_set_them(before: bytes, question: bytes, answer: bytes) -> None:
    asked = Asked()
    assert asked.ask(before) == b""
    assert asked.ask(question) == answer


ANSI = (4, 20)
PRIVATE = (1, 5, 6, 9, 12, 45, 47, 66, 1047, 1048, 1049)
MOUSE_AND_FOCUS = (1000, 1002, 1003, 1004, 1005, 1006, 1015)
PASTE_AND_SYNC = (2004, 2026)


@pytest.mark.parametrize(
    "mode",
    [
        *(b"%d" % number for number in ANSI),
        *(b"?%d" % number for number in PRIVATE + MOUSE_AND_FOCUS + PASTE_AND_SYNC),
    ],
)
def test_what_these_modes_are_is_known(mode: bytes) -> None:
    asked = Asked()
    assert asked.ask(b"\x1b[%b$p" % mode) == b"\x1b[%b;2$y" % mode
    assert asked.ask(b"\x1b[%bh\x1b[%b$p" % (mode, mode)) == b"\x1b[%b;1$y" % mode


def test_no_answer_is_a_question_again() -> None:
    """Where the tty echoes an answer, and shows it as it is, it must not be answered."""
    questions = (
        b"\x1b[c\x1b[>c\x1b[=c\x1b[5n\x1b[6n\x1b[?6n\x1b[?996n\x1b[>q\x1b[?u\x1b[14t\x1b[16t"
    )
    questions += b"\x1b[18t\x1b[?25$p\x1b[4$p\x1b]10;?;?;?\x07\x1b]4;1;?\x07\x1bP$qm\x1b\\"
    questions += b'\x1bP+q544e;41\x1b\\\x1bP$q"p\x1b\\'
    answers = Asked().ask(questions)
    assert answers.count(b"\x1b") > 20
    assert Asked().ask(answers) == b""


def test_one_sequence_asks_for_so_many_names_at_most() -> None:
    names = b";".join([b"4142"] * 500)
    assert Asked().ask(b"\x1bP+q" + names + b"\x1b\\").count(b"0+r4142") == MAX_NAMES


def test_the_palette_is_that_of_xterm() -> None:
    assert [colour(index) for index in (0, 9, 15, 16, 21, 196, 231, 232, 255)] == [
        (0, 0, 0),
        (255, 0, 0),
        (255, 255, 255),
        (0, 0, 0),
        (0, 0, 255),
        (255, 0, 0),
        (255, 255, 255),
        (8, 8, 8),
        (238, 238, 238),
    ]
    assert len({colour(index) for index in range(16, 256)}) == 240


@given(st.binary(max_size=300))
def test_whatever_is_printed_the_answers_are_bounded(data: bytes) -> None:
    noise = data.replace(b"a", b"\x1b[").replace(b"b", b"\x1b]4;").replace(b"c", b"\x1bP+q")
    assert len(Asked().ask(noise)) <= 64 * len(noise)
