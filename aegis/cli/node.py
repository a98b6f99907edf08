"""The verbs of nodes: ``node key``, ``node forget`` and ``join``."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click

from aegis.cli.grammar.addresses import join_address
from aegis.cli.grammar.click_commands import Nouns, command_of
from aegis.cli.grammar.click_options import DIRECTORY, here, root_before
from aegis.cli.grammar.verb import TargetDaemon, argument, verb
from aegis.cli.printing.formatting import cell, escaped_line, print_lines, print_notice
from aegis.protocol.naming import LOCAL_NODE, NAME_RULE, is_name
from aegis.settings import JoinSettings, NodesAddress
from aegis.state.root import StatePaths, find_root

_LEVEL_HELP = "Log events of this level and above."
_LEVELS = click.Choice(["debug", "info", "warning", "error"])

_OF_A_WORKER = re.compile(r"w[0-9]+", re.IGNORECASE)


@click.group(cls=Nouns)
def node() -> None:
    """Other hosts that run terminals for the daemon."""


@node.command()
@click.option("--root", type=DIRECTORY, help="Root of the key; default: the nearest root.")
def key(root: Path | None) -> None:
    """Print the path of the key that a host needs to join.

    Creates the key if there is none. Anyone who has the key can run commands as you.
    """
    # Imported late: only this verb and `join` need it.
    from actors.errors import NodeError
    from aegis.errors import StartupError
    from aegis.node_key import open_node_key

    state = StatePaths(find_root(root or root_before() or here()))
    try:
        open_node_key(state)
    except (StartupError, NodeError) as error:
        raise click.ClickException(str(error)) from None
    print_lines(escaped_line(str(state.node_key)))
    print_notice(
        "copy this file to the host that will join (scp -p keeps its mode), then run there:"
    )
    print_notice("  aegis-actors join HOST:PORT --name NAME --root DIR --key-file FILE")


@verb(argument("node"))
def forget(daemon: TargetDaemon, node: str) -> None:
    """Forget a host that will not join again.

    The names of its terminals become free. Nothing changes on the host.
    """
    reply = daemon.call("node_forget", node=node)
    daemon.show(reply, lambda: print_lines(f"names free again: {cell(reply['terminals'])}"))


node.add_command(command_of(forget, "forget"))


def _node_name(_: click.Context, param: click.Parameter, name: str) -> str:
    if not is_name(name):
        raise click.BadParameter(f"a name must be {NAME_RULE}", param=param)
    if name.lower() == LOCAL_NODE or _OF_A_WORKER.fullmatch(name):
        raise click.BadParameter(
            f"{name!r} is reserved for a daemon's own nodes; choose another name", param=param
        )
    return name


@click.command()
@click.argument("address", metavar="HOST:PORT", callback=join_address)
@click.option("--name", required=True, callback=_node_name, help="Name of this host at the daemon.")
@click.option("--root", type=DIRECTORY, help="Directory that this node serves (required).")
@click.option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Key of the daemon's root. Default: .aegis/state/node.key of --root.",
)
@click.option("--log-level", type=_LEVELS, default="info", show_default=True, help=_LEVEL_HELP)
@click.option("--trust", is_flag=True, help="Accept the state of --root as it is now.")
def join(
    address: NodesAddress,
    name: str,
    root: Path | None,
    key_file: Path | None,
    log_level: str,
    trust: bool,
) -> int:
    """Run terminals on this host for a daemon on another host.

    HOST:PORT is the address that the daemon was given with `up --nodes`. Terminals that are spawned
    on this node run here, as you, and their histories are stored here. They keep running while the
    daemon cannot be reached. Stop the node with Ctrl-C.
    """
    given = root or root_before()
    if given is None:
        raise click.UsageError(
            "give --root DIR, the directory where this node stores its terminals"
        )
    directory = given.resolve()
    settings = JoinSettings(
        address=address,
        name=name,
        root=directory,
        key_file=StatePaths(directory).node_key if key_file is None else key_file.absolute(),
        log_level=log_level,
        trust=trust,
    )
    from aegis.processes.init_process import run_below_init

    return run_below_init(lambda: _run(settings))


def _run(settings: JoinSettings) -> int:
    """Run the node; return its exit code."""
    # Imported late: they load the whole system, which no one-shot verb needs.
    from actors.errors import NodeError
    from actors.nodes.installed import check_installed
    from aegis.errors import StartupError
    from aegis.node_key import read_node_key

    try:
        check_installed()
        read_node_key(settings.key_file)
        code: int = importlib.import_module("aegis.nodes.joining").run_node(settings)
    except (StartupError, NodeError) as error:
        raise click.ClickException(str(error)) from None
    return code
