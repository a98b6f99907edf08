"""The changes of files that a tool call shows, in the form of an edit's input. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from aegis.agents.drivers.acp.frames import items, mapping, string

MAX_EDITS = 32
"""Changes of one tool call that are shown."""

MAX_EDIT_CHARS = 64 * 1024
"""Characters of the texts of all its changes."""

CONTEXT_LINES = 3
"""Lines before and behind a change, which both texts have."""

OWN = ("old_string", "new_string", "edits", "diff", "content")
"""Keys of inputs that show their change themselves."""


def edits_in(content: object) -> list[dict[str, Any]]:
    """Return the changes in a tool call's content, each with ``file_path`` and its two texts.

    Agents send whole files: lines that both texts have are omitted, but for a few beside the
    change. ``truncated``: a text is longer.
    """
    parts = [each for each in map(mapping, items(content)) if each.get("type") == "diff"]
    room, found = MAX_EDIT_CHARS, []
    for part in parts[:MAX_EDITS]:
        edit = _edit(part, room // 2)
        room -= len(edit["old_string"]) + len(edit["new_string"])
        found.append(edit)
    return found


def with_edits(given: Mapping[str, Any], edits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the input of a tool call with its changes, unless it shows them itself."""
    if not edits or any(each in given for each in OWN):
        return dict(given)
    if len(edits) == 1:
        return {**given, **edits[0]}
    return {**given, "edits": list(edits)}


def _edit(part: Mapping[str, Any], limit: int) -> dict[str, Any]:
    old, new = _difference(string(part.get("oldText")), string(part.get("newText")))
    edit: dict[str, Any] = {
        "file_path": string(part.get("path")),
        "old_string": old[:limit],
        "new_string": new[:limit],
    }
    return edit | {"truncated": True} if max(len(old), len(new)) > limit else edit


def _difference(old: str, new: str) -> tuple[str, str]:
    """Return both texts without the lines that are far from the change."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    start, rest = max(0, head - CONTEXT_LINES), max(0, tail - CONTEXT_LINES)
    return "".join(before[start : len(before) - rest]), "".join(after[start : len(after) - rest])


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of lines with which both begin."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
