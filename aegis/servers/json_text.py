"""Replies as JSON text that UTF-8 can carry. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aegis.path_text import is_utf8


class UnsendableText(ValueError):
    """A document cannot be sent: a text in it holds a lone surrogate. The message says where."""


def json_text(document: Mapping[str, Any]) -> str:
    """Return ``document`` as JSON without blanks.

    Raises ``UnsendableText``: a client's decoder, or the encoder of a library below, would fail on
    it without an answer. ``ValueError`` for NaN and infinities, which JSON has no form for.
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if not is_utf8(text):
        raise UnsendableText(f"UTF-8 cannot carry the text in {_place(document)}")
    return text


def _place(document: object) -> str:
    """Where the first text is that cannot be sent: ``.result[3].cwd``."""
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
