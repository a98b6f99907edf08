"""Shells of workspaces: ``shell open|read|write|signal|close``."""

from __future__ import annotations

import sys

from aegis.cli.grammar.keys import keys_of
from aegis.cli.grammar.verb import (
    SECONDS,
    WHOLE,
    Daemon,
    Group,
    argument,
    as_text,
    flag,
    option,
    verb,
)
from aegis.cli.printing.failures import UsageError
from aegis.cli.printing.formatting import cell, escaped, print_lines, print_notice, table

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_HEAD = ["shell", "workspace", "state", "size", "cwd"]


@verb(
    option("--name", help="Its name in the workspace; default: a new number."),
    option("--shell", "program", help="Path or name of the shell program."),
    option("--cwd", help="Where to start, relative to the workspace."),
    option("--cols", kind=WHOLE, help="Width in columns."),
    option("--rows", kind=WHOLE, help="Height in rows."),
    argument("workspace"),
)
def open_shell(
    daemon: Daemon, workspace: str, program: str | None, cwd: str | None, **options: Any
) -> None:
    """Open a shell in WORKSPACE and print its id."""
    reply = daemon.call(
        "shell_open", workspace=workspace, shell=as_text(program), cwd=as_text(cwd), **options
    )
    daemon.show(reply, lambda: print_lines(_shown(reply)))


def _shown(info: Mapping[str, Any]) -> str:
    size = f"{info['cols']}x{info['rows']}"
    row = [info["shell_id"], info["workspace_id"], info["state"], size, info["cwd"]]
    return table(_HEAD, [row])


@verb(
    option("--cursor", kind=WHOLE, help="Read from this offset on: 0, or where a read ended."),
    option("--max-bytes", kind=WHOLE, help="How many bytes at most; default 65536."),
    option("--wait", "wait_s", kind=SECONDS, help="Seconds to wait for output."),
    flag(
        "--plain",
        negation="--no-plain",
        default=True,
        help="Leave out escape sequences; --no-plain shows them.",
    ),
    argument("shell"),
)
def read(daemon: Daemon, shell: str, plain: bool, **options: Any) -> None:
    """Show what SHELL printed.

    The last line, on standard error, tells where to read on.
    """
    reply = daemon.call("shell_read", shell=shell, plain=plain, **options)
    daemon.show(reply, lambda: _show_output(reply))


def _show_output(reply: Mapping[str, Any]) -> None:
    sys.stdout.write(escaped(reply["text"]))
    sys.stdout.flush()
    if sys.stderr.isatty() and reply["text"][-1:] not in ("", "\n"):
        sys.stderr.write("\n")
    lost = f" · {reply['dropped']} bytes are no longer kept" if reply["dropped"] else ""
    print_notice(f"↳ read on with --cursor {reply['next_cursor']}{lost}")


@verb(
    flag("--no-newline", help="Do not press Enter after it."),
    flag("--keys", "as_keys", help=r"Read escapes: \e \t \xHH \uHHHH …"),
    argument("shell"),
    argument("text"),
)
def write(daemon: Daemon, shell: str, text: str, no_newline: bool, as_keys: bool) -> None:
    """Type TEXT into SHELL, and Enter after it."""
    try:
        typed = keys_of(text) if as_keys else text
    except ValueError as error:
        raise UsageError(str(error)) from None
    reply = daemon.call("shell_write", shell=shell, input=typed, append_newline=not no_newline)
    daemon.show(reply, lambda: None)


@verb(argument("shell"), argument("signal", metavar="SIGNAL"))
def signal(daemon: Daemon, shell: str, signal: str) -> None:
    """Send SIGNAL (INT, TERM, KILL …) to what runs in front in SHELL."""
    reply = daemon.call("shell_signal", shell=shell, signal=signal)
    daemon.show(reply, lambda: None)


@verb(argument("shell"))
def close(daemon: Daemon, shell: str) -> None:
    """Close SHELL and end its processes."""
    reply = daemon.call("shell_close", shell=shell)
    daemon.show(reply, lambda: None)
    if reply["leftover"]:
        print_notice(
            f"warning: these processes of {shell} could not be ended: {cell(reply['leftover'])}"
        )


shell = Group(
    """Shells in workspaces, that keep their state between calls.

For a command whose exit code and streams matter more than state: `workspace exec`.""",
    {
        "open": open_shell,
        "read": read,
        "write": write,
        "signal": signal,
        "close": close,
    },
)
