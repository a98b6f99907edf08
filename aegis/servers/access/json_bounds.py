"""JSON from clients: a limit on keys, checked before parsing, and a strict parser. Pure.

A message of 4 MiB may contain half a million keys, each compared with a schema: that would block
the event loop for seconds. No command has more than a few dozen keys.

Parsers disagree about the value of a key that an object contains twice (RFC 8259, section 4): one
program might check one value and another program execute the other. So such a key is an error.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from aegis.names import shorten

MAX_KEYS = 10_000

_KEY_ENDS = re.compile(rb'"[ \t\r\n]*:')


def has_too_many_keys(text: bytes) -> bool:
    """Return whether the objects in ``text`` have more than ``MAX_KEYS`` keys together.

    Text that is not JSON is counted as if it were. A string value that begins with a colon, or
    with blanks and a colon, counts too.
    """
    if text.count(b":") <= MAX_KEYS:
        return False
    count = 0
    for found in _KEY_ENDS.finditer(text):
        count += not _is_escaped(text, found.start())
        if count > MAX_KEYS:
            return True
    return False


class RepeatedKey(ValueError):
    """An object of the JSON text contains a key twice."""


def read_json(text: str | bytes) -> Any:
    """Return the document that ``text`` is.

    Raises ``RepeatedKey``, ``ValueError`` for any other text that is not JSON in UTF-8, NaN and
    infinities included, and ``RecursionError`` for JSON that is nested too deeply.
    """
    return _DECODER.decode(text if isinstance(text, str) else text.decode())


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RepeatedKey(f"the key {shorten(twice)!r} appears twice in one object")
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)


def _is_escaped(text: bytes, quote: int) -> bool:
    """Return whether an odd number of backslashes precedes the quote: it is part of a string."""
    before = quote
    while before and text[before - 1] == 0x5C:
        before -= 1
    return (quote - before) % 2 == 1
