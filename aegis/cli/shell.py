"""Shells of workspaces: ``shell open|read|write|signal|close``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from aegis.cli.keys import keys_of
from aegis.cli.show import cell, escaped, print_lines, say, table
from aegis.cli.verb import Daemon, as_text, verb

_HEAD = ["shell", "workspace", "state", "size", "cwd"]


@click.group()
def shell() -> None:
    """Shells in workspaces, that keep their state between calls.

    For a command whose exit code and streams matter more than state: `workspace exec`.
    """


@shell.command("open")
@click.option("--name", help="Its name in the workspace; default: a new number.")
@click.option("--shell", "program", help="Path or name of the shell program.")
@click.option("--cwd", help="Where to start, relative to the workspace.")
@click.option("--cols", type=int, help="Width in columns.")
@click.option("--rows", type=int, help="Height in rows.")
@click.argument("workspace")
@verb
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


@shell.command()
@click.option("--cursor", type=int, help="Read from this offset on: 0, or where a read ended.")
@click.option("--max-bytes", type=int, help="How many bytes at most; default 65536.")
@click.option("--wait", "wait_s", type=float, help="Seconds to wait for output.")
@click.option(
    "--plain/--no-plain", default=True, help="Leave out escape sequences; --no-plain shows them."
)
@click.argument("shell")
@verb
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
    say(f"↳ read on with --cursor {reply['next_cursor']}{lost}")


@shell.command()
@click.option("--no-newline", is_flag=True, help="Do not press Enter after it.")
@click.option("--keys", "as_keys", is_flag=True, help=r"Read escapes: \e \t \xHH \uHHHH …")
@click.argument("shell")
@click.argument("text")
@verb
def write(daemon: Daemon, shell: str, text: str, no_newline: bool, as_keys: bool) -> None:
    """Type TEXT into SHELL, and Enter after it."""
    try:
        typed = keys_of(text) if as_keys else text
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    reply = daemon.call("shell_write", shell=shell, input=typed, append_newline=not no_newline)
    daemon.show(reply, lambda: None)


@shell.command()
@click.argument("shell")
@click.argument("signal", metavar="SIGNAL")
@verb
def signal(daemon: Daemon, shell: str, signal: str) -> None:
    """Send SIGNAL (INT, TERM, KILL …) to what runs in front in SHELL."""
    reply = daemon.call("shell_signal", shell=shell, signal=signal)
    daemon.show(reply, lambda: None)


@shell.command()
@click.argument("shell")
@verb
def close(daemon: Daemon, shell: str) -> None:
    """Close SHELL and end its processes."""
    reply = daemon.call("shell_close", shell=shell)
    daemon.show(reply, lambda: None)
    if reply["leftover"]:
        say(f"warning: these processes of {shell} could not be ended: {cell(reply['leftover'])}")
