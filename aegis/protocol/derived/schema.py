"""JSON Schema of commands and replies (draft 2020-12), derived from their attrs fields.

A default from the daemon's configuration is only in the field's description. Otherwise the schema
describes what the codec accepts, with four differences: the codec also refuses ``5.0`` for an int,
ints beyond ±(2**53 - 1), lone surrogates, and values that break a validator's rule which the
field's metadata (``described``) does not repeat.
Nested classes are written out where they are used; only a class that contains itself is in
``$defs``.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

import attrs

from actors.codec import is_attrs_class, resolved_fields, tag_of
from actors.errors import MisuseError

Schema = dict[str, Any]

_SCALARS: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
}


def input_schema(command: type) -> dict[str, Any]:
    """Return the schema of a command's arguments. It is made once: do not change it."""
    form: Any = command
    return _input_schema(form)


def output_schema(reply: type) -> dict[str, Any]:
    """Return the schema of a reply on the wire (``wire.to_plain``). Made once: do not change it.

    Every field is required, those with a default too, except flags that are left out while false
    and counts that are left out while 0.
    """
    form: Any = reply
    return _output_schema(form)


@functools.cache
def _input_schema(command: type) -> Schema:
    schema = top_of(command, SchemaBuilder(complete=False))
    # The tool has this text as its own description.
    schema.pop("description", None)
    return schema


@functools.cache
def _output_schema(reply: type) -> Schema:
    return reply_schema(reply, SchemaBuilder(complete=True))


def reply_schema(reply: type, builder: SchemaBuilder) -> Schema:
    """Return the schema of a reply by ``builder``, in which flags of value False are optional."""
    schema = top_of(reply, builder)
    left_out = optional_flags(reply)
    schema["required"] = [name for name in schema["required"] if name not in left_out]
    return schema


@functools.cache
def optional_flags(reply: type) -> tuple[str, ...]:
    """Return the fields of a reply that are sent only when they say something.

    Those are the fields whose default is ``False``, or a count of 0.
    """
    return tuple(
        field.name
        for field in resolved_fields(reply)
        if type(field.default) in (bool, int) and not field.default
    )


def top_of(cls: type, builder: SchemaBuilder) -> Schema:
    """Return the schema of ``cls`` with ``type: object`` at its top, as MCP requires."""
    schema = builder.object_of(cls)
    if builder.definitions:
        schema["$defs"] = builder.definitions
    return schema


class SchemaBuilder:
    """The builder of one schema. ``complete``: fields with a default are required too.

    ``definitions`` collects the classes that contain themselves.
    """

    def __init__(self, *, complete: bool) -> None:
        self._complete = complete
        self.definitions: dict[str, Schema] = {}

    def object_of(self, cls: type) -> Schema:
        """Return the schema of ``cls``, written out."""
        fields = resolved_fields(cls)
        tag = tag_of(cls)
        tagged = {"type": {"const": tag}} if tag else {}
        schema: Schema = {
            "type": "object",
            "properties": tagged | {field.name: self._field(field) for field in fields},
            "required": [*tagged, *(field.name for field in fields if self._is_required(field))],
            "additionalProperties": False,
        }
        described = inspect.cleandoc(cls.__doc__ or "")
        return {"description": described, **schema} if described else schema

    def _is_required(self, field: attrs.Attribute[Any]) -> bool:
        return self._complete or field.default is attrs.NOTHING

    def _field(self, field: attrs.Attribute[Any]) -> Schema:
        keywords = field.metadata.get("schema", {})
        schema = self._of(field.type, keywords)
        if "doc" in field.metadata:
            schema["description"] = field.metadata["doc"]
        if field.default is not attrs.NOTHING and "setting" not in field.metadata:
            schema["default"] = _plain_default(field)
        return schema

    def _of(self, form: Any, keywords: Mapping[str, Any] | None = None) -> Schema:
        """The schema of a type; ``keywords`` narrow it where it is not null."""
        origin, members = get_origin(form), get_args(form)
        if origin in (Union, types.UnionType):
            return self._union([self._of(member, keywords) for member in members])
        if form is type(None):
            return {"type": "null"}
        return {**self._plain(form, origin, members), **(keywords or {})}

    def _union(self, members: list[Schema]) -> Schema:
        return {"anyOf": members}

    def _plain(self, form: Any, origin: Any, members: tuple[Any, ...]) -> Schema:
        if form in _SCALARS:
            return dict(_SCALARS[form])
        if origin is Literal:
            return _literal(members)
        if origin is list or (origin is tuple and members[-1] is Ellipsis):
            return {"type": "array", "items": self._of(members[0])}
        if origin is tuple:
            items = [self._of(member) for member in members]
            return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self._of(members[1])}
        if is_attrs_class(form):
            return self._class(form)
        raise MisuseError(f"there is no schema for {form!r}")

    def _class(self, cls: type) -> Schema:
        if not _contains_itself(cls):
            return self.object_of(cls)
        if cls.__name__ not in self.definitions:
            self.definitions[cls.__name__] = {}
            self.definitions[cls.__name__] = self.object_of(cls)
        return {"$ref": f"#/$defs/{cls.__name__}"}


def _contains_itself(cls: type) -> bool:
    met: set[type] = set()
    ahead = [field.type for field in resolved_fields(cls)]
    while ahead:
        form: Any = ahead.pop()
        if form is cls:
            return True
        if is_attrs_class(form) and form not in met:
            met.add(form)
            ahead += [field.type for field in resolved_fields(form)]
        ahead += get_args(form) if get_origin(form) is not Literal else ()
    return False


def _literal(values: tuple[Any, ...]) -> Schema:
    kinds = {type(value) for value in values}
    kind = dict(_SCALARS[kinds.pop()]) if len(kinds) == 1 else {}
    return {**kind, "const": values[0]} if len(values) == 1 else {**kind, "enum": list(values)}


def _plain_default(field: attrs.Attribute[Any]) -> Any:
    factory = getattr(field.default, "factory", None)
    return field.default if factory is None else factory()
