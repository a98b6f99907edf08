"""The text in content blocks, and in the outputs of tools. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aegis.agents.drivers.acp.frames import items, mapping, string

MAX_DEPTH = 8
"""How deep the output of a tool is searched for text."""

OUTPUT_KEYS = ("output", "error", "text", "content", "result", "stdout", "message", "contents")
"""The keys under which agents put the text of a tool's output, the best first."""


def block_text(block: object) -> str:
    """Return the text of one content block; ``""`` if it has none (an image, audio)."""
    fields = mapping(block)
    match string(fields.get("type")):
        case "text":
            return string(fields.get("text"))
        case "resource_link":
            return string(fields.get("uri"))
        case "resource":
            return string(mapping(fields.get("resource")).get("text"))
    return ""


def content_text(content: object) -> str:
    """Return the text of a tool call's content, a line or more for each part."""
    return "\n".join(filter(None, (_part_text(each) for each in items(content))))


def _part_text(part: object) -> str:
    fields = mapping(part)
    match string(fields.get("type")):
        case "content":
            return block_text(fields.get("content"))
        case "diff":
            return f"changed {string(fields.get('path'))}"
    return ""


def output_text(output: object) -> str:
    """Return the text in a ``rawOutput``, whose form each agent chooses itself."""
    return "\n".join(_texts_in(output, MAX_DEPTH))


def _texts_in(output: object, depth: int) -> Iterator[str]:
    if isinstance(output, str):
        if output:
            yield output
    elif depth and isinstance(output, list):
        for each in items(output):
            yield from _texts_in(each, depth - 1)
    elif depth and isinstance(output, dict):
        for key in OUTPUT_KEYS:
            found = list(_texts_in(output.get(key), depth - 1))
            if found:
                yield from found
                return


def terminals_in(content: object) -> list[str]:
    """Return the ids of the terminals that a tool call's content shows."""
    parts: list[dict[str, Any]] = [mapping(each) for each in items(content)]
    shown = [string(each.get("terminalId")) for each in parts if each.get("type") == "terminal"]
    return [each for each in shown if each]
