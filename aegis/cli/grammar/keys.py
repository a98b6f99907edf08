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
