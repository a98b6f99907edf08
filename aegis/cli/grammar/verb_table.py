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
    "history": "aegis.cli.history:history",
    "canvas": "aegis.cli.canvas:canvas",
    "workflow": "aegis.cli.workflow:workflow",
    "tui": "aegis.cli.tui:tui",
    "group": "aegis.cli.group:group",
    "web": "aegis.cli.web:web",
    "page": "aegis.cli.web:page",
    "push": "aegis.cli.web:push",
    "session": "aegis.cli.session:session",
    "token": "aegis.cli.session:token",
    "node": "aegis.cli.node:node",
    "join": "aegis.cli.node:join",
    "mcp": "aegis.cli.mcp:mcp",
    "acp": "aegis.cli.acp:acp",
    "doctor": "aegis.cli.doctor:doctor",
    "config": "aegis.cli.config:config",
    "completion": "aegis.cli.completion:completion",
}

ALIASES = {
    "term": {"ls": "list", "ps": "list", "rm": "close", "new": "spawn", "exec": "run"},
    "agent": {
        "ls": "list",
        "ps": "list",
        "rm": "stop",
        "kill": "stop",
        "close": "stop",
        "logs": "read",
        "log": "read",
        "new": "launch",
        "start": "launch",
        "spawn": "launch",
    },
    "inbox": {"ls": "read", "list": "read"},
    "request": {"ls": "list"},
    "queue": {"ls": "list", "enqueue": "add", "rm": "cancel", "kill": "cancel"},
    "canvas": {"ls": "list", "create": "open", "new": "open", "log": "history"},
    "workflow": {"ls": "list", "start": "run", "kill": "cancel", "logs": "status"},
    "group": {"ls": "list", "new": "spawn", "rm": "dissolve"},
    "workspace": {"ls": "list", "new": "create", "rm": "delete", "run": "exec"},
    "shell": {"new": "open", "rm": "close"},
    "session": {"ls": "list", "rm": "revoke"},
    "page": {"ls": "list", "rm": "revoke"},
    "push": {"ls": "list", "rm": "remove"},
    "node": {"rm": "forget"},
}
"""Words of other tools that are accepted for a verb, by its first word; no help lists them."""

HINTS = {
    "ls": "'term list' lists the terminals, 'agent list' the agents, 'status' counts them",
    "ps": "'term list' and 'agent list' say what runs, 'tree' shows each part of the daemon",
    "rm": "'term close NAME' ends a terminal, 'agent stop AGENT' an agent; with --purge for good",
    "kill": "'term signal NAME KILL' ends the program on a terminal, 'term close NAME' the "
    "terminal, 'agent stop AGENT' an agent",
    "logs": "'term read NAME' shows the commands of a terminal with their output, "
    "'agent read AGENT' the transcript of an agent",
    "exec": "'term run NAME COMMAND' runs a command on a terminal",
    "attach": "'term attach NAME' attaches to a terminal",
    "launch": "'agent launch PROFILE' launches an agent",
    "start": "'up' starts the daemon",
    "stop": "'down' stops the daemon, 'agent stop AGENT' an agent",
    "restart": "'down' and then 'up' restart the daemon",
    "term kill": "'term signal NAME KILL' ends the program in front, 'term close NAME' the "
    "terminal",
    "term logs": "'term read NAME' shows the commands with their output, 'term output NAME' the "
    "output of the newest, with --follow as it comes",
    "term send": "'term run NAME COMMAND' runs a command, 'term keys NAME KEYS' types keys",
    "term show": "'term screen NAME' shows the screen, 'term read NAME' the commands",
    "shell run": "'shell write SHELL TEXT' types into a shell, 'workspace exec NAME COMMAND' runs "
    "a command without one",
    "shell list": "'workspace list' lists the shells",
    "shell ls": "'workspace list' lists the shells",
    "node list": "'status' lists the nodes",
    "node ls": "'status' lists the nodes",
    "queue status": "'queue show' lists the tasks, 'queue task TASK' shows one",
    "queue ps": "'queue show' lists the tasks, 'queue task TASK' shows one",
}
"""The answers to words of other tools that could mean several verbs."""

VERBS_OF_TOOLS = {
    "handoff": "inbox send",
    "ask_human": "request ask",
    "enqueue": "queue add",
    "delegate": "queue add",
    "task_status": "queue task",
    "task_list": "queue show",
    "cancel": "queue cancel",
    "task_retry": "queue retry",
    "task_move": "queue move",
    "canvas_write_section": "canvas write",
    "canvas_append_to_section": "canvas append",
    "run_workflow": "workflow run",
    "group_spawn_mixed": "group spawn",
    "group_wait_all": "group wait",
    "group_wait_any": "group wait --any",
    "group_status": "group show",
    "spawn": "agent launch",
    "meta": "agent meta",
    "list_sessions": "agent list",
    "list_agents": "agent profiles",
    "session_export": "agent export",
    "session_read": "agent read",
    "interrupt": "agent interrupt",
    "rename": "agent rename",
    "close": "agent stop",
    "agent_usage_over_time": "agent usage",
    "agent_resume": "agent launch",
    "agent_continue": "agent launch",
    "agent_launch": "agent launch",
    "agent_purge": "agent stop --purge",
    "agent_worktree_list": "agent worktree",
    "agent_worktree_remove": "agent worktree",
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

    The words may have an option behind them.

    None if the command line has no such verb.
    """
    words = VERBS_OF_TOOLS.get(tool) or tool.replace("_", " ", 1)
    first, _, second = words.partition(" --")[0].partition(" ")
    verb = load(VERBS.get(first))
    if second:
        members = getattr(verb, "members", None) or getattr(verb, "commands", {})
        verb = load(members.get(second))
    return None if verb is None else (words, verb)
