from __future__ import annotations

import random
import tracemalloc
import unicodedata

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.processes.line import BLOCK, MAX_CELL_CHARS, MAX_COLUMNS, MAX_LINE
from aegis.processes.text import TextCleaner


def clean(*chunks: bytes) -> str:
    texts: list[str] = []
    cleaner = TextCleaner(texts.append)
    for chunk in chunks:
        cleaner.feed(chunk)
    cleaner.finish()
    return "".join(texts)


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


SEQUENCES: dict[str, tuple[str, str]] = {
    "nothing": ("", ""),
    "plain": ("hello\r\nworld\r\n", "hello\nworld\n"),
    "no line end": ("hello", "hello"),
    "blanks at a plain line's end stay": ("a  \r\nb  ", "a  \nb  "),
    "empty lines": ("\r\n\n\r\r\n", "\n\n\n"),
    "CR CR LF": ("a\r\r\nb\r\r\r\nc", "a\nb\nc"),
    "TAB": ("a\tb\r\n\tc\r\n", "a\tb\n\tc\n"),
    "NUL and DEL": ("a\0b\x7fc", "abc"),
    "other controls": ("\x01a\x07b\x0b\x0c\x0e\x0f\x1fc", "abc"),
    "C1 characters": ("a\x85b\x9bc\x9d", "abc"),
    "colours": ("\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mrgb\x1b[m\r\n", "red rgb\n"),
    "colours with erase, as grep": ("\x1b[01;31m\x1b[Kx\x1b[m\x1b[Ky\r\n", "xy\n"),
    "modes": ("\x1b[?25la\x1b[?25hb\x1b[?2004h\x1b[?1;2c\x1b[>4;2m\x1b[ q", "ab"),
    "OSC ended by BEL": ("\x1b]0;title\x07a", "a"),
    "OSC ended by ST": ("\x1b]8;;http://x\x1b\\a\x1b]8;;\x1b\\b", "ab"),
    "OSC ended by CAN": ("\x1b]0;title\x18a", "a"),
    "OSC ended by ESC": ("\x1b]0;title\x1b[31ma", "a"),
    "OSC over lines": ("\x1b]0;ti\r\ntle\x07a", "a"),
    "OSC never ended": ("a\x1b]0;title\r\nmore", "a"),
    "DCS": ("\x1bP1$r0m\x1b\\a\x1bP+q\x07544e\x1b\\b", "ab"),
    "APC, PM, SOS": ("\x1b_a\x1b\\1\x1b^b\x1b\\2\x1bXc\x1b\\3", "123"),
    "charsets": ("\x1b(Ba\x1b)0b\x1b%Gc\x1b#8d", "abcd"),
    "two characters": ("\x1bDa\x1bEb\x1b=c\x1b>d\x1bMe\x1bcf", "abcdef"),
    "a lone ESC": ("a\x1b\r\nb\x1b", "a\nb"),
    "ESC ESC": ("\x1b\x1b[31ma\x1b\x1b\x1bcb", "ab"),
    "ESC before a colour": ("\x1b\x1b[0m[31ma", "[31ma"),
    "a colour inside a CSI": ("\x1b[3\x1b[0m1ma", "1ma"),
    "a control character ends a CSI": ("\x1b[3\nm", "\nm"),
    "a CSI cut off at the end": ("a\x1b[31", "a"),
    "ST without a string": ("a\x1b\\b", "ab"),
    "a CSI with too many parameters": ("\x1b[" + "1" * 129 + "mx", "1mx"),
    "many ESC": ("a" + "\x1b" * 500 + "[31mb" + "\x1b" * 500 + "c", "ab"),
    "many beginnings of a CSI": ("a" + "\x1b[" * 500 + "Kb", "ab"),
    "many beginnings of strings": ("a" + "\x1b]\x1bP\x1b_" * 500 + "b\x1b\\c", "ac"),
    "many NUL, BEL and C1": ("ab" + "\0\x07\x9b\x18" * 500 + "\bc", "ac"),
    "what is ignored between what is not": ("ab\0\x1b[31m\x1b[2D\x1bM\x07c\x1b]0;t\x07\x1b[P", "c"),
    "strings that hold controls": ("ab\b\x1bPx\x07y\x9b\x1b\\c\x1b]0;t\x18d", "acd"),
    "cursor between lines": ("a\x1b[Ab\x1b[2Bc\x1b[5;1Hd\x1b[3de", "abcde"),
    "clear": ("a\r\nb\x1b[H\x1b[2J\x1b[3Jc", "a\nbc"),
    "alternate screen": ("a\x1b[?1049hgone\r\ngone\rx\x1b[?1049lb", "ab"),
    "alternate screen, older": ("a\x1b[?47hx\x1b[?47lb\x1b[?1047hx\x1b[?1047lc", "abc"),
    "alternate screen among modes": ("a\x1b[?1;1049;25hx\x1b[?25;1049lb", "ab"),
    "alternate screen left by reset": ("a\x1b[?1049hx\x1bcb", "ab"),
    "CR before the alternate screen": ("abc\r\x1b[?1049h\r\nx\x1b[?1049lX", "Xbc"),
    "strings on the alternate screen": ("\x1b[?1049h\x1b]0;\x1b[?1049lx\x07b", "xb"),
    "a line end is no redraw of the next line": ("\x07a\r\nb  \r\n", "a\nb  \n"),
    "a line after CR, SGR, LF": ("ab\r\x1b[2C\nc\x1b[5Xd", "ab\ncd"),
    "LF after CR settles it": ("\x1b[9Ca\r\n\x1b[?6hb", "         a\nb"),
    "SGR between CR and LF": ("a\r\x1b[0m\nb", "a\nb"),
}

