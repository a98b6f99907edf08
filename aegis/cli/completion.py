"""Completion of the command line in bash, zsh and fish, and the verb ``completion``.

click completes verbs and options; this module adds names, which it asks the daemon for. The shell
starts a process for each TAB, so it must be quick, and silent when no daemon answers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from aegis.cli.printing.formatting import escaped_line
from aegis.client.line import ClientError, LineClient, open_connection
from aegis.protocol.naming import LOCAL_NODE
from aegis.state.root import nearest_root

PATIENCE_S = 1.0
"""Seconds to wait for the daemon's answer."""

SIGNALS = ("INT", "TERM", "HUP", "KILL", "QUIT", "TSTP", "STOP", "CONT", "USR1", "USR2", "WINCH")

Names = Callable[[LineClient, click.Context], list[str]]
"""Returns names, each with a description behind a tab if it has one."""


def _listed(command: str, name: str, **arguments: object) -> Names:
    """Return the names in the field ``name`` of each row that ``command`` lists."""

    def names(client: LineClient, _: click.Context) -> list[str]:
        reply = client.call(command, arguments)
        rows = reply["requests"] if command == "request_list" else reply["result"]
        return [each[name] for each in rows]

    return names


def _shells(client: LineClient, _: click.Context) -> list[str]:
    listed = client.call("workspace_list", {})["result"]
    return [shell["shell_id"] for each in listed for shell in each["shells"]]


def _handles(client: LineClient, _: click.Context) -> list[str]:
    handles: list[str] = client.call("status", {})["handles"]
    return handles


def _sessions(client: LineClient, _: click.Context) -> list[str]:
    handles: list[str] = client.call("session_list", {})["handles"]
    return handles


def _sections(client: LineClient, context: click.Context) -> list[str]:
    listed = client.call("canvas_list", {})["result"]
    canvas = context.params.get("canvas")
    return [name for each in listed if each["name"] == canvas for name in each["sections"]]


def _workflows(client: LineClient, _: click.Context) -> list[str]:
    return [each["name"] for each in client.call("workflow_list", {})["workflows"]]


def _profile(client: LineClient, context: click.Context) -> list[str]:
    """Return the profiles for the first word of ``agent launch``; the second is a text."""
    is_first = not (context.params.get("words") or context.params.get("terminal"))
    return _profiles(client, context) if is_first else []


def _nodes(client: LineClient, _: click.Context) -> list[str]:
    return [each["name"] for each in client.call("status", {})["nodes"]]


def _places(client: LineClient, context: click.Context) -> list[str]:
    return [LOCAL_NODE, *_nodes(client, context)]


def _pages(client: LineClient, _: click.Context) -> list[str]:
    listed = client.call("page_list", {})
    return [each["id"] for each in (*listed["pages"], *listed["links"])]


MAX_HELP_CHARS = 80
"""The part of a description of an agent's own command that is shown beside it."""


def _commands(client: LineClient, context: click.Context) -> list[str]:
    """Return the agent's own commands, each with its description, for the first word of a text."""
    if context.params.get("text"):
        return []
    found = client.call("agent_show", {"handle": context.params["agent"]})["commands"]
    # The descriptions are those of an agent: the shell prints them as they are.
    about = [escaped_line(each["description"])[:MAX_HELP_CHARS] for each in found]
    return [f"/{each['name']}\t{text}" for each, text in zip(found, about, strict=True)]


_terminals = _listed("term_list", "name")
_workspaces = _listed("workspace_list", "workspace_id")
_agents = _listed("list_sessions", "handle")
_closed_agents = _listed("list_sessions", "handle", closed=True)
_profiles = _listed("list_agents", "profile")
_queues = _listed("queue_list", "queue")
_tasks = _listed("task_list", "task_id")
_groups = _listed("group_list", "group")

_ARGUMENTS: Mapping[tuple[str, str], Names] = {
    ("term", "name"): _terminals,
    ("term", "names"): _terminals,
    ("workspace", "name"): _workspaces,
    ("shell", "workspace"): _workspaces,
    ("shell", "shell"): _shells,
    ("inbox", "target"): _handles,
    ("agent", "agent"): _closed_agents,
    ("agent", "words"): _profile,
    ("agent", "profile"): _profiles,
    ("agent", "text"): _commands,
    ("request", "id"): _listed("request_list", "id"),
    ("queue", "queue"): _queues,
    ("queue", "task"): _tasks,
    ("canvas", "canvas"): _listed("canvas_list", "name"),
    ("canvas", "section"): _sections,
    ("workflow", "name"): _workflows,
    ("workflow", "workflow"): _listed("workflow_list", "workflow_id"),
    ("group", "group"): _groups,
    ("group", "profiles"): _profiles,
    ("session", "agent"): _sessions,
    ("page", "page_id"): _pages,
    ("node", "node"): _nodes,
}
"""The names that complete an argument, by the first word of the verb and the argument's name."""

