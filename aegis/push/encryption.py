"""The content of a push message for one browser: ``aes128gcm`` (RFC 8188, RFC 8291).

Only the browser can read it: the push service has neither its private key nor its secret.
"""

from __future__ import annotations

import base64
import os

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aegis.push.notices import MAX_PLAIN_BYTES

CURVE = ec.SECP256R1()
PAD_BYTES = 512
"""A message is padded to a multiple of this, so that its length says little."""

_RECORD_BYTES = 4_096
_LAST_RECORD = b"\x02"


def encrypted(
    content: bytes,
    p256dh: str,
    auth: str,
    *,
    sender: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes | None = None,
    pad_bytes: int = PAD_BYTES,
) -> bytes:
    """Return the body of a message with ``content``, for a browser with these keys.

    ``sender`` and ``salt`` are of one message only; given, they make it reproducible. Raises
    ``ValueError`` for a key that is none.
    """
    if len(content) > MAX_PLAIN_BYTES:
        raise ValueError(f"the content has {len(content)} bytes, more than {MAX_PLAIN_BYTES}")
    sender = ec.generate_private_key(CURVE) if sender is None else sender
    salt = os.urandom(16) if salt is None else salt
    browser, own = read_key(p256dh), point_of(sender.public_key())
    shared = sender.exchange(ec.ECDH(), browser)
    info = b"WebPush: info\0" + point_of(browser) + own
    secret = _derived(shared, from_base64url(auth), info, 32)
    key = _derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
    padding = bytes(-(len(content) + 1) % pad_bytes) if pad_bytes else b""
    sealed = AESGCM(key).encrypt(nonce, content + _LAST_RECORD + padding, None)
    head = salt + _RECORD_BYTES.to_bytes(4, "big") + len(own).to_bytes(1, "big") + own
    return head + sealed


def read_key(text: str) -> ec.EllipticCurvePublicKey:
    """Return the public key of a browser. Raises ``ValueError``."""
    return ec.EllipticCurvePublicKey.from_encoded_point(CURVE, from_base64url(text))


def point_of(key: ec.EllipticCurvePublicKey) -> bytes:
    """Return a public key as 65 bytes, an uncompressed point."""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def base64url(data: bytes) -> str:
    """Return bytes in base64url, without padding."""
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def from_base64url(text: str) -> bytes:
    """Return the bytes of base64url, with or without padding. Raises ``ValueError``."""
    bare = text.rstrip("=")
    return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)
