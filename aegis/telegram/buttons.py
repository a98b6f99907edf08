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

from aegis.telegram.forms import DONE, SKIP

Choice = Literal["once", "session", "deny", "named", "pick"]

LETTERS: dict[str, Choice] = {
    "o": "once",
    "s": "session",
    "d": "deny",
    "n": "named",
    "p": "pick",
}
PLACED: tuple[Choice, ...] = ("named", "pick")
"""The choices with an option."""

_LETTER = {choice: letter for letter, choice in LETTERS.items()}
_SIGNS = {DONE: "--", SKIP: "++"}
_NAMES = {sign: name for name, sign in _SIGNS.items()}

DIGEST_CHARS = 16
TOKEN_CHARS = 24
PLACE_CHARS = 4
"""Two digits of the step, and two of its option or a sign."""


@attrs.frozen
class Pressed:
    """A genuine button: the request, its digest, and the choice.

    ``pick``: ``option`` of the step ``step`` of its form. ``named``: ``option`` of a permission.
    """

    request: str
    digest: str
    choice: Choice
    step: int = 0
    option: str = ""


def button_data(
    secret: str, request: str, digest: str, choice: Choice, *, step: int = 0, option: str = ""
) -> str:
    """Return the data of a button."""
    body = f"{_LETTER[choice]}{request}{digest[:DIGEST_CHARS]}"
    if choice in PLACED:
        body += f"{step:02x}{_SIGNS.get(option) or f'{int(option):02x}'}"
    return f"{body}{_token(secret, body, digest)}"


def read_button(secret: str, data: str, digests: dict[str, str]) -> Pressed | None:
    """Return the meaning of a button; None if this daemon did not make it.

    ``digests`` are those of the requests that were shown in the chat.
    """
    letter, request = data[:1], data[1:13]
    end = 13 + DIGEST_CHARS
    part = data[13:end]
    place = data[end : end + PLACE_CHARS] if LETTERS.get(letter) in PLACED else ""
    token = data[end + len(place) :]
    digest = digests.get(request, "")
    body = f"{letter}{request}{part}{place}"
    wanted = _token(secret, body, digest)
    is_genuine = hmac.compare_digest(token.encode(errors="replace"), wanted.encode())
    if letter not in LETTERS or not digest or not digest.startswith(part) or not is_genuine:
        return None
    if not place:
        return Pressed(request, digest, LETTERS[letter])
    sign = place[2:]
    option = _NAMES.get(sign) or str(int(sign, 16))
    return Pressed(request, digest, LETTERS[letter], int(place[:2], 16), option)


def _token(secret: str, body: str, digest: str) -> str:
    sealed = hmac.new(secret.encode(), f"{body}/{digest}".encode(), hashlib.sha256)
    return sealed.hexdigest()[:TOKEN_CHARS]
