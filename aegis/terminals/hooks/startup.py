"""What the start-up files of every kind of shell have in common: a secret, private files, hooks."""

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
"""Of a longer typed command the text is not taken."""

_SECRET_BYTES = 18


def new_secret() -> bytes:
    """What the marks of one shell carry."""
    return secrets.token_urlsafe(_SECRET_BYTES).encode()


def write_secret(directory: Path) -> bytes:
    """Put a new secret where a hook reads it, once. Raises ``OSError``."""
    secret = new_secret()
    write_private(directory / SECRET_FILE, secret + b"\n")
    return secret


def write_private(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a new file that only its owner may read, instead of one that is there."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def private_directory(path: Path) -> None:
    """Make the directory unless there is one that is safe to write to. Raises ``OSError``."""
    path.mkdir(mode=0o700, exist_ok=True)
    check_directory(str(path), path.lstat())


def remove_left(directory: Path, patterns: Iterable[str]) -> None:
    """Remove what an earlier shell left under these names."""
    for pattern in patterns:
        for left in directory.glob(pattern):
            left.unlink(missing_ok=True)


def read_once(path: Path, limit: int) -> bytes | None:
    """What a file holds, which is gone then; None if there is none, or more than that in it."""
    try:
        data = read_safely(str(path), limit + 1)
        path.unlink()
    except OSError:
        return None
    return data if data is not None and len(data) <= limit else None


@cache
def hook(name: str) -> bytes:
    """The hook of this name, beside this file."""
    return resources.files("aegis.terminals.hooks").joinpath(name).read_bytes()
