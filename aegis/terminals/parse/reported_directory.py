"""The directory that a program reports by OSC 7: ``file://host/path``. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import unquote_to_bytes

from aegis.path_text import text_of_path

_REPORT = re.compile(rb"(file|kitty-shell-cwd)://([^/]*)(/.*)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def reported_directory(content: bytes, hosts: Collection[str]) -> str | None:
    """The path in a report; None if it is of another host than ``hosts``, or makes no sense.

    An empty host and ``localhost`` are this one. Only an absolute path counts. That of ``file`` is
    percent-encoded, as most send it; kitty's own scheme is not. The path is text as
    ``aegis.path_text`` makes it.
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
