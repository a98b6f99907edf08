"""The directories that a user has trusted in gemini, which starts no MCP server in others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from aegis.agents.directory.project_files import json_of_user

MAX_FILE_BYTES = 4 * 1024 * 1024

SWITCH = "GEMINI_CLI_TRUST_WORKSPACE"


def gemini_trusts(cwd: str, variables: Mapping[str, str]) -> bool:
    """Return whether gemini takes ``cwd`` as trusted; ``variables`` is its environment. Blocking.

    Files that gemini itself could not read count as ones that trust nothing.
    """
    if variables.get("GEMINI_RESTRICTED_MODE") == "true" or variables.get(SWITCH) == "false":
        return False
    if variables.get(SWITCH) == "true":
        return True
    home = os.path.join(variables.get("HOME", "/"), ".gemini")  # noqa: PTH118
    match json_of_user(os.path.join(home, "settings.json"), MAX_FILE_BYTES):  # noqa: PTH118
        case {"security": {"folderTrust": {"enabled": False}}}:
            return True
    own = variables.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
    rules = own or os.path.join(home, "trustedFolders.json")  # noqa: PTH118
    return _is_covered(cwd, json_of_user(rules, MAX_FILE_BYTES))


def _is_covered(cwd: str, rules: Any) -> bool:
    """Return whether the longest rule for a directory above ``cwd``, or for it, trusts it."""
    where = os.path.realpath(cwd)
    longest, is_trusted = -1, False
    for path, level in rules.items() if isinstance(rules, dict) else ():
        top = os.path.realpath(os.path.dirname(path) if level == "TRUST_PARENT" else path)  # noqa: PTH120
        if (where == top or where.startswith(top.rstrip("/") + "/")) and len(top) > longest:
            longest, is_trusted = len(top), level in ("TRUST_FOLDER", "TRUST_PARENT")
    return is_trusted
