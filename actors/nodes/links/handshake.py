"""How two nodes prove to each other that they have the same key: bytes in, bytes out. Pure.

The side that listens speaks first. Each names the protocol and its version and gives a nonce; each
proves the key by an HMAC-SHA256 over both openings, under a label of its own, so that what one side
said is no proof of the other (reflection) and no use at another time (replay)::

    listener  -> connector   "AEGISNODE" version nonce
    connector -> listener    "AEGISNODE" version nonce  HMAC(key, "connector" openings)
    listener  -> connector   HMAC(key, "listener" openings)

What comes is looked at byte by byte: anything else than this protocol is refused at the first byte
that differs. Neither side takes a byte more than the handshake has. It is authentication only:
nothing that follows is encrypted or protected against change.
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
    """The side that was connected to. ``greeting`` is to be sent first."""

    def __init__(self, key: bytes, nonce: bytes) -> None:
        self._key = key
        self._got = bytearray()
        self.greeting = _opening(nonce)

    @property
    def wanted(self) -> int:
        """How many bytes are still to come; 0 once the other side has proved the key."""
        return OPENING_BYTES + PROOF_BYTES - len(self._got)

    def feed(self, data: bytes) -> bytes:
        """Take what came and return what is to be sent now.

        Raises ``HandshakeRefused`` at whatever is not this handshake, with the key of this side.
        """
        _take(self._got, data, self.wanted)
        _check_opening(self._got)
        if self.wanted:
            return b""
        openings = self.greeting + bytes(self._got[:OPENING_BYTES])
        _check_proof(self._got[OPENING_BYTES:], _proof(self._key, b"connector", openings))
        return _proof(self._key, b"listener", openings)


class Connector:
    """The side that connected."""

    def __init__(self, key: bytes, nonce: bytes) -> None:
        self._key = key
        self._opening = _opening(nonce)
        self._got = bytearray()

    @property
    def wanted(self) -> int:
        """How many bytes are still to come before there is something to send, or all is proved."""
        return OPENING_BYTES + self._has_opening * PROOF_BYTES - len(self._got)

    @property
    def is_proved(self) -> bool:
        """Whether the other side has proved the key."""
        return len(self._got) == OPENING_BYTES + PROOF_BYTES

    @property
    def _has_opening(self) -> bool:
        return len(self._got) >= OPENING_BYTES

    def feed(self, data: bytes) -> bytes:
        """Take what came and return what is to be sent now.

        Raises ``HandshakeRefused`` at whatever is not this handshake, with the key of this side.
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
