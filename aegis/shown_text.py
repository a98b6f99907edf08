"""Text of agents and programs, escaped for people: nothing in it is hidden or acts. Pure.

A character that a reader cannot see, or that would move, recolour or reorder what is shown, is
replaced by its number, ``<U+202E>``. Nothing is removed. Everyday commands import this file, so it
imports nothing.
"""

from __future__ import annotations

# Type checkers take this for true; ``typing`` would cost an everyday command its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
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


def escape_line(text: str) -> str:
    """Return ``text`` on one line: line ends and tabs are escaped too."""
    if text.isascii() and text.isprintable():
        return text
    return "".join([each if _is_plain(each) else _escaped(each) for each in text])


def escape_text(text: str) -> str:
    """Return ``text`` with its line ends and tabs."""
    if text.isascii() and text.isprintable():
        return text
    return "".join([each if each in "\n\t" or _is_plain(each) else _escaped(each) for each in text])


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
    return character == _WIDE_SPACE


def _escaped(character: str) -> str:
    return f"<U+{ord(character):04X}>"
