"""The standard error of an agent: its newest part in a file, and its end as clean text."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import trio

from aegis.hidden_urls import HIDDEN, hide_session_urls
from aegis.limits import in_thread_or_here

MAX_FILE_BYTES = 1024 * 1024
"""The largest file. When it is full, its older half is dropped."""

TAIL_BYTES = 8_192
"""The part that is kept in memory, for reports."""

_MIN_SECRET = 12
"""The shortest part of a URL's path that is taken for a secret."""

_MAX_SECRET = 1024

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|[@-Z\\^_])|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class StderrFile:
    """Drains standard error into ``path``; None keeps only the end, in memory.

    The file has the raw bytes and the mode 0600. ``urls`` are the session URLs of the agent.
    """

    def __init__(self, path: Path | None, urls: Sequence[str]) -> None:
        self._path = path
        self._secrets = [secret for url in urls for secret in _secrets_of(url)]
        self._tail = b""
        self._is_cut = False
        self._size = 0
        self.is_broken = False
        """Whether the file could not be written, and so is incomplete."""

    async def drain(self, stream: trio.abc.ReceiveStream) -> None:
        """Read until the end of the stream."""
        while data := await _receive(stream):
            self._keep(data)
            if self._path is not None and not self.is_broken:
                await in_thread_or_here(self._append, self._path, data)

    def tail(self) -> str:
        """Return the end of the text, without control sequences and session URLs."""
        text = _ESCAPES.sub("", self._whole_lines().decode("utf-8", "replace"))
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return hide_session_urls(text).strip()

    def _whole_lines(self) -> bytes:
        if not self._is_cut:
            return self._tail
        # A secret that begins before the kept part could not be recognised.
        lines = self._tail.partition(b"\n")[2]
        return lines if lines.strip() else self._tail[_MAX_SECRET:]

    def _keep(self, data: bytes) -> None:
        kept = self._tail + data
        self._is_cut = self._is_cut or len(kept) > TAIL_BYTES
        self._tail = kept[-TAIL_BYTES:]

    def _append(self, path: Path, data: bytes) -> None:
        try:
            if self._size + len(data) > MAX_FILE_BYTES:
                self._drop_older(path)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(path, flags, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write(data)
                self._size = file.tell()
        except OSError:
            self.is_broken = True

    def _drop_older(self, path: Path) -> None:
        with path.open("rb") as file:
            file.seek(-min(self._size, MAX_FILE_BYTES // 2), os.SEEK_END)
            newer = file.read()
        spare = path.with_name(f"{path.name}.new")
        spare.unlink(missing_ok=True)
        descriptor = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(newer)
        spare.replace(path)


def _secrets_of(url: str) -> list[str]:
    """Return the URL and the parts of its path that are long enough for a secret."""
    parts = [part for part in urlsplit(url).path.split("/") if len(part) >= _MIN_SECRET]
    return [url, *parts] if url else parts


async def _receive(stream: trio.abc.ReceiveStream) -> bytes:
    try:
        return bytes(await stream.receive_some(65_536))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return b""
