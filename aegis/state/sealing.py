"""Message authentication codes for the files of a state directory.

A code covers the content of a file, the id of the state and the file's path inside the state, with
the key of one user (``aegis.state.registry``). So a file that another user wrote, that came with a
checkout, or that belongs to another state or another path of this one does not verify.

The code is keyed BLAKE2b (RFC 7693) of 128 bits. Imports little, and only the standard library:
one-shot commands load this module.
"""

from __future__ import annotations

import json

# Not hashlib: it loads OpenSSL, which takes a one-shot command longer than all of its checks.
from _blake2 import blake2b
from _operator import _compare_digest
from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEY_BYTES = 32
MAC_CHARS = 32
"""Hexadecimal digits of a code."""

MAC_KEY = "mac"
"""The member of a JSON document that holds its code."""

_TEXT_LINE = b"mac %b\n"
_TEXT_LINE_BYTES = len(b"mac ") + MAC_CHARS + len(b"\n")


class Seal:
    """The codes of one file: makes and checks them."""

    __slots__ = ("_keyed",)

    def __init__(self, key: bytes, state_id: str, name: bytes) -> None:
        self._keyed = blake2b(
            b"%b\0%d\0%b" % (state_id.encode(), len(name), name),
            key=key,
            digest_size=MAC_CHARS // 2,
        )

    def mac(self, content: bytes | memoryview) -> str:
        """Return the code of ``content``."""
        keyed = self._keyed.copy()
        keyed.update(content)
        return keyed.hexdigest()

    def fits(self, content: bytes | memoryview, mac: str) -> bool:
        """Return whether ``mac`` is the code of ``content``."""
        return mac.isascii() and _compare_digest(self.mac(content), mac)


class Seals(namedtuple("Seals", ("key", "state_id", "directory"))):
    """The seals of a state.

    ``key`` (bytes) is the user's, ``state_id`` (text) the state's id, ``directory`` (text) its
    absolute path.
    """

    __slots__ = ()

    def of(self, path: str) -> Seal:
        """Return the seal of the file at ``path``, which is below the directory."""
        prefix = f"{self.directory}/"
        name = path.removeprefix(prefix)
        if name == path:
            raise ValueError(f"{path} is not a file of {self.directory}")
        return Seal(self.key, self.state_id, name.encode("utf-8", "surrogateescape"))

    def __repr__(self) -> str:
        return f"Seals({self.state_id!r}, {self.directory!r})"


def sealed_document(document: dict[str, Any], seal: Seal | None) -> dict[str, Any]:
    """Return ``document`` with its code as the last member; unchanged if ``seal`` is None."""
    if seal is None:
        return document
    content = {name: value for name, value in document.items() if name != MAC_KEY}
    return {**content, MAC_KEY: seal.mac(_canonical(content))}


def document_fits(document: object, seal: Seal | None) -> bool:
    """Return whether a parsed JSON document has a valid code; always true if ``seal`` is None.

    The code covers the values, independent of their formatting.
    """
    if seal is None:
        return True
    if not isinstance(document, dict):
        return False
    content = {name: value for name, value in document.items() if name != MAC_KEY}
    mac = document.get(MAC_KEY)
    return isinstance(mac, str) and seal.fits(_canonical(content), mac)


def sealed_text(text: bytes, seal: Seal | None) -> bytes:
    """Return ``text``, which ends with a newline, and a line with its code."""
    return text if seal is None else text + _TEXT_LINE % seal.mac(text).encode()


def opened_text(data: bytes, seal: Seal | None) -> bytes | None:
    """Return the text from which ``sealed_text`` made ``data``; None if the code is not valid."""
    if seal is None:
        return data
    text, line = data[:-_TEXT_LINE_BYTES], data[-_TEXT_LINE_BYTES:]
    mac = line[len(b"mac ") : -1].decode("ascii", "replace")
    return text if line == _TEXT_LINE % mac.encode() and seal.fits(text, mac) else None


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