REDRAWN: dict[str, tuple[str, str]] = {
    "CR": ("10%\r50%\r100%\r\n", "100%\n"),
    "CR over a longer line": ("longer\rshort\r\n", "shortr\n"),
    "CR and erase": ("longer\r\x1b[Kab\r\n", "ab\n"),
    "CR, erase, LF": ("longer\r\x1b[K\n", "\n"),
    "CR and a second erase": ("longer\rab\x1b[K\r\n", "ab\n"),
    "wiped out by blanks": ("working\r       \rdone\r\n", "done\n"),
    "nothing left": ("working\r       \r\n", "\n"),
    "CR at the very end": ("abc\r", "abc"),
    "BS": ("abd\bc\r\n", "abc\n"),
    "BS at the beginning": ("\b\bab\b\b\b\bx", "xb"),
    "BS blank BS": ("abc\b \b\r\n", "ab\n"),
    "left and right": ("abc\x1b[2DX\x1b[1CY", "aXcY"),
    "left by default": ("abc\x1b[DX\x1b[0DY", "abY"),
    "right leaves a gap": ("a\x1b[3Cb\r\n", "a   b\n"),
    "right without more": ("a\x1b[30C\r\n", "a\n"),
    "column": ("abc\x1b[2GX\x1b[GY\x1b[5`Z\x1b[2aW", "YXc Z  W"),
    "erase to the left": ("abcde\x1b[2D\x1b[1K", "    e"),
    "erase all": ("abcde\x1b[2Kf", "     f"),
    "erase to the right": ("abcde\x1b[3D\x1b[0Kf", "abf"),
    "erase in an unknown way": ("abc\x1b[2D\x1b[7Kf", "afc"),
    "delete": ("abcdef\r\x1b[2Px\x1b[Py", "xyf"),
    "insert": ("abc\r\x1b[2@x", "x abc"),
    "erase characters": ("abcdef\x1b[4D\x1b[2Xx", "abx ef"),
    "erase characters to the end": ("abc\x1b[2D\x1b[9X\r\n", "a\n"),
    "private sequences do not edit": ("abc\x1b[?2D\x1b[2 @\x1b[>1Px", "abcx"),
    "only the line is redrawn": ("one\r\ntwo\rT\r\n", "one\nTwo\n"),
    "a TAB is passed over": ("ab\tc\rx\tz\r\n", "xb      z\n"),
    "a TAB is written over": ("a\tb\rxyz\r\n", "xyz     b\n"),
    "a TAB after a jump": ("\x1b[3Ca\tb\r\n", "   a    b\n"),
    "a TAB moved": ("a\tb\r\x1b[P\r\n", "       b\n"),
    "wide characters": ("日本\rx\r\n", "x 本\n"),
    "wide characters, second half": ("日本\x1b[2Gx\r\n", " x本\n"),
    "wide over narrow": ("abcd\r日\r\n", "日cd\n"),
    "wide over halves of wide": ("日本語\x1b[2G本\r\n", " 本 語\n"),
    "delete half of a wide one": ("日本a\x1b[2G\x1b[P", " 本a"),
    "saved and restored": ("ab\x1b7cd\x1b8X", "abXd"),
    "saved and restored by CSI": ("ab\x1b[scd\x1b[uX\x1b[1u", "abXd"),
    "saved after CR": ("abc\r\x1b7\x1b[2Cx\x1b8y", "ybx"),
    "restored after CR": ("ab\x1b7cd\r\x1b8X", "abXd"),
    "saved on another line": ("a\x1b7b\r\ncd\x1b8X", "ab\ncdX"),
    "restored without being saved": ("ab\x1b8X", "abX"),
    "margins are not saved": ("ab\x1b[1;9scd\x1b[uX", "abcdX"),
    "a status line": ("ab\x1b7\x1b[24;0f[##  ]\x1b[K\r\b!\x1b8cd\r\n", "abcd\n"),
    "a status line, by row": ("ab\x1b[s\x1b[24d50 %\x1b[ucd\r\n", "abcd\n"),
    "two status lines": ("\x1b7\x1b[9H1\x1b8\x1b7\x1b[9H2\x1b8x", "x"),
    "a status line that never ends": ("ab\x1b7\x1b[24Hgone\r\ncd\x1b8e\r\n", "ab\ncde\n"),
    "a status line ended by reset": ("ab\x1b7\x1b[24Hgone\x1bccd", "abcd"),
    "a jump before the cursor is saved": ("ab\x1b[24H\x1b7cd\x1b8e", "abed"),
    "combining": ("e\u0301x\by\r\n", "e\u0301y\n"),
    "combining on a wide one": ("日\u3099x\by\r\n", "日\u3099y\n"),
    "combining without a base": ("ab\r\u0301x", "\u0301x"),
    "joined emoji": (
        "\U0001f469\u200d\U0001f4bb done\r\n",
        "\U0001f469\u200d\U0001f4bb done\n",
    ),
}
CASES = SEQUENCES | REDRAWN


