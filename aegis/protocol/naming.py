"""The rule for names: of terminals, handles, queues, canvases and whatever else is named."""

from __future__ import annotations

import re

NAME_RULE = "1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or a digit"
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
RESERVED_HANDLES = frozenset({"human", "substrate", "all"})
LOCAL_NODE = "local"
"""The name of the daemon's own process, as a place of terminals."""

_NAME = re.compile(NAME_PATTERN)


def is_name(text: str) -> bool:
    """Whether ``text`` fits the rule (``NAME_RULE``)."""
    return _NAME.fullmatch(text) is not None


def name_key(name: str) -> str:
    """What two names are compared by: names are unique ignoring case."""
    return name.lower()
