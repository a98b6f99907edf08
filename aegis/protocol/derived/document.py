"""The command set as a page of Markdown. Pure.

``docs/reference/tools.md`` is what ``python -m aegis.protocol.derived.document`` prints.
"""

from __future__ import annotations

import inspect
import json
import sys
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

import attrs

from actors.codec import is_attrs_class, resolved_fields
from aegis.protocol.entry import Entry
from aegis.protocol.table import TOOLS

INTRODUCTION = """\
# Tools

Every command, generated from the command set in `aegis/protocol/table.py`. Do not edit this page:
run `python -m aegis.protocol.derived.document > docs/reference/tools.md`.

An MCP client calls `aegis_<name>`, the WebSocket and the line protocol call `<name>`
([protocol.md](../protocol.md)). A failed call is one sentence with a stable code
([errors.md](errors.md)); every command may answer `invalid_request`, `forbidden`, `unavailable` or
`internal`. Unknown arguments are refused, and `null` for an optional one counts as its absence. No
value is converted, `"5"` is not a number; only over MCP, where models write the arguments, a
number, boolean, list or object may come as JSON text (`"5"`, `"[\"a\"]"`), and `5.0` for a whole
number. What may be text stays text. In a reply
every field is present; only `more`, `damaged` and `oldest_kept` are left out while false or 0. The
words under a tool's name are its hints: `read_only`, `destructive`, `idempotent`; `operator`: no
session sees it.
"""

_PLAIN: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Any: "anything",
}


def tools_page() -> str:
    """Return the whole page, ending in a newline."""
    parts = [INTRODUCTION, *map(_tool, TOOLS), "## Replies\n", *map(class_section, _replies())]
    return "\n".join(parts).replace("``", "`")


def _tool(entry: Entry) -> str:
    form: type = entry.command
    rows = [
        f"| `{field.name}` | {type_name(field.type)}{_range(field)} | {_default(field)} "
        f"| {field.metadata.get('doc', '')} |"
        for field in resolved_fields(form)
    ]
    codes = ", ".join(f"`{code}`" for code in entry.errors) or "none of its own"
    answers = f"Replies with {type_name(entry.reply)}. Errors: {codes}.\n"
    head = ["| argument | type | default | description |", "|---|---|---|---|"]
    top = [f"## {entry.tool}\n", entry.doc, f"\n*{_hints(entry)}*\n"]
    return "\n".join([*top, *head, *rows, "", answers])


def _hints(entry: Entry) -> str:
    hints = ("read_only", "destructive", "idempotent", "operator")
    return ", ".join(hint for hint in hints if getattr(entry, hint)) or "adds, ends nothing"


def _default(field: attrs.Attribute[Any]) -> str:
    if field.default is attrs.NOTHING:
        return "required"
    factory = getattr(field.default, "factory", lambda: field.default)
    setting = field.metadata.get("setting")
    return f"`{setting}`" if setting else f"`{json.dumps(factory())}`"


def _range(field: attrs.Attribute[Any]) -> str:
    limits = field.metadata.get("schema", {})
    low, high = limits.get("minimum"), limits.get("maximum")
    if low is None:
        return ""
    return f", {low:.16g} or more" if high is None else f", {low:.16g} to {high:.16g}"


def class_section(form: type) -> str:
    """Return a class as a section: heading, docstring, fields."""
    rows = [f"| `{field.name}` | {type_name(field.type)} |" for field in resolved_fields(form)]
    doc = inspect.cleandoc(form.__doc__ or "")
    return "\n".join([f"### {form.__name__}\n", doc, "\n| field | type |\n|---|---|", *rows, ""])


def _replies() -> list[type]:
    """Return the replies and the classes inside them, each once."""
    ahead: list[Any] = [entry.reply for entry in TOOLS]
    found: list[type] = []
    while ahead:
        form = ahead.pop(0)
        if is_attrs_class(form) and form not in found:
            found.append(form)
            ahead[:0] = [field.type for field in resolved_fields(form)]
        ahead[:0] = get_args(form) if get_origin(form) is not Literal else ()
    return found


def type_name(form: Any) -> str:
    """Return the name of a type in words; a class is linked to its section."""
    origin, members = get_origin(form), get_args(form)
    if origin in (Union, types.UnionType):
        return " or ".join(map(type_name, members))
    if origin is Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in members)
    if origin is list:
        return f"list of {type_name(members[0])}"
    if origin is dict:
        return f"object whose values are {type_name(members[1])}"
    if is_attrs_class(form):
        return f"[{form.__name__}](#{form.__name__.lower()})"
    return "null" if form is type(None) else _PLAIN[form]


if __name__ == "__main__":
    sys.stdout.write(tools_page())
