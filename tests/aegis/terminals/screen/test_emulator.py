from __future__ import annotations

import pytest

from aegis.terminals.screen.avt_grid import MAX_STAND_INS
from aegis.terminals.screen.emulator import MAX_TITLES, ScreenEmulator, Screenshot
from aegis.terminals.screen.widths import MAX_MARKS, clusters_of, truncate_to_width
from tests.aegis.terminals.screen.conftest import GRIDS, NewEmulator

X = "x" * 20

# What is written to an empty screen of 5 by 20, the lines that are not empty, and the cursor.
CASES: dict[str, tuple[str, list[str], tuple[int, int]]] = {
    "text": ("hi", ["hi"], (0, 2)),
    "lines": ("a\r\nb\nc", ["a", "b", " c"], (2, 2)),
    "a tab": ("\tA", ["        A"], (0, 9)),
    "tab stops": ("ab\x1bH\r\x1b[3g\t\x1b[1;3H\x1bH\r\tA", ["abA"], (0, 3)),
    "tabs back and forth": ("\x1b[2IA\x1b[Zx", [" " * 16 + "x"], (0, 17)),
    "a full line": (X, [X], (0, 19)),
    "a line too long": (X + "y", [X, "y"], (1, 1)),
    "a tab behind a full line": (X + "\ty\tz", [X, "y       z"], (1, 9)),
    "tabs behind a full line": (X + "\x1b[2Iy", [X, "y"], (1, 1)),
    "a tab to the last column": ("\t\t\tab", [" " * 19 + "a", "b"], (1, 1)),
    "a return behind a full line": (X + "\ry", ["y" + X[1:]], (0, 1)),
    "a wide character on half of one at the end": (
        *("x" * 17 + "日\x1b[1;19H日", ["x" * 17 + " 日"], (0, 19)),
    ),
    "without wrapping": ("\x1b[?7labcdefghijklmnopqrstuvwxyz", ["abcdefghijklmnopqrsz"], (0, 19)),
    "scrolling": ("1\r\n2\r\n3\r\n4\r\n5\r\n6", ["2", "3", "4", "5", "6"], (4, 1)),
    "insertion of characters": ("abc\x1b[1;2H\x1b[2@", ["a  bc"], (0, 1)),
    "deletion of characters": ("abcde\x1b[1;2H\x1b[2P", ["ade"], (0, 1)),
    "erasing characters": ("abcde\x1b[1;2H\x1b[2X", ["a  de"], (0, 1)),
    "insert mode": ("abc\x1b[4h\x1b[1;1Hxy\x1b[4l", ["xyabc"], (0, 2)),
    "insertion of lines": ("a\r\nb\r\nc\x1b[2;2H\x1b[L", ["a", "", "b", "c"], (1, 0)),
    "deletion of lines": ("a\r\nb\r\nc\x1b[2;2H\x1b[M", ["a", "c"], (1, 0)),
    "scrolling up": ("a\r\nb\x1b[1S", ["b"], (1, 1)),
    "scrolling down": ("a\r\nb\x1b[1T", ["", "a", "b"], (1, 1)),
    "repetition": ("A\x1b[5b", ["AAAAAA"], (0, 6)),
    "erasing behind": ("abc\r\nabc\x1b[1;2H\x1b[J", ["a"], (0, 1)),
    "erasing before": ("abc\r\nabc\x1b[2;2H\x1b[1J", ["", "  c"], (1, 1)),
    "erasing all, and the scrollback": ("abc\x1b[2Jd\x1b[3J", ["   d"], (0, 4)),
    "erasing a line": ("abc\x1b[1;2H\x1b[1K\r\nabc\x1b[2K", ["  c"], (1, 3)),
    "a region": (
        "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[3;1H\n\nx\x1b[r\x1b[4;2Hy",
        ["a", "", "x", "dy"],
        (3, 2),
    ),
    "a region above the cursor": (
        "\x1b[1;2r\x1b[5;1H\n\nx\x1b[9Ay",
        [" y", "", "", "", "x"],
        (0, 2),
    ),
    "a region that ends below the screen": (
        "1\r\n2\r\n3\r\n4\r\n5\x1b[2;99r\x1b[5;1H\nz",
        ["1", "3", "4", "5", "z"],
        (4, 1),
    ),
    "a region that begins below the screen": ("1\r\n2\x1b[8;9ra", ["1", "2a"], (1, 2)),
    "a region upside down": ("1\r\n2\x1b[4;2ra", ["1", "2a"], (1, 2)),
    "a region of one row": ("1\r\n2\x1b[5;9ra", ["1", "2a"], (1, 2)),
    "a region from the top": ("\x1b[;2r\x1b[2;1Ha\nb", ["a", " b"], (1, 2)),
    "a flag": ("a🇩🇪b", ["a🇩🇪b"], (0, 4)),
    "half a flag": ("a🇩b", ["a🇩b"], (0, 3)),
    "a flag in the last two columns": ("x" * 18 + "🇩🇪b", ["x" * 18 + "🇩🇪", "b"], (1, 1)),
    "the alternate screen behind a full line": (X + "\x1b[?47hy", ["", "y"], (1, 1)),
    "the alternate screen, cleared, behind a full line": (X + "\x1b[?1049hy", ["", "y"], (1, 1)),
    "back from it": (X + "\x1b[?1047hy\x1b[?1047lz", [X, " z"], (1, 2)),
    "back from it where nothing was printed": (
        X + "\x1b[?47h\x1b[?47lz",
        [X[:-1] + "z"],
        (0, 19),
    ),
    "it, behind a wide character": (
        "x" * 18 + "日\x1b[?47h\x1b[1;19H日\x1b[?47l\x1b[1;19H日\x1b[?47hy",
        [" " * 18 + "日", "y"],
        (1, 1),
    ),
    "origin mode": ("\x1b[2;4r\x1b[?6hA\x1b[9;1HB\x1b[?6lC", ["C", "A", "", "B"], (0, 1)),
    "reverse index": ("a\r\nb\x1bMc\x1bMd", ["  d", "ac", "b"], (0, 3)),
    "the cursor saved twice": ("a\x1b7bc\x1b7de\x1b8X\x1b8Y", ["abcYe"], (0, 4)),
    "the cursor never saved": ("abc\x1b8X", ["Xbc"], (0, 1)),
    "SCO's way of saving": ("abc\x1b[s\x1b[3;3Hd\x1b[ue", ["abce", "", "  d"], (0, 4)),
    "a reset": ("abc\x1bcd", ["d"], (0, 1)),
    "alignment": ("\x1b#8", ["E" * 20] * 5, (0, 0)),
    "columns": ("\x1b[5GA\x1b[7`B\x1b[2aC", ["    A B  C"], (0, 10)),
    "rows": ("\x1b[3dA\x1b[eB\x1b[2EC\x1b[FD", ["", "", "A", "DB", "C"], (3, 1)),
    "far out": (
        "\x1b[999;999HA\x1b[999Ab\x1b[999DC",
        ["C" + " " * 18 + "b", "", "", "", X[:0] + " " * 19 + "A"],
        (0, 1),
    ),
    # Wide characters.
    "wide": ("日本x", ["日本x"], (0, 5)),
    "its first half overwritten": ("日本\x1b[1;1Hx", ["x 本"], (0, 1)),
    "its second half overwritten": ("日本\x1b[1;2Hx", [" x本"], (0, 2)),
    "wide over the halves of two": ("日本語\x1b[1;2H字", [" 字 語"], (0, 3)),
    "wide at the edge": (X[1:] + "日", [X[1:], "日"], (1, 2)),
    "half of it erased": ("日本\x1b[1;2H\x1b[K", [""], (0, 1)),
    "half of it deleted": ("日本\x1b[1;2H\x1b[P", [" 本"], (0, 1)),
    "half of it pushed out": ("\x1b[1;19H日\x1b[1;1H\x1b[@", [""], (0, 0)),
    # Characters of no width.
    "a combining mark": ("e\u0301x", ["e\u0301x"], (0, 2)),
    "marks without anything before": ("\u0301a", ["a"], (0, 1)),
    "a mark on a full line": (X + "\u0301y", [X + "\u0301", "y"], (1, 1)),
    "a mark on a wide one": ("日\u0301x", ["日\u0301x"], (0, 3)),
    "a joined emoji": ("👩\u200d👩\u200d👧x", ["👩\u200d👩\u200d👧x"], (0, 7)),
    "a variation selector": ("❤\ufe0fx", ["❤\ufe0fx"], (0, 2)),
    "text goes on behind a joiner": ("a\u200bb\u2060c", ["a\u200bb\u2060c"], (0, 3)),
    "a mark after a colour": ("e\x1b[1m\u0301x", ["e\u0301x"], (0, 2)),
    "widths that libraries dispute": ("☰䷀ㇰx", ["☰䷀ㇰx"], (0, 7)),
    "no room for a wide one, and no wrapping": ("\x1b[?7l" + X[1:] + "日y", [X[1:] + "y"], (0, 19)),
    # What broke pyte.
    "private m": ("\x1b[?4mA", ["A"], (0, 1)),
    "DA": ("\x1b[c\x1b[>c\x1b[=cA", ["A"], (0, 1)),
    "132 columns": ("ab\x1b[?3hcd", ["abcd"], (0, 4)),
    "reverse video": ("ab\x1b[?5hcd\x1b[?5l", ["abcd"], (0, 4)),
    "origin mode without a region": ("\x1b[?6h\x1b[3dA", ["", "", "A"], (2, 1)),
    "colours that do not exist": ("\x1b[38;5;999mA\x1b[38;5mB\x1b[48;2;1mC", ["ABC"], (0, 3)),
    "erasing in ways that do not exist": ("abc\x1b[7J\x1b[7K\x1b[9g", ["abc"], (0, 3)),
}


