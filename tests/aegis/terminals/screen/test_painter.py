"""Screens drawn from the output that drew them: colours, lines above, the screen beneath."""

from __future__ import annotations

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st

from aegis.protocol.output_streams import DrawnMark
from aegis.terminals.parse.control_sequences import SequenceScanner
from aegis.terminals.screen.choice import new_emulator
from aegis.terminals.screen.emulator import Screenshot
from aegis.terminals.screen.painter import Painter
from aegis.terminals.screen.redraw import marks_of, redrawn
from aegis.terminals.screen.replay import (
    MAX_MARKS,
    MAX_REPLAY_BYTES,
    MAX_STRETCHES,
    MainStretches,
    marks_in,
    replayed,
    replayed_from,
    start_of_lines,
)
from tests.aegis.terminals.screen.switches import switches_in

ROWS, COLS = 6, 20
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
PIECES = st.sampled_from(
    [
        *("word ", "\x1b[31mred\x1b[0m", "é漢字", "\r\n", "\n\n\n\n", "x" * 45, "\b\b", "\t"),
        *(
            "\x1b[3;5H",
            "\x1b[2J\x1b[H",
            "\x1b[K",
            "\x1b[2L",
            "\x1b[2;4r",
            "\x1b[r",
            "\x1b7",
            "\x1b8",
        ),
        *(ENTER, LEAVE, "\x1b[?47h", "\x1b[?47l", "\x1b[?25l", "\x1b[?7l", "\x1bc"),
        *("\x07", "\x1b]2;a title\x07", "\x1b[6n", "\x1b]133;A\x1b\\", "\x1bPq\x1b\\"),
        *(
            "\x1b]133;C\x1b\\",
            "\x1b]133;C;q=1\x07",
            "\x1b]133;C",
            "\x1b]0;",
            "\x1bP",
            "\x1b",
            "\x18",
        ),
    ]
)


@attrs.frozen
class Drawn:
    shot: Screenshot
    text: str
    marks: list[DrawnMark]

    def lines_at(self, output: str) -> list[tuple[str, str]]:
        """The line in which the cursor is at each mark, and the output behind the mark."""
        drawn = self.text.encode()
        shots = [(seen(drawn[: each.at].decode()), each.cursor) for each in self.marks]
        rest = [output.encode()[cursor:].decode() for _, cursor in shots]
        return [
            (shot.lines[shot.cursor[0] - 1], each)
            for (shot, _), each in zip(shots, rest, strict=True)
        ]


def drawing_of(text: str, scrollback: int = 0) -> Drawn:
    data = text.encode()
    emulator = new_emulator(ROWS, COLS)
    emulator.feed(data)
    stretches = MainStretches(0)
    for offset, alternate in switches_in(SequenceScanner().feed(data, 0)):
        stretches.switched(offset, alternate=alternate)
    shot = emulator.screen()
    painter = Painter(shot, stretches, lambda start, stop: data[start:stop])
    drawing = trio.run(painter.draw, len(data), scrollback)
    return Drawn(shot, redrawn(drawing, shot, ""), marks_of(drawing))


def seen(text: str) -> Screenshot:
    emulator = new_emulator(ROWS, COLS)
    emulator.feed(text.encode())
    return emulator.screen()


def test_a_screen_keeps_its_colours() -> None:
    assert "\x1b[31mred\x1b[0m plain" in drawing_of("\x1b[31mred\x1b[0m plain").text


def test_the_colour_that_is_on_stays_on() -> None:
    assert drawing_of("one\r\n\x1b[31mred").text.rpartition("red")[0].endswith("\x1b[31m")


def test_the_lines_above_the_screen_come_first() -> None:
    text = "".join(f"\x1b[32mline {number}\x1b[0m\r\n" for number in range(50))
    drawn = drawing_of(text, scrollback=10).text
    shown = [number for number in range(50) if f"line {number}\x1b" in drawn]
    assert shown == list(range(50 - ROWS + 1 - 10, 50))
    assert "line 44" not in drawing_of(text).text
    assert "line 45" in drawing_of(text).text


def test_the_main_screen_is_beneath_a_full_screen_program() -> None:
    drawn = drawing_of(f"$ \x1b[1mls\x1b[0m\r\na  b\r\n$ htop\r\n{ENTER}\x1b[42mCPU\x1b[0m")
    assert "\x1b[42mCPU" in drawn.text
    after = seen(drawn.text + LEAVE)
    assert after.lines[:3] == ("$ ls", "a  b", "$ htop")
    assert after.cursor == (3, 0)


def test_the_screen_of_a_program_that_ended_is_no_part_of_the_lines_above() -> None:
    text = f"one\r\ntwo\r\n{ENTER}SECRET\r\n{LEAVE}three\r\n"
    drawn = drawing_of(text, scrollback=100)
    assert "SECRET" not in drawn.text
    assert seen(drawn.text).lines[:3] == ("one", "two", "three")


def test_nothing_happens_a_second_time() -> None:
    drawn = drawing_of(
        "\x07\x1b]2;old\x07\x1b]52;c;eA==\x07\x1b[6n\x1b[c\x1b[?1000h\x1b]2;new\x07ok"
    )
    assert "\x07" not in drawn.text
    assert drawn.text.count("\x1b]") == 1
    assert "\x1b]2;new\x1b\\" in drawn.text
    assert not any(query in drawn.text for query in ("[6n", "[c", "[?1000h", "]52"))


