"""Images in results: their facts, the text in their place, and the files."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from aegis.agents.drivers import image_files
from aegis.agents.drivers.harness import KeepImage
from aegis.agents.drivers.image_files import keep_images
from aegis.agents.drivers.images import (
    MAX_IMAGES,
    SENT,
    ImageFacts,
    ResultImages,
    image_facts,
    image_line,
    image_name,
    images_named,
    is_whole,
    without_image,
)
from aegis.protocol.agent_events import ToolResult, ToolUse
from tests.aegis.agents.drivers.acp import wire as acp
from tests.aegis.agents.drivers.claude import wire as claude


def png(width: int = 3, height: int = 2, *, noise: bool = False) -> bytes:
    """Return an image; with ``noise``, one that has 3 bytes a pixel, also compressed."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if noise else 0, 0, 0, 0)
    row = 3 * width if noise else width
    rows = (os.urandom(row) if noise else bytes(row) for _ in range(height))
    pixels = zlib.compress(b"".join(b"\0" + each for each in rows))
    start = b"\x89PNG\r\n\x1a\n"
    return start + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc0\x00\x0b\x08\x00\x02\x00\x03\x01\x01\x11\x00"
GIF = b"GIF89a" + struct.pack("<HH", 3, 2) + b"\0\0\0"
VP8X = b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x02\0\0\x01\0\0"
VP8L = b"RIFF\0\0\0\0WEBPVP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 2 | 1 << 14)
VP8 = b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 3, 2)


def image(data: bytes) -> dict[str, Any]:
    text = base64.b64encode(data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/x", "data": text}}


@pytest.mark.parametrize(
    ("data", "suffix"),
    [(png(), "png"), (JPEG, "jpg"), (GIF, "gif"), (VP8X, "webp"), (VP8L, "webp"), (VP8, "webp")],
)
def test_the_format_and_the_size_are_read_from_the_bytes(data: bytes, suffix: str) -> None:
    assert image_facts(data) == ImageFacts(suffix=suffix, width=3, height=2)


@pytest.mark.parametrize("data", [png(), JPEG, GIF, VP8X, VP8L, VP8])
def test_a_header_that_is_cut_off_has_no_facts(data: bytes) -> None:
    whole = next(end for end in range(len(data) + 1) if image_facts(data[:end]) is not None)
    assert all(image_facts(data[:end]) is None for end in range(whole))


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"text", png(0, 5), b"\xff\xd8\xff\xda"),
        b"\xff\xd8\xff\xe0\0\0" * 9,
        b"RIFF\0\0\0\0WEBPxxxx",
    ],
)
def test_other_bytes_have_no_facts(data: bytes) -> None:
    assert image_facts(data) is None


def test_an_image_becomes_a_line_with_the_path_of_its_content() -> None:
    block, [kept] = without_image(image(png()), "/s/images")
    assert (kept.data, block["type"]) == (png(), "text")
    assert kept.path.startswith("/s/images/")
    assert kept.path.endswith(".png")
    assert block["text"] == f"[image: png, 3 x 2, {len(png())} bytes: {kept.path}]"
    assert without_image(image(png()), "/s/images")[1] == [kept]
    assert without_image(image(png(4)), "/s/images")[1] != [kept]


@pytest.mark.parametrize(
    "block",
    [
        image(b"text"),
        {"type": "image"},
        {"type": "image", "source": {"data": "%%%"}},
        {"type": "image", "source": {"type": "url", "url": "http://h/x"}},
        {"type": "image", "data": ["x"]},
    ],
)
def test_an_image_that_cannot_be_read_is_not_kept(block: dict[str, Any]) -> None:
    text = {"type": "text", "text": "[an image that cannot be read]"}
    assert without_image(block, "/s/images") == (text, [])


def result_frame(*blocks: dict[str, Any]) -> dict[str, Any]:
    content = [{"type": "tool_result", "tool_use_id": "t1", "content": list(blocks)}]
    return {
        "type": "user",
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": None,
        "tool_use_result": {"content": list(blocks)},
    }


