"""The content of a notification. Pure.

A worker of the page shows it. All with one ``tag`` replace each other, and the last one of a
request, which is ``settled``, closes it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

import attrs

from aegis.protocol.command import fitting
from aegis.protocol.inboxes import Message
from aegis.protocol.requests import RequestInfo
from aegis.shown_text import escape_line

MAX_PLAIN_BYTES = 3_072
"""The longest content. Push services take at least 4,096 bytes, encrypted (RFC 8291, 4)."""

VERSION = 1
TITLE_CHARS, BODY_CHARS = 80, 240
HIDDEN = "Something waits for you"
SETTLED = "Answered"
OWN_PREFIX = "mcp__aegis__"

REQUEST_TTL_S = 12 * 3600
END_TTL_S = 24 * 3600
"""Seconds for which a push service keeps a message for a browser that is away."""

Urgency = Literal["normal", "high"]


@attrs.frozen(kw_only=True)
class PushNotice:
    """A notification: ``about`` is what it is about, ``go`` the place of the page to show then."""

    about: str
    tag: str
    title: str
    body: str = ""
    go: str = "#/home"
    at: str = ""
    is_settled: bool = False
    urgency: Urgency = "normal"
    ttl_s: int = REQUEST_TTL_S

    @property
    def topic(self) -> str:
        """The name by which a newer message replaces one that was not fetched (RFC 8030, 5.4)."""
        return _digest(self.tag)[:32]

    def content(self) -> bytes:
        """Return the notification as the worker reads it: JSON of at most ``MAX_PLAIN_BYTES``."""
        document: dict[str, Any] = {
            "v": VERSION,
            "tag": self.tag,
            "title": self.title,
            "body": self.body,
            "go": self.go,
            "at": self.at,
            "settled": self.is_settled,
        }
        text = json.dumps(document, ensure_ascii=False)
        over = len(text.encode()) - MAX_PLAIN_BYTES
        if over > 0:
            room = len(json.dumps(self.body, ensure_ascii=False).encode()) - over
            document["body"] = fitting(self.body, max(2, room))
            text = json.dumps(document, ensure_ascii=False)
        return text.encode()

    def hidden(self) -> PushNotice:
        """Return the notification without a name and a text."""
        return attrs.evolve(self, title=HIDDEN, body="")


def request_notice(request: RequestInfo) -> PushNotice:
    """Return the notification of an open request."""
    return PushNotice(
        about=request.id,
        tag=request.id,
        title=f"{_line(request.handle, TITLE_CHARS - 20)} waits for you",
        body=_line(_asked(request), BODY_CHARS),
        at=request.created,
        urgency="high",
    )


def settled_notice(request: str) -> PushNotice:
    """Return the notification that closes the one of a request."""
    return PushNotice(about=request, tag=request, title=SETTLED, is_settled=True)


def message_notice(message: Message) -> PushNotice:
    """Return the notification of a message to the person."""
    sender = message.sender.removeprefix("agent:")
    has = {"error": "failed", "ok": "is done", None: "wrote to you"}[message.status]
    return PushNotice(
        about=message.id,
        tag=_digest(message.id)[:22],  # an id may have names in it
        title=f"{_line(sender, TITLE_CHARS - 20)} {has}",
        body=_line(message.body, BODY_CHARS),
        go="#/inbox",
        at=message.timestamp,
        ttl_s=END_TTL_S,
    )


def _asked(request: RequestInfo) -> str:
    tool = request.tool.removeprefix(OWN_PREFIX)
    title = request.title
    if title in (request.tool, tool):
        command = (request.input or {}).get("command")
        title = command if isinstance(command, str) else ""
    return ": ".join(each for each in (tool, title) if each)


def _line(text: str, limit: int) -> str:
    # Cut before it is escaped, which may make a text of one line long, and after it.
    line = escape_line(text.strip()[:limit])
    return line if len(line) <= limit and len(text.strip()) <= limit else f"{line[: limit - 1]}…"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
