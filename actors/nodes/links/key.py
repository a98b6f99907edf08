"""The key of nodes: 32 secret bytes that all nodes of one system share.

It is stored in a file that only its owner can read, and passed to a worker over standard input. It
is never an argument or in the environment, where other users or child processes could see it.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

import attrs

from actors.errors import BadNodeKey

KEY_BYTES = 32


def _has_its_length(instance: object, attribute: object, value: bytes) -> None:
    if len(value) != KEY_BYTES:
        raise BadNodeKey(f"A key of nodes has {KEY_BYTES} bytes; this one has {len(value)}.")


@attrs.frozen
class NodeKey:
    """A key; its ``repr`` does not contain the secret."""

    secret: bytes = attrs.field(repr=False, validator=_has_its_length)


def new_key() -> NodeKey:
    """Return a new random key."""
    return NodeKey(secrets.token_bytes(KEY_BYTES))


def key_of_text(text: bytes) -> NodeKey:
    """Return the key in 64 hexadecimal digits. Raises ``BadNodeKey`` for any other text."""
    try:
        return NodeKey(bytes.fromhex(text.decode("ascii")))
    except ValueError:
        raise BadNodeKey("A key of nodes is written as 64 hexadecimal digits.") from None


def write_key(path: Path, key: NodeKey) -> None:
    """Write ``key`` to a file that only its owner can read; ``FileExistsError`` if there is one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123
        file.write(key.secret.hex().encode() + b"\n")


def read_key(path: Path) -> NodeKey:
    """Read a key from its file.

    Raises ``BadNodeKey``, with a sentence that says what to do, unless it is a regular file of this
    user, no link to one, that nobody else may read or write and whose first line is 64 hexadecimal
    digits. Other lines are ignored: the program that wrote the file may sign it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise BadNodeKey(_why_not_opened(path, error)) from None
    try:
        _check_file(path, os.fstat(descriptor))
        text = os.read(descriptor, 4 * KEY_BYTES).partition(b"\n")[0].strip()
    finally:
        os.close(descriptor)
    try:
        return key_of_text(text)
    except BadNodeKey as error:
        raise BadNodeKey(f"{path} holds no key: {error}") from None


def _check_file(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise BadNodeKey(f"{path} must be a regular file: put the key of the root there.")
    if status.st_uid != os.geteuid():
        raise BadNodeKey(
            f"{path} belongs to another user: make it a file of the user who runs this."
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise BadNodeKey(f"Others can use {path}: run chmod 600 {path} and make a new key.")


def _why_not_opened(path: Path, error: OSError) -> str:
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return f"There is no key at {path}: copy the key file of the root there, with mode 600."
        case errno.ELOOP:
            return (
                f"{path} is a symbolic link: put the key itself there, or name the file it is in."
            )
        case _:
            return f"The key at {path} cannot be read: {error.strerror}."
