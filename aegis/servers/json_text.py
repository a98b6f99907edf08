"""The encoding of replies as JSON text in UTF-8. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aegis.path_text import is_utf8

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class UnsendableText(ValueError):
    """A text in the document contains a lone surrogate; the message names its place."""


def json_text(document: Mapping[str, Any]) -> str:
    """Return ``document`` as JSON without blanks.

    Raises ``UnsendableText`` for a lone surrogate, ``ValueError`` for NaN and infinities, which
    JSON cannot express.
    """
    # A lone surrogate would fail in a library below or in the client, without an answer.
    text = _ENCODER.encode(document)
    if not is_utf8(text):
        raise UnsendableText(f"UTF-8 cannot carry the text in {_place(document)}")
    return text


def encode_json(document: Mapping[str, Any]) -> bytes:
    """Return ``document`` as JSON in UTF-8. Raises as ``json_text`` does, or ``UnicodeError``."""
    return _ENCODER.encode(document).encode()


def _place(document: object) -> str:
    """Return the path of the first text with a lone surrogate: ``.result[3].cwd``."""
    items = document.items() if isinstance(document, Mapping) else ()
    for key, value in items:
        if not is_utf8(key):
            return f" the key {key!r}"
        if found := _place(value):
            return f".{key}{found}"
    for number, value in enumerate(document if isinstance(document, list | tuple) else ()):
        if found := _place(value):
            return f"[{number}]{found}"
    return f" ({document[:80]!r})" if isinstance(document, str) and not is_utf8(document) else ""
