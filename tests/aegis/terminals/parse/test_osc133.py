from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.terminals.parse.osc133 import (
    MAX_SEQUENCE_BYTES,
    Event,
    Mark,
    MarkParser,
    PasteMode,
    Text,
)

SECRET = b"s3cretS3CRETs3cr"
OURS = b";n=" + SECRET

C1 = Mark(kind="C", number=1, params={"q": "1"}, visible=b"\x1b]133;C;q=1\x07")


def osc(body: bytes, ending: bytes = b"\x07") -> bytes:
    return b"\x1b]133;" + body + ending


def merged(events: Iterable[Event]) -> list[Event]:
    result: list[Event] = []
    for event in events:
        if isinstance(event, Text) and result and isinstance(result[-1], Text):
            result[-1] = Text(result[-1].data + event.data)
        else:
            result.append(event)
    return result


def parse(*chunks: bytes) -> list[Event]:
    parser = MarkParser(SECRET)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return merged(events + parser.close())


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def stream_of(events: Iterable[Event]) -> bytes:
    return b"".join(each.visible if isinstance(each, Mark) else each.data for each in events)


CASES: dict[str, tuple[bytes, list[Event]]] = {
    "nothing": (b"", []),
    "plain text": (b"hello\r\n", [Text(b"hello\r\n")]),
    "a mark ended by BEL": (osc(b"C" + OURS + b";q=1"), [C1]),
    "the end of a prompt that needs no submit key": (
        osc(b"B" + OURS + b";q=7;e=1"),
        [Mark(kind="B", number=7, params={"q": "7", "e": "1"}, visible=osc(b"B;q=7;e=1"))],
    ),
    "a mark ended by ST": (
        osc(b"A" + OURS + b";q=7", b"\x1b\\"),
        [Mark(kind="A", number=7, params={"q": "7"}, visible=b"\x1b]133;A;q=7\x1b\\")],
    ),
    "a mark between texts": (
        b"before" + osc(b"C" + OURS + b";q=1") + b"after",
        [Text(b"before"), C1, Text(b"after")],
    ),
    "an exit code": (
        osc(b"D;130" + OURS + b";q=3;h=41;s=1"),
        [
            Mark(
                kind="D",
                number=3,
                exit=130,
                submitted=True,
                params={"q": "3", "h": "41", "s": "1"},
                visible=b"\x1b]133;D;130;q=3;h=41;s=1\x07",
            )
        ],
    ),
    "an end without exit code": (
        osc(b"D" + OURS + b";q=3"),
        [Mark(kind="D", number=3, params={"q": "3"}, visible=b"\x1b]133;D;q=3\x07")],
    ),
    "parameters in another order, one unknown": (
        osc(b"P;k=l;l=12;q=4;colour=red" + OURS),
        [
            Mark(
                kind="P",
                number=4,
                params={"k": "l", "l": "12", "q": "4", "colour": "red"},
                visible=b"\x1b]133;P;k=l;l=12;q=4;colour=red\x07",
            )
        ],
    ),
    "two marks at once": (osc(b"C" + OURS + b";q=1") * 2, [C1, C1]),
    "paste mode on and off": (
        b"a\x1b[?2004hb\x1b[?2004l",
        [
            Text(b"a"),
            PasteMode(True, b"\x1b[?2004h"),
            Text(b"b"),
            PasteMode(False, b"\x1b[?2004l"),
        ],
    ),
    "ESC inside a sequence begins anew": (
        b"\x1b]133;C;q=9" + osc(b"C" + OURS + b";q=1"),
        [Text(b"\x1b]133;C;q=9"), C1],
    ),
    "ESC inside another OSC begins anew": (
        b"\x1b]0;title" + osc(b"C" + OURS + b";q=1"),
        [Text(b"\x1b]0;title"), C1],
    ),
    "ESC ESC before a mark": (b"\x1b" + osc(b"C" + OURS + b";q=1"), [Text(b"\x1b"), C1]),
    "paste mode ends an open sequence": (
        b"\x1b]133;C\x1b[?2004h",
        [Text(b"\x1b]133;C"), PasteMode(True, b"\x1b[?2004h")],
    ),
}

UNCHANGED: dict[str, bytes] = {
    "no secret": osc(b"D;0"),
    "another secret": osc(b"D;0;n=0123456789abcdef;q=1"),
    "other terminals' marks": osc(b"A;cl=m;aid=12") + osc(b"C;cmdline_url=ls"),
    "other OSC": b"\x1b]0;title\x07\x1b]7;file://h/tmp\x1b\\\x1b]1337;x\x07",
    "other modes": b"\x1b[?2004;25h\x1b[2004h\x1b[?2004$p\x1b[?20041h\x1b[?1049h",
    "colours": b"\x1b[31mred\x1b[0m",
    "raw C1": b"\x9d133;C\x9c" + "\u071d\u4e9c".encode(),
    "cut off at the end": b"text\x1b]13",
    "cut off in a mark": b"text\x1b]133;C;q=1",
    "cut off in ST": b"text\x1b]133;C;q=1\x1b",
    "a lone ESC": b"\x1b",
}

