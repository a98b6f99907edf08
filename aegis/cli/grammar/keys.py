r"""Notations of keys: escapes (``\r``, ``\e[A``, ``\x03``) and detach keys (``ctrl-\,d``). Pure."""

from __future__ import annotations

import re

_SIMPLE = {"r": "\r", "n": "\n", "t": "\t", "e": "\x1b", "\\": "\\"}
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|([rnte\\])|(.?))", re.DOTALL)


def keys_of(text: str) -> str:
    r"""Replace the escapes in ``text``: ``\r \n \t \e \\``, ``\xHH`` and ``\uHHHH``.

    Raises ``ValueError`` with one sentence for any other escape.
    """
    return _ESCAPE.sub(_replace, text)


def _replace(match: re.Match[str]) -> str:
    two_digits, four_digits, simple, unknown = match.groups()
    if unknown is not None:
        raise ValueError(
            rf"'\{unknown}' is not an escape here: use \r \n \t \e \\ \xHH or \uHHHH, or --literal"
        )
    return _SIMPLE[simple] if simple else chr(int(two_digits or four_digits, 16))


DEFAULT_DETACH_KEYS = r"ctrl-\,d"
MAX_KEYS = 8

_CTRL = "ctrl-"
_CTRL_CHARACTERS = "@abcdefghijklmnopqrstuvwxyz[\\]^_"
_COMMA = "comma"


def parse_detach_keys(text: str) -> bytes:
    """Return the bytes of the keys in ``text``, which are separated by commas.

    A key is an ASCII character other than a blank (``comma`` for a comma), or ``ctrl-`` with a
    letter or one of ``@ [ \\ ] ^ _``. The first key is a ``ctrl-`` key, so that ordinary text never
    detaches. Raises ``ValueError`` with one sentence.
    """
    words = text.split(",")
    keys = bytes(_byte(word) for word in words)
    if len(keys) > MAX_KEYS:
        raise ValueError(f"at most {MAX_KEYS} keys can detach, not {len(keys)}")
    if keys[0] >= 0x20:
        raise ValueError(f"the first key must be like ctrl-a, not {words[0]!r}")
    return keys


def _byte(word: str) -> int:
    if word.lower() == _COMMA:
        return ord(",")
    if word.lower().startswith(_CTRL):
        at = _CTRL_CHARACTERS.find(word.lower().removeprefix(_CTRL))
        if at >= 0 and len(word) == len(_CTRL) + 1:
            return at
    elif len(word) == 1 and "!" <= word <= "~":
        return ord(word)
    raise ValueError(
        rf"{word!r} is not a key: write one character, or ctrl- and one of a-z @ [ \ ] ^ _, "
        "with commas between keys"
    )


def shown_keys(keys: bytes) -> str:
    r"""Return the keys as text for people: ``Ctrl-\ d``."""
    return " ".join(
        f"Ctrl-{_CTRL_CHARACTERS[key].upper()}" if key < 0x20 else chr(key) for key in keys
    )


class DetachKeys:
    """A scanner of typed input, fed in pieces of any size, that finds the detach ``keys``.

    A prefix of the keys is withheld until the next key decides; if another key follows, the prefix
    is passed on. The first key pressed twice is passed on once.
    """

    def __init__(self, keys: bytes) -> None:
        self._keys = keys
        self._found = 0

    def feed(self, typed: bytes) -> tuple[bytes, bool]:
        """Return the input for the terminal, and whether the keys are complete.

        Input after the complete keys is dropped.
        """
        if self._found == 0 and self._keys[0] not in typed:
            return typed, False
        passed = bytearray()
        for key in typed:
            if key == self._keys[self._found]:
                self._found += 1
                if self._found == len(self._keys):
                    return bytes(passed), True
            else:
                passed += self._mismatch(key)
        return bytes(passed), False

    def _mismatch(self, key: int) -> bytes:
        """Return the withheld input and ``key``, which did not match."""
        held, self._found = self._keys[: self._found], 0
        if held == bytes([key]):
            return held
        if held and key == self._keys[0]:
            self._found = 1
            return held
        return held + bytes([key])
