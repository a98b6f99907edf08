"""The daemon: its supervision tree, and the start and stop of its process.

root (one_for_one)
├─ inboxes             one subtree per handle, dynamic: inbox
├─ inbox-router        finds the inbox of a handle
├─ terminals           one subtree per terminal, dynamic: writer, terminal, shell
├─ workers             if configured: processes that run terminals
├─ terminal-directory  spawns, lists and closes terminals
├─ nodes, node-keeper  if configured: joined hosts, and the actor that admits them
├─ agents              one subtree per session, dynamic: session, processes
├─ agent-directory     spawns, lists and closes agent sessions
├─ workspaces          named directories, their shells, commands without a terminal
├─ requests            what agents and workflows ask people, and the answers
├─ queues              tasks, and the sessions that do them
├─ history             finds what has ended
├─ canvases            one subtree per canvas, dynamic: canvas
├─ canvas-watcher      notices what other programs do to the files of canvases
├─ canvas-desk         opens, finds and lists canvases
├─ workflow-processes  one process per running workflow, dynamic
├─ workflows           the workflows, and the calls of their engines
├─ groups              sessions that get one order, and their replies
├─ connections         one actor per client, dynamic
├─ push                notifications for browsers whose page is closed
├─ telegram(-outbox)   if configured: the chat of Telegram, and what is sent there
├─ daemon              status, tree, sessions, stop
└─ gateway             listens and serves; the MCP sessions' tasks live in its nursery
"""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog
import trio

from actors import (
    ChildSpec,
    MailboxSpec,
    Overflow,
    StartFailed,
    SupervisorSpec,
    describe,
    open_system,
)
from aegis import __version__
from aegis.agents.directory.board import Board
from aegis.agents.directory.directory import AgentDirectory
from aegis.agents.directory.message_rights import SendingRights
from aegis.agents.directory.programs import Programs
from aegis.agents.directory.session_rights import SessionRights
from aegis.agents.drivers.cookie import DriverCookies
from aegis.configuration.sections import Configuration, effective_values
from aegis.coordination import coordination_children, keep_of, workflow_settings
from aegis.daemon import Daemon
from aegis.daemon_process import (
    ErrorIgnoringStream,
    HeldRoot,
    cannot_start,
    close_inherited,
    configure_logs,
    freeze_imports,
    hold_root,
    raise_descriptor_limit,
    remember_port,
    remembered_port,
    reset_ignored_signals,
)
from aegis.errors import StartupError
from aegis.inboxes.reading import message_archive
from aegis.inboxes.router import EndWaits, HandleSeen, InboxRouter
from aegis.journal.archive import DEFAULT_KEEP, Keep
from aegis.journal.flusher import Flusher
from aegis.journal.raw_log import LIMIT_BYTES
from aegis.keyring import Keyring
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
from aegis.path_text import text_of_path
from aegis.peers import Peers
from aegis.processes.children import ChildCookies
from aegis.processes.environment import Withhold, leave_place, take_telegram_token, withhold_keys
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_host import ProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.processes.process_table import CookiesOf
from aegis.program import notify_service_manager, program_word, start_again
from aegis.push.desk import PushDesk
from aegis.ready_text import ready_text
from aegis.requests.desk import RequestDesk
from aegis.servers.access.admission import is_loopback
from aegis.servers.access.auth import Keys, open_keys
from aegis.servers.connection import NO_NAMES, Names
from aegis.servers.gateway.open_connections import OpenConnections
from aegis.servers.gateway.sockets import socket_path
from aegis.servers.serving import Address, Gateway, IdentifyPeer, limits_of_system, operator_only
from aegis.settings import DEFAULT_PORT, DaemonSettings
from aegis.state.endpoint import remove_endpoint
from aegis.state.root import StatePaths
from aegis.terminals.directory.directory import TerminalDirectory
from aegis.trust import NamedPrograms, trust_projects, trusted_projects
from aegis.workflows.desk import WorkflowSettings
from aegis.workflows.plugins.found import digest_of_all
from aegis.workspaces.directory import WorkspaceDirectory

log = structlog.get_logger("aegis")


