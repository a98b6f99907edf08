"""Nodes: actors in worker processes and on other hosts, through tractor. See docs/nodes.md.

A ``Worker`` runs a function in a process of its own, a process on another host joins the root, and
both exchange messages of bytes over a ``Link``; a ``PeerProcess`` carries the messages of actors.
Nodes need the extra ``nodes``. Importing this package does not: ``open_runtime`` and ``join`` raise
``NodesNotInstalled``, which names the command that installs it.
"""

from actors.errors import (
    BadNodeKey,
    HandshakeRefused,
    JoinFailed,
    LinkLost,
    NodeError,
    NodesNotInstalled,
    WorkerGone,
)
from actors.nodes.joining.join import join
from actors.nodes.joining.joins import Joined
from actors.nodes.links.heartbeat import Beat
from actors.nodes.links.key import NodeKey, new_key, read_key, write_key
from actors.nodes.links.link import Link
from actors.nodes.runtime import NodeRuntime, open_runtime
from actors.nodes.workers.worker import Worker, WorkerSpec
from actors.nodes.workers.worker_end import EndKind, WorkerEnd

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
    # other hosts
    "Joined",
    "join",
    # errors
    "BadNodeKey",
    "HandshakeRefused",
    "JoinFailed",
    "LinkLost",
    "NodeError",
    "NodesNotInstalled",
    "WorkerGone",
]