@pytest.mark.parametrize(("raw", "expected"), CASES.values(), ids=CASES)
def test_raw_output_becomes_this_text(raw: str, expected: str) -> None:
    assert clean(raw.encode()) == expected
    assert clean(*bytewise(raw.encode())) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"a\xe6\x97", "a\ufffd"),
        (b"\xe6\x97\x1b[0m\xa5", "\ufffd\ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"\xe6\x97\xa5", "日"),
        (b"\x9b31m\x9d", "\ufffd31m\ufffd"),
    ],
)
def test_invalid_utf_8_is_replaced(raw: bytes, expected: str) -> None:
    assert clean(raw) == expected
    assert clean(*bytewise(raw)) == expected


def test_final_lines_are_handed_on_at_once_and_the_unfinished_one_can_be_seen() -> None:
    texts: list[str] = []
    cleaner = TextCleaner(texts.append)
    cleaner.feed(b"one\r\ntwo\r\nthr")
    assert "".join(texts) == "one\ntwo\n"
    assert cleaner.pending == "thr"
    cleaner.feed(b"\rT")
    assert cleaner.pending == "Thr"
    cleaner.feed(b"\r\n")
    assert ("".join(texts), cleaner.pending) == ("one\ntwo\nThr\n", "")


def test_looking_at_the_unfinished_line_changes_nothing() -> None:
    data = b"abc\rX\x1b[2Cde\r\n"
    texts: list[str] = []
    cleaner = TextCleaner(texts.append)
    for byte in bytewise(data):
        cleaner.feed(byte)
        assert cleaner.pending == cleaner.pending
    assert "".join(texts) == clean(data)


def test_a_line_that_never_ends_is_handed_on_in_blocks() -> None:
    texts: list[str] = []
    cleaner = TextCleaner(texts.append)
    cleaner.feed(b"x" * (MAX_LINE - 1))
    assert texts == []
    cleaner.feed(b"x")
    assert texts == ["x" * BLOCK]
    assert cleaner.pending == "x" * BLOCK


def test_a_return_goes_back_to_what_is_not_final_yet() -> None:
    line = b"a" * BLOCK + b"b" * BLOCK
    assert clean(line, b"\rc\r\n") == "a" * BLOCK + "c" + "b" * (BLOCK - 1) + "\n"


def test_a_long_line_of_wide_characters_is_handed_on_when_it_is_edited() -> None:
    line = "日" * (MAX_LINE - 1)
    assert clean(line.encode(), b"\bx\r\n") == line[:-1] + " x\n"


