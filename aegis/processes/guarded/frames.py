"""JSON lines of an agent: bytes to frames, and frames to lines. Pure.

A line that is no JSON object is noise: it is skipped and counted. Invalid UTF-8 becomes U+FFFD, as
does a lone surrogate; ``NaN`` and infinite numbers become null. So every text of a frame can be
encoded, and every frame written as JSON.

A line over the limit becomes a ``LargeFrame``: the stream continues behind it.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import attrs

Frame = dict[str, Any]
"""One JSON object of a line."""

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""The largest line that is read whole."""

KEPT_TEXT_BYTES = 2_000
"""The beginning of each long text that is kept of a larger line."""

MAX_KEPT_BYTES = 1024 * 1024
"""The largest remainder of a larger line; of a longer one nothing is kept but its size."""

_MAX_DEPTH = 200
"""The depth of lists and objects in a frame; a deeper one is noise.

Code that reads frames may be recursive.
"""


@attrs.frozen
class LargeFrame:
    """The remainder of a line of ``size`` bytes, which is over the limit.

    Its long texts are cut, and end with their size. ``frame`` is empty if even so it is too long.
    """

    frame: Frame
    size: int


class FrameReader:
    """Splits a stream into frames. Memory is bounded by ``limit``, the largest whole line."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []  # of the unfinished line: joined once, when it ends
        self._size = 0
        self._large: _Remainder | None = None  # of the unfinished line, once it is over the limit
        self.noise = 0
        """The number of lines that were no JSON objects; empty lines do not count."""

    def feed(self, data: bytes) -> list[Frame | LargeFrame]:
        """Return the frames that ``data`` completes."""
        first, *rest = data.split(b"\n")
        self._add(first)
        frames: list[Frame | LargeFrame] = []
        for piece in rest:
            self._end_line(frames)
            self._add(piece)
        return frames

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._large is None and self._size > self._limit:
            self._large = _Remainder()
            for each in self._pieces:
                self._large.feed(each)
            self._pieces.clear()
        if self._large is not None:
            self._large.feed(piece)
        elif piece:
            self._pieces.append(piece)

    def _end_line(self, frames: list[Frame | LargeFrame]) -> None:
        large, size = self._large, self._size
        line = b"".join(self._pieces) if large is None else large.line()
        self._pieces.clear()
        self._size, self._large = 0, None
        frame = frame_of(line)
        if frame is None:
            self.noise += bool(line.strip())
        else:
            frames.append(frame if large is None else LargeFrame(frame, size))


_UNIT = re.compile(rb'(?:[^"\\]+|\\[^u]|\\u[0-9a-fA-F]{4})?')
"""A part of a JSON text that begins no half escape."""

_SKIPPED = re.compile(rb'(?:[^"\\]++|\\.){0,1000}', re.DOTALL)

_LONGEST_ESCAPE = len(rb"\u0000")


class _Remainder:
    """The JSON of a line without the ends of its long texts, in bounded memory."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._is_too_long = False
        self._is_in_text = False
        self._size = self._room = 0  # of the current text: its bytes, and those still to be kept
        self._half = b""  # an escape that the last piece ended in

    def feed(self, piece: bytes) -> None:
        """Take the next piece of the line."""
        data, self._half = self._half + piece, b""
        at = 0
        while at < len(data) and not self._is_too_long:
            if self._is_in_text:
                at = self._feed_text(data, at)
                continue
            begin = data.find(b'"', at)
            self._is_in_text = begin >= 0
            end = len(data) if begin < 0 else begin + 1
            self._keep(data[at:end])
            self._size, self._room, at = 0, KEPT_TEXT_BYTES, end

    def line(self) -> bytes:
        """Return the line, as far as it is kept."""
        return b"{}" if self._is_too_long else bytes(self._kept)

    def _feed_text(self, data: bytes, at: int) -> int:
        """Take a part of a text that begins at ``at``; return where the part ends."""
        found = (_UNIT if self._room > 0 else _SKIPPED).match(data, at)
        assert found is not None, "both fit an empty text"
        end = found.end()
        if end == at and data[at : at + 1] == b'"':
            left_out = f"… [cut: {self._size} bytes]".encode() if self._room < 0 else b""
            self._keep(left_out + b'"')
            self._is_in_text = False
            return at + 1
        if end == at and len(data) - at < _LONGEST_ESCAPE:
            self._half = data[at:]
            return len(data)
        end = max(end, at + 1)  # an escape that JSON does not have: the line is noise
        part = data[at:end]
        if self._room > 0:
            self._keep(part if part[:1] == b"\\" else part[: self._room])
        self._size += len(part)
        self._room -= len(part)
        return end

    def _keep(self, part: bytes) -> None:
        self._is_too_long = self._is_too_long or len(self._kept) + len(part) > MAX_KEPT_BYTES
        if not self._is_too_long:
            self._kept += part


def frame_of(line: bytes) -> Frame | None:
    """Return the JSON object in a line; None if it holds none."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        frame = _DECODER.decode(line.decode("utf-8", "replace"))
        if b"\\u" in line:
            frame = _without_surrogates(frame)
        if line.count(b"[") + line.count(b"{") > _MAX_DEPTH and _depth(frame) > _MAX_DEPTH:
            return None
    except (ValueError, RecursionError):
        return None
    assert isinstance(frame, dict)
    return frame


def line_of(frame: Frame) -> bytes:
    """Return a frame as one line. Raises ``ValueError`` for a number that JSON does not have."""
    text = json.dumps(frame, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    line = _utf8(text).encode()
    for separator, escape in _LINE_ENDS:
        if separator in line:
            line = line.replace(separator, escape)
    return line + b"\n"


_LINE_ENDS = ((b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"))
"""U+2028 and U+2029, which are ends of a line for the readline module of Node.js."""


def _number(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


_DECODER = json.JSONDecoder(parse_float=_number, parse_constant=lambda _: None)


def _without_surrogates(value: Any) -> Any:
    """Return a parsed frame without lone surrogates: JSON can write them as escapes."""
    if isinstance(value, str):
        return _utf8(value)
    if isinstance(value, list):
        return [_without_surrogates(each) for each in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(each) for key, each in value.items()}
    return value


def _utf8(text: str) -> str:
    """Return ``text`` with U+FFFD in the place of each lone surrogate."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _depth(frame: Frame) -> int:
    """Return the depth of a frame, counted level by level."""
    depth = 0
    level: list[Any] = [frame]
    while level:
        depth += 1
        inner: list[Any] = []
        for each in level:
            inner += each.values() if isinstance(each, dict) else each
        level = [each for each in inner if isinstance(each, dict | list)]
    return depth
