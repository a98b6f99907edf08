from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.terminals.screen.sequences import (
    MAX_SEQUENCE_CHARS,
    MAX_STRING_CHARS,
    MAX_TITLE_CHARS,
    GridOutput,
    Part,
    PrivateModes,
    Reset,
    SequenceSplitter,
    SoftReset,
    Title,
    TitleStack,
)


def split(*chunks: bytes) -> list[Part]:
    """The parts, with neighbouring passages joined."""
    splitter = SequenceSplitter()
    return joined([part for chunk in chunks for part in splitter.feed(chunk)])


def joined(parts: list[Part]) -> list[Part]:
    result: list[Part] = []
    for part in parts:
        last = result[-1] if result else None
        if isinstance(part, GridOutput) and isinstance(last, GridOutput):
            result[-1] = GridOutput(last.text + part.text)
        else:
            result.append(part)
    return result


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


A: list[Part] = [GridOutput("A")]

CASES: dict[str, tuple[str | bytes, list[Part]]] = {
    "nothing": ("", []),
    "text and controls": ("hi\tthere\r\n", [GridOutput("hi\tthere\r\n")]),
    "a control in one that is broken off": ("\x1b[3\n\x1b[mA", [GridOutput("\nA")]),
    "a known sequence": ("\x1b[3;4HA", [GridOutput("\x1b[3;4HA")]),
    "several": ("a\x1b[Kb\x1b[2J\x1b7\x1b8\x1bM", [GridOutput("a\x1b[Kb\x1b[2J\x1b7\x1b8\x1bM")]),
    "colours": ("\x1b[1;31mA\x1b[0m\x1b[m", A),
    "colours with colons": ("\x1b[38:2::10:20:30mA\x1b[4:3m", A),
    "xtmodkeys": ("\x1b[>4;2mA", A),
    "a private m, as vim sends it": ("\x1b[?4mA", A),
    "the cursor's shape": ("\x1b[6 qA\x1b[ q", A),
    "kitty's keyboard": ("\x1b[>1u\x1b[?uA\x1b[<u", A),
    "questions": ("\x1b[c\x1b[>c\x1b[=cA\x1b[6n\x1b[>0q\x1b[?2026$p", A),
    "window reports": ("\x1b[8;3;10tA\x1b[14t", A),
    "a charset of no interest": ("\x1b%G\x1b(BA\x1b)B\x1b*0", A),
    "keypad modes": ("\x1b=A\x1b>", A),
    "DCS": ("\x1bP1$r0m\x1b\\A\x1bP+q544e\x1b\\", A),
    "APC, PM, SOS": ("\x1b_Gabc\x1b\\A\x1b^abc\x1b\\\x1bXabc\x1b\\", A),
    "BEL does not end an APC": ("\x1b_Gabc\x07x\x1b\\A", A),
    "the title of GNU screen": ("\x1bkname\x1b\\A\x1bkname\x07", A),
    "OSC 8 with BEL and ST": ("\x1b]8;;http://x\x07A\x1b]8;;\x1b\\", A),
    "other OSC": ("\x1b]52;c;YWJj\x07\x1b]7;file://h/tmp\x1b\\A\x1b]133;C;q=1\x07", A),
    "title": ("\x1b]0;one\x07\x1b]2;two\x1b\\", [Title("one"), Title("two")]),
    "title with semicolons": ("\x1b]2;a;b\x07", [Title("a;b")]),
    "title in UTF-8": ("\x1b]0;tï日\x07A", [Title("tï日"), *A]),
    "controls in a title": ("\x1b]0;a\nb\tc\x07", [Title("abc")]),
    "an icon's name is no title": ("\x1b]1;icon\x07A", A),
    "an empty title": ("\x1b]2;\x07", [Title("")]),
    "a string cut off by ESC": ("\x1b]0;abc\x1b[5CA", [GridOutput("\x1b[5CA")]),
    "a string cut off by CAN": ("\x1b]0;abc\x18A", A),
    "a string cut off by another": ("\x1b]0;abc\x1b]2;t\x07", [Title("t")]),
    "title stack": (
        "\x1b[22;0;0t\x1b[23;2t\x1b[22t",
        [TitleStack(push=True), TitleStack(push=False), TitleStack(push=True)],
    ),
    "the icon's stack": ("\x1b[22;1tA", A),
    "private modes": (
        "\x1b[?1049h\x1b[?25;7l",
        [PrivateModes((1049,), on=True), PrivateModes((25, 7), on=False)],
    ),
    "resets": ("\x1b[!p\x1bc", [SoftReset(), Reset()]),
    "repetition": ("A\x1b[3b", [GridOutput("AAAA")]),
    "repetition over a colour": ("A\x1b[1m\x1b[2b", [GridOutput("AAA")]),
    "repetition of a wide one": ("日\x1b[b", [GridOutput("日日")]),
    "repetition of nothing": ("\x1b[3b\x1b[H\x1b[3b\n\x1b[2bA", [GridOutput("\x1b[H\nA")]),
    "a control inside a sequence": ("\x1b[3\nCA", [GridOutput("\n\x1b[3CA")]),
    "CAN and SUB inside a sequence": ("\x1b[3\x18A\x1b[3\x1aB", [GridOutput("\x18A\x1aB")]),
    "ESC inside a sequence": ("\x1b[3\x1b[4CA", [GridOutput("\x1b[4CA")]),
    "ESC ESC": ("\x1b\x1b[4CA", [GridOutput("\x1b[4CA")]),
    "ESC before a control": ("\x1b\nA", [GridOutput("\nA")]),
    "huge numbers": ("\x1b[99999999999999999999999;5H", [GridOutput("\x1b[9999;5H")]),
    "leading zeros": ("\x1b[000003C", [GridOutput("\x1b[3C")]),
    "line graphics": ("\x1b(0lqk`~\x1b(Blq", [GridOutput("┌─┐◆·lq")]),
    "line graphics by shifting": ("\x1b)0q\x0eq\x1b[Kq\x0fq", [GridOutput("q─\x1b[K─q")]),
    "DECSTR ends line graphics": ("\x1b(0\x1b[!pq", [SoftReset(), GridOutput("q")]),
    "alignment": ("\x1b#8A", [GridOutput("\x1b[r\x1b#8\x1b[HA")]),
    "DEL, NUL and C1 are dropped": ("\x00A\x7f\x9b3C\x85\x84".encode(), [GridOutput("A3C")]),
    "raw C1 bytes are rubbish": (b"A\x9b\xffB", [GridOutput("A\ufffd\ufffdB")]),
    "a character cut short": (b"\xe6\x97A", [GridOutput("\ufffdA")]),
    "unknown finals": ("\x1b[5WA\x1b[5q\x1b[5~", A),
    "an unfinished sequence waits": ("A\x1b[3;", A),
    "an unfinished string waits": ("A\x1b]0;title", A),
}


