"""The daemon: its supervision tree, drawn and built, and its life as a process.

root (one_for_one)
├─ inboxes             one subtree per handle, dynamic: inbox
├─ inbox-router        finds the inbox of a handle
├─ terminals           one subtree per terminal, dynamic: writer, terminal, shell
├─ terminal-directory  spawns, lists and closes terminals
├─ workspaces          named directories, their shells, commands without a terminal
├─ connections         one actor per client, dynamic
├─ daemon              status, tree, sessions, the end
└─ gateway             listens and serves; the MCP sessions' tasks live in its nursery
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator

import structlog
import trio

from actors import (
    AskError,
    ChildSpec,
    LifeEvent,
    MailboxSpec,
    MisuseError,
    Overflow,
    SlowStep,
    StartFailed,
    SupervisorSpec,
    System,
    describe,
    open_system,
    root_cause,
)
from actors.faults import RUNTIME, armed
from aegis import __version__
from aegis.configuration.sections import Configuration, effective_values
from aegis.daemon import Daemon
from aegis.errors import AegisError, StartupError, StorageError
from aegis.faults import VARIABLE, plan_from_environment
from aegis.inboxes.faults import INBOXES
from aegis.inboxes.router import EndWaits, HandleSeen, InboxRouter
from aegis.journal.disk import Disk, OsDisk, sync_directory
from aegis.journal.faults import JOURNAL
from aegis.journal.flusher import Flusher
from aegis.keyring import Keyring
from aegis.launching import forget_launcher
from aegis.process import (
    LastingStream,
    cannot_start,
    configure_logs,
    hold_root,
    keep_what_is_there,
    let_shells_heed_signals,
    raise_descriptor_limit,
    remember_port,
    remembered_port,
)
from aegis.root import State, remove_endpoint, write_endpoint
from aegis.servers.admission import is_loopback
from aegis.servers.auth import Keys, open_keys
from aegis.servers.crowd import Crowd
from aegis.servers.faults import SERVERS
from aegis.servers.serving import Address, Gateway, limits_here
from aegis.servers.sockets import socket_path
from aegis.settings import DEFAULT_PORT, DaemonSettings
from aegis.terminals.asking import ask_again
from aegis.terminals.directory import EndAllTerminals, TerminalDirectory
from aegis.terminals.faults import TERMINALS
from aegis.terminals.os_processes import OsProcessHost
from aegis.terminals.process_host import ProcessHost
from aegis.workspaces.directory import WorkspaceDirectory

log = structlog.get_logger("aegis")

FAULT_TABLES = (RUNTIME, JOURNAL, TERMINALS, INBOXES, SERVERS)
"""Every fault point there is."""

END_TERMINALS_S = 1.4
"""How long the terminals may take to end; with all the rest the stop stays within two seconds."""

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The signals that stop a daemon in order."""

READY = """\
aegis-actors is ready for {root}
  at            {url}
  from a shell  aegis-actors term spawn build
                aegis-actors term run build 'echo hello'
                aegis-actors term attach build    (Ctrl-\\ and d leave it)
  Claude Code   claude mcp add aegis -- \\
                  aegis-actors mcp --handle NAME --root {quoted}
                or: claude mcp add --transport http aegis \\
                  "$(aegis-actors session new --handle NAME)"
  stop it with  Ctrl-C, or aegis-actors down"""

BEYOND_LOOPBACK = """\
  BEWARE        other machines can reach this address: whoever has the token
                or a session URL runs commands as you, and
                nothing is encrypted; 127.0.0.1 behind ssh is safer"""


NODES_BEYOND_LOOPBACK = """\
  BEWARE        other machines can reach the address of nodes: whoever has
                node.key runs commands as you, and nothing is encrypted;
                127.0.0.1 behind ssh, or WireGuard, is safer"""


def run_daemon(settings: DaemonSettings, configuration: Configuration) -> int:
    """Run a daemon until it is told to stop; gives the exit code of the process."""
    configure_logs(settings.log_level)
    forget_launcher()
    keep_what_is_there()  # the modules
    state = State(settings.root)
    with hold_root(state):
        sync_state(OsDisk(), state)
        shell_file_limit = raise_descriptor_limit()
        keys = open_keys(state.directory)
        address = choose_address(settings, state)
        try:
            with _faults_armed():
                trio.run(_serve, settings, configuration, state, keys, address, shell_file_limit)
        except StartFailed as error:
            raise _startup_error(error) from error
        finally:
            _ignore_signals()
    return 0


