"""The data of buttons: a choice for one request, sealed with a secret. Pure.

Telegram lets a client send any data as a pressed button. So the data has a token that only this
daemon can make, over the request, its digest and the choice; and a part of the digest, which names
what was shown. It fits the 64 bytes that Telegram allows.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Literal

import attrs

Choice = Literal["once", "session", "deny"]

LETTERS: dict[str, Choice] = {"o": "once", "s": "session", "d": "deny"}
_LETTER = {choice: letter for letter, choice in LETTERS.items()}

DIGEST_CHARS = 16
TOKEN_CHARS = 24


@attrs.frozen
class Pressed:
    """A genuine button: the request, the beginning of its digest, and the choice."""

    request: str
    digest: str
    choice: Choice


def button_data(secret: str, request: str, digest: str, choice: Choice) -> str:
    """Return the data of a button."""
    body = f"{_LETTER[choice]}{request}{digest[:DIGEST_CHARS]}"
    return f"{body}{_token(secret, body, digest)}"


def read_button(secret: str, data: str, digests: dict[str, str]) -> Pressed | None:
    """Return the meaning of a button; None if this daemon did not make it.

    ``digests`` are those of the requests that were shown in the chat.
    """
    letter, request = data[:1], data[1:13]
    part, token = data[13 : 13 + DIGEST_CHARS], data[13 + DIGEST_CHARS :]
    digest = digests.get(request, "")
    body = f"{letter}{request}{part}"
    wanted = _token(secret, body, digest)
    is_genuine = hmac.compare_digest(token.encode(errors="replace"), wanted.encode())
    if letter not in LETTERS or not digest or not digest.startswith(part) or not is_genuine:
        return None
    return Pressed(request, digest, LETTERS[letter])


def _token(secret: str, body: str, digest: str) -> str:
    sealed = hmac.new(secret.encode(), f"{body}/{digest}".encode(), hashlib.sha256)
    return sealed.hexdigest()[:TOKEN_CHARS]
