"""Session URLs in texts that are stored or shown: the secret in them is replaced. Pure."""

from __future__ import annotations

import re

HIDDEN = "\u2039secret\u203a"

_MARK = "/mcp/s/"
_SESSION_URL = re.compile(r"(/mcp/s/)[^\s/\"'<>\\]+")


def hide_session_urls(text: str) -> str:
    """Return the text without the secrets of session URLs."""
    if _MARK not in text:
        return text
    return _SESSION_URL.sub(rf"\1{HIDDEN}", text)