def test_a_screen_drawn_long_ago_is_drawn_as_plain_text() -> None:
    spins = "\r\x1b[33m/\x1b[0m" * (MAX_REPLAY_BYTES // 10)
    drawn = drawing_of(f"\x1b[31mhead\x1b[0m\r\n{spins}", scrollback=50)
    assert drawn.shot.lines[:2] == ("head", "/")
    assert seen(drawn.text).lines == drawn.shot.lines
    assert len(drawn.text) < 1000


@given(st.lists(PIECES, max_size=25).map("".join), st.sampled_from([0, 3, 100]))
def test_any_screen_looks_the_same_and_so_does_the_one_beneath(text: str, scrollback: int) -> None:
    drawn = drawing_of(text, scrollback)
    shown = seen(drawn.text)
    assert (shown.lines, shown.cursor, shown.cursor_visible, shown.title, shown.alternate) == (
        drawn.shot.lines,
        drawn.shot.cursor,
        drawn.shot.cursor_visible,
        drawn.shot.title,
        drawn.shot.alternate,
    )
    assert shown.beneath == drawn.shot.beneath


@given(st.lists(PIECES, max_size=25).map("".join))
def test_what_is_replayed_has_only_text_and_movements(text: str) -> None:
    kept = replayed(text.encode())
    assert replayed(kept.encode()) == kept
    assert "\x07" not in kept
    assert "\x1b]" not in kept


COMMAND = "$ echo {0}\r\n\x1b]133;C\x1b\\{0}\r\n"


def test_the_marks_of_a_drawing_are_behind_the_lines_of_their_commands() -> None:
    output = "".join(map(COMMAND.format, ("one", "é漢字", "three")))
    drawn = drawing_of(output, scrollback=20)
    found = drawn.lines_at(output)
    assert [line.rstrip() for line, _ in found] == ["$ echo one", "$ echo é漢字", "$ echo three"]
    assert [rest.split("\r\n")[0] for _, rest in found] == ["one", "é漢字", "three"]


def test_marks_of_lines_that_are_not_drawn_are_left_out_and_those_beneath_a_program_stay() -> None:
    output = "".join(map(COMMAND.format, range(20))) + "$ vim\r\n\x1b]133;C\x07" + ENTER + "~"
    drawn = drawing_of(output)
    assert [line.rstrip() for line, _ in drawn.lines_at(output)][-2:] == ["$ echo 19", "$ vim"]
    assert len(drawn.marks) < 5
    assert len(drawing_of(output, scrollback=100).marks) == 21


def test_a_screen_that_is_drawn_as_plain_text_has_no_marks() -> None:
    far = "".join(map(COMMAND.format, "ab")) + "\x1b[1m" + "\x07" * MAX_REPLAY_BYTES
    assert drawing_of(far, scrollback=5).marks == []


@given(st.lists(PIECES, max_size=25).map("".join), st.integers(0, 200))
def test_marks_change_nothing_of_what_is_replayed(text: str, start: int) -> None:
    data = text.encode()
    start = start_of_lines(data, start % 7)
    drawn, marks = replayed_from(start, data, marks_in([(len(data) + 1000, data)]))
    assert drawn == replayed(data[start:])
    for mark in marks:
        assert data[: mark.cursor - 1000].endswith((b"\x07", b"\x1b\\"))
        assert drawn.encode()[: mark.at].decode() == replayed(data[start : mark.cursor - 1000])


def test_only_the_newest_marks_are_kept() -> None:
    parts = [(5000, b"\x1b]133;C\x07" * 100), (90_000, b"\x1b]133;C\x07" * MAX_MARKS)]
    marks = marks_in(parts)
    assert len(marks) == MAX_MARKS
    assert marks[-1] == DrawnMark(at=8 * (MAX_MARKS + 100), cursor=90_000)
    assert marks_in(parts[:1])[0] == DrawnMark(at=8, cursor=5000 - 8 * 99)


def test_lines_are_counted_from_the_end() -> None:
    assert start_of_lines(b"a\nb\nc", 0) == 4
    assert start_of_lines(b"a\nb\nc", 1) == 2
    assert start_of_lines(b"a\nb\nc", 2) == 0
    assert start_of_lines(b"", 5) == 0


def test_the_parts_of_the_main_screen_are_limited_in_number_and_size() -> None:
    stretches = MainStretches(0)
    for number in range(3 * MAX_STRETCHES):
        stretches.switched(10 * number + 5, alternate=True)
        stretches.switched(10 * number + 10, alternate=False)
    parts = stretches.before(30 * MAX_STRETCHES + 3)
    assert len(parts) <= MAX_STRETCHES
    assert parts[-2:] == [
        (30 * MAX_STRETCHES - 10, 30 * MAX_STRETCHES - 5),
        (30 * MAX_STRETCHES, 30 * MAX_STRETCHES + 3),
    ]
    [(start, stop)] = MainStretches(7).before(10 * MAX_REPLAY_BYTES)
    assert stop - start == MAX_REPLAY_BYTES