WITHOUT_SECRET: dict[str, tuple[bytes, bytes]] = {
    "no number": (osc(b"C" + OURS), osc(b"C")),
    "a bad number": (osc(b"C" + OURS + b";q=-1"), osc(b"C;q=-1")),
    "a number too long": (osc(b"C" + OURS + b";q=" + b"9" * 16), osc(b"C;q=" + b"9" * 16)),
    "a repeated number": (osc(b"C" + OURS + b";q=1;q=2"), osc(b"C;q=1;q=2")),
    "a repeated secret": (osc(b"C" + OURS * 2 + b";q=1"), osc(b"C;q=1")),
    "a bad exit": (osc(b"D;x" + OURS + b";q=1"), osc(b"D;x;q=1")),
    "an exit that is no digit": (
        osc("D;٣".encode() + OURS + b";q=1"),
        osc("D;٣".encode() + b";q=1"),
    ),
    "an exit out of place": (osc(b"C;0" + OURS + b";q=1"), osc(b"C;0;q=1")),
    "an unknown kind": (osc(b"Z" + OURS + b";q=1"), osc(b"Z;q=1")),
    "no kind": (osc(OURS[1:] + b";q=1"), b"\x1b]133;q=1\x07"),
    "more after the secret": (osc(b"C" + OURS + b"x;q=1"), osc(b"Cx;q=1")),
    "a control character inside": (osc(b"C" + OURS + b";q=1\n"), osc(b"C;q=1\n")),
    "raw C1 does not end it": (
        osc(b"C" + OURS + b";q=1\x9c", b"more\x07"),
        osc(b"C;q=1\x9c", b"more\x07"),
    ),
    "aborted by CAN": (osc(b"C" + OURS + b";q=1", b"\x18"), osc(b"C;q=1", b"\x18")),
    "aborted by SUB": (osc(b"C" + OURS + b";q=1", b"\x1a"), osc(b"C;q=1", b"\x1a")),
    "aborted by ESC": (osc(b"C" + OURS + b";q=1", b"\x1b[m"), osc(b"C;q=1", b"\x1b[m")),
    "never ended": (osc(b"C" + OURS + b";q=1", b""), osc(b"C;q=1", b"")),
}


@pytest.mark.parametrize(("data", "expected"), CASES.values(), ids=CASES)
def test_the_stream_becomes_these_events(data: bytes, expected: list[Event]) -> None:
    assert parse(data) == expected
    assert parse(*bytewise(data)) == expected


@pytest.mark.parametrize("data", UNCHANGED.values(), ids=UNCHANGED)
def test_what_is_not_ours_passes_unchanged(data: bytes) -> None:
    assert parse(data) == [Text(data)]
    assert parse(*bytewise(data)) == [Text(data)]


@pytest.mark.parametrize(("data", "expected"), WITHOUT_SECRET.values(), ids=WITHOUT_SECRET)
def test_a_malformed_mark_is_text_without_the_secret(data: bytes, expected: bytes) -> None:
    assert parse(data) == [Text(expected)]
    assert parse(*bytewise(data)) == [Text(expected)]


def test_text_before_a_possible_beginning_is_not_held_back() -> None:
    parser = MarkParser(SECRET)
    assert parser.feed(b"text\x1b]133") == [Text(b"text")]
    assert parser.feed(b"1;x") == [Text(b"\x1b]1331;x")]


def test_history_and_length_are_numbers() -> None:
    [mark] = parse(osc(b"P;k=l;l=12;h=9" + OURS + b";q=4"))
    assert isinstance(mark, Mark)
    assert (mark.length, mark.history) == (12, 9)
    assert (C1.length, C1.history) == (None, None)


def test_only_s_1_says_that_the_daemon_submitted_the_line() -> None:
    marks = parse(osc(b"C" + OURS + b";q=1;s=1"), osc(b"C" + OURS + b";q=1;s=0"))
    assert [isinstance(each, Mark) and each.submitted for each in marks] == [True, False]


