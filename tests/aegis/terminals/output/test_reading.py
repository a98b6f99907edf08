"""Reading by cursor from a real raw log: whole, in steps, across rotations and gaps."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aegis.errors import InvalidRequest
from aegis.journal.raw_log import RawLog
from aegis.protocol.command import MAX_REPLY_BYTES
from aegis.protocol.output import MAX_OUTPUT_BYTES, OutputChunk
from aegis.terminals.messages import FetchOutput
from aegis.terminals.output.reading import PIECE_BYTES, check_cursor, check_cursor_of, read_output
from aegis.terminals.parse.plain import take_plain

LINE = "\x1b[32mok\x1b[0m é€😀 10%\r 20%\r\n\x1b]0;title\x07".encode()


def opened(directory: Path, limit_bytes: int = 10_000_000) -> RawLog:
    return RawLog.open(directory, limit_bytes=limit_bytes)


async def read(log: RawLog, cursor: int | None = 0, **arguments: object) -> OutputChunk:
    request = attrs.evolve(FetchOutput(cursor=cursor, max_bytes=MAX_OUTPUT_BYTES), **arguments)  # type: ignore[arg-type]
    return await read_output(log, request, is_running=lambda: True)


async def read_in_steps(log: RawLog, end: int, steps: int, *, plain: bool) -> str:
    """All that was printed before ``end``, read with so many bytes a call."""
    text, cursor = "", 0
    while cursor < end:
        request = FetchOutput(cursor=cursor, max_bytes=steps, plain=plain)
        chunk = await read_output(log, request, is_running=lambda: False, end=lambda: end)
        assert cursor < chunk.next_cursor <= end
        text, cursor = text + chunk.text, chunk.next_cursor
    nothing = FetchOutput(cursor=end, max_bytes=steps, plain=plain)
    assert (await read_output(log, nothing, lambda: False, lambda: end)).text == ""
    return text


@pytest.mark.parametrize("plain", [True, False])
async def test_nothing_behind_an_end_is_read_wherever_it_lies(tmp_path: Path, plain: bool) -> None:
    log = opened(tmp_path)
    log.write(LINE + b"$ next command")
    log.flush()
    for end in range(len(LINE) + 1):
        cut = LINE[:end]
        whole = take_plain(cut, max(4, len(cut)), whole=True).text if plain else None
        wanted = cut.decode(errors="replace") if whole is None else whole
        for steps in (256, 7, 4):
            assert await read_in_steps(log, end, steps, plain=plain) == wanted
    log.close()


async def test_an_end_that_becomes_known_between_two_pieces_holds(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.write(b"x" * (3 * PIECE_BYTES))
    asked: list[None] = []

    def end() -> int | None:
        asked.append(None)
        return None if len(asked) < 2 else PIECE_BYTES + 5

    request = FetchOutput(cursor=0, max_bytes=MAX_OUTPUT_BYTES)
    chunk = await read_output(log, request, is_running=lambda: True, end=end)
    assert chunk.next_cursor == PIECE_BYTES + 5
    log.close()


async def test_what_is_no_longer_kept_of_a_stretch_is_counted_up_to_its_end(
    tmp_path: Path,
) -> None:
    log = opened(tmp_path, limit_bytes=100)
    for number in range(40):
        log.write(b"line %3d\r\n" % number)
        log.flush()
    request = FetchOutput(cursor=15, max_bytes=1000)
    chunk = await read_output(log, request, is_running=lambda: False, end=lambda: 40)
    assert (chunk.text, chunk.cursor, chunk.next_cursor, chunk.dropped) == ("", 40, 40, 25)
    log.close()


@pytest.mark.parametrize(("cursor", "end"), [(9, None), (9, 20), (21, 20)])
def test_a_cursor_outside_a_command_is_refused(cursor: int, end: int | None) -> None:
    with pytest.raises(InvalidRequest, match=f"cursor {cursor} is outside the output of it"):
        check_cursor_of("it", cursor, 10, end)


@pytest.mark.parametrize(("cursor", "end"), [(10, None), (10, 20), (20, 20), (99, None)])
def test_a_cursor_within_a_command_is_taken(cursor: int, end: int | None) -> None:
    check_cursor_of("it", cursor, 10, end)


async def test_a_chunk_says_where_it_begins_and_ends(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.write(b"one\r\n\x1b[1mtwo\r\n")
    assert await read(log) == OutputChunk(
        text="one\ntwo\n", cursor=0, next_cursor=14, dropped=0, running=True
    )
    raw = await read(log, 5, plain=False)
    assert (raw.text, raw.cursor, raw.next_cursor) == ("\x1b[1mtwo\r\n", 5, 14)
    nothing = await read(log, 14)
    assert (nothing.text, nothing.cursor, nothing.next_cursor) == ("", 14, 14)
    assert (await read(log, None)).cursor == 14
    log.close()


async def test_what_is_no_longer_kept_is_counted(tmp_path: Path) -> None:
    log = opened(tmp_path, limit_bytes=100)
    for number in range(40):
        log.write(b"line %3d\r\n" % number)
        log.flush()
    chunk = await read(log, 15)
    assert (chunk.cursor, chunk.dropped) == (log.oldest, log.oldest - 15)
    assert chunk.text.splitlines()[-1] == "line  39"
    log.previous_path.unlink()
    gone = await read(log, log.oldest)
    assert gone.dropped == gone.cursor - log.oldest > 0
    log.close()


async def test_a_sequence_in_front_of_a_gap_holds_nothing_up(tmp_path: Path) -> None:
    log = opened(tmp_path, limit_bytes=50)
    log.write(b"x" * 40 + b"\x1b[31;42")
    log.flush()
    log.write(b"y" * 49)
    log.flush()
    log.close()
    with (tmp_path / "raw.log.1").open("r+b") as file:
        file.truncate(45)
    log = opened(tmp_path, limit_bytes=50)
    first = await read(log)
    assert (first.text, first.next_cursor) == ("x" * 40, 45)
    second = await read(log, first.next_cursor)
    assert (second.dropped, second.text) == (2, "y" * 49)
    log.close()


async def test_a_long_string_is_looked_through_to_its_end(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.write(b"a\x1b]52;c;" + b"Q" * 60_000 + b"\x07b")
    chunk = await read(log, max_bytes=256)
    assert (chunk.text, chunk.next_cursor) == ("a", log.position - 1)
    assert (await read(log, log.position - 1, max_bytes=256)).text == "b"
    assert (await read(log)).text == "ab"
    log.close()


async def test_an_unfinished_sequence_is_nothing_yet(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.write(b"done\x1b[3")
    chunk = await read(log)
    assert (chunk.text, chunk.next_cursor) == ("done", 4)
    assert (await read(log, 4)).next_cursor == 4
    log.write(b"1mred")
    assert (await read(log, 4)).text == "red"
    log.close()


@pytest.mark.parametrize("plain", [True, False])
async def test_a_reply_stays_within_a_mebibyte_of_json(tmp_path: Path, plain: bool) -> None:
    log = opened(tmp_path)
    log.write(b"\xff\x01" * 400_000)
    log.flush()
    chunk = await read(log, plain=plain)
    size = len(json.dumps(chunk.text, ensure_ascii=False).encode())
    assert MAX_REPLY_BYTES - 6 * PIECE_BYTES < size <= MAX_OUTPUT_BYTES
    assert chunk.next_cursor < log.position
    log.close()


async def test_no_more_characters_than_asked_for(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.write(LINE * 3_000)
    whole = await read(log)
    for chars in (0, 1, 5, 12, PIECE_BYTES, len(whole.text)):
        part = await read(log, max_chars=chars)
        assert part.text == whole.text[:chars]
        assert (await read(log, part.next_cursor)).text == whole.text[chars:]
    log.close()


def test_a_cursor_beyond_the_end_is_refused(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.write(b"12345")
    check_cursor(log, "build", 5)
    with pytest.raises(InvalidRequest, match=r"cursor 6 is beyond .* 'build', which ends at 5"):
        check_cursor(log, "build", 6)
    log.close()


STREAM = st.lists(st.sampled_from([LINE, b"\r", b"\x1b", b"\xe2\x82", b"text\n", b"]0;"]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    stream=STREAM.map(b"".join),
    writes=st.lists(st.integers(1, 200), min_size=1, max_size=20),
    sizes=st.lists(st.integers(256, 700), min_size=1, max_size=5),
    data=st.data(),
)
async def test_chunks_of_any_size_make_the_whole_while_it_grows_and_rotates(
    tmp_path_factory: pytest.TempPathFactory,
    stream: bytes,
    writes: list[int],
    sizes: list[int],
    data: st.DataObject,
) -> None:
    # A reader that keeps up: at most one file is rotated away between two readings.
    log = opened(tmp_path_factory.mktemp("log"), limit_bytes=4_000)
    texts: list[str] = []
    cursor = written = 0
    while written < len(stream):
        size = writes[len(texts) % len(writes)]
        log.write(stream[written : written + size])
        written += size
        if data.draw(st.booleans()):
            log.flush()
        chunk = await read(log, cursor, max_bytes=sizes[len(texts) % len(sizes)])
        assert (chunk.cursor, chunk.dropped) == (cursor, 0)
        texts.append(chunk.text)
        cursor = chunk.next_cursor
    while (chunk := await read(log, cursor, max_bytes=256)).next_cursor > cursor:
        texts.append(chunk.text)
        cursor = chunk.next_cursor
    assert "".join(texts) == take_plain(stream, len(stream) + 1).text
    log.close()
