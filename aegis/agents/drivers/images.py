"""Images in the results of tools: a line with a path in their place, and the files to keep. Pure.

An agent sends them in base64, some twice. Neither belongs into an event: a transcript would hold
megabytes that no face shows as text.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections.abc import Iterator
from typing import Any

import attrs

from aegis.agents.drivers.harness import Frame, KeepImage

DIRECTORY = "images"
"""The directory of the images of a session, beside its transcript."""

MAX_IMAGE_BYTES = 16 * 1024 * 1024

MAX_IMAGES = 32
"""Images of one frame that are kept."""


@attrs.frozen(kw_only=True)
class ImageFacts:
    """The format of an image, as its bytes say; the size in pixels."""

    suffix: str
    width: int
    height: int


def image_facts(data: bytes) -> ImageFacts | None:
    """Return the facts in the header of a PNG, JPEG, GIF or WebP; None if it has no such header."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
            return _facts("png", *struct.unpack(">II", data[16:24]))
        if data.startswith((b"GIF87a", b"GIF89a")):
            return _facts("gif", *struct.unpack("<HH", data[6:10]))
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return _webp(data)
        return _jpeg(data) if data.startswith(b"\xff\xd8\xff") else None
    except (struct.error, IndexError):  # it is cut off in its header
        return None


def _facts(suffix: str, width: int, height: int) -> ImageFacts | None:
    return ImageFacts(suffix=suffix, width=width, height=height) if width and height else None


def _webp(data: bytes) -> ImageFacts | None:
    match data[12:16]:
        case b"VP8X":
            width = int.from_bytes(data[24:27], "little")
            height = int.from_bytes(data[27:30], "little")
            return _facts("webp", width + 1, height + 1) if len(data) >= 30 else None
        case b"VP8L":
            (bits,) = struct.unpack("<I", data[21:25])
            return _facts("webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8 ":
            width, height = struct.unpack("<HH", data[26:30])
            return _facts("webp", width & 0x3FFF, height & 0x3FFF)
    return None


def _jpeg(data: bytes) -> ImageFacts | None:
    """Return the size in the first frame header, which comes after segments with lengths."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        # C4, C8 and CC are tables, not frames.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return _facts("jpg", width, height)
        at += 1 if marker == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def without_image(block: Frame, directory: str) -> tuple[Frame, list[KeepImage]]:
    """Return the text block in place of the image block of a result, and what to keep.

    ``directory`` is the path of the directory for images; ``""``: none are kept.
    """
    source = block.get("source")
    data = _decoded(source.get("data") if isinstance(source, dict) else block.get("data"))
    facts = None if data is None else image_facts(data)
    if data is None or facts is None:
        return _text("[an image that cannot be read]"), []
    about = f"{facts.suffix}, {facts.width} x {facts.height}, {len(data):,} bytes"
    if not directory:
        return _text(f"[image: {about}]"), []
    # By content: the same image twice is one file.
    name = f"{hashlib.sha256(data).hexdigest()[:32]}.{facts.suffix}"
    path = f"{directory}/{name}"
    return _text(f"[image: {about}: {path}]"), [KeepImage(path=path, data=data)]


def _text(text: str) -> Frame:
    return {"type": "text", "text": text}


def _decoded(data: object) -> bytes | None:
    if not isinstance(data, str) or len(data) > MAX_IMAGE_BYTES * 4 // 3 + 4:
        return None
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


class ResultImages:
    """The images in the results of one process; they are kept below ``directory``."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def of_claude(self, frame: Frame) -> tuple[Frame, list[KeepImage]]:
        """Return a user frame without the images in the results of its tools."""
        message = frame.get("message")
        if frame.get("type") != "user" or not isinstance(message, dict):
            return frame, []
        content = message.get("content")
        if not isinstance(content, list):
            return frame, []
        found: list[KeepImage] = []
        blocks = [self._result(each, found) for each in content]
        if blocks == content:
            return frame, []
        # It has the same images a second time.
        rest = {name: each for name, each in frame.items() if name != "tool_use_result"}
        return {**rest, "message": {**message, "content": blocks}}, found

    def of_acp(self, update: Frame) -> tuple[Frame, list[KeepImage]]:
        """Return an update of a tool call without the images in its content."""
        content = update.get("content")
        if not isinstance(content, list):
            return update, []
        found: list[KeepImage] = []
        parts = [self._part(each, found) for each in content]
        return (update, []) if parts == content else ({**update, "content": parts}, found)

    def _result(self, block: Any, found: list[KeepImage]) -> Any:
        inner = block.get("content") if isinstance(block, dict) else None
        if not isinstance(inner, list):
            return block
        return {**block, "content": list(self._blocks(inner, found))}

    def _part(self, part: Any, found: list[KeepImage]) -> Any:
        inner = part.get("content") if isinstance(part, dict) else None
        if not isinstance(inner, dict):
            return part
        [block] = self._blocks([inner], found)
        return {**part, "content": block}

    def _blocks(self, blocks: list[Any], found: list[KeepImage]) -> Iterator[Any]:
        for each in blocks:
            if not isinstance(each, dict) or each.get("type") != "image":
                yield each
                continue
            directory = self._directory if len(found) < MAX_IMAGES else ""
            block, kept = without_image(each, directory)
            found += kept
            yield block
