"""The types that the codec supports, and the inspection of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_origin

import attrs
from cattrs import Converter

from actors.errors import MisuseError

NONE = type(None)
SCALARS = frozenset({str, bytes, int, float, bool, NONE})
ANYTHING = frozenset({Any, object})

CONVERTER = Converter()
"""The converter that cattrs needs to generate the functions of a class; it has no hooks."""

KINDS: dict[Any, type] = {list: list, tuple: list, dict: dict, Mapping: dict}
"""The container that a type travels as."""


def resolved_fields(cls: type) -> tuple[attrs.Attribute[Any], ...]:
    """The fields of ``cls`` that travel, their types resolved from text to objects."""
    attrs.resolve_types(cls)
    return tuple(field for field in attrs.fields(cls) if field.init)


def is_attrs_class(form: Any) -> bool:
    """Whether ``form`` is an attrs class itself, not a union or a list of some."""
    return isinstance(form, type) and attrs.has(form)


def tag_of(cls: type) -> str | None:
    """The ``tag`` that ``cls`` declares, under which it travels; None: it travels without.

    Raises ``MisuseError`` if a tagged class has a field named ``type``, where the tag goes.
    """
    tag = getattr(cls, "tag", None)
    if not isinstance(tag, str):
        return None
    if any(field.name == "type" for field in attrs.fields(cls)):
        raise MisuseError(f"{cls.__qualname__} has a tag, so it cannot have a field named 'type'")
    return tag


def kind_of(form: Any) -> type:
    """The class of plain value that ``form`` (no attrs class, no Literal) is read from."""
    if form in SCALARS:
        return cast(type, form)
    kind = KINDS.get(get_origin(form))
    if kind is None:
        raise MisuseError(f"the codec does not carry {form!r} in a union")
    return kind