@pytest.mark.parametrize(("data", "lines", "cursor"), CASES.values(), ids=CASES)
def test_a_screen_shows_what_a_terminal_would(
    new_emulator: NewEmulator, data: str, lines: list[str], cursor: tuple[int, int]
) -> None:
    whole, bytewise = new_emulator(), new_emulator()
    whole.feed(data.encode())
    for byte in data.encode():
        bytewise.feed(bytes([byte]))
    for emulator in (whole, bytewise):
        screen = emulator.screen()
        assert list(screen.lines) == lines + [""] * (5 - len(lines))
        assert screen.cursor == cursor


def shown(emulator: ScreenEmulator) -> tuple[bool, list[str]]:
    """Which screen is shown, and its lines that are not empty."""
    screen = emulator.screen()
    return screen.alternate, [line for line in screen.lines if line]


def test_an_empty_screen(new_emulator: NewEmulator) -> None:
    assert new_emulator(3, 7).screen() == Screenshot(
        rows=3,
        cols=7,
        cursor=(0, 0),
        cursor_visible=True,
        title="",
        alternate=False,
        partial=False,
        lines=("", "", ""),
    )


def test_the_smallest_screen_takes_anything(new_emulator: NewEmulator) -> None:
    emulator = new_emulator(1, 2)
    for data, _, _ in CASES.values():
        emulator.feed(data.encode())
    assert not emulator.screen().partial