class Nodes(Protocol):
    """The plan of the tree for nodes: a ``NodePlan``, imported only if nodes are configured."""

    @property
    def workers(self) -> tuple[str, ...]:
        """The names of the worker processes."""
        ...

    @property
    def address(self) -> tuple[str, int] | None:
        """The address at which hosts may join; None if they may not."""
        ...

    def supervisor_of_workers(self) -> SupervisorSpec:
        """Return the spec of the workers; it starts before the directory that places terminals."""
        ...

    def hosts_and_keeper(self) -> tuple[SupervisorSpec | ChildSpec, ...]:
        """Return the specs of the hosts and of the keeper of all nodes."""
        ...


def run_daemon(settings: DaemonSettings, configuration: Configuration) -> int:
    """Run a daemon until it is stopped; return the exit code of the process."""
    close_inherited()
    logs = configure_logs(settings.log_level)
    left_out = leave_place()
    freeze_imports()  # the modules
    state = StatePaths(settings.root)
    programs = NamedPrograms(settings.programs, digest_of_all(settings.digest, settings.plugins))
    with (
        hold_root(state, trust=settings.trust, programs=programs) as held,
        logs.in_file(state.log if settings.logs_to_state else None),
    ):
        sync_state(held.disk(), state)
        shell_file_limit = raise_descriptor_limit()
        keys = open_keys(state.directory, held.seals)
        address = choose_address(settings, held)
        try:
            with faults_armed():
                trio.run(
                    _serve,
                    *(settings, configuration, held, keys, address, shell_file_limit, left_out),
                )
        except StartFailed as error:
            raise startup_error(error) from error
        finally:
            ignore_signals()
    return 0


def choose_address(settings: DaemonSettings, held: HeldRoot) -> Address:
    """Choose the address to listen on: the given port, else the last, the usual or a free one."""
    port, state = settings.port, held.state
    if port is None:
        port = remembered_port(state) or DEFAULT_PORT
    return Address(
        host=settings.host,
        port=port,
        socket=socket_path(state.directory),
        find_socket=partial(_find_socket, held),
        fall_back=settings.port is None,
        names=settings.names,
    )


def _find_socket(held: HeldRoot) -> Path:
    """Return the path for a new socket. Raises ``StartupError`` once the root is not held."""
    # Another daemon may have started where the state was: the socket there is its own.
    why = held.loss_reason()
    if why is not None:
        raise StartupError(why)
    return socket_path(held.state.directory)


def daemon_tree(
    state: StatePaths,
    *,
    flusher: Flusher,
    host: ProcessHost,
    shell_file_limit: int,
    restore: bool = True,
    raw_log_bytes: int = LIMIT_BYTES,
    keep: Keep = DEFAULT_KEEP,
    nodes: Nodes | None = None,
    agents: tuple[SupervisorSpec | ChildSpec, ...] = (),
    sessions: SendingRights | None = None,
    withhold: Withhold = withhold_keys,
    servers: tuple[SupervisorSpec | ChildSpec, ...] = (),
    telegram: tuple[ChildSpec, ...] = (),
    earlier: tuple[str, ...] = (),
) -> SupervisorSpec:
    """Return the supervision tree drawn above, for the root and the files of ``state``.

    ``flusher`` and ``host`` are the disk and the machine; ``earlier`` are the earlier paths of the
    root (``HeldRoot``). ``servers`` are the last children
    (``server_children``), before them those of agents (``agent_children``); a simulated daemon has
    none. Without ``nodes`` there are neither workers
    nor hosts. ``withhold`` knows the keys of the provider of each agent.
    """
    return SupervisorSpec(
        name="root",
        children=(
            SupervisorSpec(name="inboxes", dynamic=True),
            ChildSpec.of(
                "inbox-router",
                InboxRouter,
                directory=state.inboxes,
                archive=message_archive(state.archive, flusher.disk, keep),
                keep=keep,
                supervisor="root/inboxes",
                flusher=flusher,
                sessions=sessions,
            ),
            SupervisorSpec(name="terminals", dynamic=True),
            *(() if nodes is None else (nodes.supervisor_of_workers(),)),
            ChildSpec.of(
                "terminal-directory",
                TerminalDirectory,
                root=state.root,
                directory=state.terminals,
                workspace=state.workspace,
                nodes=state.nodes,
                restore=restore,
                supervisor="root/terminals",
                inboxes="root/inbox-router",
                flusher=flusher,
                shell_file_limit=shell_file_limit,
                raw_log_bytes=raw_log_bytes,
                archive_bytes=keep.archive_bytes,
                host=host,
                workers=() if nodes is None else nodes.workers,
                earlier=earlier,
                withhold=withhold,
            ),
            *(() if nodes is None else nodes.hosts_and_keeper()),
            ChildSpec.of(
                "workspaces",
                WorkspaceDirectory,
                root=state.root,
                path=state.workspaces,
                flusher=flusher,
                host=host,
                earlier=earlier,
                withhold=withhold,
            ),
            *agents,
            *servers,
            *telegram,
        ),
    )


