"""The handshake by which two nodes prove to each other that they have the same key. Pure.

The listener sends first. Each side sends the protocol, its version and a nonce, and proves the key
by an HMAC-SHA256 over both openings, under a label of its own. The labels prevent reflection, the
nonces prevent replay::

    listener  -> connector   "AEGISNODE" version nonce
    connector -> listener    "AEGISNODE" version nonce  HMAC(key, "connector" openings)
    listener  -> connector   HMAC(key, "listener" openings)

Input is checked byte by byte: another protocol is refused at the first byte that differs. Neither
side reads a byte beyond the handshake. It is authentication only: the data that follows is neither
encrypted nor protected against change.
"""

from __future__ import annotations

import hashlib
import hmac

from actors.errors import HandshakeRefused

VERSION = 1
NONCE_BYTES = 32
PROOF_BYTES = hashlib.sha256().digest_size
_MAGIC = b"AEGISNODE"
OPENING_BYTES = len(_MAGIC) + 1 + NONCE_BYTES


class Listener:
    """The listening side. Send ``greeting`` first."""

    def __init__(self, key: bytes, nonce: bytes) -> None:
        self._key = key
        self._got = bytearray()
        self.greeting = _opening(nonce)

    @property
    def wanted(self) -> int:
        """The number of bytes still to read; 0 once the other side has proved the key."""
        return OPENING_BYTES + PROOF_BYTES - len(self._got)

    def feed(self, data: bytes) -> bytes:
        """Read ``data`` and return the bytes to send now.

        Raises ``HandshakeRefused`` for another protocol and for another key.
        """
        _take(self._got, data, self.wanted)
        _check_opening(self._got)
        if self.wanted:
            return b""
        openings = self.greeting + bytes(self._got[:OPENING_BYTES])
        _check_proof(self._got[OPENING_BYTES:], _proof(self._key, b"connector", openings))
        return _proof(self._key, b"listener", openings)


class Connector:
    """The connecting side."""

    def __init__(self, key: bytes, nonce: bytes) -> None:
        self._key = key
        self._opening = _opening(nonce)
        self._got = bytearray()

    @property
    def wanted(self) -> int:
        """The number of bytes to read before the next step."""
        return OPENING_BYTES + self._has_opening * PROOF_BYTES - len(self._got)

    @property
    def is_proved(self) -> bool:
        """Whether the other side has proved the key."""
        return len(self._got) == OPENING_BYTES + PROOF_BYTES

    @property
    def _has_opening(self) -> bool:
        return len(self._got) >= OPENING_BYTES

    def feed(self, data: bytes) -> bytes:
        """Read ``data`` and return the bytes to send now.

        Raises ``HandshakeRefused`` for another protocol and for another key.
        """
        before = self._has_opening
        _take(self._got, data, self.wanted)
        _check_opening(self._got)
        openings = bytes(self._got[:OPENING_BYTES]) + self._opening
        if self.is_proved:
            _check_proof(self._got[OPENING_BYTES:], _proof(self._key, b"listener", openings))
        if self._has_opening and not before:
            return self._opening + _proof(self._key, b"connector", openings)
        return b""


def _opening(nonce: bytes) -> bytes:
    if len(nonce) != NONCE_BYTES:
        raise ValueError(f"a nonce has {NONCE_BYTES} bytes")
    return _MAGIC + bytes([VERSION]) + nonce


def _proof(key: bytes, role: bytes, openings: bytes) -> bytes:
    return hmac.digest(key, role + b"\0" + openings, "sha256")


def _take(got: bytearray, data: bytes, wanted: int) -> None:
    if len(data) > wanted:
        raise HandshakeRefused("It sent more than the handshake has.")
    got += data


def _check_opening(got: bytearray) -> None:
    start = bytes(got[: len(_MAGIC)])
    if not _MAGIC.startswith(start):
        raise HandshakeRefused("It does not speak the protocol of nodes.")
    if len(got) > len(_MAGIC) and got[len(_MAGIC)] != VERSION:
        raise HandshakeRefused(
            f"It speaks version {got[len(_MAGIC)]} of the protocol of nodes, not {VERSION}:"
            " install the same version on both sides."
        )


def _check_proof(given: bytes | bytearray, wanted: bytes) -> None:
    if not hmac.compare_digest(given, wanted):
        raise HandshakeRefused("It has another key.")
