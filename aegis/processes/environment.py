"""The environment of a shell. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from aegis.processes.process_table import COOKIE_VARIABLE

TERM = "xterm-256color"
"""The type of the terminal. With ``dumb`` bash would refuse pastes."""

_DROPPED = frozenset({"COLUMNS", "LINES", "TERMCAP", COOKIE_VARIABLE})
"""They describe the daemon's own terminal, and are wrong on another."""


def shell_environment(
    inherited: Mapping[str, str], given: Mapping[str, str], cookie: str
) -> dict[str, str]:
    """Return the daemon's environment with ``given`` merged over it, and the terminal's cookie.

    The cookie marks every process of the terminal; it is no secret.
    """
    kept = {key: value for key, value in inherited.items() if key not in _DROPPED}
    return {**kept, "TERM": TERM, **given, COOKIE_VARIABLE: cookie}