def sync_state(disk: Disk, state: State) -> None:
    """Let the names of the state's directories be on the medium, whoever made them, and when.

    All that is acknowledged lies in them. Likewise the names in the state's directory: its keys are
    given out from now on, and the daemon that made them may have been killed before it had synced
    their name. Raises ``StartupError``.
    """
    try:
        for directory in (state.root, state.directory.parent, state.directory):
            with contextlib.suppress(PermissionError):  # one may enter a root that one cannot read
                sync_directory(disk, directory)
    except OSError as error:
        raise StartupError(
            f"cannot sync {state.directory}: {error.strerror}; the daemon keeps its state there"
        ) from error


@contextlib.contextmanager
def _faults_armed() -> Iterator[None]:
    """Whatever the environment wants to go wrong, for tests of what is promised then."""
    plan = plan_from_environment(os.environ)
    if plan is None:
        yield
        return
    log.warning("faults armed", faults=[f"{name}@{number}" for name, number in plan.faults])
    try:
        with armed(plan, *FAULT_TABLES):
            yield
    except MisuseError as error:
        raise StartupError(f"{VARIABLE}: {error}") from error


def choose_address(settings: DaemonSettings, state: State) -> Address:
    """Where to listen: the port asked for, else the one used last, else the usual or a free one."""
    port = settings.port
    if port is None:
        port = remembered_port(state) or DEFAULT_PORT
    return Address(
        host=settings.host,
        port=port,
        socket=socket_path(state.directory),
        fall_back=settings.port is None,
    )


def daemon_tree(
    settings: DaemonSettings,
    state: State,
    keyring: Keyring,
    stop: trio.Event,
    shell_file_limit: int,
    host: ProcessHost | None = None,
    configuration: Configuration | None = None,
) -> SupervisorSpec:
    """The supervision tree, as drawn above. Its shells run on ``host``: None is this machine.

    Without a ``configuration`` all is as an empty file would have it.
    """
    configuration = Configuration() if configuration is None else configuration
    flusher = Flusher()
    host = OsProcessHost() if host is None else host
    return SupervisorSpec(
        name="root",
        children=(
            SupervisorSpec(name="inboxes", dynamic=True),
            ChildSpec(
                name="inbox-router",
                actor=InboxRouter,
                arguments={
                    "directory": state.inboxes,
                    "supervisor": "root/inboxes",
                    "flusher": flusher,
                },
            ),
            SupervisorSpec(name="terminals", dynamic=True),
            ChildSpec(
                name="terminal-directory",
                actor=TerminalDirectory,
                arguments={
                    "root": settings.root,
                    "directory": state.terminals,
                    "workspace": state.workspace,
                    "nodes": state.nodes,
                    "restore": not settings.clean,
                    "supervisor": "root/terminals",
                    "inboxes": "root/inbox-router",
                    "flusher": flusher,
                    "shell_file_limit": shell_file_limit,
                    "raw_log_bytes": configuration.terminals.raw_log_bytes,
                    "host": host,
                },
            ),
            ChildSpec(
                name="workspaces",
                actor=WorkspaceDirectory,
                arguments={
                    "root": settings.root,
                    "path": state.workspaces,
                    "flusher": flusher,
                    "host": host,
                },
            ),
            SupervisorSpec(name="connections", dynamic=True),
            ChildSpec(
                name="daemon",
                actor=Daemon,
                arguments={
                    "root": settings.root,
                    "version": __version__,
                    "stop": stop,
                    "keyring": keyring,
                    "handles": "root/inbox-router",
                    "handle_seen": HandleSeen,
                },
            ),
            ChildSpec(
                name="gateway",
                actor=Gateway,
                arguments={
                    "address": keyring.address,
                    "keys": keyring.keys,
                    "crowd": keyring.crowd,
                    "version": __version__,
                    "connections": "root/connections",
                    "handles": "root/inbox-router",
                    "handle_seen": HandleSeen,
                    "settings": effective_values(configuration),
                },
                mailbox=MailboxSpec(capacity=8192, overflow=Overflow.DROP_OLDEST),
                shutdown_s=1.5,
            ),
        ),
    )