_NEW = {("term", "spawn"), ("workspace", "create")}
"""Verbs that take a new name: existing names are not offered."""


def _terminals_and_queues(client: LineClient, context: click.Context) -> list[str]:
    return [*_terminals(client, context), *_queues(client, context)]


_OPTIONS: Mapping[str, Names] = {
    "--name": _terminals_and_queues,
    "--as": _handles,
    "--handle": _handles,
    "--session": _sessions,
    "--node": _places,
    "--workspace": _workspaces,
    "--resume": _closed_agents,
    "--agent": _agents,
    "--after": _tasks,
    "--section": _sections,
    "--profile": _profiles,
    "--before": _tasks,
}

_OTHER_OPTIONS = {
    (("shell", "open"), "--name"),
    (("join",), "--name"),
    *((("agent", verb), "--handle") for verb in ("launch", "fork")),
    (("group", "spawn"), "--handle"),
    *(
        (each, "--before")
        for each in (("group", "orders"), ("canvas", "history"), ("term", "read"))
    ),
    *((("inbox", verb), "--after") for verb in ("read", "wait")),
}
"""Options with these words that take something new."""


def script(shell: str, program: str, command: click.Command) -> str:
    """Return the script that makes ``shell`` (bash, zsh or fish) complete ``program``."""
    variable = f"_{program}_COMPLETE".replace("-", "_").upper()  # the name that click reads
    return _CLASSES[shell](command, {}, program, variable).source()


def register() -> None:
    """Make click complete names too."""
    for name, complete in _CLASSES.items():
        add_completion_class(complete, name)


class _WithNames(ShellComplete):
    """The completion of click, with the daemon's names added."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        from click.shell_completion import _resolve_context, _resolve_incomplete

        context = _resolve_context(self.cli, self.ctx_args, self.prog_name, args)
        wanted, incomplete = _resolve_incomplete(context, args, incomplete)
        offered = wanted.shell_complete(context, incomplete)
        found = names_for(context, wanted) if isinstance(wanted, click.Parameter) else []
        # A text is not completed before it is begun: commands all begin with a slash.
        begun = [each for each in found if each.startswith(incomplete)]
        begun = [each for each in begun if incomplete or not each.startswith("/")]
        pairs = (each.partition("\t") for each in begun)
        return [*offered, *(CompletionItem(word, help=text or None) for word, _, text in pairs)]


class _Bash(_WithNames, BashComplete):
    # click's own script inserts a name with blanks, such as a section's, as several words.
    source_template = BashComplete.source_template.replace(
        "COMPREPLY+=($value)", 'printf -v value %%q "$value"; COMPREPLY+=("$value")'
    )


class _Zsh(_WithNames, ZshComplete):
    pass


class _Fish(_WithNames, FishComplete):
    # click's own script truncates a description at its first comma.
    source_template = FishComplete.source_template.replace(
        'string split ","', 'string split --max 1 ","'
    )


_CLASSES: Mapping[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def names_for(context: click.Context, wanted: click.Parameter) -> list[str]:
    """Return the names for an argument or option; none if no daemon answers in time."""
    words = tuple(context.command_path.split()[1:])
    if isinstance(wanted, click.Option):
        known_options = (each for each in wanted.opts if (words, each) not in _OTHER_OPTIONS)
        names = next((_OPTIONS[each] for each in known_options if each in _OPTIONS), None)
    elif wanted.name == "signal":
        return list(SIGNALS)
    else:
        known = words and words not in _NEW
        names = _ARGUMENTS.get((words[0], str(wanted.name))) if known else None
    if names is None:
        return []
    with contextlib.suppress(ClientError, OSError, KeyError, TypeError):
        return _ask_daemon(context, names)
    return []


def _ask_daemon(context: click.Context, names: Names) -> list[str]:
    root = _root(context)
    connected, endpoint = open_connection(root, start_limit_s=0)
    connected.settimeout(PATIENCE_S)
    with LineClient(connected, endpoint, root) as client:
        return names(client, context)


def _root(context: click.Context) -> str:
    """Return the root given on the line so far, else the nearest one upwards."""
    given: Any = context.params.get("root") or context.find_root().params.get("root")
    return nearest_root(str(given or "."))


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell script that completes verbs, options and names.

    bash: add eval "$(aegis-actors completion bash)" to .bashrc. zsh: add the same with zsh to
    .zshrc, after compinit. fish: add aegis-actors completion fish | source to config.fish.
    """
    root = context.find_root()
    click.echo(script(shell, str(root.info_name), root.command), nl=False)