def test_the_cursor_hides_and_shows(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    seen = []
    for data in (b"\x1b[?25l", b"\x1b[?1049h", b"\x1b[?25h", b"\x1b[?25;1l", b"\x1b[!p"):
        emulator.feed(data)
        seen.append(emulator.screen().cursor_visible)
    assert seen == [False, False, True, False, True]


def test_the_title_is_set_and_comes_back_from_its_stack(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    seen = []
    for data in (b"\x1b]0;a\x07", b"\x1b[22;0;0t", b"\x1b]2;b\x07", b"\x1b[23;0;0t", b"\x1b[23t"):
        emulator.feed(data)
        seen.append(emulator.screen().title)
    assert seen == ["a", "a", "b", "a", "a"]


def test_the_stack_of_titles_is_bounded(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    for number in range(100):
        emulator.feed(b"\x1b]0;%d\x07\x1b[22t" % number)
    emulator.feed(b"\x1b[23t" * 200)
    assert emulator.screen().title == str(100 - MAX_TITLES)


# The alternate screen.


@pytest.mark.parametrize("mode", [47, 1047, 1049])
def test_leaving_the_alternate_screen_brings_the_main_one_back(
    new_emulator: NewEmulator, mode: int
) -> None:
    emulator = new_emulator()
    emulator.feed(b"$ vim\r\n")
    emulator.feed(b"\x1b[?%dh\x1b[2J\x1b[Hfile" % mode)
    assert shown(emulator) == (True, ["file"])
    emulator.feed(b"\x1b[?%dl" % mode)
    assert shown(emulator) == (False, ["$ vim"])
    expected = (1, 0) if mode == 1049 else (0, 4)
    assert emulator.screen().cursor == expected


def test_the_cursor_stays_where_it_is_when_the_alternate_screen_begins(
    new_emulator: NewEmulator,
) -> None:
    emulator = new_emulator()
    emulator.feed(b"main\x1b[?1049hALT")
    assert emulator.screen().lines[0] == "    ALT"


def test_an_alternate_screen_begins_empty(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"\x1b[?1049hone\x1b[?1049l\x1b[?1049h")
    assert shown(emulator) == (True, [])
    emulator.feed(b"two\x1b[?1047l\x1b[?47h")
    assert shown(emulator) == (True, [])


def test_47_keeps_what_the_alternate_screen_showed(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"\x1b[?47hone\x1b[?47l\x1b[?47h")
    assert shown(emulator) == (True, ["one"])


def test_1048_saves_the_cursor_alone(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"ab\x1b[?1048hcd\x1b[?1048lX")
    assert shown(emulator) == (False, ["abXd"])


def test_a_reset_leaves_the_alternate_screen(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"main\x1b[?1049halt\x1bcnew")
    assert shown(emulator) == (False, ["new"])
    emulator.feed(b"\x1b[?1049l")
    assert shown(emulator) == (False, ["new"])


def test_wrapping_holds_for_both_screens(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"\x1b[?7l\x1b[?1049h\x1b[H" + b"x" * 30)
    assert shown(emulator) == (True, [X])
    emulator.feed(b"\x1b[?7h\x1b[?1049l\x1b[H" + b"y" * 30)
    assert shown(emulator) == (False, ["y" * 20, "y" * 10])


# Another size.


def test_a_wider_screen_has_room_at_the_right(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"x" * 25)
    emulator.resize(5, 30)
    emulator.feed(b"y" * 26)
    assert [line for line in emulator.screen().lines if line] == [X, "x" * 5 + "y" * 25, "y"]


def test_what_does_not_fit_is_cut_off_and_nothing_is_wrapped_anew(
    new_emulator: NewEmulator,
) -> None:
    emulator = new_emulator()
    emulator.feed("abcdefgh\r\n日本語\r\nz".encode())
    emulator.resize(5, 5)
    assert [line for line in emulator.screen().lines if line] == ["abcde", "日本", "z"]
    emulator.resize(5, 20)
    assert [line for line in emulator.screen().lines if line] == ["abcde", "日本", "z"]


@pytest.mark.parametrize(
    ("row", "lines", "cursor"),
    [(1, ["1", "2"], (0, 0)), (2, ["1", "2"], (1, 0)), (4, ["3", "4"], (1, 0))],
)
def test_a_lower_screen_keeps_the_line_of_the_cursor(
    new_emulator: NewEmulator, row: int, lines: list[str], cursor: tuple[int, int]
) -> None:
    emulator = new_emulator()
    emulator.feed(b"1\r\n2\r\n3\r\n4\r\n5\x1b[%d;1H" % row)
    emulator.resize(2, 20)
    screen = emulator.screen()
    assert (list(screen.lines), screen.cursor, screen.rows) == (lines, cursor, 2)
    assert not screen.partial


def test_a_new_size_holds_for_the_screen_that_is_not_shown(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"1\r\n2\r\n3\r\n4$ \x1b[?1049h\x1b[Heditor")
    emulator.resize(3, 6)
    assert emulator.screen().lines == ("editor", "", "")
    emulator.resize(3, 40)
    emulator.feed(b"\x1b[?1049lx")
    assert emulator.screen().lines == ("2", "3", "4$ x")


def test_a_size_in_the_middle_of_a_sequence(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"ab\x1b[3;" + "日".encode()[:0])
    emulator.resize(4, 10)
    emulator.feed(b"2Hx")
    assert emulator.screen().lines == ("ab", "", " x", "")


def test_a_new_size_undoes_margins_and_keeps_wrapping_off(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"\x1b[2;3r\x1b[?7l")
    emulator.resize(3, 4)
    emulator.feed(b"\x1b[Ha\r\nb\r\nc\r\ndefghi")
    assert emulator.screen().lines == ("b", "c", "defi")


# Partial.


def test_a_skip_empties_the_screen_until_it_is_certain_again(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"old\x1b[3;")
    emulator.skip(alternate=False)
    emulator.feed(b"1Hnew")
    assert emulator.screen().partial
    assert shown(emulator) == (False, ["1Hnew"])
    emulator.feed(b"\x1b[H")
    assert emulator.screen().partial
    emulator.feed(b"\x1b[2J")
    assert not emulator.screen().partial


@pytest.mark.parametrize(
    "clear", [b"\x1bc", b"\x1b[H\x1b[2J", b"\x1b[2J\x1b[1;1H", b"\x1b[2Jx\x1b[3f"]
)
def test_a_screen_is_certain_when_all_was_erased_and_the_cursor_put_somewhere(
    new_emulator: NewEmulator, clear: bytes
) -> None:
    emulator = new_emulator()
    emulator.skip(alternate=False)
    for byte in clear:
        assert emulator.screen().partial
        emulator.feed(bytes([byte]))
    assert not emulator.screen().partial


@pytest.mark.parametrize("other", [b"\x1b[J\x1b[H", b"\x1b[2J\r\n", b"\x1b[3J\x1b[H", b"\x1b[!p"])
def test_less_than_that_is_not_certain(new_emulator: NewEmulator, other: bytes) -> None:
    emulator = new_emulator()
    emulator.skip(alternate=False)
    emulator.feed(other)
    assert emulator.screen().partial


def test_each_screen_is_partial_for_itself(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.skip(alternate=False)
    seen = []
    for data in (b"x\x1b[?1049h", b"\x1b[2J\x1b[H", b"\x1b[?1049l", b"\x1b[2J\x1b[H"):
        emulator.feed(data)
        seen.append(emulator.screen().partial)
    assert seen == [False, False, True, False]


def test_a_skip_on_the_alternate_screen_leaves_the_main_one(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"main\x1b[?1049halt")
    emulator.skip(alternate=True)
    emulator.feed(b"newest")
    assert emulator.screen().partial
    assert shown(emulator) == (True, ["newest"])
    emulator.feed(b"\x1b[?1049l")
    assert not emulator.screen().partial
    assert shown(emulator) == (False, ["main"])


def test_a_skip_may_change_the_screen(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"main")
    emulator.skip(alternate=True)
    assert (shown(emulator), emulator.screen().partial) == ((True, []), True)
    emulator.skip(alternate=False)
    assert (shown(emulator), emulator.screen().partial) == ((False, []), True)


# A library that fails.


class PanicException(BaseException):
    """What a panic looks like from Python."""


@pytest.mark.parametrize("failure", [IndexError("out of range"), PanicException("panic")])
@pytest.mark.parametrize("where", ["write", "lines", "cursor"])
def test_a_library_that_fails_costs_the_screen_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
    new_emulator: NewEmulator,
    where: str,
    failure: BaseException,
) -> None:
    emulator = new_emulator()
    emulator.feed(b"\x1b]0;t\x07before\x1b[?1049halt")
    grids = [type(grid) for grid in emulator._grids.values()]

    def fail(*_: object) -> None:
        monkeypatch.undo()
        raise failure

    monkeypatch.setattr(grids[0], where, fail)
    emulator.feed(b"x")
    emulator.screen()
    emulator.resize(4, 9)
    emulator.feed(b"\x1b[Hafter")
    screen = emulator.screen()
    assert (screen.title, screen.alternate, screen.partial) == ("t", True, True)
    assert (screen.lines, screen.cursor) == (("after", "", "", ""), (0, 5))
    assert emulator.take_failure() == f"{type(failure).__name__}: {failure}"
    assert emulator.take_failure() is None


def test_an_interrupt_is_no_failure_of_a_library(
    monkeypatch: pytest.MonkeyPatch, new_emulator: NewEmulator
) -> None:
    emulator = new_emulator()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(emulator._grid), "write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        emulator.feed(b"x")


# Bounds.


def test_marks_on_one_character_are_bounded(new_emulator: NewEmulator) -> None:
    whole, bytewise = new_emulator(), new_emulator()
    data = ("e" + "\u0301" * 1000 + "x").encode()
    whole.feed(data)
    for byte in data:
        bytewise.feed(bytes([byte]))
    expected = "e" + "\u0301" * MAX_MARKS + "x"
    assert whole.screen().lines[0] == bytewise.screen().lines[0] == expected


def test_characters_that_are_always_new_are_bounded() -> None:
    emulator = ScreenEmulator(2, 40, GRIDS["pyavt"])
    for first in range(0x4E00, 0x4E00 + MAX_STAND_INS + 10):
        emulator.feed(f"\r{chr(first)}\u0301".encode())
    grid = vars(emulator._grid)
    assert len(grid["_stand_ins"]) == len(grid["_meanings"]) == MAX_STAND_INS
    assert emulator.screen().cursor == (0, 2)


@pytest.mark.parametrize("code", [0x100000, 0x100005, 0x3E000, 0x3E004])
def test_a_character_that_stands_for_others_is_still_itself(
    new_emulator: NewEmulator, code: int
) -> None:
    emulator = new_emulator()
    emulator.feed(f"e\u0301日\u0301{chr(code)}".encode())
    assert emulator.screen().lines[0] == f"e\u0301日\u0301{chr(code)}"


def test_saved_cursors_do_not_pile_up(new_emulator: NewEmulator) -> None:
    emulator = new_emulator()
    emulator.feed(b"\x1b7" * 10_000 + b"ab\x1b7" + b"\x1b8" * 10_000)
    assert emulator.screen().cursor == (0, 2)


# Lines by columns.


@pytest.mark.parametrize(
    ("line", "cols", "cut"),
    [
        ("abc", 5, "abc"),
        ("abc", 2, "ab"),
        ("日本", 4, "日本"),
        ("日本", 3, "日"),
        ("e\u0301x", 1, "e\u0301"),
        ("", 1, ""),
    ],
)
def test_a_line_is_cut_by_columns(line: str, cols: int, cut: str) -> None:
    assert truncate_to_width(line, cols) == cut


def test_marks_belong_to_the_character_before() -> None:
    assert clusters_of("\u0301\u0302ae\u0301日\u200d") == [
        "\u0301\u0302",
        "a",
        "e\u0301",
        "日\u200d",
    ]
