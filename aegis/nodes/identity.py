"""The identity of a host, stored in its root: it distinguishes hosts that use the same name."""

from __future__ import annotations

import re
import secrets

from aegis.errors import StartupError
from aegis.journal.disk import Disk, read_file, replace_file
from aegis.state.root import StatePaths
from aegis.state.sealing import opened_text, sealed_text

_IDENTITY = re.compile(r"[0-9a-f]{32}")

FILE = "node.id"


def open_identity(state: StatePaths, disk: Disk) -> str:
    """Return the identity of this root; create and sync it if needed. Raises ``StartupError``."""
    path = state.directory / FILE
    seal = disk.seal(path)
    try:
        data = read_file(disk, path, max_bytes=256) or b""
        known = (opened_text(data, seal) or b"").decode("ascii", "replace").strip()
        if _IDENTITY.fullmatch(known):
            return known
        fresh = secrets.token_hex(16)
        replace_file(disk, path, [sealed_text(f"{fresh}\n".encode(), seal)])
    except OSError as error:
        raise StartupError(f"cannot use {path}: {error.strerror}") from error
    return fresh
