"""The verb ``up``: run the daemon in the foreground."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from aegis.cli.config import print_errors
from aegis.cli.gc_pause import gc_paused
from aegis.cli.grammar.addresses import listen_address
from aegis.cli.grammar.click_commands import WholeRange
from aegis.cli.grammar.click_options import DIRECTORY, here, root_before
from aegis.settings import DEFAULT_HOST, DEFAULT_PORT, DaemonSettings
from aegis.state.root import CONFIG_NAME, find_root

_PORT_HELP = f"Port; 0: any free port. Default: the port last used here, else {DEFAULT_PORT}."
_PORTS = WholeRange(0, 65_535)
_LEVEL_HELP = "Log events of this level and above."
_LEVELS = click.Choice(["debug", "info", "warning", "error"])


@click.command()
@click.option("--root", type=DIRECTORY, help="Serve exactly this directory.")
@click.option("--host", default=DEFAULT_HOST, show_default=True, help="Address to listen on.")
@click.option("--port", type=_PORTS, help=_PORT_HELP)
@click.option("--log-level", type=_LEVELS, default="info", show_default=True, help=_LEVEL_HELP)
@click.option("--clean", is_flag=True, help="Do not restart terminals; their histories are kept.")
@click.option(
    "--resume-agents",
    is_flag=True,
    help="Start the agents of all open sessions, not only those that have messages.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="Accept the state, the programs that .aegis.yaml names, and the plugins, as they are now.",
)
@click.option(
    "--workers",
    type=WholeRange(0, 64),
    help="Worker processes that run terminals; default: nodes.workers of .aegis.yaml, else 0.",
)
@click.option(
    "--nodes",
    "nodes_address",
    metavar="HOST:PORT",
    callback=listen_address,
    help="Accept joining hosts at this address; default: accept none.",
)
@click.option(
    "--tui",
    "has_tui",
    is_flag=True,
    help="Start the daemon in the background, and open the terminal interface.",
)
@click.option("--debug", is_flag=True, help="Log everything, and what blocks the daemon.")
def up(
    root: Path | None, log_level: str, workers: int | None, has_tui: bool, **options: Any
) -> int:
    """Start the daemon in the foreground.

    It runs until you stop it with Ctrl-C or `aegis-actors down`. The terminals that were open when
    the previous daemon ended are restarted, each with a new shell.

    Without --root it serves the nearest directory that holds .aegis.yaml, from the current one
    upwards, else the current one. If .aegis.yaml has errors, the daemon does not start.

    The daemon does not use a state that your daemons did not write, nor an .aegis.yaml that names
    programs to run, nor plugins, until you pass --trust.
    """
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        raise click.ClickException("the daemon needs Linux 5.4 or newer")
    given = root or root_before()
    directory = given.resolve() if given else find_root(here())
    if has_tui:
        from aegis.cli.tui import run_both

        return run_both(directory, sys.argv)
    level = "debug" if options["debug"] else log_level
    # Imported late: they load the whole system, which no other verb needs.
    from aegis.configuration.file import programs_of, read_configuration
    from aegis.configuration.problems import BadConfiguration

    try:
        parsed = read_configuration(directory / CONFIG_NAME)
    except BadConfiguration as error:
        return print_errors(error.lines())
    with gc_paused():
        from actors.errors import NodeError
        from aegis.app import run_daemon
        from aegis.errors import StartupError
        from aegis.workflows.plugins.found import find_plugins, sentences_of

    configuration = parsed.configuration
    plugins = find_plugins(directory, configuration.plugin_dirs)
    programs = (*programs_of(configuration), *sentences_of(plugins))
    wanted = configuration.nodes.workers if workers is None else workers
    settings = DaemonSettings(
        root=directory,
        log_level=level,
        workers=wanted,
        programs=programs,
        digest=parsed.digest if programs else "",
        plugins=plugins,
        **options,
    )
    try:
        _check_nodes(settings)
        return run_daemon(settings, configuration)
    except (StartupError, NodeError) as error:
        raise click.ClickException(str(error)) from None


def _check_nodes(settings: DaemonSettings) -> None:
    """Raise ``NodesNotInstalled`` if nodes are requested and their packages are missing."""
    if settings.workers or settings.nodes_address is not None:
        from actors.nodes.installed import check_installed

        check_installed()
