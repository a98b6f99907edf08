"""``up``: start a daemon and stay in the foreground as it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from aegis.cli.verb import DIRECTORY, globals_now, here
from aegis.root import find_root
from aegis.settings import DEFAULT_HOST, DEFAULT_PORT, DaemonSettings

_PORT_HELP = f"Port; 0: a free one. Default: the one used last here, else {DEFAULT_PORT}."
_PORTS = click.IntRange(0, 65_535)
_LEVELS = click.Choice(["debug", "info", "warning", "error"])


@click.command()
@click.option("--root", type=DIRECTORY, help="Serve this directory; default: see above.")
@click.option("--host", default=DEFAULT_HOST, show_default=True, help="Address to listen on.")
@click.option("--port", type=_PORTS, help=_PORT_HELP)
@click.option("--log-level", type=_LEVELS, default="info", show_default=True)
@click.option("--clean", is_flag=True, help="Start no terminal again; their histories stay.")
@click.option("--debug", is_flag=True, help="Log all, and where the daemon was when it was stuck.")
def up(
    root: Path | None, host: str, port: int | None, log_level: str, clean: bool, debug: bool
) -> int:
    """Start the daemon and run until it is stopped.

    The terminals that were open when the last one ended are started again, with fresh shells.

    Without --root: of the nearest directory upwards that holds .aegis.yaml, else of this one.
    """
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        raise click.ClickException("the daemon needs Linux 5.4 or newer")
    given = root or globals_now().root
    directory = given.resolve() if given else find_root(here())
    level = "debug" if debug else log_level
    # Imported last: it brings the whole system, which no other verb needs.
    from aegis.app import run_daemon
    from aegis.errors import StartupError

    try:
        return run_daemon(DaemonSettings(directory, host, port, level, clean, debug))
    except StartupError as error:
        raise click.ClickException(str(error)) from None
