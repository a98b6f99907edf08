"""A worker process: it runs the terminals that the daemon's directory places there."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import trio

from actors import SupervisorSpec
from actors.codec import structure, unstructure
from actors.nodes import Link, WorkerSpec
from actors.nodes.workers.hosted_system import hosted_system
from aegis.daemon_process import (
    configure_logs,
    freeze_imports,
    raise_descriptor_limit,
    reset_ignored_signals,
)
from aegis.errors import StartupError
from aegis.journal.disk import OsDisk
from aegis.journal.flusher import Flusher
from aegis.lifetime import faults_armed, log_life_event, log_slow_step
from aegis.nodes.logs import forward_node_logs
from aegis.nodes.vocabulary import VOCABULARY, known_to_daemon
from aegis.path_text import path_of_text
from aegis.processes.os_processes import OsProcessHost
from aegis.state.registry import RegistryError
from aegis.state.root import StatePaths, UntrustedState, open_seals
from aegis.state.state_files import HeldDirectory
from aegis.terminals.directory.hosting import host_tree
from aegis.terminals.directory.placed_subtrees import WORKERS


@attrs.frozen(kw_only=True)
class WorkerSettings:
    """The settings that the daemon passes to a worker.

    ``root`` is the daemon's root directory, as ``text_of_path`` writes it. ``directory`` is the
    path of the actor that places it.
    """

    name: str
    root: str
    inboxes: str
    directory: str
    raw_log_bytes: int
    archive_bytes: int
    log_level: str
    debug: bool


def worker_spec(settings: WorkerSettings) -> WorkerSpec:
    """Return the spec of a worker's process."""
    return WorkerSpec(
        name=settings.name,
        entry=f"{__name__}:{run_worker.__name__}",
        argument=json.dumps(unstructure(settings)).encode(),
    )


async def run_worker(link: Link, argument: bytes) -> None:
    """Run a worker until cancelled; ``argument`` is an encoded ``WorkerSettings``."""
    settings = structure(WorkerSettings, json.loads(argument))
    configure_logs(settings.log_level)
    forward_node_logs()
    shell_file_limit = raise_descriptor_limit()
    reset_ignored_signals()
    freeze_imports()
    with faults_armed():
        async with hosted_system(
            link,
            _tree(settings, shell_file_limit),
            above=WORKERS,
            vocabulary=VOCABULARY,
            exports=known_to_daemon,
            observer=log_life_event,
            on_slow_step=log_slow_step,
            debug=settings.debug,
        ):
            await trio.sleep_forever()


def _disk(state: StatePaths) -> OsDisk:
    """Return the disk for the daemon's state; its key comes from the user's registry."""
    found = state.directory.stat()
    guard = HeldDirectory(str(state.directory), found.st_dev, found.st_ino)
    try:
        return OsDisk(open_seals(str(state.root)), guard)
    except (UntrustedState, RegistryError) as error:
        raise StartupError(str(error)) from error


def _tree(settings: WorkerSettings, shell_file_limit: int) -> SupervisorSpec:
    return SupervisorSpec(
        name=settings.name,
        children=host_tree(
            node=settings.name,
            path=f"{WORKERS}/{settings.name}",
            inboxes=settings.inboxes,
            directory=settings.directory,
            flusher=Flusher(_disk(StatePaths(Path(path_of_text(settings.root))))),
            shell_file_limit=shell_file_limit,
            raw_log_bytes=settings.raw_log_bytes,
            archive_bytes=settings.archive_bytes,
            host=OsProcessHost(),
        ),
    )
