"""Nodes: actors in worker processes, and one day on other hosts, through tractor.

What stands is the ground floor: a ``Worker`` runs a function in a process of its own and exchanges
messages of bytes with it; see docs/nodes.md. It needs the extra ``nodes``. Importing this package
does not: ``open_runtime`` raises ``NodesNotInstalled``, which names the command.
"""

from actors.errors import (
    BadNodeKey,
    HandshakeRefused,
    LinkLost,
    NodeError,
    NodesNotInstalled,
    WorkerGone,
)
from actors.nodes.heartbeat import Beat
from actors.nodes.key import NodeKey, new_key, read_key, write_key
from actors.nodes.link import Link
from actors.nodes.runtime import NodeRuntime, open_runtime
from actors.nodes.worker import Worker, WorkerSpec
from actors.nodes.worker_end import EndKind, WorkerEnd

__all__ = [
    # opening
    "NodeKey",
    "NodeRuntime",
    "new_key",
    "open_runtime",
    "read_key",
    "write_key",
    # workers
    "Beat",
    "EndKind",
    "Link",
    "Worker",
    "WorkerEnd",
    "WorkerSpec",
    # errors
    "BadNodeKey",
    "HandshakeRefused",
    "LinkLost",
    "NodeError",
    "NodesNotInstalled",
    "WorkerGone",
]
