"""The environment of a shell. Pure."""

from __future__ import annotations

from collections.abc import Mapping

TERM = "xterm-256color"
"""What the shell is told about the terminal; with ``dumb`` bash would refuse to be pasted into."""

COOKIE = "AEGIS_TERMINAL"

_NOT_FOR_SHELLS = frozenset({"COLUMNS", "LINES", "TERMCAP", COOKIE})
"""Of the daemon's own terminal; wrong on another."""


def shell_environment(
    inherited: Mapping[str, str], given: Mapping[str, str], cookie: str
) -> dict[str, str]:
    """The daemon's environment, ``given`` merged over it, and the terminal's cookie.

    The cookie marks every process of the terminal; it is no secret.
    """
    kept = {key: value for key, value in inherited.items() if key not in _NOT_FOR_SHELLS}
    return {**kept, "TERM": TERM, **given, COOKIE: cookie}
