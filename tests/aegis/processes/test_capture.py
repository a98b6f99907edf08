from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.processes.capture import (
    DEFAULT_LIMIT,
    BoundedText,
    CapturedOutput,
    OutputCapture,
    without_last_lines,
)

NOTICE = re.compile(r"(?:^|\n)… (\d+) bytes left out …\n")


def captured(*chunks: bytes, limit: int = DEFAULT_LIMIT) -> CapturedOutput:
    capture = OutputCapture(limit)
    for chunk in chunks:
        capture.feed(chunk)
    return capture.result()


def parts(output: CapturedOutput) -> tuple[str, int, str]:
    """The first part, how many bytes the notice says were left out, and the last part."""
    found = NOTICE.search(output.text)
    assert found is not None, output.text
    first_end = found.start() + output.text[found.start()].count("\n")
    return output.text[:first_end], int(found[1]), output.text[found.end() :]


def test_short_output_is_whole() -> None:
    assert captured(b"a\r\nb\r\n") == CapturedOutput("a\nb\n", 4, False)
    assert captured(b"no line end") == CapturedOutput("no line end", 11, False)
    assert captured() == CapturedOutput("", 0, False)


def test_bytes_are_counted_in_utf_8() -> None:
    assert captured("日本\r\n".encode()).total_bytes == 7


@pytest.mark.parametrize("length", [255, 256])
def test_output_up_to_the_limit_is_whole(length: int) -> None:
    output = captured(b"x" * length, limit=256)
    assert output == CapturedOutput("x" * length, length, False)


def test_output_beyond_the_limit_keeps_its_first_and_last_part() -> None:
    output = captured(*[b"%04d\r\n" % number for number in range(1000)], limit=400)
    first, left_out, last = parts(output)
    assert output.truncated
    assert output.total_bytes == 5000
    assert first.startswith("0000\n0001\n")
    assert first.endswith("\n")
    assert last.endswith("0998\n0999\n")
    assert last[4] == "\n"
    assert left_out == 5000 - len(first) - len(last)
    assert 300 < len(output.text.encode()) <= 400


def test_the_notice_stands_on_a_line_of_its_own_even_within_a_long_line() -> None:
    output = captured(b"x" * 5000, limit=400)
    assert re.fullmatch(r"x{168}\n… 4664 bytes left out …\nx{168}", output.text)


def test_a_multibyte_character_is_not_cut() -> None:
    for shift in range(3):
        output = captured(b"x" * shift, "日".encode() * 1000, limit=401)
        first, left_out, last = parts(output)
        assert set(first.strip("\n")) <= {"x", "日"}
        assert set(last) == {"日"}
        shown = len(first.rstrip("\n").encode()) + len(last.encode())
        assert shown + left_out == output.total_bytes == 3000 + shift


def test_escape_sequences_do_not_count() -> None:
    output = captured(b"\x1b[31mx\x1b[0m" * 200, limit=256)
    assert output == CapturedOutput("x" * 200, 200, False)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\nb\n$ ", "a\nb\n"),
        ("a\n", "a\n"),
        ("$ ", ""),
        ("", ""),
        ("grün\nprompt é ", "grün\n"),
    ],
)
def test_the_last_line_is_taken_off_and_not_counted(text: str, kept: str) -> None:
    output = without_last_lines(captured(text.encode()))
    assert (output.text, output.total_bytes, output.truncated) == (kept, len(kept.encode()), False)


def test_a_snapshot_shows_the_unfinished_line_and_changes_nothing() -> None:
    capture = OutputCapture()
    capture.feed(b"done\r\n10%\r50%")
    assert capture.snapshot() == CapturedOutput("done\n50%", 8, False)
    assert capture.snapshot() == CapturedOutput("done\n50%", 8, False)
    capture.feed(b"\r100%\r\n")
    assert capture.snapshot() == CapturedOutput("done\n100%\n", 10, False)
    assert capture.result() == CapturedOutput("done\n100%\n", 10, False)


def test_a_snapshot_is_what_the_result_would_be() -> None:
    capture = OutputCapture(256)
    for at in range(60):
        capture.feed(b"%d some words" % at + (b"\r\n" if at % 3 == 0 else b""))
        other = captured(
            *[b"%d some words" % n + (b"\r\n" if n % 3 == 0 else b"") for n in range(at + 1)],
            limit=256,
        )
        assert capture.snapshot() == other


@pytest.mark.parametrize("limit", [0, -1, 255])
def test_a_limit_with_no_room_for_the_notice_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="256 bytes or more"):
        OutputCapture(limit)


TEXTS = st.lists(
    st.text(st.sampled_from("ab\n日é\U0001f469"), max_size=150) | st.just("x" * 300), max_size=12
)


@given(TEXTS, st.integers(256, 700), st.text("ab\n日", max_size=400))
def test_the_text_is_bounded_and_made_of_the_first_and_last_part(
    pieces: list[str], limit: int, pending: str
) -> None:
    bounded = BoundedText(limit)
    for piece in pieces:
        bounded.write(piece)
    whole = "".join(pieces) + pending
    output = bounded.result(pending)
    total = len(whole.encode())
    assert (output.total_bytes, output.truncated) == (total, total > limit)
    assert len(output.text.encode()) <= limit
    if total <= limit:
        assert output.text == whole
        return
    found = NOTICE.search(output.text)
    assert found is not None
    first, last = output.text[: found.start()], output.text[found.end() :]
    assert whole.startswith(first)
    assert whole.endswith(last)
    missing = total - len(first.encode()) - len(last.encode()) - int(found[1])
    assert missing in (0, 1), "the first part's own line feed belongs to it or to the notice"


@given(TEXTS, st.integers(256, 700))
def test_the_result_does_not_depend_on_how_the_text_came(pieces: list[str], limit: int) -> None:
    whole = BoundedText(limit)
    whole.write("".join(pieces))
    by_piece, by_character = BoundedText(limit), BoundedText(limit)
    for piece in pieces:
        by_piece.write(piece)
        for character in piece:
            by_character.write(character)
    assert whole.result() == by_piece.result() == by_character.result()


@pytest.mark.parametrize("chunk", [b"x" * 16_384, b"word word word\r\n" * 1024, b"\xff" * 4096])
def test_memory_does_not_grow_with_the_output(chunk: bytes) -> None:
    capture = OutputCapture()
    capture.feed(chunk * 8)
    fed = len(chunk) * 8
    tracemalloc.start()
    # The buffers stand after the first chunks: many more show whether anything grows.
    for _ in range(100):
        capture.feed(chunk)
        fed += len(chunk)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * DEFAULT_LIMIT + 150_000
    output = capture.result()
    assert output.truncated
    assert output.total_bytes > fed // 2
    assert len(output.text.encode()) <= DEFAULT_LIMIT
