"""Images in results of tools and in messages: a line with a path in place of each. Pure.

They travel in base64, in results of some agents twice. Neither belongs into an event: a transcript
would hold megabytes that no face shows as text.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from collections.abc import Iterator
from typing import Any

import attrs

from aegis.agents.drivers.harness import Frame, KeepImage

DIRECTORY = "images"
"""The directory of the images of a session's results, beside its transcript."""

SENT = "sent"
"""The directory of the images in messages to a session, beside its transcript."""

SENT_NEW = "new"
"""The directory in it of those whose messages may not be durable yet."""

MAX_IMAGE_BYTES = 16 * 1024 * 1024

MAX_IMAGES = 32
"""Images of one frame that are kept."""

MEDIA_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
}

_ENDS = {"png": b"IEND\xaeB`\x82", "jpg": b"\xff\xd9", "gif": b"\x3b"}
"""The last bytes of a whole image; other bytes may follow them."""


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


def is_whole(data: bytes, facts: ImageFacts) -> bool:
    """Return whether an image has its end: one that was cut off is shown to the model only."""
    if facts.suffix == "webp":
        return len(data) >= 8 + int.from_bytes(data[4:8], "little")
    return _ENDS[facts.suffix] in data[-MAX_BEHIND:]


MAX_BEHIND = 64 * 1024
"""The most bytes that may follow the end of an image: some programs write their own there."""


def image_line(data: bytes, facts: ImageFacts, path: str) -> str:
    """Return the line that shows an image by its path; ``""``: it is not kept."""
    about = f"{facts.suffix}, {facts.width} x {facts.height}, {len(data):,} bytes"
    return f"[image: {about}: {path}]" if path else f"[image: {about}]"


def image_name(data: bytes, facts: ImageFacts) -> str:
    """Return the name of an image's file: by content, so the same image twice is one file."""
    return f"{hashlib.sha256(data).hexdigest()[:32]}.{facts.suffix}"


_LINE = re.compile(
    rf"\[image: (?:png|jpg|gif|webp), \d+ x \d+, [\d,]+ bytes: "
    rf"[^\n]*/{SENT}/([0-9a-f]{{32}}\.(?:png|jpg|gif|webp))\]"
)


def images_named(body: str) -> tuple[str, ...]:
    """Return the names of the images that the last lines of a message show, in their order."""
    found: list[str] = []
    for line in reversed(body.split("\n")):
        match = _LINE.fullmatch(line)
        if match is None:
            break
        found.append(match[1])
    return tuple(reversed(found))


def without_image(block: Frame, directory: str) -> tuple[Frame, list[KeepImage]]:
    """Return the text block in place of the image block of a result, and what to keep.

    ``directory`` is the path of the directory for images; ``""``: none are kept.
    """
    source = block.get("source")
    data = _decoded(source.get("data") if isinstance(source, dict) else block.get("data"))
    facts = None if data is None else image_facts(data)
    if data is None or facts is None:
        return _text("[an image that cannot be read]"), []
    if not directory:
        return _text(image_line(data, facts, "")), []
    path = f"{directory}/{image_name(data, facts)}"
    return _text(image_line(data, facts, path)), [KeepImage(path=path, data=data)]


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
