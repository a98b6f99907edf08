"""Text of agents and programs, escaped for people: nothing in it is hidden or acts. Pure.

A character that a reader cannot see, or that would move, recolour or reorder what is shown, is
replaced by its number, ``<U+202E>``. Nothing is removed. Emoji stay as they are, with the joiners,
selectors and tags that belong to them and to nothing else. Everyday commands import this file, so
it imports nothing. ``static/dom.js`` decides the same for the page.
"""

from __future__ import annotations

# Type checkers take this for true; ``typing`` would cost an everyday command its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_EXACT_INT = 2**53 - 1
"""The largest number that every reader of JSON keeps exactly; larger ones are shown as text."""

# Printable by Python's tables, and blank or invisible on a screen: fillers, joiners, and variation
# selectors, of which a row can encode any bytes behind one visible character.
_INVISIBLE = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F),
            *(0x2800, 0x3164, 0xFFA0, 0x1D159),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)
_WIDE_SPACE = "\u3000"  # the space between words of Chinese and Japanese

# The blocks of emoji, and the signs outside of them that have a form as emoji (emoji-data.txt).
_EMOJI_BLOCKS = (("\u2600", "\u27bf"), ("\U0001f000", "\U0001faff"))
_EMOJI_SIGNS = frozenset(
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194\u2195\u2196\u2197\u2198\u2199\u21a9\u21aa\u231a\u231b"
    "\u2328\u23cf\u23e9\u23ea\u23eb\u23ec\u23ed\u23ee\u23ef\u23f0\u23f1\u23f2\u23f3\u23f8\u23f9\u23fa"
    "\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb\u25fc\u25fd\u25fe\u2934\u2935\u2b05\u2b06\u2b07\u2b1b\u2b1c"
    "\u2b50\u2b55\u3030\u303d\u3297\u3299"
)
_SELECTORS = ("\ufe0e", "\ufe0f")  # shown as text, as an emoji
_TONES = ("\U0001f3fb", "\U0001f3ff")
_JOINER = "\u200d"
_KEYCAP = "\ufe0f\u20e3"
_BLACK_FLAG = "\U0001f3f4"
_END_TAG = "\U000e007f"
# England, Scotland and Wales: the flags that are written with tags.
_TAGGED = tuple(
    "".join(chr(0xE0000 + ord(each)) for each in region) + _END_TAG
    for region in ("gbeng", "gbsct", "gbwls")
)
_OF_EMOJI = frozenset((*_SELECTORS, _JOINER, _END_TAG))


def escape_line(text: str) -> str:
    """Return ``text`` on one line: line ends and tabs are escaped too."""
    return replaced(text, "", _escaped)


def escape_text(text: str) -> str:
    """Return ``text`` with its line ends and tabs."""
    return replaced(text, "\n\t", _escaped)


def replaced(text: str, kept: str, written: Callable[[str], str]) -> str:
    """Return ``text`` with ``written`` in place of each character that is hidden or acts.

    The characters ``kept`` stay.
    """
    rest = text
    for each in kept:
        rest = rest.replace(each, "")
    if rest.isascii() and rest.isprintable():
        return text
    if _OF_EMOJI.isdisjoint(text):
        return "".join(
            [each if _is_plain(each) or each in kept else written(each) for each in text]
        )
    parts, at = [], 0
    while at < len(text):
        end = _emoji_end(text, at)
        each = text[at:end]
        is_shown = end > at + 1 or _is_plain(each) or each in kept
        parts.append(each if is_shown else written(each))
        at = end
    return "".join(parts)


def _emoji_end(text: str, at: int) -> int:
    """Return where the emoji at ``at`` ends; the next character if there is none."""
    first, end = text[at], at + 1
    if first in "0123456789#*":
        return end + len(_KEYCAP) if text.startswith(_KEYCAP, end) else end
    if not _is_emoji(first):
        return end
    if first == _BLACK_FLAG:
        for tags in _TAGGED:
            if text.startswith(tags, end):
                return end + len(tags)
    while True:
        if text[end : end + 1] in _SELECTORS or _TONES[0] <= text[end : end + 1] <= _TONES[1]:
            end += 1
        if text[end : end + 1] != _JOINER or not _is_emoji(text[end + 1 : end + 2]):
            return end
        end += 2


def _is_emoji(character: str) -> bool:
    return character in _EMOJI_SIGNS or any(
        first <= character <= last for first, last in _EMOJI_BLOCKS
    )


def escape_document(document: Any) -> Any:
    """Return a JSON document with its keys and texts escaped by ``escape_text``.

    Keys that become equal by that keep different names: the later ones are numbered.
    """
    if isinstance(document, str):
        return escape_text(document)
    if isinstance(document, list):
        return [escape_document(each) for each in document]
    if isinstance(document, dict):
        return _escaped_object(document)
    if type(document) is int and abs(document) > MAX_EXACT_INT:
        return str(document)
    return document


def _escaped_object(document: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for key, value in document.items():
        name = unnumbered = escape_text(key)
        number = 2
        while name in shown:
            name = f"{unnumbered} ({number})"
            number += 1
        shown[name] = escape_document(value)
    return shown


def shortened(text: str, limit: int) -> str:
    """Return ``text`` of at most ``limit`` characters; a longer one ends with ``…``."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _is_plain(character: str) -> bool:
    if character.isprintable():
        return character not in _INVISIBLE
    # An emoji may be newer than Python's tables.
    return character == _WIDE_SPACE or _is_emoji(character)


def _escaped(character: str) -> str:
    return f"<U+{ord(character):04X}>"
