"""The place and the content of a file that other programs edit too. Pure."""

from __future__ import annotations

import hashlib
import posixpath
from typing import Literal

import attrs

NO_FILE = "absent"
"""The digest of a file that does not exist."""


@attrs.frozen
class FilePlace:
    """The file ``base/path``; its names beside it begin with ``beside``, which is its own."""

    base: str
    path: str
    beside: str

    @property
    def name(self) -> str:
        """The name of the file in its directory."""
        return posixpath.basename(self.path)

    @property
    def fresh(self) -> str:
        """The name of a file that is being written."""
        return f"{self.beside}.new"

    @property
    def displaced(self) -> str:
        """The second name of the old file while names are exchanged in steps."""
        return f"{self.beside}.old"

    @property
    def swap(self) -> str:
        """The name of a file that is written, or of the displaced one."""
        return f"{self.beside}.swap"


@attrs.frozen
class FileContent:
    """The content of a file; None: there is none. ``is_open``: a program may be writing to it."""

    data: bytes | None
    is_open: bool = False

    @property
    def digest(self) -> str:
        """The SHA-256 of the content, ``NO_FILE`` without a file."""
        return digest_of(self.data)


@attrs.frozen(kw_only=True)
class Look:
    """The file, and the file that an exchange left beside it."""

    file: FileContent
    swap: FileContent


Exchanged = Literal["exchanged", "changed", "open", "unclear"]
"""``changed`` and ``open``: the file is as it was. ``unclear``: look at both files."""


def digest_of(data: bytes | None) -> str:
    """Return the SHA-256 of ``data``, ``NO_FILE`` for None."""
    return NO_FILE if data is None else hashlib.sha256(data).hexdigest()
