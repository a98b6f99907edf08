"""The errors of the codec, and their sentences: the position and the problem.

A reader of the codec raises ``Misfit``; each list, object or class around it notes its own step;
``sentence_of`` puts place and problem together, for people: ``env.PATH must be text, not 7``.
"""

from __future__ import annotations

import difflib
import json
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from cattrs.errors import AttributeValidationNote, ClassValidationError, ForbiddenExtraKeysError

_SHOWN_CHARS = 60
_SHOWN_PLACE_CHARS = 120
_SHOWN_NAMES = 24
_BITS_PER_DIGIT = 3.3219

_PHRASES: dict[Any, str] = {
    str: "text",
    bytes: "bytes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
    Any: "anything",
    object: "anything",
}


class Misfit(Exception):
    """One value does not fit; ``problem`` follows its place in a sentence."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class Within(Exception):
    """``cause`` happened one ``step`` (``[3]``, ``.PATH``) further in."""

    def __init__(self, step: str, cause: Exception) -> None:
        super().__init__(step)
        self.step = step
        self.cause = cause


def must_be(allowed: str, value: object) -> Misfit:
    """The misfit of ``value`` where only ``allowed`` (a phrase) fits."""
    return Misfit(f"must be {allowed}, not {shown(value)}")


def phrase_of(form: Any) -> str:
    """Return the values that a type allows, as a noun phrase: ``a number or null``."""
    origin, members = get_origin(form), get_args(form)
    if origin in (Union, types.UnionType):
        return _either([phrase_of(member) for member in members])
    if origin is Literal:
        return _either([shown(value) for value in members])
    if origin is tuple and members[-1] is not Ellipsis:
        return f"a list of {len(members)}"
    if origin in (list, tuple):
        return "a list"
    return _PHRASES.get(form, "an object")


def _either(phrases: Iterable[str]) -> str:
    *firsts, last = dict.fromkeys(phrases)
    return f"{', '.join(firsts)} or {last}" if firsts else last


def step_to(key: object) -> str:
    """The step to ``key`` of an object: ``.PATH``, or ``["a b"]`` where a dot would mislead."""
    plain = isinstance(key, str) and key.isidentifier() and len(key) <= _SHOWN_CHARS
    return f".{key}" if plain else f"[{shown(key)}]"


def shown(value: object) -> str:
    """``value`` as JSON would write it, one short line without control characters."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f'"{_printable(value)}"'
    if isinstance(value, int):
        return _shown_int(value)
    if isinstance(value, float):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, (list, tuple)) else f"a {type(value).__name__}"


def _shown_int(value: int) -> str:
    if value.bit_length() <= 128:
        return str(value)
    return f"a number of about {value.bit_length() / _BITS_PER_DIGIT:.0f} digits"


def _printable(text: str) -> str:
    short = text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
    if short.isprintable():
        return short
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)


def sentence_of(error: Exception) -> str:
    """The one sentence about ``error``: of several misfits, the first; unknown names come first.

    Raises the innermost error itself if it is no misfit, which is a bug in a validator.
    """
    place = ""
    while True:
        if isinstance(error, Within):
            place, error = place + error.step, error.cause
        elif isinstance(error, ClassValidationError):
            step, error = _first_of(error)
            place += step
        else:
            break
    return _sentence(place.removeprefix("."), error)


def _sentence(place: str, error: Exception) -> str:
    if len(place) > _SHOWN_PLACE_CHARS:
        place = f"…{place[-_SHOWN_PLACE_CHARS:]}"
    if isinstance(error, Misfit):
        return f"{place or 'the document'} {error.problem}"
    if isinstance(error, ForbiddenExtraKeysError):
        return _unknown_name(place, error)
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, ValueError):
        return f"{place}: {error}" if place else str(error)
    raise error


def _first_of(error: ClassValidationError) -> tuple[str, Exception]:
    for inner in error.exceptions:
        if isinstance(inner, ForbiddenExtraKeysError):
            return "", inner
    first = error.exceptions[0]
    for note in getattr(first, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            missing = isinstance(first, KeyError)
            return f".{note.name}", Misfit("is missing") if missing else first
    return "", first


def _unknown_name(place: str, error: ForbiddenExtraKeysError) -> str:
    allowed = [field.name for field in attrs.fields(error.cl) if field.init]
    unknown = min(str(key) for key in error.extra_fields)
    close = difflib.get_close_matches(unknown[:_SHOWN_CHARS], allowed, n=1)
    where = f" in {place}" if place else ""
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    names = ", ".join(allowed[:_SHOWN_NAMES]) or "none"
    return f"there is no argument '{_printable(unknown)}'{where}{hint}; allowed: {names}"
