"""What tells one host from another that calls itself the same: it belongs to a root directory."""

from __future__ import annotations

import re
import secrets

from aegis.errors import StartupError
from aegis.journal.disk import OsDisk, read_file, replace_file
from aegis.root import State

_IDENTITY = re.compile(r"[0-9a-f]{32}")

FILE = "node.id"


def open_identity(state: State) -> str:
    """The identity of this root, made and synced if there is none yet. Raises ``StartupError``."""
    disk, path = OsDisk(), state.directory / FILE
    try:
        known = (read_file(disk, path, max_bytes=64) or b"").decode("ascii", "replace").strip()
        if _IDENTITY.fullmatch(known):
            return known
        fresh = secrets.token_hex(16)
        replace_file(disk, path, [f"{fresh}\n".encode()])
    except OSError as error:
        raise StartupError(f"cannot use {path}: {error.strerror}") from error
    return fresh
