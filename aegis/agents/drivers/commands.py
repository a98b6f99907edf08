"""The agents' own commands, such as ``/compact``: text that no agent takes for one. Pure.

An agent carries out a prompt that begins with ``/``, also one of another agent: ``/yolo`` of kimi
ends all asking. So a text that is not meant as a command must not begin like one.
"""

from __future__ import annotations

import re

MARK = "| "
"""The beginning of a text that an agent could take for a command."""

# Spaces, controls, format and filler characters: some agents trim a prompt before they look at it.
_UNSEEN = (
    r"\s\x00-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    r"\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U000e0000-\U000e0fff"
)

# The slash, and the characters that become one when text is normalised, or look like it.
_SLASHES = r"/\u2044\u2215\u2571\u29f8\uff0f"

_COMMAND = re.compile(rf"[{_UNSEEN}]*[{_SLASHES}]")


def as_text(text: str) -> str:
    """Return ``text``, with ``MARK`` before it if an agent could take it for a command."""
    return f"{MARK}{text}" if _COMMAND.match(text) else text
