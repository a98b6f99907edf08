"""The MCP servers that ``claude mcp add`` keeps for a directory in its user's own file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from aegis.agents.directory.project_files import json_of_user

MAX_FILE_BYTES = 32 * 1024 * 1024
"""The largest file that is read; it holds the history of every project too."""

MAX_SERVERS = 64

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

Server = dict[str, Any]


def local_servers(cwd: str, variables: Mapping[str, str]) -> dict[str, Server]:
    """Return the servers for the directory ``cwd``, by name, but those that are disabled there.

    ``variables`` is the environment of the agent. Blocking.
    """
    home = variables.get("CLAUDE_CONFIG_DIR") or variables.get("HOME") or ""
    if not os.path.isabs(home):  # noqa: PTH117
        return {}
    document = json_of_user(os.path.join(home, ".claude.json"), MAX_FILE_BYTES)  # noqa: PTH118
    try:
        return servers_in(document, (cwd, os.path.realpath(cwd)), variables)
    except (OSError, ValueError, RecursionError):
        return {}


def servers_in(
    document: object, directories: tuple[str, ...], variables: Mapping[str, str]
) -> dict[str, Server]:
    """Return the enabled servers of the first of these directories that the file has. Pure."""
    projects = _mapping(_mapping(document).get("projects"))
    project = next((_mapping(projects[each]) for each in directories if each in projects), {})
    disabled = project.get("disabledMcpServers")
    off = {each for each in disabled if isinstance(each, str)} if isinstance(disabled, list) else ()
    found = {
        name: _expanded(server, variables)
        for name, server in _mapping(project.get("mcpServers")).items()
        if isinstance(server, dict) and name not in off
    }
    return dict(list(found.items())[:MAX_SERVERS])


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _expanded(value: Any, variables: Mapping[str, str]) -> Any:
    """Return the value with ``${NAME}`` replaced, as Claude Code does in files of servers."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda m: variables.get(m[1], m[0] if m[2] is None else m[2]), value)
    if isinstance(value, list):
        return [_expanded(each, variables) for each in value]
    if isinstance(value, dict):
        return {name: _expanded(each, variables) for name, each in value.items()}
    return value
