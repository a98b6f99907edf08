"""Resources as JSON documents: the commands that read them, access, and limits of size. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aegis.errors import Forbidden
from aegis.protocol.command import fitting, json_size
from aegis.protocol.entry import Entry
from aegis.protocol.naming import name_key
from aegis.protocol.resources import CanvasResource, Inbox, QueueResource, Resource
from aegis.protocol.table import BY_NAME
from aegis.servers.calls import Identity
from aegis.servers.json_text import json_text

MAX_ITEMS = 1000
MAX_BYTES = 1024 * 1024 - 8192
"""The limit of a text's size in its frame, with JSON escapes: the official client rejects events of
more than 1 MiB."""


def check_may_read(identity: Identity, resource: Resource) -> None:
    """Raise ``Forbidden`` for an inbox, unless the caller is its handle or the operator."""
    if not isinstance(resource, Inbox) or identity.operator:
        return
    if identity.handle is None or name_key(identity.handle) != name_key(resource.handle):
        raise Forbidden(
            f"{resource.uri} is not yours: this connection belongs to {identity.handle!r}"
        )


def reading_of(identity: Identity, resource: Resource) -> tuple[Entry, dict[str, object]]:
    """Return the command that reads ``resource``, and its arguments."""
    if isinstance(resource, Inbox):
        who = {"from_handle": resource.handle} if identity.operator else {}
        return BY_NAME["inbox_read"], {"limit": MAX_ITEMS, **who}
    if isinstance(resource, CanvasResource):
        return BY_NAME["canvas_read"], {"name": resource.name}
    if isinstance(resource, QueueResource):
        return BY_NAME["task_list"], {"queue": resource.name, "limit": MAX_ITEMS}
    return BY_NAME["term_read"], {"name": resource.name, "last_n": MAX_ITEMS}


def document_of(plain: Mapping[str, Any]) -> str:
    """Return the reply of that command as JSON text, with ``more`` if it was truncated.

    Truncation keeps the newest records, the oldest messages, which are acknowledged first, and the
    tasks that have not ended.
    """
    if "messages" in plain:
        kept = _fitting(plain["messages"])
        more = {"more": True} if len(kept) < len(plain["messages"]) else {}
        return json_text({"messages": kept, "next": kept[-1]["id"] if kept else None, **more})
    if "sections" in plain:  # a reply is no larger than a resource
        return json_text(plain)
    if any("task_id" in each for each in plain["result"][:1]):
        kept = _fitting(plain["result"])
    else:
        kept = _fitting(plain["result"][::-1])[::-1]
    more = {"more": True} if plain.get("more") or len(kept) < len(plain["result"]) else {}
    damaged = {"damaged": plain["damaged"]} if plain.get("damaged") else {}
    return json_text({"result": kept, **more, **damaged})


def fitted_messages(plain: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the reply of a reader of an inbox within ``MAX_BYTES``, and a sentence if it is less.

    The oldest messages are kept, at least one, and ``next`` is the last of them, so that the others
    stay unread. One that is too long alone is shortened: its reader could acknowledge nothing.
    """
    messages, room, kept = plain["messages"], MAX_BYTES, list[dict[str, Any]]()
    for each in messages:
        room -= _size_in_result(each)
        if kept and room < 0:
            break
        kept.append(each if room >= 0 else _shortened(each))
    if len(kept) == len(messages):
        return {**plain, "messages": kept}, None
    fitted = {"messages": kept, "next": None if plain["next"] is None else kept[-1]["id"]}
    return fitted, "newer messages do not fit: acknowledge these first, or ask for fewer (limit)"


def _size_in_result(message: dict[str, Any]) -> int:
    """Return the bytes of a message in a result, as an object and in JSON within JSON."""
    text = json.dumps(without_nulls(message), ensure_ascii=False)
    return 16 + json_size(message) + json_size(text)


def _shortened(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message whose body and text have a sixth of the limit each.

    In JSON within JSON a text is at most twice as long, so that it takes three times its size.
    """
    texts = {}
    for name in ("body", "text"):
        whole = message[name]
        kept = fitting(whole, MAX_BYTES // 6 - 1024)
        of = f"{len(kept)} of {len(whole)} characters"
        read = "`aegis-actors inbox read --all` prints it whole"
        texts[name] = whole if kept == whole else f"{kept}\n[shortened to {of}: {read}]"
    return {**message, **texts}


def _fitting(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first items that fit into ``MAX_BYTES`` as text within JSON."""
    room = MAX_BYTES
    for number, item in enumerate(items):
        room -= len(json.dumps(json_text(item), ensure_ascii=False).encode())
        if room < 0:
            return items[:number]
    return items


def without_nulls(plain: Any) -> Any:
    """Return ``plain`` without fields whose value is null, at any depth. List items stay."""
    if isinstance(plain, dict):
        return {
            key: without_nulls(each) if isinstance(each, dict | list) else each
            for key, each in plain.items()
            if each is not None
        }
    if isinstance(plain, list):
        return [without_nulls(each) for each in plain]
    return plain
