"""The verbs of workspaces: ``workspace create|list|delete|exec``."""

from __future__ import annotations

import sys

from aegis.cli.grammar.verb import (
    SECONDS,
    TargetDaemon,
    VerbGroup,
    argument,
    flag,
    from_here,
    option,
    text_or_input,
    verb,
)
from aegis.cli.grammar.words import command_text
from aegis.cli.printing.failures import UsageError, report_error
from aegis.cli.printing.formatting import (
    EXIT_UNKNOWN,
    cell,
    escaped,
    exit_code_of,
    print_json,
    print_lines,
    print_notice,
    table,
)
from aegis.client.line import ClientError

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_HEAD = ["workspace", "shell", "state", "size", "directory"]


@verb(argument("name"), argument("directory", required=False))
def create(daemon: TargetDaemon, name: str, directory: str | None) -> None:
    """Make DIRECTORY (default: the daemon's root) the workspace NAME."""
    reply = daemon.call("workspace_create", workspace=name, directory=from_here(directory))
    daemon.show(reply, lambda: print_lines(_workspaces([reply])))


@verb()
def list_workspaces(daemon: TargetDaemon) -> None:
    """List the workspaces and their shells."""
    reply = daemon.call("workspace_list")
    daemon.show(reply, lambda: print_lines(_workspaces(reply["result"])))


def _workspaces(infos: Sequence[Mapping[str, Any]]) -> str:
    rows = [row for info in infos for row in _rows(info)]
    return table(_HEAD, rows)


def _rows(info: Mapping[str, Any]) -> list[list[object]]:
    shells, agent = info["shells"], info.get("agent")
    if not shells and agent is None:
        return [[info["workspace_id"], None, None, None, info["directory"]]]
    # The agent comes first; agent list shows its state.
    first = [[info["workspace_id"], agent, "agent", None, info["directory"]]]
    return [*(first if agent is not None else []), *_shell_rows(info)]


def _shell_rows(info: Mapping[str, Any]) -> list[list[object]]:
    return [
        [
            info["workspace_id"],
            shell["shell_id"],
            shell["state"],
            f"{shell['cols']}x{shell['rows']}",
            shell["cwd"] or info["directory"],
        ]
        for shell in info["shells"]
    ]


@verb(flag("--purge", help="Also delete the history of its shells."), argument("name"))
def delete(daemon: TargetDaemon, name: str, purge: bool) -> None:
    """Delete the workspace NAME and close its shells.

    Its directory is not changed.
    """
    reply = daemon.call("workspace_delete", workspace=name, purge=purge)
    daemon.show(reply, lambda: None)
    if reply["leftover"]:
        print_notice(f"warning: these processes could not be ended: {cell(reply['leftover'])}")


@verb(
    option(
        "--timeout",
        kind=SECONDS,
        help="Seconds until COMMAND is ended; default 50, or as configured.",
    ),
    argument("name"),
    argument("command", many=True),
    options_first=True,
)
def execute(daemon: TargetDaemon, name: str, command: Sequence[str], timeout: float | None) -> int:
    """Run COMMAND in the workspace NAME, without a terminal.

    One word is text for bash (`exec demo 'make && ls'`), and `-` reads that text from the standard
    input; several words are one command, each quoted. Exits with the exit code of COMMAND, or with
    125 if there is none: the call failed, or the time ran out.
    """
    if command[0].startswith("-") and command[0] != "-":
        raise UsageError(f"{command[0]!r} is no option of workspace exec, and no command begins so")
    text = text_or_input(command_text(command))
    try:
        result = daemon.call("workspace_exec", workspace=name, command=text, timeout=timeout)
    except ClientError as error:
        report_error(error, as_json=daemon.as_json)
        return EXIT_UNKNOWN
    if daemon.as_json:
        print_json(result)
    else:
        sys.stdout.write(escaped(result["stdout"]))
        sys.stdout.flush()
        sys.stderr.write(escaped(result["stderr"]))
    if result["exit"] is None:
        print_notice(
            "aegis-actors: the time ran out and the command was ended; allow more with --timeout"
        )
    return exit_code_of(result)


workspace = VerbGroup(
    """Named directories with shells, and commands in them.

A shell keeps its state between calls (`aegis-actors shell`); `workspace exec` runs one command
in a process of its own and separates its two streams.""",
    {
        "create": create,
        "list": list_workspaces,
        "delete": delete,
        "exec": execute,
    },
)
