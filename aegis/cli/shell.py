"""The verbs of shells in workspaces: ``shell open|read|write|signal|close``."""

from __future__ import annotations

import sys

from aegis.cli.grammar.keys import keys_of
from aegis.cli.grammar.verb import (
    SECONDS,
    WHOLE,
    TargetDaemon,
    VerbGroup,
    argument,
    as_text,
    flag,
    option,
    text_or_input,
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
    option("--name", help="Name in the workspace; default: a new number."),
    option("--shell", "program", help="Shell program, by path or name."),
    option("--cwd", help="Directory to start in, relative to the workspace."),
    option("--cols", kind=WHOLE, help="Width in columns."),
    option("--rows", kind=WHOLE, help="Height in rows."),
    argument("workspace"),
)
def open_shell(
    daemon: TargetDaemon, workspace: str, program: str | None, cwd: str | None, **options: Any
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
    option("--cursor", kind=WHOLE, help="Read from this byte offset: 0, or the end of a read."),
    option("--max-bytes", kind=WHOLE, help="Maximum number of bytes; default 65536."),
    option("--wait", "wait_s", kind=SECONDS, help="Seconds to wait for output."),
    flag(
        "--plain",
        negation="--no-plain",
        default=True,
        help="Remove escape sequences; --no-plain shows them.",
    ),
    argument("shell"),
)
def read(daemon: TargetDaemon, shell: str, plain: bool, **options: Any) -> None:
    """Print the output of SHELL.

    The last line, on standard error, is the cursor of the next read.
    """
    reply = daemon.call("shell_read", shell=shell, plain=plain, **options)
    daemon.show(reply, lambda: _show_output(reply))


def _show_output(reply: Mapping[str, Any]) -> None:
    sys.stdout.write(escaped(reply["text"]))
    sys.stdout.flush()
    if sys.stderr.isatty() and reply["text"][-1:] not in ("", "\n"):
        sys.stderr.write("\n")
    lost = f" · {reply['dropped']} bytes are no longer kept" if reply["dropped"] else ""
    print_notice(f"↳ continue with --cursor {reply['next_cursor']}{lost}")


@verb(
    flag("--no-newline", help="Do not press Enter after TEXT."),
    flag("--keys", "as_keys", help=r"Replace escapes in TEXT: \e \t \xHH \uHHHH …"),
    argument("shell"),
    argument("text"),
)
def write(daemon: TargetDaemon, shell: str, text: str, no_newline: bool, as_keys: bool) -> None:
    """Type TEXT into SHELL and press Enter.

    `-` reads TEXT from the standard input.
    """
    try:
        typed = keys_of(text) if as_keys else text_or_input(text)
    except ValueError as error:
        raise UsageError(str(error)) from None
    reply = daemon.call("shell_write", shell=shell, input=typed, append_newline=not no_newline)
    daemon.show(reply, lambda: None)


@verb(argument("shell"), argument("signal", metavar="SIGNAL"))
def signal(daemon: TargetDaemon, shell: str, signal: str) -> None:
    """Send SIGNAL to the foreground program of SHELL.

    SIGNAL is INT, TERM, HUP, KILL, QUIT, TSTP, STOP, CONT, USR1, USR2 or WINCH.
    """
    reply = daemon.call("shell_signal", shell=shell, signal=signal)
    daemon.show(reply, lambda: None)


@verb(argument("shell"))
def close(daemon: TargetDaemon, shell: str) -> None:
    """Close SHELL and end its processes."""
    reply = daemon.call("shell_close", shell=shell)
    daemon.show(reply, lambda: None)
    if reply["leftover"]:
        print_notice(
            f"warning: these processes of {shell} could not be ended: {cell(reply['leftover'])}"
        )


shell = VerbGroup(
    """Shells in workspaces; a shell keeps its state between calls.

To run a command with its exit code and separate streams, use `workspace exec`.""",
    {
        "open": open_shell,
        "read": read,
        "write": write,
        "signal": signal,
        "close": close,
    },
)
