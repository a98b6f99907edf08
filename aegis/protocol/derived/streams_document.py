"""The streams of the WebSocket as a part of a page of Markdown. Pure.

``python -m aegis.protocol.derived.streams_document < docs/protocol.md`` prints that page; the part
between its two marks is made anew from ``aegis/protocol/stream_table.py``.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from typing import Any, get_args

import attrs

from actors.codec import resolved_fields
from aegis.protocol.derived.document import class_section, type_name
from aegis.protocol.stream_table import STREAMS, StreamEntry
from aegis.protocol.streams import CLIENT_FRAMES, SERVER_FRAMES

BEGIN = "<!-- made from aegis/protocol/stream_table.py: what follows is not edited by hand -->\n"
_LINK = re.compile(r"\(#([a-z]+)\)")
MODULES = tuple(
    f"aegis.protocol.{name}"
    for name in (
        *("streams", "output_streams", "agent_streams", "queue_streams", "canvas_streams"),
        "workflow_streams",
        "group_streams",
    )
)
"""The modules of streams."""
END = "<!-- made so far -->\n"


def with_streams(page: str) -> str:
    """Return ``page`` with the part between its marks made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{streams_part()}\n{END}{after}"


def streams_part() -> str:
    """Return the part of the page: frames, streams and items."""
    items = {item.__name__: item for entry in STREAMS for item in entry.items}
    inside = [form for item in items.values() for form in _nested(item)]
    parts = [
        "#### Frames from the client\n",
        *(_frame(form) for form in CLIENT_FRAMES),
        "#### Frames from the server\n",
        *(_frame(form) for form in SERVER_FRAMES),
        *map(_stream, STREAMS),
        "### Items\n",
        *(class_section(form) for form in _once([*items.values(), *inside])),
    ]
    part = "\n".join(parts).replace("``", "`")
    ours = {form.__name__.lower() for form in _once([*items.values(), *inside])}
    return _LINK.sub(
        lambda link: link[0] if link[1] in ours else f"(reference/tools.md#{link[1]})", part
    )


def _once(forms: list[type]) -> list[type]:
    """Return the classes of the module ``streams``, each once."""
    return [each for each in dict.fromkeys(forms) if _is_ours(each)]


def _nested(form: type) -> list[type]:
    """Return the classes of ``streams`` inside an item, at any depth; others are those of tools."""
    types: list[Any] = [field.type for field in resolved_fields(form)]
    inside = [each for union in types for each in get_args(union) or (union,)]
    return [ours for each in inside if _is_ours(each) for ours in (each, *_nested(each))]


def _is_ours(form: Any) -> bool:
    return getattr(form, "__module__", "") in MODULES


def _frame(form: Any) -> str:
    rows = [f"| `{field.name}` | {type_name(field.type)} |" for field in resolved_fields(form)]
    head = f"**`{form.tag}`** {inspect.cleandoc(form.__doc__)}\n"
    return "\n".join([head, "| field | type |\n|---|---|", *rows, ""])


def _stream(entry: StreamEntry) -> str:
    doc = inspect.cleandoc(entry.arguments.__doc__ or "")
    form: type = entry.arguments
    rows = [_argument(field) for field in resolved_fields(form)]
    start = (
        ""
        if entry.start is None
        else "\nFields of `opened`: "
        + ", ".join(f"`{field.name}`" for field in resolved_fields(entry.start))
        + f". {inspect.cleandoc(entry.start.__doc__ or '')}\n"
    )
    items = ", ".join(f"[{item.__name__}]({_place(item)})" for item in entry.items)
    table = "| argument | type | default | description |\n|---|---|---|---|"
    return "\n".join([f"### {entry.name}\n", doc, "", table, *rows, start, f"Items: {items}.\n"])


def _place(item: type) -> str:
    return f"{'' if _is_ours(item) else 'reference/tools.md'}#{item.__name__.lower()}"


def _argument(field: attrs.Attribute[Any]) -> str:
    default = "required" if field.default is attrs.NOTHING else f"`{json.dumps(field.default)}`"
    doc = field.metadata.get("doc", "")
    return f"| `{field.name}` | {type_name(field.type)} | {default} | {doc} |"


if __name__ == "__main__":
    sys.stdout.write(with_streams(sys.stdin.read()))