@pytest.mark.parametrize(("data", "parts"), CASES.values(), ids=CASES)
def test_the_stream_is_cut_into_parts(data: str | bytes, parts: list[Part]) -> None:
    data = data.encode() if isinstance(data, str) else data
    assert split(data) == parts
    assert split(*bytewise(data)) == parts


PIECES = st.one_of(
    st.sampled_from(
        [case.encode() if isinstance(case, str) else case for case, _ in CASES.values()]
    ),
    st.sampled_from([b"\x1b", b"\x1b[", b"\x1b]", b"\x1b\\", b"\x07", b";", b"0", b"\x18", b"m"]),
    st.sampled_from([b"\x1b[" + b"1;" * 140, b"\x1b[" + b"1;" * 60, b"\x1b" + b"(" * 300]),
    st.binary(max_size=3),
    st.text(max_size=3).map(str.encode),
)


@given(st.lists(PIECES, max_size=30).map(b"".join), st.data())
def test_the_cuts_of_the_stream_make_no_difference(data: bytes, cuts: st.DataObject) -> None:
    whole = split(data)
    assert split(*bytewise(data)) == whole
    places = sorted(cuts.draw(st.sets(st.integers(0, len(data)), max_size=8)))
    edges = [0, *places, len(data)]
    chunks = [data[start:end] for start, end in pairwise(edges)]
    assert split(*chunks) == whole


@pytest.mark.parametrize("start", [b"\x1b]0;", b"\x1bP", b"\x1b_", b"\x1b[", b"\x1b[1;", b"\x1b("])
def test_nothing_that_never_ends_is_kept(start: bytes) -> None:
    splitter = SequenceSplitter()
    filling = b"(" if start == b"\x1b(" else b"1"
    for chunk in [start, *[filling * 10_000] * 20]:
        assert [part for part in splitter.feed(chunk) if not isinstance(part, GridOutput)] == []
        kept = [value for value in vars(splitter).values() if isinstance(value, str)]
        assert sum(map(len, kept)) <= MAX_STRING_CHARS + MAX_SEQUENCE_CHARS + 10_000
    assert splitter.feed(b"\x1b\\\x1b[2KA")[-1] == GridOutput("\x1b[2KA")


def test_an_endless_sequence_is_swallowed_to_its_end() -> None:
    assert split(b"\x1b[" + b"1;" * MAX_SEQUENCE_CHARS, b"1;" * 50 + b"HA") == A


def test_a_title_is_bounded() -> None:
    title = "x" * (MAX_TITLE_CHARS + 5)
    assert split(f"\x1b]0;{title}\x07".encode()) == [Title(title[:MAX_TITLE_CHARS])]
    assert split(f"\x1b]0;{'x' * MAX_STRING_CHARS}\x07A".encode()) == A


def test_a_repetition_is_bounded() -> None:
    [passage] = split(b"A\x1b[99999999999b")
    assert passage == GridOutput("A" * 10_000)
