"""Standard error: the newest part in a file, and its end without secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
import trio.testing

from aegis.hidden_urls import HIDDEN
from aegis.processes.guarded.stderr_file import MAX_FILE_BYTES, TAIL_BYTES, StderrFile

URL = "http://127.0.0.1:8420/mcp/s/Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA"
TOKEN = URL.rpartition("/")[2]


async def drained(path: Path | None, *pieces: bytes) -> StderrFile:
    """Drain a stream of these pieces."""
    sending, receiving = trio.testing.memory_stream_one_way_pair()
    file = StderrFile(path, [URL])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.drain, receiving)
        for piece in pieces:
            await sending.send_all(piece)
        await sending.aclose()
    return file


async def test_the_newest_part_is_kept_in_a_file_of_bounded_size(tmp_path: Path) -> None:
    path = tmp_path / "stderr"
    piece = b"x" * 65_535 + b"\n"
    file = await drained(path, *([piece] * 40), b"the end\n")
    assert MAX_FILE_BYTES // 2 < path.stat().st_size <= MAX_FILE_BYTES
    assert path.read_bytes().endswith(b"x\nthe end\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["stderr"]
    assert file.tail() == "the end"


async def test_a_file_that_cannot_be_written_does_not_stop_the_stream(tmp_path: Path) -> None:
    file = await drained(tmp_path / "gone" / "stderr", b"one\n", b"two\n")
    assert file.is_broken
    assert file.tail() == "one\ntwo"


async def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "stderr").symlink_to(target)
    assert (await drained(tmp_path / "stderr", b"one\n")).is_broken
    assert target.read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"url={URL}/mcp end", f"url={HIDDEN}/mcp end"),
        (f"the token {TOKEN}!", f"the token {HIDDEN}!"),
        ("http://[::1]:1/mcp/s/another-secret?x", f"http://[::1]:1/mcp/s/{HIDDEN}"),
        ('{"url": "http://h/mcp/s/another-secret"}', f'{{"url": "http://h/mcp/s/{HIDDEN}"}}'),
        (f"\x1b[31m{TOKEN[:9]}\x1b[0m{TOKEN[9:]}", HIDDEN),
        ("\x1b]0;title\x07bell \x9b2J", "0;titlebell 2J"),
    ],
)
async def test_session_urls_and_control_sequences_are_removed(text: str, shown: str) -> None:
    data = text.encode()
    middle = len(data) // 2
    file = await drained(None, data[:middle], data[middle:])
    assert "\x1b" not in file.tail()
    assert file.tail().replace("]0;", "0;") == shown


@pytest.mark.parametrize("ending", [b"", b"\n"])
async def test_a_secret_of_which_only_the_end_is_kept_is_not_shown(ending: bytes) -> None:
    pieces = [TOKEN[each : each + 4] for each in range(len(TOKEN) - 3)]
    for size in range(TAIL_BYTES - 100, TAIL_BYTES, 5):
        file = await drained(None, URL.encode() + b" " + b"x" * size + ending)
        assert [each for each in pieces if each in file.tail()] == []
        assert file.tail().endswith("xxx")
