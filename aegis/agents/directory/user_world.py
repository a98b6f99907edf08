"""The world of an agent in its own terminal: its user's MCP servers, the texts of its project."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping
from typing import Any

import attrs

from aegis.agents.directory.project_code import project_code
from aegis.agents.directory.project_text import (
    ProjectText,
    claude_text,
    json_of_user,
    project_commands,
    text_of,
)
from aegis.agents.drivers.commands import ProjectCommand
from aegis.agents.profiles.profile import Profile, variables_of, without_project
from aegis.path_text import text_of_path


@attrs.frozen(kw_only=True)
class UserWorld:
    """The servers of an agent's user and the texts of its project (see ``Beginning``).

    ``profile`` does not use the settings of the project unless they are trusted. ``texts`` are
    added to the primer; ``notices`` say what was left out. ``commands`` are texts of the project.
    """

    profile: Profile
    texts: tuple[str, ...] = ()
    reads_project: bool = False
    servers: Mapping[str, Server] = attrs.field(factory=dict, repr=False)
    notices: tuple[str, ...] = ()
    commands: tuple[ProjectCommand, ...] = ()


def user_world(
    profile: Profile, cwd: str, variables: Mapping[str, str], trusted: Collection[str]
) -> UserWorld:
    """Return the servers, texts and settings for a profile in ``cwd``.

    ``variables`` is the environment of the daemon, ``trusted`` are the digests of trusted
    directories. Blocking. An agent that uses the settings of its directory reads all this itself.
    """
    provider = profile.provider
    notices: tuple[str, ...] = ()
    if profile.project_settings:
        code = project_code(provider.name, cwd, variables.get("HOME"))
        if code.is_within(trusted):
            return UserWorld(profile=profile)
        why = code.problem or "they are not trusted as they are now"
        place = text_of_path(cwd)
        notices = (
            f"the agent was started without the settings of {place}: {why}; look at them with: "
            f"aegis-actors agent trust {profile.name} --directory {shlex.quote(place)}; once they "
            "are trusted, restart the agent",
        )
        profile = without_project(profile)
    variables = {**variables, **variables_of(profile, variables)}
    is_claude = provider.family == "claude" or provider.takes_claude_options
    text = claude_text(cwd) if is_claude else _text(profile, cwd, variables)
    return UserWorld(
        profile=profile,
        texts=text.parts,
        reads_project=text.is_read,
        servers=local_servers(cwd, variables) if is_claude else {},
        notices=(*notices, *text.notices),
        commands=project_commands(cwd) if is_claude else (),
    )


def _text(profile: Profile, cwd: str, variables: Mapping[str, str]) -> ProjectText:
    provider = profile.provider
    if provider.name != "gemini":
        return text_of(cwd, list(provider.project_texts))
    if gemini_trusts(cwd, variables):
        return ProjectText()  # it reads them itself
    text = text_of(cwd, list(provider.project_texts))
    notice = (
        f"gemini has not trusted {text_of_path(cwd)}, so it starts no MCP server there: the agent "
        "has none of the tools of aegis; trust the directory in gemini, or set project_settings in "
        f"the profile {profile.name!r} and trust its settings"
    )
    return attrs.evolve(text, notices=(notice, *text.notices))


MAX_CLAUDE_BYTES = 32 * 1024 * 1024
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
    document = json_of_user(os.path.join(home, ".claude.json"), MAX_CLAUDE_BYTES)  # noqa: PTH118
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
        # After the last brace nothing matches: to look for one from each variable is quadratic.
        end = value.rfind("}") + 1
        filled = _VARIABLE.sub(
            lambda m: variables.get(m[1], m[0] if m[2] is None else m[2]), value[:end]
        )
        return filled + value[end:]
    if isinstance(value, list):
        return [_expanded(each, variables) for each in value]
    if isinstance(value, dict):
        return {name: _expanded(each, variables) for name, each in value.items()}
    return value


MAX_GEMINI_BYTES = 4 * 1024 * 1024

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
    match json_of_user(os.path.join(home, "settings.json"), MAX_GEMINI_BYTES):  # noqa: PTH118
        case {"security": {"folderTrust": {"enabled": False}}}:
            return True
    own = variables.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
    rules = own or os.path.join(home, "trustedFolders.json")  # noqa: PTH118
    return _is_covered(cwd, json_of_user(rules, MAX_GEMINI_BYTES))


def _is_covered(cwd: str, rules: Any) -> bool:
    """Return whether the longest rule for a directory above ``cwd``, or for it, trusts it."""
    where = os.path.realpath(cwd)
    longest, is_trusted = -1, False
    for path, level in rules.items() if isinstance(rules, dict) else ():
        top = os.path.realpath(os.path.dirname(path) if level == "TRUST_PARENT" else path)  # noqa: PTH120
        if (where == top or where.startswith(top.rstrip("/") + "/")) and len(top) > longest:
            longest, is_trusted = len(top), level in ("TRUST_FOLDER", "TRUST_PARENT")
    return is_trusted
