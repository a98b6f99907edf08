r"""Keys as they are written on a command line: ``\r``, ``\e[A``, ``\x03``. Pure."""

from __future__ import annotations

import re

_SIMPLE = {"r": "\r", "n": "\n", "t": "\t", "e": "\x1b", "\\": "\\"}
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|([rnte\\])|(.?))", re.DOTALL)


def keys_of(text: str) -> str:
    r"""``text`` with its escapes replaced: ``\r \n \t \e \\``, ``\xHH`` and ``\uHHHH``.

    Raises ``ValueError`` with one sentence for any other escape.
    """
    return _ESCAPE.sub(_replace, text)


def _replace(match: re.Match[str]) -> str:
    two_digits, four_digits, simple, unknown = match.groups()
    if unknown is not None:
        raise ValueError(
            rf"'\{unknown}' is no escape here: use \r \n \t \e \\ \xHH or \uHHHH, or --literal"
        )
    return _SIMPLE[simple] if simple else chr(int(two_digits or four_digits, 16))


DEFAULT_DETACH_KEYS = r"ctrl-\,d"
MAX_KEYS = 8

_CTRL = "ctrl-"
_CTRL_CHARACTERS = "@abcdefghijklmnopqrstuvwxyz[\\]^_"
_COMMA = "comma"


def parse_detach_keys(text: str) -> bytes:
    """The bytes of the keys that ``text`` names.

    Each is one ASCII character that is no blank (``comma`` for a comma), or ``ctrl-`` with a letter
    or one of ``@ [ \\ ] ^ _``. The first is a ``ctrl-`` one: what is only written never detaches.
    Raises ``ValueError`` with one sentence.
    """
    words = text.split(",")
    keys = bytes(_byte(word) for word in words)
    if len(keys) > MAX_KEYS:
        raise ValueError(f"at most {MAX_KEYS} keys can detach, not {len(keys)}")
    if keys[0] >= 0x20:
        raise ValueError(f"the first of the keys must be like ctrl-a, not {words[0]!r}")
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
        rf"{word!r} is no key here: write one character, or ctrl- and one of a-z @ [ \ ] ^ _, "
        "with commas between keys"
    )


def shown_keys(keys: bytes) -> str:
    r"""The keys for people: ``Ctrl-\ d``."""
    return " ".join(
        f"Ctrl-{_CTRL_CHARACTERS[key].upper()}" if key < 0x20 else chr(key) for key in keys
    )


class DetachKeys:
    """Follows what is typed, cut anywhere, and finds the ``keys``.

    Keys that begin like them and then go on otherwise are typed after all. The first key twice
    types it once.
    """

    def __init__(self, keys: bytes) -> None:
        self._keys = keys
        self._found = 0

    def feed(self, typed: bytes) -> tuple[bytes, bool]:
        """What of ``typed`` is for the terminal, and whether the keys are complete now.

        What stands behind the complete keys is dropped.
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
                passed += self._given_up(key)
        return bytes(passed), False

    def _given_up(self, key: int) -> bytes:
        """What is to be typed, now that ``key`` is not the one that was looked for."""
        held, self._found = self._keys[: self._found], 0
        if held == bytes([key]):
            return held
        if held and key == self._keys[0]:
            self._found = 1
            return held
        return held + bytes([key])
