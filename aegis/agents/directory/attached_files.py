"""The files that a person attaches to a message: what of them reaches the agent. Blocking.

What the agent, or only its model, would refuse is refused before the message is sent.
"""

from __future__ import annotations

import os
import re
import stat

import attrs

from aegis.agents.drivers.commands import as_plain
from aegis.agents.drivers.images import image_facts, image_line, image_name, is_whole
from aegis.agents.drivers.providers import Provider
from aegis.agents.sessions.sent_images import SentImages
from aegis.errors import InvalidRequest
from aegis.names import shorten
from aegis.path_text import path_of_text
from aegis.protocol.agents import SendToAgent
from aegis.protocol.inboxes import MAX_BODY_CHARS

MAX_INCLUDED_BYTES = 64 * 1024
"""The size of a text file that is included in the message; of a larger one the path is."""


@attrs.frozen(kw_only=True)
class ImageLimits:
    """The largest image that an agent takes, and all of one message together, in bytes."""

    each: int
    together: int
    pixels: int


MODEL_LIMITS = ImageLimits(each=5 * 2**20 // 4 * 3, together=8 * 2**20, pixels=8_000)
"""Of models: 5 MiB in base64, and 8000 pixels on a side."""

CLAUDE_LIMITS = ImageLimits(each=10 * 2**20, together=10 * 2**20, pixels=30_000)
"""Of Claude Code, which makes a large image smaller itself; it takes lines of 16 MiB."""


@attrs.frozen(kw_only=True)
class Attached:
    """The text of a message with its attachments, and its images by the names of their files."""

    text: str
    images: tuple[tuple[str, bytes], ...] = attrs.field(repr=False)


def attach(message: SendToAgent, sent: SentImages, provider: Provider) -> Attached:
    """Return a message with its files. Raises ``InvalidRequest``."""
    limits = CLAUDE_LIMITS if provider.family == "claude" else MODEL_LIMITS
    parts = [message.text] if message.text else []
    included = [_text_part(*each) for each in message.texts.items()]
    included += [_file_part(each) for each in message.files]
    # A file may hold what a program has written.
    parts += [as_plain(each, provider.mentions, None) for each in included]
    kept: list[tuple[str, bytes]] = []
    lines: list[str] = []
    left = limits.together
    for each in message.images:
        data = _read(each, limits.each)
        left -= len(data)
        if left < 0:
            raise InvalidRequest(
                f"agent send: the images of one message have more than {limits.together:,} bytes "
                "together: send several messages"
            )
        name, line = _image(each, data, limits, sent)
        kept.append((name, data))
        lines.append(line)
    # They end the message: by these lines the session finds its images.
    parts += ["\n".join(lines)] if lines else []
    whole = "\n\n".join(parts)
    if len(whole) > MAX_BODY_CHARS:
        raise InvalidRequest(
            f"agent send: the text with its files has {len(whole):,} characters, and a message at "
            f"most {MAX_BODY_CHARS:,}: attach fewer, or name their paths in the text"
        )
    return Attached(text=whole, images=tuple(dict(kept).items()))


def _image(path: str, data: bytes, limits: ImageLimits, sent: SentImages) -> tuple[str, str]:
    facts = image_facts(data)
    if facts is None:
        raise InvalidRequest(
            f"agent send: {_named(path)} is no PNG, JPEG, GIF or WebP image by its content: "
            "attach it with --file"
        )
    if not is_whole(data, facts):
        raise InvalidRequest(f"agent send: the image {_named(path)} is cut off: copy it again")
    if max(facts.width, facts.height) > limits.pixels:
        raise InvalidRequest(
            f"agent send: the image {_named(path)} has {facts.width} x {facts.height} pixels, and "
            f"the agent takes {limits.pixels:,} on a side: make it smaller"
        )
    name = image_name(data, facts)
    return name, image_line(data, facts, str(sent.path(name)))


def _file_part(path: str) -> str:
    """Return the text of a file below a line with its path, or the line alone."""
    data, size = _begin(path, MAX_INCLUDED_BYTES + 1)
    text = _text_of(data) if size <= MAX_INCLUDED_BYTES else None
    if text is None:
        return f"[file: {_one_line(path)}, {size:,} bytes, not included: read it there]"
    return _text_part(path, text)


def _text_part(path: str, text: str) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    size = len(text.encode("utf-8", "replace"))
    head = f"[file: {_one_line(path)}, {size:,} bytes]"
    return f"{head}\n{fence}\n{text.removesuffix(chr(10))}\n{fence}"


def _text_of(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _named(path: str) -> str:
    return repr(shorten(path.rstrip("/").rpartition("/")[2] or path))


def _one_line(path: str) -> str:
    return path.replace("\n", "\\n").replace("\r", "\\r")


def _read(path: str, most: int) -> bytes:
    data, size = _begin(path, most + 1)
    if size > most or len(data) > most:
        raise InvalidRequest(
            f"agent send: {_named(path)} has {size:,} bytes, and the agent takes images of at "
            f"most {most:,}: make it smaller"
        )
    return data


def _begin(path: str, most: int) -> tuple[bytes, int]:
    """Return the first bytes of a regular file, and its size."""
    if not path.startswith("/"):
        raise InvalidRequest(f"agent send: {_named(path)} is no absolute path")
    try:
        with open(path_of_text(path), "rb", opener=_without_waiting) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InvalidRequest(
                    f"agent send: {_named(path)} is no regular file: name it in the text"
                )
            if not found.st_size:
                raise InvalidRequest(f"agent send: {_named(path)} is empty: leave it out")
            return file.read(most), found.st_size
    except IsADirectoryError:
        raise InvalidRequest(
            f"agent send: {_named(path)} is a directory: name it in the text, or attach its files"
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidRequest(f"agent send: {_named(path)} cannot be read: {why}") from None


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a FIFO does not block."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
