"""The frames that start a process and open its conversation, and what the agent answers. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from aegis.agents.drivers.acp.frames import items, mapping, name
from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.drivers.harness import Beginning, LoginMethod

PROTOCOL = 1

MCP_SERVER = "aegis"
"""The name of our MCP server, as the agent sees it."""


@attrs.frozen(kw_only=True)
class Abilities:
    """The abilities that an agent reports in its answer to initialize."""

    name: str = "the agent"
    version: str = ""
    protocol: object = None
    loads: bool = False
    resumes: bool = False
    forks: bool = False
    takes_http_mcp: bool = False
    takes_images: bool = False
    logins: tuple[LoginMethod, ...] = ()


def initialize_params(client_version: str, options: AcpOptions) -> dict[str, Any]:
    """Return the parameters of initialize: everything that is served here."""
    return {
        "protocolVersion": PROTOCOL,
        "clientCapabilities": {
            "fs": {"readTextFile": options.reads_files, "writeTextFile": True},
            "terminal": True,
            "session": {"configOptions": {"boolean": {}}},
            "elicitation": {"form": {}, "url": {}},
            "auth": {"terminal": True},
        },
        "clientInfo": {"name": "aegis", "title": "Aegis", "version": client_version},
    }


def read_abilities(result: dict[str, Any]) -> Abilities:
    """Return the abilities in the result of initialize."""
    info = mapping(result.get("agentInfo"))
    able = mapping(result.get("agentCapabilities"))
    sessions = mapping(able.get("sessionCapabilities"))
    return Abilities(
        name=name(info.get("title")) or name(info.get("name")) or "the agent",
        version=name(info.get("version")),
        protocol=result.get("protocolVersion"),
        loads=able.get("loadSession") is True,
        resumes=_is_announced(sessions.get("resume")),
        forks=_is_announced(sessions.get("fork")),
        takes_http_mcp=mapping(able.get("mcpCapabilities")).get("http") is True,
        takes_images=mapping(able.get("promptCapabilities")).get("image") is True,
        logins=tuple(_logins(result.get("authMethods"))),
    )


def _is_announced(value: object) -> bool:
    return value is True or isinstance(value, dict)


def _logins(methods: object) -> list[LoginMethod]:
    found = []
    for each in map(mapping, items(methods, 32)):
        if id_ := name(each.get("id")):
            label = name(each.get("name")) or id_
            found.append(LoginMethod(id=id_, name=label, arguments=_login_arguments(each)))
    return found


def _login_arguments(method: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the arguments of a login in a terminal; None for another login.

    kimi has them in ``_meta``, beside a command. Only the agent's own program is ever run for a
    login, so the command is not read.
    """
    if method.get("type") == "terminal":
        arguments = method.get("args")
    else:
        terminal = mapping(mapping(method.get("_meta")).get("terminal-auth"))
        if not terminal:
            return None
        arguments = terminal.get("args")
    return tuple(each for each in items(arguments, 64) if isinstance(each, str))


def session_params(beginning: Beginning, options: AcpOptions) -> dict[str, Any]:
    """Return the working directory and the MCP server, as all ways to open a session take them."""
    server = {"type": "http", "name": MCP_SERVER, "url": beginning.mcp_url, "headers": []}
    is_given = bool(beginning.mcp_url) and not options.server_in_file
    cwd = beginning.cwd + options.cwd_end
    params = {"cwd": cwd, "mcpServers": [server] if is_given else []}
    return {**params, "_meta": dict(options.meta)} if options.meta else params


def opening_method(beginning: Beginning, abilities: Abilities) -> str | None:
    """Return how the conversation is opened; None: the agent cannot continue one."""
    if beginning.conversation is None:
        return "session/new"
    if beginning.fork:
        return "session/fork" if abilities.forks else None
    if abilities.resumes:
        return "session/resume"
    return "session/load" if abilities.loads else None
