"""JSON lines of an agent: bytes to frames, and frames to lines. Pure.

A line that is no JSON object is noise: it is skipped and counted. Invalid UTF-8 becomes U+FFFD, as
does a lone surrogate; ``NaN`` and infinite numbers become null. So every text of a frame can be
encoded, and every frame written as JSON.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

Frame = dict[str, Any]
"""One JSON object of a line."""

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""The largest line that a process may send."""

_MAX_DEPTH = 200
"""The depth of lists and objects in a frame; a deeper one is noise.

Code that reads frames may be recursive.
"""


class FrameReader:
    """Splits a stream into frames. Memory is bounded by ``limit``, the largest line in bytes."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []  # of the unfinished line: joined once, when it ends
        self._size = 0
        self.noise = 0
        """The number of lines that were no JSON objects; empty lines do not count."""
        self.is_over_limit = False
        """Whether a line was larger than the limit. Then nothing more is read."""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that ``data`` completes."""
        first, *rest = data.split(b"\n")
        self._add(first)
        frames: list[Frame] = []
        for piece in rest:
            if self.is_over_limit:
                break
            self._take(b"".join(self._pieces), frames)
            self._pieces.clear()
            self._size = 0
            self._add(piece)
        return frames

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            self.is_over_limit = True
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)

    def _take(self, line: bytes, frames: list[Frame]) -> None:
        frame = frame_of(line)
        if frame is not None:
            frames.append(frame)
        elif line.strip():
            self.noise += 1


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
