"""Sessions and keys: ``session new|list|revoke``, ``token rotate``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from aegis.cli.show import escaped_line, print_lines
from aegis.cli.verb import Daemon, verb


@click.group()
def session() -> None:
    """MCP sessions of agents, each bound to a handle."""


@session.command()
@click.option("--handle", "agent", required=True, metavar="HANDLE", help="Whose session.")
@verb
def new(daemon: Daemon, agent: str) -> None:
    """Print the MCP URL of a handle. It is its own key: keep it secret."""
    reply = daemon.call("session_new", handle=agent)
    daemon.show(reply, lambda: print_lines(escaped_line(reply["url"])))


@session.command("list")
@verb
def list_sessions(daemon: Daemon) -> None:
    """Name the handles that have an MCP URL, without the URLs."""
    reply = daemon.call("session_list")
    daemon.show(reply, lambda: print_lines("\n".join(map(escaped_line, reply["handles"]))))


@session.command()
@click.argument("agent", metavar="HANDLE")
@verb
def revoke(daemon: Daemon, agent: str) -> None:
    """Void the MCP URL of HANDLE for good, and send away whoever uses it."""
    reply = daemon.call("session_revoke", handle=agent)
    daemon.show(reply, lambda: print_lines(_told(reply)))


@click.group()
def token() -> None:
    """The keys with which clients come in."""


@token.command()
@click.option("--session", "agent", metavar="HANDLE", help="The secret of this handle instead.")
@click.option("--all", "all_keys", is_flag=True, help="The token and all sessions' secrets.")
@verb
def rotate(daemon: Daemon, agent: str | None, all_keys: bool) -> None:
    """Void the operator's token, make a new one, and send away whoever uses the old one.

    The new token is in endpoint.json. `session new --handle HANDLE` prints the new URL of a handle.
    """
    if agent is not None and all_keys:
        raise click.UsageError("give --session HANDLE or --all, not both")
    reply = daemon.call("token_rotate", session=agent, all_keys=all_keys or None)
    daemon.show(reply, lambda: print_lines(_told(reply)))


def _told(reply: Mapping[str, Any]) -> str:
    """What is void now, in a line each."""
    names = ["the operator's token"] if reply["token"] else []
    names += [f"the session of {handle}" for handle in reply["sessions"]]
    gone = f"clients sent away: {reply['connections']}"
    return "\n".join([*(escaped_line(f"void: {name}") for name in names), gone])
