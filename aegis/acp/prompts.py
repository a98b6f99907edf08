"""The content of a prompt: its text, and its images and files. Pure."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs

from aegis.acp.wire import AcpRefused
from aegis.agents.drivers.acp.frames import INVALID_PARAMS, items, mapping, string

MAX_BLOCKS = 1_000


@attrs.frozen(kw_only=True)
class PromptContent:
    """The content of a prompt; ``texts`` are those of files by their paths, as the editor has them.

    ``images`` are the bytes of their files.
    """

    text: str
    texts: dict[str, str] = attrs.field(factory=dict)
    images: tuple[bytes, ...] = attrs.field(default=(), repr=False)


def prompt_content(blocks: object) -> PromptContent:
    """Return the content of the blocks of a prompt. Raises ``AcpRefused``."""
    if not isinstance(blocks, list) or not blocks:
        raise AcpRefused(INVALID_PARAMS, "a prompt must be a list with at least one block")
    if len(blocks) > MAX_BLOCKS:
        raise AcpRefused(INVALID_PARAMS, f"a prompt may have at most {MAX_BLOCKS} blocks")
    text, texts, images = "", dict[str, str](), list[bytes]()
    for block in map(mapping, items(blocks)):
        match block.get("type"):
            case "text":
                text += string(block.get("text"))
            case "resource_link":
                text += place_of(string(block.get("uri"))) or string(block.get("name"))
            case "resource":
                text += _resource(mapping(block.get("resource")), texts, images)
            case "image":
                images.append(_image(block.get("data")))
            case kind:
                raise AcpRefused(
                    INVALID_PARAMS,
                    f"a block of the type {str(kind)[:40]!r} cannot be sent: write the path of "
                    "the file in the prompt instead",
                )
    if not (text.strip() or texts or images):
        raise AcpRefused(INVALID_PARAMS, "the prompt has no text: write what the agent is to do")
    return PromptContent(text=text, texts=texts, images=tuple(images))


def _resource(resource: dict[str, Any], texts: dict[str, str], images: list[bytes]) -> str:
    """Keep the content of a file, and return how the text names it."""
    uri, content = string(resource.get("uri")), resource.get("text")
    place = place_of(uri)
    if isinstance(content, str):
        # Two parts of one file, or two files without a name.
        before = texts.get(place)
        texts[place] = content if before is None else f"{before}\n{content}"
        return place
    if string(resource.get("mimeType")).startswith("image/"):
        images.append(_image(resource.get("blob")))
    elif place == uri:  # of a file the agent reads it
        raise AcpRefused(
            INVALID_PARAMS,
            f"the resource {uri[:80]!r} is neither text nor an image: save it in a file, and write "
            "its path in the prompt",
        )
    return place


def _image(data: object) -> bytes:
    try:
        return base64.b64decode(string(data), validate=True)
    except (binascii.Error, ValueError):
        raise AcpRefused(INVALID_PARAMS, "the data of an image must be base64") from None


def place_of(uri: str) -> str:
    """Return the path in a file's URI, with its lines; any other URI as it is."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    if parts.scheme != "file":
        return uri
    lines = f"#{parts.fragment}" if parts.fragment else ""
    return f"{unquote(parts.path)}{lines}"
