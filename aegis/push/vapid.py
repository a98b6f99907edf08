"""The key of the daemon for push services, which shows them who sends (VAPID, RFC 8292).

It is made once, kept in a file of mode 0600, signed like the rest of the state, and survives
restarts: a browser accepts messages of the key with which it has subscribed only.
"""

from __future__ import annotations

import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from aegis.errors import StorageError
from aegis.journal.disk import shown, storage_errors
from aegis.push.encryption import CURVE, base64url, point_of
from aegis.state.sealing import Seal, opened_text, sealed_text
from aegis.state.state_files import read_safely, write_safely

MAX_FILE_BYTES = 256
TOKEN_S = 12 * 3600
"""Seconds for which a token is valid; a day is the most (RFC 8292, 2)."""

CONTACT = "https://github.com/aegis-actors/aegis-actors"
"""The contact in a token: the project's, since the person's is nobody's business."""


class VapidKey:
    """The key pair of a daemon."""

    def __init__(self, private: ec.EllipticCurvePrivateKey) -> None:
        self._private = private
        self.public = base64url(point_of(private.public_key()))
        """The public key, in base64url."""

    def authorization(self, origin: str, now: float) -> str:
        """Return the header ``Authorization`` for a push service at ``origin``, valid for hours."""
        claims = {"aud": origin, "exp": int(now) + TOKEN_S, "sub": CONTACT}
        parts = [{"typ": "JWT", "alg": "ES256"}, claims]
        text = ".".join(base64url(json.dumps(each).encode()) for each in parts)
        signature = self._private.sign(text.encode(), ec.ECDSA(SHA256()))
        numbers = decode_dss_signature(signature)
        raw = b"".join(number.to_bytes(32, "big") for number in numbers)
        return f"vapid t={text}.{base64url(raw)}, k={self.public}"


def open_vapid_key(path: Path, seal: Seal | None) -> VapidKey:
    """Return the key in the file ``path``, which is made if there is none. Blocking.

    Raises ``StorageError`` if the disk refuses, or the file is damaged or of another state.
    """
    with storage_errors("use", path):
        content = read_safely(str(path), MAX_FILE_BYTES)
        if content is None:
            private = ec.generate_private_key(CURVE)
            number = private.private_numbers().private_value
            write_safely(str(path), sealed_text(b"%064x\n" % number, seal), durable=True)
            return VapidKey(private)
    text = opened_text(content, seal) or b""
    try:
        return VapidKey(ec.derive_private_key(int(text, 16), CURVE))
    except ValueError:
        raise StorageError(
            f"{shown(path)} is damaged, or was not written by a daemon of this state; remove it to "
            "get a new key: browsers have to subscribe again"
        ) from None
