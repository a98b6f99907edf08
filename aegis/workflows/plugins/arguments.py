"""The check of a workflow's arguments against the types of its parameters. Pure.

The types are those that ``child.describing`` makes of annotations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from aegis.names import nearest, shorten

MAX_SHOWN_CHARS = 80


@attrs.frozen(kw_only=True)
class WorkflowParameter:
    """A parameter of a workflow; ``shown`` is its annotation as text."""

    name: str
    type: Any
    shown: str
    required: bool


def problem_with(parameters: Sequence[WorkflowParameter], given: Mapping[str, Any]) -> str | None:
    """Return why the arguments do not fit, in one sentence; None if they do."""
    known = [each.name for each in parameters]
    for name in given:
        if name not in known:
            return f"there is no argument {shorten(name)!r}; {_hint(name, known)}"
    for each in parameters:
        if each.name not in given:
            if each.required:
                return f"the argument {each.name!r} is missing{_of(each)}"
        elif not fits(each.type, given[each.name]):
            shown = shorten(repr(given[each.name]), MAX_SHOWN_CHARS)
            return f"the argument {each.name!r} must be {name_of(each.type)}, not {shown}"
    return None


def fits(kind: Any, value: Any) -> bool:
    """Return whether a JSON value is of a type."""
    match kind:
        case {"list": inner}:
            return isinstance(value, list) and all(fits(inner, each) for each in value)
        case {"mapping": inner}:
            return isinstance(value, dict) and all(fits(inner, each) for each in value.values())
        case {"one of": [*choices]}:
            return any(type(each) is type(value) and each == value for each in choices)
        case {"any of": [*kinds]}:
            return any(fits(each, value) for each in kinds)
        case "any":
            return True
    # ``type``, not ``isinstance``: true is no number.
    return type(value) in _PLAIN.get(kind, ())


_PLAIN: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "whole number": (int,),
    "number": (int, float),
    "true or false": (bool,),
    "null": (type(None),),
}


def name_of(kind: Any) -> str:
    """Return a type in words, with its article."""
    match kind:
        case {"list": inner}:
            return f"a list, each {name_of(inner)}"
        case {"mapping": inner}:
            return f"a mapping of names, each {name_of(inner)}"
        case {"one of": [*choices]}:
            return " or ".join(map(repr, choices))
        case {"any of": [*kinds]}:
            return " or ".join(map(name_of, kinds))
    return _NAMES.get(kind, str(kind))


_NAMES = {
    "any": "any value",
    "text": "a text",
    "whole number": "a whole number",
    "number": "a number",
    "true or false": "true or false",
    "null": "null",
}


def _hint(name: str, known: Sequence[str]) -> str:
    if not known:
        return "it takes none"
    close = nearest(name[:MAX_SHOWN_CHARS], known, most=1)
    return f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(known)}"


def _of(parameter: WorkflowParameter) -> str:
    return f": {name_of(parameter.type)}" if parameter.type != "any" else ""
