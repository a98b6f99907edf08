"""The verbs of the daemon itself: ``down``, ``status``, ``tree``."""

from __future__ import annotations

import os
import select

from aegis.cli.grammar.verb import TargetDaemon, flag, verb
from aegis.cli.printing.agents import session_table
from aegis.cli.printing.formatting import (
    cell,
    duration,
    print_lines,
    print_notice,
    table,
    tree_rows,
)
from aegis.client.line import ClientError, NoDaemon

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SLOW_DOWN_S = 10.0
DOWN_TIMEOUT_S = 60.0
"""Seconds after which ``down`` says that it still waits, and after which it gives up.

A daemon ends within two seconds, on a machine with work for ten others within some twenty.
"""

_NODES_HEAD = ["node", "kind", "state", "terminals", "where", "since"]
_TREE_HEAD = ["actor", "kind", "state", "mailbox", "restarts", "uptime"]


@verb()
def down(daemon: TargetDaemon) -> None:
    """Stop the daemon and wait until its process has ended."""
    with daemon.connect() as client:
        process = _open_process(client.endpoint.pid, daemon)
        try:
            reply = client.call("down", daemon.with_handle({}))
            _wait_gone(process, client.endpoint.pid)
        finally:
            os.close(process)
    daemon.show(reply, lambda: print_lines(f"stopped (pid {reply['pid']})"))


def _open_process(pid: int, daemon: TargetDaemon) -> int:
    """Return a descriptor of the daemon's process."""
    # Opened before the request to stop: afterwards the kernel may give the pid to another process.
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise NoDaemon(f"the daemon of {daemon.root} (pid {pid}) has already ended") from None


def _wait_gone(process: int, pid: int) -> None:
    gone = select.poll()
    gone.register(process, select.POLLIN)
    if gone.poll(SLOW_DOWN_S * 1000):
        return
    print_notice(f"↳ the daemon (pid {pid}) is still ending")
    if not gone.poll((DOWN_TIMEOUT_S - SLOW_DOWN_S) * 1000):
        raise ClientError(
            f"the daemon (pid {pid}) still runs {DOWN_TIMEOUT_S:g} s after down: see its log"
        )


@verb()
def status(daemon: TargetDaemon) -> None:
    """Show the daemon's address, uptime, memory, nodes and agents."""
    reply = daemon.call("status")
    agents = daemon.call("list_sessions")["result"]
    nodes = reply.get("nodes", [])
    facts = {name: value for name, value in reply.items() if name != "nodes"}
    shown = {
        **facts,
        "uptime_s": duration(reply["uptime_s"]),
        "rss_bytes": f"{reply['rss_bytes'] / 2**20:.1f} MiB",
    }
    names = {
        "uptime_s": "uptime",
        "rss_bytes": "memory",
        "open_files": "open files",
        "late_replies": "late replies",
    }
    width = max(len(names.get(name, name)) for name in shown)
    lines = [f"{names.get(name, name).ljust(width)}  {cell(shown[name])}" for name in shown]
    if nodes:
        lines += ["", table(_NODES_HEAD, map(_node_row, nodes))]
    if agents:
        lines += ["", session_table(agents)]
    daemon.show(reply, lambda: print_lines("\n".join(lines)))


def _node_row(node: Mapping[str, Any]) -> list[object]:
    where = f"pid {node['pid']}" if node["pid"] is not None else node["address"]
    return [node["name"], node["kind"], node["state"], node["terminals"], where, node["since"]]


@verb(flag("--watch", help="Show changes until Ctrl-C."))
def tree(daemon: TargetDaemon, watch: bool) -> int:
    """Show the live supervision tree.

    Prints each actor with its state, queued messages, restarts and uptime. With --watch the tree is
    redrawn in place, with the time of each restart; if standard output is not a terminal, each
    change is printed as a line.
    """
    if watch:
        # Imported late: it loads Trio and the WebSocket, which no one-shot verb needs.
        from aegis.cli.gc_pause import gc_paused

        with gc_paused():
            from aegis.cli.live.tree_watching import watch_tree

        return watch_tree(daemon)
    reply = daemon.call("tree")
    daemon.show(reply, lambda: print_lines(table(_TREE_HEAD, tree_rows(reply))))
    return 0
