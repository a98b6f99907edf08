"""JSON from clients: a limit on keys, checked before parsing, and a strict parser. Pure.

A message of 4 MiB may contain half a million keys, each compared with a schema: that would block
the event loop for seconds. No command has more than a few dozen keys.

Parsers disagree about the value of a key that an object contains twice (RFC 8259, section 4): one
program might check one value and another program execute the other. So such a key is an error.

The MCP SDK takes a request with an unusual id for a notification, which nobody answers. So ids are
checked before the SDK reads a message.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

MAX_KEYS = 10_000
MAX_SHOWN_CHARS = 80

MAX_ID = 2**53
"""The largest number of an id that every reader of JSON keeps exactly (RFC 7493)."""

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


class BadId(ValueError):
    """The id of a JSON-RPC request is no text and no whole number."""


def make_ids_whole(message: Any) -> bool:
    """Replace the ids of a JSON-RPC message that are whole numbers with a point: 1.0 becomes 1.

    The id of the request that a notification cancels and a progress token count as ids. Return
    whether there was one. Raises ``BadId`` for a request whose id is neither text nor a whole
    number: its sender waits for an answer.
    """
    if not isinstance(message, dict):
        return False
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    places = ((message, "id"), (params, "requestId"), (meta, "progressToken"))
    changed = [_make_whole(each, name) for each, name in places if isinstance(each, dict)]
    if "method" in message and "id" in message and not _is_id(message["id"]):
        raise BadId("the id of a request must be text or a whole number")
    return any(changed)


def _make_whole(document: dict[str, Any], name: str) -> bool:
    value = document.get(name)
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_ID:
        document[name] = int(value)
        return True
    return False


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


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
        shown = twice if len(twice) <= MAX_SHOWN_CHARS else f"{twice[: MAX_SHOWN_CHARS - 1]}…"
        raise RepeatedKey(f"the key {shown!r} appears twice in one object")
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
