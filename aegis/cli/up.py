"""``up``: start a daemon and stay in the foreground as it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from aegis.cli.config import refuse
from aegis.cli.gc_pause import gc_paused
from aegis.cli.grammar.addresses import listen_address
from aegis.cli.grammar.click_commands import WholeRange
from aegis.cli.grammar.click_options import DIRECTORY, here, root_before
from aegis.settings import DEFAULT_HOST, DEFAULT_PORT, DaemonSettings
from aegis.state.root import CONFIG_NAME, find_root

_PORT_HELP = f"Port; 0: a free one. Default: the one used last here, else {DEFAULT_PORT}."
_PORTS = WholeRange(0, 65_535)
_LEVELS = click.Choice(["debug", "info", "warning", "error"])


@click.command()
@click.option("--root", type=DIRECTORY, help="Serve this directory; default: see above.")
@click.option("--host", default=DEFAULT_HOST, show_default=True, help="Address to listen on.")
@click.option("--port", type=_PORTS, help=_PORT_HELP)
@click.option("--log-level", type=_LEVELS, default="info", show_default=True)
@click.option("--clean", is_flag=True, help="Start no terminal again; their histories stay.")
@click.option(
    "--trust",
    is_flag=True,
    help="Take over the state and the programs of .aegis.yaml as they are now: they become yours.",
)
@click.option(
    "--workers",
    type=WholeRange(0, 64),
    help="Spread terminals over so many processes; default: nodes.workers of .aegis.yaml, else 0.",
)
@click.option(
    "--nodes",
    "nodes_address",
    metavar="HOST:PORT",
    callback=listen_address,
    help="Let hosts join here; default: none may.",
)
@click.option("--debug", is_flag=True, help="Log all, and where the daemon was when it was stuck.")
def up(root: Path | None, log_level: str, workers: int | None, **options: Any) -> int:
    """Start the daemon and run until it is stopped.

    The terminals that were open when the last one ended are started again, with fresh shells.

    Without --root: of the nearest directory upwards that holds .aegis.yaml, else of this one. What
    that file says is checked first: if it is no good, nothing is started.

    A state that no daemon of yours made here, and an .aegis.yaml that names programs to run, are
    refused until you say --trust.
    """
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        raise click.ClickException("the daemon needs Linux 5.4 or newer")
    given = root or root_before()
    directory = given.resolve() if given else find_root(here())
    level = "debug" if options["debug"] else log_level
    # Imported last: they bring the whole system, which no other verb needs.
    from aegis.configuration.file import programs_of, read_configuration
    from aegis.configuration.problems import BadConfiguration

    try:
        parsed = read_configuration(directory / CONFIG_NAME)
    except BadConfiguration as error:
        return refuse(error.lines())
    with gc_paused():
        from actors.errors import NodeError
        from aegis.app import run_daemon
        from aegis.errors import StartupError

    configuration = parsed.configuration
    wanted = configuration.nodes.workers if workers is None else workers
    settings = DaemonSettings(
        root=directory,
        log_level=level,
        workers=wanted,
        programs=programs_of(configuration),
        digest=parsed.digest if programs_of(configuration) else "",
        **options,
    )
    try:
        _check_nodes(settings)
        return run_daemon(settings, configuration)
    except (StartupError, NodeError) as error:
        raise click.ClickException(str(error)) from None


def _check_nodes(settings: DaemonSettings) -> None:
    """Raise ``NodesNotInstalled`` where nodes are wanted and what they need is missing."""
    if settings.workers or settings.nodes_address is not None:
        from actors.nodes.installed import check_installed

        check_installed()