def test_a_result_of_claude_has_its_images_kept_before_the_event() -> None:
    machine = claude.ready(images="/s/images")
    outputs = machine.receive(result_frame({"type": "text", "text": "see "}, image(png())))
    kept, *rest = outputs
    assert isinstance(kept, KeepImage)
    [event] = claude.events(rest)
    assert isinstance(event, ToolResult)
    assert event.text == f"see [image: png, 3 x 2, {len(png())} bytes: {kept.path}]"
    assert base64.b64encode(png()).decode() not in repr(outputs)


def test_a_frame_keeps_a_bounded_number_of_images() -> None:
    found = [image(png(1, number)) for number in range(1, MAX_IMAGES + 9)]
    frame, kept = ResultImages("/s").of_claude(result_frame(*found))
    assert len(kept) == MAX_IMAGES
    assert "base64" not in str(frame)


def test_a_result_of_an_acp_agent_has_its_images_kept_before_the_event() -> None:
    wire = acp.ready(images="/s/images")
    wire.turn()
    text = base64.b64encode(png()).decode()
    part = {"type": "content", "content": {"type": "image", "data": text, "mimeType": "image/png"}}
    outputs = wire.update("tool_call_update", toolCallId="c1", status="completed", content=[part])
    [kept] = [each for each in outputs if isinstance(each, KeepImage)]
    assert outputs[0] is kept
    [event] = [each for each in acp.events(outputs) if not isinstance(each, ToolUse)]
    assert isinstance(event, ToolResult)
    assert event.text == f"[image: png, 3 x 2, {len(png())} bytes: {kept.path}]"


def test_files_are_private_kept_once_and_the_oldest_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_files, "MAX_KEPT_BYTES", 25)
    paths = [tmp_path / "images" / f"{number}.png" for number in range(3)]
    images = [KeepImage(path=str(each), data=b"x" * 10) for each in paths]
    keep_images(images[:2])
    assert {each.stat().st_mode & 0o777 for each in paths[:2]} == {0o600}
    first = paths[0].stat()
    for at, each in enumerate(paths[:2]):
        os.utime(each, ns=(at, at))
    keep_images(images[:1])
    assert paths[0].stat().st_ino == first.st_ino
    keep_images(images[2:])
    assert [each.exists() for each in paths] == [True, False, True]


def test_an_image_that_a_kill_cut_off_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "images" / "a.png"
    path.parent.mkdir()
    path.write_bytes(b"xx")
    path.with_suffix(".new").write_bytes(b"x")
    keep_images([KeepImage(path=str(path), data=b"xyz")])
    assert path.read_bytes() == b"xyz"
    assert [each.name for each in path.parent.iterdir()] == ["a.png"]


def test_a_full_disk_loses_the_image_alone(tmp_path: Path) -> None:
    (tmp_path / "images").write_text("no directory")
    keep_images([KeepImage(path=str(tmp_path / "images" / "a.png"), data=b"xyz")])


def test_the_last_lines_of_a_message_name_its_images() -> None:
    facts = image_facts(png())
    assert facts is not None
    name = image_name(png(), facts)
    line = image_line(png(), facts, f"/a b/{SENT}/{name}")
    assert images_named(f"{line}\ntext\n\n{line}\n{line}") == (name, name)
    assert images_named(line) == (name,)
    for other in (f"{line}\nSAY", image_line(png(), facts, f"/a/{name}"), "", f" {line}"):
        assert images_named(other) == ()


@pytest.mark.parametrize("data", [png(), JPEG + b"..\xff\xd9", GIF + b"\x3b", png() + b"behind"])
def test_an_image_with_its_end_is_whole(data: bytes) -> None:
    facts = image_facts(data)
    assert facts is not None
    assert is_whole(data, facts)


def test_a_webp_that_is_shorter_than_it_says_is_cut() -> None:
    body = VP8X[8:]
    whole = b"RIFF" + struct.pack("<I", len(body)) + body
    facts = image_facts(whole)
    assert facts is not None
    assert is_whole(whole, facts)
    assert not is_whole(whole[:-1], facts)