def test_a_wide_character_across_the_edge_of_a_block_is_kept() -> None:
    line = "x" + "日" * (MAX_LINE - 2)
    assert clean(line.encode(), b"\bx\r\n") == line[:-1] + " x\n"
    assert clean(line.encode(), "\b日本".encode()) == line[:-1] + " 日本"


def test_a_jump_goes_no_further_than_the_widest_terminal() -> None:
    assert clean(b"\x1b[999999999Cx") == " " * (MAX_COLUMNS - 1) + "x"
    assert clean(b"\x1b[999999999Gx") == " " * (MAX_COLUMNS - 1) + "x"


def test_a_cursor_far_out_on_an_erased_line_goes_back_step_by_step() -> None:
    drawn = b"\x1b[999C  \x1b[1K\b\bx"
    assert clean(drawn) == clean(*bytewise(drawn)) == " " * (MAX_COLUMNS - 1) + "x"


def test_within_a_longer_line_a_jump_goes_to_its_end() -> None:
    line = b"a" * (MAX_COLUMNS + 500)
    assert clean(line, b"\r\x1b[9999Cx") == line.decode() + "x"


def test_blanks_put_in_make_a_line_no_longer_than_the_longest() -> None:
    line = b"a" * 4000
    assert clean(line, b"\r\x1b[9999@x") == "x"
    assert clean(line, b"\r\x1b[50@x") == "x" + " " * 49 + "a" * 4000
    assert clean(line, b"\r\x1b[96@x") == "x" + " " * 95 + "a" * 3999


def test_a_wide_character_pushed_over_the_longest_line_is_gone() -> None:
    assert clean(b"a" * 4000 + "日".encode(), b"\r\x1b[94@x") == "x" + " " * 93 + "a" * 4000


def test_the_marks_on_one_character_are_bounded() -> None:
    assert clean(b"b\ra", "\u0301".encode() * 1000) == "a" + "\u0301" * (MAX_CELL_CHARS - 1)


# The pieces are chosen to meet: sequences cut, joined, nested, and every kind of edit.
RAW_PIECES = st.sampled_from(
    [
        b"text",
        b"a b  ",
        "日本".encode(),
        "e\u0301".encode(),
        "\u0301".encode(),
        b"\xe6\x97",
        b"\xa5",
        b"\xc2\x9b",
        b"\t",
        b"\r",
        b"\r\n",
        b"\n",
        b"\b",
        b"\0",
        b"\x07",
        b"\x18",
        b"\x1b",
        b"\x1b[",
        b"\x1b]",
        b"\x1b]0;t",
        b"\x1bP",
        b"\x1b\\",
        b"\x1b(",
        b"\x1bc",
        b"31m",
        b"5",
        b";",
        b"?",
        b"\x1b[31m",
        b"\x1b[K",
        b"\x1b[1K",
        b"\x1b[2K",
        b"\x1b[3C",
        b"\x1b[2D",
        b"\x1b[4G",
        b"\x1b[2P",
        b"\x1b[2@",
        b"\x1b[2X",
        b"\x1b7",
        b"\x1b8",
        b"\x1b[s",
        b"\x1b[u",
        b"\x1b[24;0f",
        b"\x1b[?1049h",
        b"\x1b[?1049l",
        b"\x1b[" + b"1" * 127,
        b"x" * (BLOCK - 1),
        b"\t" * 300,
        "日".encode() * (BLOCK // 2),
    ]
)
RAW_STREAMS = st.lists(RAW_PIECES | st.binary(max_size=3), max_size=25).map(b"".join)


def cut(data: bytes, seed: int) -> list[bytes]:
    rng = random.Random(seed)
    places = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, 12)))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@given(RAW_STREAMS, st.integers(0, 2**32))
def test_the_text_is_the_same_however_the_stream_is_cut(data: bytes, seed: int) -> None:
    assert clean(*cut(data, seed)) == clean(data) == clean(*bytewise(data))


@pytest.mark.parametrize(
    "chunks",
    [
        (b"a\xe2", b"\r", b"\x82\xacb\n"),
        (b"a\xe2\r", b"\x82\xacb\n"),
        (b"a\xc2", b"\x85b\n"),
        (b"a\xc2\x85", b"b\n"),
        (b"a\r", b"\n", b"b"),
        (b"a\r\r", b"\r\nb"),
        (b"a\r\r\r\r", b"\n", b"\rb\n"),
        (b"a\r", b"\r", b"b\r\n"),
        (b"ab\r", b"c", b"\n"),
        (b"\xe2\x82", b"\xac\r\n", b"\xe2"),
        (b"a\x1b", b"[1mb\r\n", b"\r\n"),
    ],
)
def test_a_chunk_of_bare_lines_reads_as_it_does_among_others(chunks: tuple[bytes, ...]) -> None:
    data = b"".join(chunks)
    assert clean(*chunks) == clean(data) == clean(*bytewise(data))
    # Behind a harmless sequence the whole goes the way of text, not that of bytes.
    assert clean(b"\x1b[0m" + data) == clean(data)


