"""Sessions: ``session new``."""

from __future__ import annotations

import click

from aegis.cli.show import escaped_line, print_lines
from aegis.cli.verb import Daemon, verb


@click.group()
def session() -> None:
    """MCP sessions of agents, each bound to a handle."""


@session.command()
@click.option("--handle", "agent", required=True, help="Whose session.")
@verb
def new(daemon: Daemon, agent: str) -> None:
    """Print the MCP URL of a handle. It is its own key: keep it secret."""
    reply = daemon.call("session_new", handle=agent)
    daemon.show(reply, lambda: print_lines(escaped_line(reply["url"])))
