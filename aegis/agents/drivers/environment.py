"""The environment of an agent's process. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from aegis.processes.process_table import COOKIE_VARIABLE

_OURS = "AEGIS_"

_DROPPED = frozenset(
    {
        "COLUMNS",
        "LINES",
        "TERMCAP",
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
    }
)
"""They describe the terminal, or the agent, in which the daemon was started.

With ``CLAUDECODE`` some agents refuse to start; the socket and its token belong to another agent.
"""


def agent_environment(
    inherited: Mapping[str, str], given: Mapping[str, str], *, cwd: str, cookie: str
) -> dict[str, str]:
    """Return the daemon's environment with ``given`` merged over it, for a process in ``cwd``.

    The daemon's own variables (``AEGIS_*``) are removed. The cookie marks every process of the
    agent; it is no secret.
    """
    kept = {
        name: text
        for name, text in inherited.items()
        if name not in _DROPPED and not name.startswith(_OURS)
    }
    return {**kept, **given, "PWD": cwd, COOKIE_VARIABLE: cookie}