def agent_children(
    state: StatePaths,
    *,
    flusher: Flusher,
    programs: Programs,
    resume: bool = False,
    workflows: WorkflowSettings | None = None,
    earlier: tuple[str, ...] = (),
) -> tuple[SupervisorSpec | ChildSpec, ...]:
    """Return the desks of requests, queues and groups, and the children that run sessions.

    ``resume``: the agents of open sessions are started. A simulated daemon has no ``workflows``.
    """
    return (
        ChildSpec.of(
            "requests",
            RequestDesk,
            path=state.requests,
            archive=state.archive,
            flusher=flusher,
            life=uuid.uuid4().hex,
            keep=keep_of(programs.configuration),
        ),
        SupervisorSpec(name="agents", dynamic=True),
        ChildSpec.of(
            "agent-directory",
            AgentDirectory,
            root=text_of_path(state.root),
            directory=state.agents,
            inboxes=state.inboxes,
            programs=programs,
            resume=resume,
            board=Board(),
            earlier=earlier,
            supervisor="root/agents",
            archive=state.archive,
            flusher=flusher,
            keep=keep_of(programs.configuration),
        ),
        *coordination_children(state, flusher, programs, workflows),
    )


def _telegram(
    configuration: Configuration, state: StatePaths, flusher: Flusher, programs: Programs
) -> tuple[ChildSpec, ...]:
    """Return the children for Telegram; none, without its imports, if it is not configured."""
    token, section = take_telegram_token(), configuration.telegram
    if section.chat_id is None:
        return ()
    from aegis.telegram.children import telegram_children
    from aegis.telegram.settings import ChatSettings

    settings = ChatSettings(
        chat_id=section.chat_id, user_ids=section.user_ids, token=token, api=section.api
    )
    return telegram_children(state.telegram, settings, flusher, programs.names.address_of)


def push_child(state: StatePaths, keyring: Keyring, flusher: Flusher) -> ChildSpec:
    """Return the child that sends notifications to browsers."""
    seal = None if keyring.seals is None else keyring.seals.of(str(state.push_key))
    return ChildSpec.of(
        "push",
        PushDesk,
        path=state.push,
        key_file=state.push_key,
        seal=seal,
        flusher=flusher,
        is_logged_in=keyring.pages.is_logged_in,
    )


def server_children(
    root: Path,
    keyring: Keyring,
    stop: trio.Event,
    configuration: Configuration,
    rights: SessionRights,
    identify: IdentifyPeer = operator_only,
    names: Names = NO_NAMES,
    left_out: Sequence[str] = (),
) -> tuple[SupervisorSpec | ChildSpec, ...]:
    """Return the children that serve clients; ``stop`` is set when a client requests it.

    ``rights`` are those of agent sessions, ``names`` their names; ``identify`` returns the identity
    of a process at the Unix socket. ``left_out`` are the names that ``leave_place`` has removed.
    """
    return (
        SupervisorSpec(name="connections", dynamic=True),
        ChildSpec.of(
            "daemon",
            Daemon,
            root=root,
            version=__version__,
            stop=stop,
            keyring=keyring,
            handles="root/inbox-router",
            handle_seen=HandleSeen,
            left_out=left_out,
        ),
        ChildSpec.of(
            "gateway",
            Gateway,
            address=keyring.address,
            keys=keyring.keys,
            pages=keyring.pages,
            open_connections=keyring.open_connections,
            version=__version__,
            connections="root/connections",
            handles="root/inbox-router",
            handle_seen=HandleSeen,
            settings=effective_values(configuration),
            refuse=rights.refuse,
            offer=rights.offer,
            identify=identify,
            names=names,
        ).with_options(
            mailbox=MailboxSpec(capacity=8192, overflow=Overflow.DROP_OLDEST), shutdown_s=1.5
        ),
    )


def _programs(
    configuration: Configuration, keyring: Keyring, state: StatePaths, open_files: int
) -> Programs:
    return Programs(
        configuration=configuration,
        keys=keyring,
        scan=ProcessScan(OsProcessHost()),
        root=text_of_path(state.root),
        open_files=open_files,
        trusted=partial(trusted_projects, state),
        trust=partial(trust_projects, state),
    )


