"""Checking names as they come in, and guessing which one was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from aegis.errors import InvalidRequest
from aegis.protocol.naming import NAME_RULE, RESERVED_HANDLES, is_name, name_key


def check_name(name: str, *, kind: str) -> str:
    """``name`` itself if it fits the rule.

    Raises ``InvalidRequest`` with the rule otherwise; ``kind`` ("terminal name", "handle") opens
    the sentence.
    """
    if not is_name(name):
        raise InvalidRequest(f"{kind} {shorten(name)!r} is not a name: use {NAME_RULE}")
    return name


def check_handle(handle: str) -> str:
    """``handle`` itself if it is a name and not reserved; raises ``InvalidRequest`` otherwise."""
    check_name(handle, kind="handle")
    if name_key(handle) in RESERVED_HANDLES:
        raise InvalidRequest(
            f"handle {handle!r} is reserved: 'human', 'substrate' and 'all' cannot be an agent's"
        )
    return handle


def nearest(name: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """The names of ``known`` that look most like ``name``, best first, at most ``most``."""
    by_key = {name_key(candidate): candidate for candidate in known}
    close = difflib.get_close_matches(name_key(name), by_key, n=most, cutoff=0.6)
    return [by_key[key] for key in close]


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a question after the nearest names; ``otherwise`` if no known name is near."""
    close = nearest(name, known)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else otherwise


def shorten(text: str, limit: int = 80) -> str:
    """``text`` cut to ``limit`` characters for use inside a sentence."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
