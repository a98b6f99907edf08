"""Readers: from a plain document to a value, refusing all that does not fit."""

from __future__ import annotations

import functools
import itertools
import math
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin

from cattrs.gen import make_dict_structure_fn, override

from actors.codec.forms import (
    ANYTHING,
    CONVERTER,
    NONE,
    SCALARS,
    is_attrs_class,
    kind_of,
    resolved_fields,
    tag_of,
)
from actors.codec.misfit import Misfit, Within, must_be, phrase_of, step_to
from actors.errors import MisuseError

MAX_INT = 2**53 - 1
"""The largest int that every reader of JSON keeps exactly; its negative is the smallest."""

Reader = Callable[[Any, Any], Any]
"""(document, type) -> value: the shape that cattrs calls; the type is not looked at here."""


@functools.cache
def reader_of(form: Any) -> Reader:
    """The reader of a type, made once; ``MisuseError`` if the codec does not carry it."""
    if form in _PLAIN_READERS:
        return _PLAIN_READERS[form]
    origin, members = get_origin(form), get_args(form)
    if origin in (Union, types.UnionType):
        return _union_reader(form, members)
    if origin is Literal:
        return _literal_reader(members, phrase_of(form))
    if origin is list:
        return _list_reader(_inner(members[0]), list)
    if origin is tuple:
        return _tuple_reader(members)
    if origin in (dict, Mapping) and members[0] is str:
        return _dict_reader(_inner(members[1]))
    if is_attrs_class(form):
        return _class_reader(form)
    raise MisuseError(f"the codec does not carry {form!r}")


def _read_text(value: Any, _: Any) -> str:
    if type(value) is not str:
        raise must_be("text", value)
    if not value.isascii():
        _refuse_surrogates(value)
    return value


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Misfit(
            f"must be text without lone surrogates, but character {error.start} is one "
            f"(U+{ord(text[error.start]):04X})"
        ) from None


def _read_bytes(value: Any, _: Any) -> bytes:
    if type(value) is not bytes:
        raise must_be("bytes", value)
    return value


def _read_int(value: Any, _: Any) -> int:
    if type(value) is not int:
        raise must_be("a whole number", value)
    if not -MAX_INT <= value <= MAX_INT:
        raise must_be(f"a whole number from {-MAX_INT} to {MAX_INT}", value)
    return value


def _read_float(value: Any, _: Any) -> float:
    if type(value) is int and -MAX_INT <= value <= MAX_INT:
        return float(value)
    if type(value) is int:
        raise must_be(f"a number from {-MAX_INT} to {MAX_INT}, or one with a point", value)
    if type(value) is not float:
        raise must_be("a number", value)
    if not math.isfinite(value):
        raise must_be("a finite number", value)
    return value


def _read_bool(value: Any, _: Any) -> bool:
    if type(value) is not bool:
        raise must_be("true or false", value)
    return value


def _read_none(value: Any, _: Any) -> None:
    if value is not None:
        raise must_be("null", value)


def _read_anything(value: Any, _: Any) -> Any:
    return value


_PLAIN_READERS: dict[Any, Reader] = {
    str: _read_text,
    bytes: _read_bytes,
    int: _read_int,
    float: _read_float,
    bool: _read_bool,
    NONE: _read_none,
    **dict.fromkeys(ANYTHING, _read_anything),
}


def _literal_reader(values: tuple[Any, ...], allowed: str) -> Reader:
    accepted = frozenset((type(value), value) for value in values)

    def read(value: Any, _: Any) -> Any:
        # The class counts too: 1 == True.
        if type(value) not in SCALARS or (type(value), value) not in accepted:
            raise must_be(allowed, value)
        return value

    return read


def _list_reader(read_item: Reader, make: Callable[[list[Any]], Any]) -> Reader:
    def read(value: Any, _: Any) -> Any:
        if type(value) is not list:
            raise must_be("a list", value)
        return make(_read_items(itertools.repeat(read_item), value))

    return read


