"""The description of a plugin's workflows, with the types of their parameters as plain values.

A type is ``"any"``, ``"text"``, ``"whole number"``, ``"number"``, ``"true or false"``, ``"null"``,
``{"list": TYPE}``, ``{"mapping": TYPE}``, ``{"one of": [VALUE, …]}`` or ``{"any of": [TYPE, …]}``.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Literal, Union, get_args, get_origin

from aegis.workflows.decorator import MARK

MAX_WORKFLOWS = 100
MAX_PARAMETERS = 50
MAX_DOC_CHARS = 500
MAX_TYPE_CHARS = 200

_PLAIN: dict[Any, str] = {
    Any: "any",
    object: "any",
    inspect.Parameter.empty: "any",
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    None: "null",
    type(None): "null",
    list: {"list": "any"},  # type: ignore[dict-item]
    dict: {"mapping": "any"},  # type: ignore[dict-item]
}


class Undescribed(Exception):
    """An annotation that cannot be checked; the text names it and what can be used."""


def functions_of(module: ModuleType) -> dict[str, Any]:
    """Return the workflows that a module defines, by name."""
    return {
        each.__name__: each
        for each in vars(module).values()
        if getattr(each, MARK, False) is True and each.__module__ == module.__name__
    }


def describe(module: ModuleType) -> Iterator[dict[str, Any]]:
    """Yield the description of each workflow of a module; ``problem`` is set where it has one."""
    found = functions_of(module)
    for name, function in list(found.items())[:MAX_WORKFLOWS]:
        description: dict[str, Any] = {
            "name": name,
            "line": function.__code__.co_firstlineno,
            "doc": (inspect.getdoc(function) or "")[:MAX_DOC_CHARS],
        }
        try:
            yield {**description, "parameters": list(_parameters(function))}
        except Undescribed as error:
            yield {**description, "problem": str(error)}
        except Exception as error:  # an annotation may be any code
            yield {**description, "problem": f"its annotations: {type(error).__name__}: {error}"}


def _parameters(function: Any) -> Iterator[dict[str, Any]]:
    hints = typing.get_type_hints(function)
    _, *others = inspect.signature(function).parameters.values()
    if len(others) > MAX_PARAMETERS:
        raise Undescribed(f"it has more than {MAX_PARAMETERS} parameters")
    for each in others:
        hint = hints.get(each.name, each.empty)
        try:
            found = type_of(hint)
        except Undescribed as error:
            raise Undescribed(f"parameter {each.name!r}: {error}") from None
        shown = "" if hint is each.empty else inspect.formatannotation(hint)[:MAX_TYPE_CHARS]
        is_required = each.default is each.empty
        yield {"name": each.name, "type": found, "shown": shown, "required": is_required}


def type_of(hint: Any) -> Any:
    """Return an annotation as a plain value. Raises ``Undescribed``."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is None:
        if isinstance(hint, typing.Hashable) and hint in _PLAIN:
            return _PLAIN[hint]
    elif origin is Literal:
        if all(isinstance(each, str | int | None) for each in arguments):
            return {"one of": list(arguments)}
    elif origin in (Union, types.UnionType):
        return {"any of": [type_of(each) for each in arguments]}
    elif origin in (list, Sequence) and len(arguments) == 1:
        return {"list": type_of(arguments[0])}
    elif origin in (dict, Mapping) and arguments[0] is str:
        return {"mapping": type_of(arguments[1])}
    elif origin is typing.Annotated:
        return type_of(arguments[0])
    raise Undescribed(
        f"{inspect.formatannotation(hint)[:MAX_TYPE_CHARS]} cannot be checked: use str, int, "
        "float, bool, None, Any, list[…], dict[str, …], Literal[…] or a union of these"
    )
