"""``NodePlan``: the children of the daemon's tree for nodes: workers, hosts, and their keeper."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import attrs

from actors import Backoff, ChildSpec, SupervisorSpec
from actors.nodes import NodeRuntime, open_runtime
from actors.nodes.workers.worker_node import WorkerNode
from aegis.errors import StartupError
from aegis.node_key import open_node_key
from aegis.nodes.keeper import NodeKeeper
from aegis.nodes.logs import forward_node_logs
from aegis.nodes.vocabulary import VOCABULARY, known_to_nodes
from aegis.nodes.worker import WorkerSettings, worker_spec
from aegis.path_text import text_of_path
from aegis.settings import DaemonSettings
from aegis.state.root import StatePaths

WORKER_RESTARTS = 60
"""Crashes per worker within ``WORKER_PERIOD_S`` after which the daemon stops.

This is more than the backoff allows for one worker that crashes repeatedly.
"""

WORKER_PERIOD_S = 60.0


@attrs.frozen(kw_only=True)
class NodePlan:
    """An open node runtime, and the settings of its workers and hosts."""

    runtime: NodeRuntime
    workers: tuple[str, ...]
    takes_hosts: bool
    root: str
    raw_log_bytes: int
    archive_bytes: int
    log_level: str
    debug: bool
    inboxes: str = "root/inbox-router"
    directory: str = "root/terminal-directory"

    @property
    def address(self) -> tuple[str, int] | None:
        """The address at which hosts may join; None if they may not."""
        return self.runtime.address if self.takes_hosts else None

    def supervisor_of_workers(self) -> SupervisorSpec:
        """Return the spec of the workers; it starts before the directory that places terminals."""
        return SupervisorSpec(
            name="workers",
            children=tuple(self._worker(name) for name in self.workers),
            intensity=WORKER_RESTARTS * max(1, len(self.workers)),
            period_s=WORKER_PERIOD_S,
            shutdown_s=2.0,
        )

    def _worker(self, name: str) -> ChildSpec:
        settings = WorkerSettings(
            name=name,
            root=self.root,
            inboxes=self.inboxes,
            directory=self.directory,
            raw_log_bytes=self.raw_log_bytes,
            archive_bytes=self.archive_bytes,
            log_level=self.log_level,
            debug=self.debug,
        )
        return ChildSpec.of(
            name,
            WorkerNode,
            runtime=self.runtime,
            spec=worker_spec(settings),
            vocabulary=VOCABULARY,
            exports=known_to_nodes,
        ).with_options(backoff=Backoff(first_s=0.0, step_s=0.2, most_s=5.0))

    def hosts_and_keeper(self) -> tuple[SupervisorSpec | ChildSpec, ...]:
        """Return the specs of the hosts and of the keeper of all nodes."""
        return (
            SupervisorSpec(name="nodes", dynamic=True),
            ChildSpec.of(
                "node-keeper",
                NodeKeeper,
                runtime=self.runtime,
                workers=self.workers,
                takes_hosts=self.takes_hosts,
                directory=self.directory,
            ),
        )


@asynccontextmanager
async def open_plan(
    settings: DaemonSettings, state: StatePaths, raw_log_bytes: int, archive_bytes: int
) -> AsyncIterator[NodePlan]:
    """Open the node runtime. Raises ``StartupError``, ``BadNodeKey``, ``NodesNotInstalled``.

    Without an address for hosts it listens on loopback only, with a key for this run.
    """
    forward_node_logs()
    address = settings.nodes_address
    if address is None:
        opened = open_runtime("root")
    else:
        key = open_node_key(state)
        opened = open_runtime("root", key=key, host=address.host, port=address.port)
    async with AsyncExitStack() as stack:
        try:
            runtime = await stack.enter_async_context(opened)
        except OSError as error:
            where = "loopback" if address is None else f"{address.host}:{address.port}"
            raise StartupError(
                f"cannot listen for nodes at {where}: {os.strerror(error.errno or 0)}"
            ) from error
        yield NodePlan(
            runtime=runtime,
            workers=tuple(f"w{number}" for number in range(1, settings.workers + 1)),
            takes_hosts=address is not None,
            root=text_of_path(state.root),
            raw_log_bytes=raw_log_bytes,
            archive_bytes=archive_bytes,
            log_level=settings.log_level,
            debug=settings.debug,
        )