def _tuple_reader(members: tuple[Any, ...]) -> Reader:
    if len(members) == 2 and members[1] is Ellipsis:
        return _list_reader(_inner(members[0]), tuple)
    readers = [_inner(member) for member in members]

    def read(value: Any, _: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(readers):
            raise must_be(f"a list of {len(readers)}", value)
        return tuple(_read_items(readers, value))

    return read


def _read_items(readers: Iterable[Reader], items: list[Any]) -> list[Any]:
    done: list[Any] = []
    try:
        for read_item, item in zip(readers, items, strict=False):
            done.append(read_item(item, None))
    except Exception as error:
        raise Within(f"[{len(done)}]", error) from None
    return done


def _dict_reader(read_item: Reader) -> Reader:
    def read(value: Any, _: Any) -> dict[str, Any]:
        if not _is_object(value):
            raise must_be("an object", value)
        items: dict[str, Any] = {}
        for key, item in value.items():
            try:
                items[_read_text(key, str)] = read_item(item, None)
            except Exception as error:
                raise Within(step_to(key), error) from None
        return items

    return read


def _class_reader(cls: type) -> Reader:
    tag = tag_of(cls)
    readers = {
        field.name: override(struct_hook=_inner(field.type)) for field in resolved_fields(cls)
    }
    make: Reader = make_dict_structure_fn(
        cls,
        CONVERTER,
        _cattrs_forbid_extra_keys=True,
        _cattrs_detailed_validation=True,
        **readers,  # type: ignore[arg-type]
    )

    def read(value: Any, _: Any) -> Any:
        if not _is_object(value):
            raise must_be("an object", value)
        return make(value if tag is None else _untagged(value, tag), cls)

    return read


def _inner(form: Any) -> Reader:
    """The reader of a part. A class is looked up only when it is met: it may contain itself."""
    if is_attrs_class(form):
        return lambda value, _: reader_of(form)(value, form)
    return reader_of(form)


def _untagged(value: Mapping[str, Any], tag: str) -> dict[str, Any]:
    given = _given_tag(value)
    if given != tag:
        raise Within(".type", must_be(f'"{tag}"', given))
    return {name: part for name, part in value.items() if name != "type"}


def _given_tag(value: Mapping[str, Any]) -> Any:
    if "type" not in value:
        raise Within(".type", Misfit("is missing"))
    return value["type"]


def _union_reader(form: Any, members: tuple[Any, ...]) -> Reader:
    allowed = phrase_of(form)
    by_kind = _readers_by_kind(form, members, allowed)

    def read(value: Any, _: Any) -> Any:
        read_member = by_kind.get(dict if _is_object(value) else type(value))
        if read_member is None:
            raise must_be(allowed, value)
        return read_member(value, None)

    return read


def _readers_by_kind(form: Any, members: tuple[Any, ...], allowed: str) -> dict[type, Reader]:
    """For each kind of plain value the one member of a union that reads it."""
    by_kind: dict[type, Reader] = {}

    def add(kind: type, read: Reader) -> None:
        if kind in by_kind:
            raise MisuseError(f"two members of {form!r} would read the same {kind.__name__}")
        by_kind[kind] = read

    classes = [member for member in members if is_attrs_class(member)]
    if classes:
        add(dict, _inner(classes[0]) if len(classes) == 1 else _tagged_reader(classes))
    for member in members:
        if get_origin(member) is Literal:
            values = get_args(member)
            for kind in {type(value) for value in values}:
                add(kind, _literal_reader(values, allowed))
        elif member not in classes:
            add(kind_of(member), _inner(member))
    if float in by_kind:
        by_kind.setdefault(int, by_kind[float])
    return by_kind


def _tagged_reader(classes: list[Any]) -> Reader:
    by_tag = {tag_of(cls): cls for cls in classes}
    if None in by_tag or len(by_tag) != len(classes):
        names = ", ".join(cls.__qualname__ for cls in classes)
        raise MisuseError(f"classes of one union need a tag each, and different ones: {names}")
    allowed = phrase_of(Literal[tuple(by_tag)])

    def read(value: Any, _: Any) -> Any:
        given = _given_tag(value)
        cls = by_tag.get(given) if isinstance(given, str) else None
        if cls is None:
            raise Within(".type", must_be(allowed, given))
        return reader_of(cls)(value, cls)

    return read


def _is_object(value: Any) -> bool:
    return type(value) is dict or isinstance(value, Mapping)