async def _serve(
    settings: DaemonSettings,
    configuration: Configuration,
    state: State,
    keys: Keys,
    address: Address,
    shell_file_limit: int,
) -> None:
    stop = trio.Event()
    let_shells_heed_signals()
    _stop_on_signals(stop)
    keyring = Keyring(keys, address, Crowd(limits_here()), state, stop)
    tree = daemon_tree(
        settings, state, keyring, stop, shell_file_limit, configuration=configuration
    )
    async with open_system(
        tree, observer=_log_life, on_slow_step=_log_slow_step, debug=settings.debug
    ) as system:
        _announce(settings, state, keyring)
        try:
            await stop.wait()
        finally:
            _withdraw(state)
        keep_what_is_there()  # its end is near: there is no time to look for garbage
        await _end_terminals(system)
        system.ref("root/inbox-router").tell(EndWaits())
    log.info("stopped")


def _stop_on_signals(stop: trio.Event) -> None:
    """From now to the end of the process these signals mean "stop", however often they come.

    SIGHUP too, when the window is closed that it runs in, unless it was to be ignored (``nohup``).
    """
    token = trio.lowlevel.current_trio_token()

    def on_signal(number: int, _: object) -> None:
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(_begin_stop, stop, number)

    for number in STOPPING:
        if number is not signal.SIGHUP or signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, on_signal)


def _ignore_signals() -> None:
    """The process ends by itself now; Python would give these signals their deadly meaning back."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def _begin_stop(stop: trio.Event, number: int) -> None:
    if not stop.is_set():
        log.info("stopping", signal=signal.Signals(number).name)
        stop.set()


async def _end_terminals(system: System) -> None:
    """Write the records of what is in flight and end every process, before anything else stops."""
    with trio.CancelScope(shield=True):
        try:
            directory = system.registry.find("service", "terminals")
            assert directory is not None
            await ask_again(directory, EndAllTerminals(), timeout=END_TERMINALS_S)
        except AskError as error:
            log.warning("terminals did not end in time", error=str(error))


def _announce(settings: DaemonSettings, state: State, keyring: Keyring) -> None:
    """Say where the daemon is: in the endpoint file for programs, on standard output for people.

    Raises ``StartupError`` if the disk refuses.
    """
    address = keyring.address
    try:
        write_endpoint(state, keyring.endpoint())
    except OSError as error:
        raise cannot_start("write", state.endpoint, error) from error
    remember_port(state, address.port)
    text = READY.format(url=address.url, root=state.root, quoted=shlex.quote(str(state.root)))
    if not is_loopback(address.host):
        text = f"{text}\n{BEYOND_LOOPBACK}"
    if settings.nodes_address is not None and not is_loopback(settings.nodes_address.host):
        text = f"{text}\n{NODES_BEYOND_LOOPBACK}"
    out = LastingStream(sys.stdout)
    out.write(f"{text}\n")
    out.flush()


def _withdraw(state: State) -> None:
    """Nobody shall come any more; a disk that refuses that holds up no stop."""
    try:
        remove_endpoint(state)
    except OSError as error:
        log.warning("endpoint not removed", file=str(state.endpoint), error=describe(error))


def _log_life(event: LifeEvent) -> None:
    if event.error is None:
        log.debug(event.kind, actor=event.path, incarnation=event.incarnation)
    elif isinstance(root_cause(event.error), StartupError):
        log.debug(event.kind, actor=event.path, error=describe(event.error))
    elif isinstance(root_cause(event.error), StorageError):  # the disk's fault: no line of ours
        log.warning(event.kind, actor=event.path, error=describe(event.error))
    else:
        log.error(event.kind, actor=event.path, error=describe(event.error), exc_info=event.error)


def _log_slow_step(step: SlowStep) -> None:
    shown = {"stack": step.stack} if step.stack else {}
    ms = round(step.duration_s * 1000)
    log.warning("slow step", actor=step.path, task=step.task, ms=ms, **shown)


def _startup_error(error: BaseException) -> StartupError:
    """The reason, as one sentence, why the tree did not come up."""
    cause = root_cause(error)
    if isinstance(cause, StartupError):
        return cause
    return StartupError(str(cause) if isinstance(cause, AegisError) else describe(cause))
