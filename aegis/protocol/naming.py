"""The rule for names of terminals, handles and nodes."""

from __future__ import annotations

import re

NAME_RULE = "1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or a digit"
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
RESERVED_HANDLES = frozenset({"human", "substrate", "all"})
LOCAL_NODE = "local"
"""The name of the daemon's own process as a node."""
LOGIN_PREFIX = "login-"
"""The beginning of the names of terminals in which the programs of agents log in."""
TAKEOVER_PREFIX = "takeover-"
"""The beginning of the names of terminals in which people continue an agent's conversation."""

_NAME = re.compile(NAME_PATTERN)


def is_name(text: str) -> bool:
    """Return whether ``text`` fits the rule (``NAME_RULE``)."""
    return _NAME.fullmatch(text) is not None


def name_key(name: str) -> str:
    """Return the key that compares names: they are unique ignoring case."""
    return name.lower()


def is_persons_terminal(name: str) -> bool:
    """Return whether only people may use a terminal: for a login, or a take-over; in any case."""
    return name_key(name).startswith((LOGIN_PREFIX, TAKEOVER_PREFIX))
