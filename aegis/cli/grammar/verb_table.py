"""The table of verbs: their places (``module:name``), in the order of the help."""

from __future__ import annotations

import sys

VERBS = {
    "up": "aegis.cli.up:up",
    "down": "aegis.cli.daemon:down",
    "unit": "aegis.cli.up:unit",
    "status": "aegis.cli.daemon:status",
    "tree": "aegis.cli.daemon:tree",
    "term": "aegis.cli.term:term",
    "workspace": "aegis.cli.workspace:workspace",
    "shell": "aegis.cli.shell:shell",
    "inbox": "aegis.cli.inbox:inbox",
    "agent": "aegis.cli.agent:agent",
    "request": "aegis.cli.request:request",
    "queue": "aegis.cli.queue:queue",
    "canvas": "aegis.cli.canvas:canvas",
    "workflow": "aegis.cli.workflow:workflow",
    "tui": "aegis.cli.tui:tui",
    "group": "aegis.cli.group:group",
    "web": "aegis.cli.web:web",
    "page": "aegis.cli.web:page",
    "session": "aegis.cli.session:session",
    "token": "aegis.cli.session:token",
    "node": "aegis.cli.node:node",
    "join": "aegis.cli.node:join",
    "mcp": "aegis.cli.mcp:mcp",
    "doctor": "aegis.cli.doctor:doctor",
    "config": "aegis.cli.config:config",
    "completion": "aegis.cli.completion:completion",
}

VERBS_OF_TOOLS = {
    "handoff": "inbox send",
    "enqueue": "queue add",
    "delegate": "queue add",
    "task_status": "queue task",
    "task_list": "queue show",
    "cancel": "queue cancel",
    "task_retry": "queue retry",
    "canvas_write_section": "canvas write",
    "canvas_append_to_section": "canvas append",
    "run_workflow": "workflow run",
    "group_spawn_mixed": "group spawn",
    "group_wait_all": "group wait",
    "group_wait_any": "group wait",
    "group_status": "group show",
    "spawn": "agent launch",
    "meta": "agent meta",
    "list_sessions": "agent list",
    "list_agents": "agent profiles",
    "session_read": "agent read",
    "interrupt": "agent interrupt",
    "rename": "agent rename",
    "close": "agent stop",
    "agent_resume": "agent launch",
    "agent_launch": "agent launch",
    "agent_purge": "agent stop",
    "page_code": "web",
}
"""The verbs that are not named like their tool (as ``term run`` is like ``term_run``)."""


def load(place: object) -> object:
    """Return the object at ``place`` (``module:name``); anything but a string is returned as is."""
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    __import__(module)  # importlib would be loaded for this alone
    return getattr(sys.modules[module], name)


def verb_of_tool(tool: str) -> tuple[str, object] | None:
    """Return the words of the verb that calls ``tool`` (without ``aegis_``), and the verb itself.

    None if the command line has no such verb.
    """
    words = VERBS_OF_TOOLS.get(tool) or tool.replace("_", " ", 1)
    first, _, second = words.partition(" ")
    verb = load(VERBS.get(first))
    if second:
        members = getattr(verb, "members", None) or getattr(verb, "commands", {})
        verb = load(members.get(second))
    return None if verb is None else (words, verb)
