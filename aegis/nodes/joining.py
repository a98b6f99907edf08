"""The process of a host that joins a daemon, and its supervision tree.

<name>, below root/nodes of the daemon's tree (one_for_one)
├─ terminals           one subtree per terminal, dynamic: writer, terminal, shell
├─ terminal-directory  spawns, lists and closes terminals
└─ link                joins the daemon, and joins it again when the connection is lost
"""

from __future__ import annotations

import sys

import structlog
import trio

from actors import ChildSpec, StartFailed, SupervisorSpec, System, open_system
from actors.nodes.compat.loading import load
from actors.nodes.links.key import NodeKey
from actors.nodes.peer import PeerProcess
from actors.nodes.workers.hosted_system import begin_peer_above
from aegis.daemon_process import (
    ErrorIgnoringStream,
    HeldRoot,
    close_inherited,
    configure_logs,
    freeze_imports,
    hold_root,
    raise_descriptor_limit,
    reset_ignored_signals,
)
from aegis.journal.flusher import Flusher
from aegis.journal.old_files import ARCHIVE_BYTES
from aegis.journal.raw_log import LIMIT_BYTES
from aegis.lifetime import (
    end_left,
    end_terminals,
    faults_armed,
    ignore_signals,
    log_life_event,
    log_slow_step,
    startup_error,
    stop_on_signals,
    sync_state,
    wait_for_stop,
)
from aegis.node_key import read_node_key, read_own_key
from aegis.nodes.identity import open_identity
from aegis.nodes.logs import forward_node_logs
from aegis.nodes.node_link import NodeLink
from aegis.nodes.vocabulary import VOCABULARY, known_to_daemon
from aegis.path_text import text_of_path
from aegis.processes.environment import leave_place
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_table import CookiesOf
from aegis.settings import JoinSettings
from aegis.state.root import StatePaths
from aegis.terminals.directory.directory import TerminalDirectory

log = structlog.get_logger("aegis")

READY = """\
aegis-actors has the terminals of {root}
  as node   {name}
  joining   {host} port {port}
  stop it with Ctrl-C; its terminals are then unreachable until it joins again"""


def run_node(settings: JoinSettings) -> int:
    """Run a node until it is stopped; return the exit code of the process.

    Raises ``StartupError`` or ``BadNodeKey``. If the daemon is unreachable, that is logged and
    tried again. A node serves no clients.
    """
    close_inherited()
    configure_logs(settings.log_level)
    forward_node_logs()
    leave_place()
    freeze_imports()
    load()  # before the event loop runs: it would block it
    state = StatePaths(settings.root)
    key = read_node_key(settings.key_file)
    with hold_root(state, trust=settings.trust) as held:
        disk = held.disk()
        sync_state(disk, state)
        if settings.key_file == state.node_key:
            key = _own_key(held)
        identity = open_identity(state, disk)
        shell_file_limit = raise_descriptor_limit()
        try:
            with faults_armed():
                trio.run(_serve, settings, held, key, identity, shell_file_limit)
        except StartFailed as error:
            raise startup_error(error) from error
        finally:
            ignore_signals()
    return 0


def _own_key(held: HeldRoot) -> NodeKey:
    """Return the key in this state; it must be signed, which ``--trust`` does for a copied one."""
    return read_own_key(held.state, held.seals.of(str(held.state.node_key)))


def node_tree(
    settings: JoinSettings, held: HeldRoot, shell_file_limit: int, link: ChildSpec
) -> SupervisorSpec:
    """Return the supervision tree drawn above."""
    state = held.state
    path = f"root/nodes/{settings.name}"
    return SupervisorSpec(
        name=settings.name,
        children=(
            SupervisorSpec(name="terminals", dynamic=True),
            ChildSpec.of(
                "terminal-directory",
                TerminalDirectory,
                root=settings.root,
                earlier=held.earlier,
                directory=state.terminals,
                workspace=state.workspace,
                restore=True,
                supervisor=f"{path}/terminals",
                inboxes="root/inbox-router",
                flusher=Flusher(held.disk()),
                shell_file_limit=shell_file_limit,
                raw_log_bytes=LIMIT_BYTES,
                archive_bytes=ARCHIVE_BYTES,
                host=OsProcessHost(),
                node=settings.name,
            ),
            link,
        ),
    )


async def _serve(
    settings: JoinSettings, held: HeldRoot, key: NodeKey, identity: str, shell_file_limit: int
) -> None:
    stop = trio.Event()
    reset_ignored_signals()
    stop_on_signals(stop)
    peers: list[PeerProcess] = []

    def prepare(system: System) -> None:
        peers.append(begin_peer_above(system, "the root", VOCABULARY, known_to_daemon))

    link = ChildSpec.of(
        "link", NodeLink, settings=settings, key=key, identity=identity, peers=peers
    )
    tree = node_tree(settings, held, shell_file_limit, link)
    async with open_system(
        tree,
        above="root/nodes",
        prepare=prepare,
        observer=log_life_event,
        on_slow_step=log_slow_step,
    ) as system:
        _print_ready(settings)
        await wait_for_stop(held, stop)
        freeze_imports()
        is_in_time = await end_terminals(system)
    if not is_in_time:
        await end_left(CookiesOf(root=text_of_path(settings.root)))
    log.info("stopped")


def _print_ready(settings: JoinSettings) -> None:
    address = settings.address
    text = READY.format(
        root=text_of_path(settings.root), name=settings.name, host=address.host, port=address.port
    )
    out = ErrorIgnoringStream(sys.stdout)
    out.write(f"{text}\n")
    out.flush()