def test_a_sequence_of_the_longest_length_is_a_mark_and_one_byte_more_is_text() -> None:
    start = b"C" + OURS + b";q=1;x="
    longest = b"\x1b]133;" + start
    longest += b"x" * (MAX_SEQUENCE_BYTES - len(longest))
    [mark] = parse(longest + b"\x07")
    assert isinstance(mark, Mark)
    too_long = longest + b"x\x07"
    assert parse(too_long) == [Text(too_long.replace(OURS, b""))]


def test_a_sequence_that_never_ends_is_given_back() -> None:
    parser = MarkParser(SECRET)
    assert parser.feed(b"\x1b]133;" + b"x" * (MAX_SEQUENCE_BYTES - 6)) == []
    [text] = parser.feed(b"y")
    assert text == Text(b"\x1b]133;" + b"x" * (MAX_SEQUENCE_BYTES - 6) + b"y")
    assert parser.feed(b"more") == [Text(b"more")]
    assert parser.feed(b"\x07" + osc(b"C" + OURS + b";q=1")) == [Text(b"\x07"), C1]


@pytest.mark.parametrize("before", range(MAX_SEQUENCE_BYTES - 40, MAX_SEQUENCE_BYTES + 40, 7))
def test_the_secret_does_not_leak_around_the_end_of_what_is_held(before: int) -> None:
    data = b"\x1b]133;" + b"x" * before + OURS + b";q=1" + b"y" * 100
    expected = [Text(data.replace(OURS, b""))]
    assert parse(data) == expected
    assert parse(data[: before - 64], *bytewise(data[before - 64 :])) == expected


def test_events_of_one_chunk_hold_no_more_text_events_than_needed() -> None:
    data = (b"x" + osc(b"D;0")) * 50
    assert MarkParser(SECRET).feed(data) == [Text(data)]


@pytest.mark.parametrize("secret", [b"", b"short", b"has;semicolon", b"with space!", b"x" * 129])
def test_a_secret_that_could_not_be_told_apart_is_refused(secret: bytes) -> None:
    with pytest.raises(ValueError, match="8 to 128 letters"):
        MarkParser(secret)


PIECES = st.sampled_from(
    [
        b"\x1b",
        b"\x1b]133;",
        b"\x1b]13",
        b"]133;",
        b"C",
        b"D;0",
        b"P;k=s",
        OURS,
        OURS[:9],
        SECRET,
        b";q=1",
        b";q=22",
        b";s=1",
        b";",
        b"\x07",
        b"\x1b\\",
        b"\\",
        b"\x18",
        b"\x1a",
        b"\x1b[?2004h",
        b"\x1b[?20",
        b"04l",
        b"text\r\n",
        b"\x9d\x9c",
        osc(b"C" + OURS + b";q=1"),
        osc(b"D;1" + OURS + b";q=1", b"\x1b\\"),
        osc(b"A"),
    ]
)
STREAMS = st.lists(PIECES | st.binary(max_size=4), max_size=30).map(b"".join)


def cut(data: bytes, seed: int) -> list[bytes]:
    rng = random.Random(seed)
    places = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, 12)))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@given(STREAMS, st.integers(0, 2**32))
def test_events_are_the_same_however_the_stream_is_cut(data: bytes, seed: int) -> None:
    assert parse(*cut(data, seed)) == parse(data) == parse(*bytewise(data))


@given(STREAMS)
def test_the_events_together_are_the_stream_without_the_secrets(data: bytes) -> None:
    # The secret's parameter may also stand outside a sequence, where it is text like any other.
    events = parse(data)
    assert stream_of(events).replace(OURS, b"") == data.replace(OURS, b"")
    if OURS not in data:
        assert stream_of(events) == data


@given(STREAMS)
def test_no_mark_shows_the_secret(data: bytes) -> None:
    for event in parse(data):
        if isinstance(event, Mark):
            assert SECRET not in event.visible
            assert SECRET.decode() not in repr(event)


MEGABYTE = 1_000_000
ADVERSARIAL: dict[str, bytes] = {
    "ESC": b"\x1b",
    "openings": b"\x1b]133;",
    "openings with the secret": b"\x1b]133;C" + OURS,
    "an OSC that never ends": b"x",
    "paste mode, almost": b"\x1b[?2004",
    "semicolons": b";",
}


@pytest.mark.one_python
@pytest.mark.parametrize("unit", ADVERSARIAL.values(), ids=ADVERSARIAL)
def test_megabytes_of_hostile_bytes_pass_whole_and_byte_by_byte(unit: bytes) -> None:
    # Anything worse than linear would take hours here, not seconds.
    data = b"\x1b]133;" + unit * (MEGABYTE // len(unit))
    expected = data.replace(OURS, b"")
    assert stream_of(parse(data)) == expected
    small = data[:200_000]
    assert stream_of(parse(*bytewise(small))) == small.replace(OURS, b"")
