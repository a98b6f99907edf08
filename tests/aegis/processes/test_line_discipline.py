"""How long a line becomes that is typed to a program which reads lines."""

from __future__ import annotations

import os
import termios

import pytest

from aegis.processes.line_discipline import MAX_LINE_BYTES, CollectedLine, LineEnds

ENDS = LineEnds(end=b"\n\r\x04", drop=b"\x15\x03")


@pytest.mark.parametrize(
    ("sent", "keys", "longest", "in_hand"),
    [
        ([], b"", 0, 0),
        ([], b"abc", 3, 3),
        ([], b"abc\r", 3, 0),
        ([], b"abc\rdefgh\nij", 5, 2),
        ([b"abc"], b"de\r", 5, 0),
        ([b"abc", b"de"], b"f", 6, 6),
        ([b"abc\r"], b"de", 2, 2),
        ([b"abc\x15"], b"de", 2, 2),
        ([b"abc\x03"], b"", 0, 0),
        ([b"abc\x04"], b"d", 1, 1),
        ([b"a" * 4000], b"b" * 95 + b"\r", 4095, 0),
        ([b"a" * 4000], b"b" * 96 + b"\r", 4096, 0),
    ],
)
def test_the_longest_line_and_what_is_left_of_it(
    sent: list[bytes], keys: bytes, longest: int, in_hand: int
) -> None:
    line = CollectedLine()
    for earlier in sent:
        line.sent(earlier, ENDS)
    assert line.longest(keys, ENDS) == longest
    line.sent(keys, ENDS)
    assert line.length == in_hand


def line_read_by_a_program(length: int) -> bytes:
    """What a program reads of a line of ``length`` bytes that was typed to it."""
    keyboard, tty_end = os.openpty()
    try:
        settings = termios.tcgetattr(tty_end)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(tty_end, termios.TCSANOW, settings)
        os.write(keyboard, b"a" * length + b"\n")
        return os.read(tty_end, 2 * length)
    finally:
        os.close(keyboard)
        os.close(tty_end)


@pytest.mark.real
def test_the_kernel_takes_a_line_of_so_many_bytes_and_none_that_is_longer() -> None:
    for length, read in ((MAX_LINE_BYTES, MAX_LINE_BYTES), (MAX_LINE_BYTES + 1, MAX_LINE_BYTES)):
        assert line_read_by_a_program(length) == b"a" * read + b"\n"


def test_characters_that_mean_something_elsewhere_mean_themselves() -> None:
    line = CollectedLine()
    assert line.longest(b"a]b^c-d\\e\r", LineEnds(end=b"]^-\\", drop=b"")) == 2
    assert line.longest(b"a\rb", LineEnds(end=b"\n", drop=b"")) == 3


def test_another_program_begins_a_line_of_its_own() -> None:
    line = CollectedLine()
    line.sent(b"abc", ENDS)
    line.reset()
    assert line.longest(b"d", ENDS) == 1
