"""The directory that a program reports by OSC 7: ``file://host/path``. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import unquote_to_bytes

from aegis.path_text import text_of_path

_REPORT = re.compile(rb"(file|kitty-shell-cwd)://([^/]*)(/.*)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def reported_directory(content: bytes, hosts: Collection[str]) -> str | None:
    """Return the path in a report, as text made by ``aegis.path_text``.

    None if it is not valid, or of another host than ``hosts``, ``localhost`` and the empty one. The
    path must be absolute; in a ``file`` URL it is percent-encoded, in kitty's own scheme it is not.
    """
    found = _REPORT.fullmatch(content)
    if found is None:
        return None
    scheme, host, path = found.groups()
    ours = {"", "localhost", *(each.lower() for each in hosts)}
    if host.decode("ascii", "replace").lower() not in ours:
        return None
    bare = unquote_to_bytes(path) if scheme == b"file" else path
    decoded = bare.decode("utf-8", "surrogateescape")
    return None if _CONTROL.search(decoded) else text_of_path(decoded)


class DirectoryReports:
    """The reports of one program: the newest, and the last one that was published."""

    def __init__(self) -> None:
        self.newest: str | None = None
        self._published: str | None = None

    def take(self) -> str | None:
        """Return a new report that differs from the last published one, once."""
        newest, self.newest = self.newest, None
        if newest is None or newest == self._published:
            return None
        self._published = newest
        return newest

    def reset(self) -> None:
        """Drop all reports: at a prompt the shell's own directory counts."""
        self.newest = self._published = None
