"""How much JSON is looked at: a bound on its keys, found before it is read. Pure.

A message of 4 MiB may hold half a million keys, each of which is held against a schema: seconds in
which nobody else is served. No command has more than a few dozen.
"""

from __future__ import annotations

import re

MAX_KEYS = 10_000

_KEY_ENDS = re.compile(rb'"[ \t\r\n]*:')


def has_too_many_keys(text: bytes) -> bool:
    """Whether the objects in ``text`` have more than ``MAX_KEYS`` keys together.

    Text that is no JSON is counted as if it were. A value that begins with a colon,
    or with blanks and a colon, counts too.
    """
    if text.count(b":") <= MAX_KEYS:
        return False
    count = 0
    for found in _KEY_ENDS.finditer(text):
        count += not _is_escaped(text, found.start())
        if count > MAX_KEYS:
            return True
    return False


def _is_escaped(text: bytes, quote: int) -> bool:
    """Whether the quote stands inside of a string: behind an odd number of backslashes."""
    before = quote
    while before and text[before - 1] == 0x5C:
        before -= 1
    return (quote - before) % 2 == 1