@given(RAW_STREAMS)
def test_the_text_holds_no_control_character_but_tab_and_line_feed(data: bytes) -> None:
    controls = {each for each in clean(data) if unicodedata.category(each) == "Cc"}
    assert controls <= {"\t", "\n"}


def emulated(data: bytes) -> list[str]:
    """The lines that a terminal emulator shows, far wider and higher than what is drawn."""
    screen = pyte.Screen(600, 30)
    pyte.ByteStream(screen).feed(data)
    lines = [unicodedata.normalize("NFC", line).rstrip() for line in screen.display]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def cleaned_lines(data: bytes) -> list[str]:
    lines = unicodedata.normalize("NFC", clean(data)).split("\n")
    shown = [line.expandtabs(8).rstrip() for line in lines]
    while shown and not shown[-1]:
        shown.pop()
    return shown


COUNTS = st.sampled_from(["", "0", "1", "2", "3", "7"])
EDITS = st.builds(lambda count, final: f"\x1b[{count}{final}", COUNTS, st.sampled_from("CDGPX@"))
ERASES = st.sampled_from(["\x1b[K", "\x1b[0K", "\x1b[1K", "\x1b[2K"])
SAVED = st.sampled_from(
    ["\x1b7ab\x1b8", "\x1b7\x1b[4Cx\x1b8", "\x1b7\rab\x1b8", "\x1b7\x1b[K\x1b8"]
)
DRAWN = st.sampled_from(["a", "bc", "def ghi", "e\u0301", "\r", "\b", "\r\n", "\x1b[1;32m", "\t"])


@given(st.lists(DRAWN | EDITS | ERASES | SAVED, max_size=25).map("".join))
def test_each_line_ends_as_a_terminal_emulator_shows_it(drawn: str) -> None:
    data = drawn.encode()
    assert cleaned_lines(data) == emulated(data)


@given(st.lists(st.sampled_from(["日", "本語", "a", " ", "\r\n", "e\u0301"]), max_size=20))
def test_wide_characters_take_two_cells_as_in_an_emulator(pieces: list[str]) -> None:
    # The jump behind the text (at most 80 cells) shows how many cells it took.
    data = "".join([*pieces, "\x1b[100Gx"]).encode()
    assert cleaned_lines(data) == emulated(data)


HOSTILE: dict[str, bytes] = {
    "ESC": b"\x1b",
    "CR": b"\r",
    "CR LF": b"\r\n",
    "BS": b"\b",
    "x BS": b"x\b",
    "CSI": b"\x1b[",
    "parameters": b"\x1b[0000000000000000",
    "OSC": b"\x1b]",
    "DCS": b"\x1bP",
    "intermediates": b"\x1b(((((",
    "jump and write": b"\x1b[999Cx\r\n",
    "erase a long line": b"\x1b[1K",
    "insert": b"\x1b[999@",
    "delete": b"\x1b[P",
    "TAB after a jump": b"\x1b[9C\t",
    "marks": "\u0301".encode(),
    "NUL": b"\0",
    "invalid": b"\xff",
}


@pytest.mark.one_python
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_hostile_output_takes_bounded_memory(unit: bytes) -> None:
    # 300 kB of it, on a line of some length; anything worse than linear would take minutes.
    longest = 0

    def count(text: str) -> None:
        nonlocal longest
        longest = max(longest, len(text))

    cleaner = TextCleaner(count)
    cleaner.feed(b"y" * 4000 + b"\b")
    chunk = unit * (4096 // len(unit))
    tracemalloc.start()
    for _ in range(300_000 // len(chunk)):
        cleaner.feed(chunk)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000
    assert longest < 200_000


def test_one_line_of_many_megabytes_takes_bounded_memory() -> None:
    total = 0

    def count(text: str) -> None:
        nonlocal total
        total += len(text)

    cleaner = TextCleaner(count)
    tracemalloc.start()
    for _ in range(800):
        cleaner.feed(b"x" * 16_384)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    cleaner.finish()
    assert total == 800 * 16_384
    assert peak < 500_000
