"""The verbs of sessions and keys: ``session new|list|revoke``, ``token rotate``."""

from __future__ import annotations

from aegis.cli.grammar.verb import TargetDaemon, VerbGroup, argument, flag, option, verb
from aegis.cli.printing.failures import UsageError
from aegis.cli.printing.formatting import escaped_line, print_lines

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@verb(
    option("--handle", "agent", required=True, metavar="HANDLE", help="Handle of the session."),
    option("--tools", metavar="TOOLS", help="Tools it offers: core, work, all, or names: a,b."),
)
def new(daemon: TargetDaemon, agent: str, tools: str | None) -> None:
    """Print the MCP URL of a handle. The URL is a key: keep it secret."""
    chosen = None if tools is None else [each.strip() for each in tools.split(",")]
    reply = daemon.call("session_new", handle=agent, tools=chosen)
    daemon.show(reply, lambda: print_lines(escaped_line(reply["url"])))


@verb()
def list_sessions(daemon: TargetDaemon) -> None:
    """List the handles that have an MCP URL, without the URLs."""
    reply = daemon.call("session_list")
    daemon.show(reply, lambda: print_lines("\n".join(map(escaped_line, reply["handles"]))))


@verb(argument("agent", metavar="HANDLE"))
def revoke(daemon: TargetDaemon, agent: str) -> None:
    """Revoke the MCP URL of HANDLE and disconnect its clients."""
    reply = daemon.call("session_revoke", handle=agent)
    daemon.show(reply, lambda: print_lines(_revoked(reply)))


@verb(
    option("--session", "agent", metavar="HANDLE", help="Replace this handle's secret instead."),
    flag("--all", "all_keys", help="Replace the token and the secrets of all sessions."),
)
def rotate(daemon: TargetDaemon, agent: str | None, all_keys: bool) -> None:
    """Replace the operator's token and disconnect its clients.

    The new token is in endpoint.json. `session new --handle HANDLE` prints the new URL of a handle.
    """
    if agent is not None and all_keys:
        raise UsageError("give --session HANDLE or --all, not both")
    reply = daemon.call("token_rotate", session=agent, all_keys=all_keys or None)
    daemon.show(reply, lambda: print_lines(_revoked(reply)))


def _revoked(reply: Mapping[str, Any]) -> str:
    """Return the keys that are no longer valid, one line each."""
    names = ["the operator's token"] if reply["token"] else []
    names += [f"the session of {handle}" for handle in reply["sessions"]]
    gone = f"clients disconnected: {reply['connections']}"
    return "\n".join([*(escaped_line(f"revoked: {name}") for name in names), gone])


session = VerbGroup(
    """MCP sessions of agents, each bound to a handle.""",
    {
        "new": new,
        "list": list_sessions,
        "revoke": revoke,
    },
)


token = VerbGroup(
    """The keys that clients authenticate with.""",
    {
        "rotate": rotate,
    },
)
