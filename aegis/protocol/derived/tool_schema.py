"""The schemas of a tool as an MCP client gets them: those of ``schema.py``, but brief.

A client puts the schemas of all tools into every conversation, so each byte counts. They are plain
JSON Schema, and each is complete in itself: a strict client can compile any of them alone. Every
reply fits the output schema of its tool. The arguments that ``schema.py`` describes are all
accepted, also those that are not described here.

- ``additionalProperties: false``, patterns and the descriptions of classes are left out. What an
  agent has to know of a reply is in the description of the tool: clients do not show output schemas
  to models.
- An argument that may be null is described as one that may be absent.
- Every part of an input schema has one ``type``: providers of models refuse others (Moonshot's and
  Gemini's subsets of JSON Schema). So values of an object that may be of several types are not
  described.
- A field of a reply that may be null has both types in one list.
- A class within a reply is described in full by one tool only. The others name that tool.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import attrs

from actors.codec import is_attrs_class, resolved_fields
from aegis.protocol.derived.schema import Schema, SchemaBuilder, reply_schema, top_of
from aegis.protocol.entry import Entry
from aegis.protocol.table import TOOLS

NULL: Schema = {"type": "null"}


@functools.cache
def tool_input_schema(entry: Entry, *, is_bound: bool) -> dict[str, Any]:
    """Return the schema of a tool's arguments. It is made once: do not change it.

    ``is_bound``: for a session that belongs to one handle, where ``from_handle`` is not shown. It
    is not shown for the operator's own tools either, which do nothing under a handle.
    """
    schema = top_of(entry.command, _InputBuilder(complete=False))
    if is_bound or entry.operator:
        del schema["properties"]["from_handle"]
    return schema


@functools.cache
def tool_output_schema(entry: Entry) -> dict[str, Any]:
    """Return the schema of a tool's structured content. It is made once: do not change it."""
    return reply_schema(entry.reply, _OutputBuilder(entry))


class _BriefBuilder(SchemaBuilder):
    def object_of(self, cls: type) -> Schema:
        schema = super().object_of(cls)
        del schema["additionalProperties"]
        schema.pop("description", None)
        return schema


class _InputBuilder(_BriefBuilder):
    def object_of(self, cls: type) -> Schema:
        schema = super().object_of(cls)
        if not schema["required"]:
            del schema["required"]
        return schema

    def _field(self, field: attrs.Attribute[Any]) -> Schema:
        schema = super()._field(field)
        schema["description"] = field.metadata.get("brief", schema["description"])
        if not schema.get("default", True):
            del schema["default"]  # absent means false, empty or null
        return schema

    def _union(self, members: list[Schema]) -> Schema:
        others = [each for each in members if each != NULL]
        return others[0] if len(others) == 1 else {}

    def _of(self, form: Any, keywords: Mapping[str, Any] | None = None) -> Schema:
        schema = super()._of(form, keywords)
        if not schema.get("additionalProperties", True):
            del schema["additionalProperties"]  # values of several types
        return _without_checks(schema)


def _without_checks(schema: Schema) -> Schema:
    kept = {name: each for name, each in schema.items() if name not in _CHECKED_LATER}
    return {**kept, "items": _without_checks(kept["items"])} if "items" in kept else kept


_CHECKED_LATER = ("pattern", "uniqueItems")
"""Keywords that are left out: the refusal of a bad value states the rule."""


class _OutputBuilder(_BriefBuilder):
    def __init__(self, entry: Entry) -> None:
        super().__init__(complete=True)
        self._entry = entry

    def _field(self, field: attrs.Attribute[Any]) -> Schema:
        schema = super()._field(field)
        schema.pop("default", None)
        return schema

    def _class(self, cls: type) -> Schema:
        tool = _described_by(cls)
        if tool == self._entry.tool:
            return super()._class(cls)
        return {"type": "object", "description": f"As {tool} returns it."}

    def _union(self, members: list[Schema]) -> Schema:
        others = [each for each in members if each != NULL]
        if len(others) != 1 or "type" not in others[0]:
            return {"anyOf": members}
        schema = {**others[0], "type": [others[0]["type"], "null"]}
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
        return schema


@functools.cache
def _described_by(cls: type) -> str:
    """The tool that describes ``cls``: the first that returns it, or else that has it within.

    One of the operator's only if no other does.
    """
    fitting = [entry for entry in TOOLS if cls in _classes_within(entry.reply)]
    return min(fitting, key=lambda entry: (entry.operator, entry.reply is not cls)).tool


def _classes_within(form: Any) -> Iterator[Any]:
    """All classes that a message of class ``form`` may hold."""
    met: set[Any] = set()
    ahead = [form]
    while ahead:
        each = ahead.pop()
        if is_attrs_class(each) and each not in met:
            met.add(each)
            ahead += [field.type for field in resolved_fields(each)]
            yield each
        ahead += [part for part in get_args(each) if not isinstance(part, str | int | bool)]
