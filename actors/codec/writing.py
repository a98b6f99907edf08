"""Writers: from a value to a plain document. Values are trusted to be what their class says."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, get_args, get_origin

from cattrs.gen import make_dict_unstructure_fn, override

from actors.codec.forms import (
    ANYTHING,
    CONVERTER,
    KINDS,
    SCALARS,
    is_attrs_class,
    resolved_fields,
    tag_of,
)
from actors.errors import MisuseError

Writer = Callable[[Any], Any]


@functools.cache
def writer_of(form: Any) -> Writer:
    """The writer of a type, made once; ``MisuseError`` if the codec does not carry it."""
    if form in SCALARS or form in ANYTHING or get_origin(form) is Literal:
        return _as_it_is
    origin, members = get_origin(form), get_args(form)
    if origin in (Union, types.UnionType):
        return _union_writer(members)
    if origin is list or (origin is tuple and members[-1] is Ellipsis):
        return _list_writer(_inner_writer(members[0]))
    if origin is tuple:
        return _tuple_writer([_inner_writer(member) for member in members])
    if origin in (dict, Mapping):
        return _dict_writer(_inner_writer(members[1]))
    if is_attrs_class(form):
        return _class_writer(form)
    raise MisuseError(f"the codec does not carry {form!r}")


def _as_it_is(value: Any) -> Any:
    return value


def _inner_writer(form: Any) -> Writer:
    if is_attrs_class(form):
        return lambda value: writer_of(form)(value)
    return writer_of(form)


def _list_writer(write_item: Writer) -> Writer:
    if write_item is _as_it_is:
        return list
    return lambda value: [write_item(item) for item in value]


def _tuple_writer(writers: list[Writer]) -> Writer:
    return lambda value: [write(item) for write, item in zip(writers, value, strict=True)]


def _dict_writer(write_item: Writer) -> Writer:
    if write_item is _as_it_is:
        return dict
    return lambda value: {key: write_item(item) for key, item in value.items()}


def _union_writer(members: tuple[Any, ...]) -> Writer:
    containers = {
        KINDS[get_origin(member)]: writer_of(member)
        for member in members
        if get_origin(member) in KINDS
    }

    def write(value: Any) -> Any:
        form: Any = type(value)
        if form in SCALARS:
            return value
        if is_attrs_class(form):
            return writer_of(form)(value)
        return containers[dict if isinstance(value, Mapping) else list](value)

    return write


def _class_writer(cls: type) -> Writer:
    writers = {
        field.name: override(unstruct_hook=_inner_writer(field.type))
        for field in resolved_fields(cls)
    }
    write: Writer = make_dict_unstructure_fn(
        cls,
        CONVERTER,
        **writers,  # type: ignore[arg-type]
    )
    tag = tag_of(cls)
    return write if tag is None else lambda value: {"type": tag, **write(value)}
