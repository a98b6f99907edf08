"""The common parts of all kinds' start-up files: the secret, private files, the hook's text."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path

from aegis.state.state_files import check_directory, read_safely

SECRET_FILE = "init.secret"  # noqa: S105 - a file's name

MAX_TYPED_BYTES = 1 << 20
"""Limit of a typed command's text; a longer one is not taken."""

_SECRET_BYTES = 18


def new_secret() -> bytes:
    """Return a new secret for the marks of one shell."""
    return secrets.token_urlsafe(_SECRET_BYTES).encode()


def write_secret(directory: Path) -> bytes:
    """Write a new secret for the hook, which reads it once. Raises ``OSError``."""
    secret = new_secret()
    write_private(directory / SECRET_FILE, secret + b"\n")
    return secret


def write_private(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file that only its owner may read, replacing an existing one."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def private_directory(path: Path) -> None:
    """Make the directory, or check that the existing one is safe. Raises ``OSError``."""
    path.mkdir(mode=0o700, exist_ok=True)
    check_directory(str(path), path.lstat())


def remove_left(directory: Path, patterns: Iterable[str]) -> None:
    """Remove the files of an earlier shell that match these patterns."""
    for pattern in patterns:
        for left in directory.glob(pattern):
            left.unlink(missing_ok=True)


def read_once(path: Path, limit: int) -> bytes | None:
    """Read and remove a file; None if it is missing or larger than ``limit``."""
    try:
        data = read_safely(str(path), limit + 1)
        path.unlink()
    except OSError:
        return None
    return data if data is not None and len(data) <= limit else None


@cache
def hook(name: str) -> bytes:
    """Return the hook script of this name."""
    return resources.files("aegis.terminals.hooks").joinpath(name).read_bytes()
