"""The content of a prompt as the text of a message. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from aegis.acp.wire import AcpRefused
from aegis.agents.drivers.acp.frames import INVALID_PARAMS, items, mapping, string

MAX_BLOCKS = 1_000


def prompt_text(blocks: object) -> str:
    """Return the text of the blocks of a prompt. Raises ``AcpRefused``."""
    if not isinstance(blocks, list) or not blocks:
        raise AcpRefused(INVALID_PARAMS, "a prompt must be a list with at least one block")
    if len(blocks) > MAX_BLOCKS:
        raise AcpRefused(INVALID_PARAMS, f"a prompt may have at most {MAX_BLOCKS} blocks")
    text = "".join(_text(mapping(each)) for each in items(blocks))
    if not text.strip():
        raise AcpRefused(INVALID_PARAMS, "the prompt has no text: write what the agent is to do")
    return text


def _text(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return string(block.get("text"))
        case "resource_link":
            return _place(string(block.get("uri"))) or string(block.get("name"))
        case "resource":
            resource = mapping(block.get("resource"))
            place = _place(string(resource.get("uri")))
            if not isinstance(resource.get("text"), str):
                return f"\n[{place}: not text, and not sent]\n"
            return f"\n[{place}]\n{_fenced(resource['text'])}\n"
        case kind:
            raise AcpRefused(
                INVALID_PARAMS,
                f"a block of the type {str(kind)[:40]!r} cannot be sent: write the path of the "
                "file in the prompt instead",
            )


def _place(uri: str) -> str:
    """Return the path in a file's URI, with its lines; any other URI as it is."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    if parts.scheme != "file":
        return uri
    lines = f"#{parts.fragment}" if parts.fragment else ""
    return f"{unquote(parts.path)}{lines}"


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.rstrip()}\n{fence}"