async def _serve(
    settings: DaemonSettings,
    configuration: Configuration,
    held: HeldRoot,
    keys: Keys,
    address: Address,
    shell_file_limit: int,
    left_out: Sequence[str],
) -> None:
    stop, state = trio.Event(), held.state
    reset_ignored_signals()
    stop_on_signals(stop)
    keyring = Keyring(keys, address, OpenConnections(limits_of_system()), state, stop, held.seals)
    async with _nodes(settings, state, configuration) as nodes:
        flusher = Flusher(held.disk())
        children = ChildCookies()
        programs = _programs(configuration, keyring, state, shell_file_limit)
        tree = daemon_tree(
            state,
            flusher=flusher,
            host=OsProcessHost(children),
            shell_file_limit=shell_file_limit,
            restore=not settings.clean,
            raw_log_bytes=configuration.terminals.raw_log_bytes,
            keep=keep_of(configuration),
            nodes=nodes,
            agents=agent_children(
                state,
                flusher=flusher,
                programs=programs,
                resume=settings.resume_agents,
                workflows=workflow_settings(settings, state, configuration),
                earlier=held.earlier,
            ),
            sessions=programs.messages,
            earlier=held.earlier,
            withhold=programs.withheld_from,
            servers=(
                push_child(state, keyring, flusher),
                *server_children(
                    settings.root,
                    keyring,
                    stop,
                    configuration,
                    programs.rights,
                    Peers(
                        root=programs.root,
                        handle_of_session=programs.rights.handle_of,
                        children=children,
                    ).identify,
                    programs.names,
                    left_out,
                ),
            ),
            telegram=_telegram(configuration, state, flusher, programs),
        )
        async with open_system(
            tree, observer=log_life_event, on_slow_step=log_slow_step, debug=settings.debug
        ) as system:
            _publish_address(settings, state, keyring, nodes)
            try:
                await wait_for_stop(held, stop, keyring.keep_endpoint)
            finally:
                _remove_endpoint(held)
            freeze_imports()  # the process will exit soon: collections only cost time
            is_in_time = await end_terminals(system)
            system.ref("root/inbox-router").tell(EndWaits())
        if not is_in_time:
            await end_left(CookiesOf(root=programs.root), DriverCookies(root=programs.root))
    log.info("stopped")


def _publish_address(
    settings: DaemonSettings, state: StatePaths, keyring: Keyring, nodes: Nodes | None
) -> None:
    """Write the endpoint file for programs, and print the address for people.

    Raises ``StartupError`` if the disk refuses.
    """
    address = keyring.address
    try:
        keyring.write_endpoint()
    except OSError as error:
        raise cannot_start("write", state.endpoint, error) from error
    remember_port(state, address.port)
    text = ready_text(
        state.root,
        address.url,
        program=program_word(),
        is_background=not sys.stdin.isatty(),
        hosts=None if nodes is None else nodes.address,
        is_open=not is_loopback(address.host),
        is_open_to_hosts=settings.nodes_address is not None
        and not is_loopback(settings.nodes_address.host),
    )
    out = ErrorIgnoringStream(sys.stdout)
    out.write(f"{text}\n")
    out.flush()
    if settings.notify_socket:
        notify_service_manager(settings.notify_socket)
    if settings.opens_page:
        start_again("--root", str(state.root), "web")


def _remove_endpoint(held: HeldRoot) -> None:
    """Remove the endpoint file, so that no new client connects. Log an error of the disk."""
    if not held.owns_directory:
        return  # the file at that path belongs to another daemon
    try:
        remove_endpoint(held.state)
    except OSError as error:
        log.warning("endpoint not removed", file=str(held.state.endpoint), error=describe(error))


@contextlib.asynccontextmanager
async def _nodes(
    settings: DaemonSettings, state: StatePaths, configuration: Configuration
) -> AsyncIterator[Nodes | None]:
    """Open and yield the plan for nodes; None, without its imports, if no nodes are configured."""
    if not settings.workers and settings.nodes_address is None:
        yield None
        return
    from aegis.nodes.plan import open_plan

    raw_log_bytes = configuration.terminals.raw_log_bytes
    archive_bytes = configuration.keep.archive_bytes
    async with open_plan(settings, state, raw_log_bytes, archive_bytes) as plan:
        yield plan
