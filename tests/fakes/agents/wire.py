"""Frames of a stand-in agent: JSON lines on its standard streams, without threads."""

from __future__ import annotations

import json
import os
import select
from typing import Any

Json = dict[str, Any]


class Ended(Exception):
    """The client has closed the input."""


class Wire:
    """Frames from the client, in order, and frames to it."""

    def __init__(self) -> None:
        self._data = b""
        self._lines: list[bytes] = []
        self._is_at_end = False

    def next(self, timeout_s: float | None = None) -> Json | None:
        """Return the next frame; None if none comes in time. Raises ``Ended``."""
        while not self._lines:
            if self._is_at_end:
                raise Ended
            if not select.select([0], [], [], timeout_s)[0]:
                return None
            self._read()
        frame: Json = json.loads(self._lines.pop(0))
        return frame

    def send(self, frame: Json) -> None:
        """Write one frame."""
        self.write(json.dumps(frame).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Write raw bytes."""
        while data:
            data = data[os.write(1, data) :]

    def _read(self) -> None:
        data = os.read(0, 65_536)
        self._is_at_end = not data
        *lines, self._data = (self._data + data).split(b"\n")
        self._lines += [line for line in lines if line.strip()]
