"""Nodes: ``node key`` and ``node forget``; ``join``, which makes this process one of them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click

from aegis.cli.grammar.addresses import join_address
from aegis.cli.grammar.click_commands import command_of
from aegis.cli.grammar.click_options import DIRECTORY, here, root_before
from aegis.cli.grammar.verb import Daemon, argument, verb
from aegis.cli.printing.formatting import cell, escaped_line, print_lines, print_notice
from aegis.protocol.naming import LOCAL_NODE, NAME_RULE, is_name
from aegis.settings import JoinSettings, NodesAddress
from aegis.state.root import State, find_root

_LEVELS = click.Choice(["debug", "info", "warning", "error"])

_OF_A_WORKER = re.compile(r"w[0-9]+", re.IGNORECASE)


@click.group()
def node() -> None:
    """Other hosts that terminals run on."""


@node.command()
@click.option("--root", type=DIRECTORY, help="Whose key; default: of the nearest root upwards.")
def key(root: Path | None) -> None:
    """Print where the key is that a host needs to join.

    It is made if there is none yet. Who has it runs commands as you.
    """
    # Imported last: only this verb and `join` need it.
    from actors.errors import NodeError
    from aegis.errors import StartupError
    from aegis.node_key import open_node_key

    state = State(find_root(root or root_before() or here()))
    try:
        open_node_key(state)
    except (StartupError, NodeError) as error:
        raise click.ClickException(str(error)) from None
    print_lines(escaped_line(str(state.node_key)))
    print_notice("copy it to the host that is to join (scp -p keeps its mode), then there:")
    print_notice("  aegis-actors join HOST:PORT --name NAME --root DIR --key-file FILE")


@verb(argument("node"))
def forget(daemon: Daemon, node: str) -> None:
    """Forget a host that will not join again.

    The names of its terminals become free. Nothing on it changes.
    """
    reply = daemon.call("node_forget", node=node)
    daemon.show(reply, lambda: print_lines(f"free again: {cell(reply['terminals'])}"))


node.add_command(command_of(forget, "forget"))


def _node_name(_: click.Context, param: click.Parameter, name: str) -> str:
    if not is_name(name):
        raise click.BadParameter(f"a name must be {NAME_RULE}", param=param)
    if name.lower() == LOCAL_NODE or _OF_A_WORKER.fullmatch(name):
        raise click.BadParameter(
            f"{name!r} is what a daemon calls a place of its own; choose another", param=param
        )
    return name


@click.command()
@click.argument("address", metavar="HOST:PORT", callback=join_address)
@click.option("--name", required=True, callback=_node_name, help="What this host is called there.")
@click.option("--root", type=DIRECTORY, help="Serve terminals of this directory; needed.")
@click.option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The key of the root that is joined. Default: .aegis/state/node.key of --root.",
)
@click.option("--log-level", type=_LEVELS, default="info", show_default=True)
@click.option("--trust", is_flag=True, help="Take over the state of --root as it is now.")
def join(
    address: NodesAddress,
    name: str,
    root: Path | None,
    key_file: Path | None,
    log_level: str,
    trust: bool,
) -> int:
    """Run terminals here for a daemon elsewhere, until stopped.

    That daemon takes nodes at HOST:PORT (`up --nodes`). Terminals that are spawned on this node run
    here, as you, and their histories stay here. While the daemon cannot be reached they go on.
    """
    given = root or root_before()
    if given is None:
        raise click.UsageError("give --root DIR, where this node keeps its terminals")
    directory = given.resolve()
    settings = JoinSettings(
        address=address,
        name=name,
        root=directory,
        key_file=State(directory).node_key if key_file is None else key_file.absolute(),
        log_level=log_level,
        trust=trust,
    )
    # Imported last: they bring the whole system, which no one-shot verb needs.
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
