"""The life of a process that hosts terminals: its start, its signals, its end."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Container, Iterator

import structlog
import trio

from actors import AskError, LifeCycleEvent, MisuseError, SlowStep, System, describe, root_cause
from actors.errors import NodeError
from actors.faults import RUNTIME, armed
from aegis.agents.faults import AGENTS
from aegis.canvases.faults import CANVASES
from aegis.daemon_process import HeldRoot
from aegis.errors import AegisError, StartupError, StorageError
from aegis.faults import VARIABLE, plan_from_environment
from aegis.groups.faults import GROUPS
from aegis.inboxes.faults import INBOXES
from aegis.journal.disk import Disk, sync_directory
from aegis.journal.faults import JOURNAL
from aegis.processes.reaper import end_processes
from aegis.queues.faults import QUEUES
from aegis.requests.faults import REQUESTS
from aegis.servers.faults import SERVERS
from aegis.state.root import StatePaths
from aegis.telegram.faults import TELEGRAM
from aegis.terminals.directory.directory import EndAllTerminals
from aegis.terminals.faults import TERMINALS
from aegis.terminals.retry import ask_across_restarts
from aegis.workflows.faults import WORKFLOWS

log = structlog.get_logger("aegis")

FAULT_TABLES = (
    *(RUNTIME, JOURNAL, TERMINALS, INBOXES, REQUESTS, QUEUES, CANVASES, WORKFLOWS, GROUPS, AGENTS),
    *(SERVERS, TELEGRAM),
)
"""All fault points."""

END_TERMINALS_S = 1.4
"""Seconds that the terminals have to end; the whole stop takes at most two seconds."""

ROOT_CHECK_S = 1.0
"""Seconds between two checks of the lock and the state directory (ten microseconds each)."""

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The signals that stop a daemon in order."""


def sync_state(disk: Disk, state: StatePaths) -> None:
    """Sync the directories of the state, so that their entries survive a loss of power.

    Raises ``StartupError``.
    """
    # Another process may have made the directories, or this daemon's predecessor may have been
    # killed after writing its keys and before syncing the directory that names them.
    try:
        for directory in (state.root, state.directory.parent, state.directory):
            with contextlib.suppress(PermissionError):  # search permission without read permission
                sync_directory(disk, directory)
    except OSError as error:
        raise StartupError(
            f"cannot sync {state.directory}: {error.strerror}; the daemon keeps its state there"
        ) from error


@contextlib.contextmanager
def faults_armed() -> Iterator[None]:
    """Arm the faults of ``AEGIS_FAULT``, if it is set."""
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


async def wait_for_stop(
    held: HeldRoot, stop: trio.Event, keep: Callable[[], None] = lambda: None
) -> None:
    """Return when ``stop`` is set; set it when the lock or the state directory is lost.

    ``keep`` is called every second: it makes again what clients need to find the daemon.

    Another daemon could start in this root then, and both would write the same files. PostgreSQL
    checks ``postmaster.pid`` for the same reason.
    """
    while not stop.is_set():
        why = held.loss_reason()
        if why is not None:
            log.error("stopping: another daemon may start in this root", why=why)
            stop.set()
        else:
            keep()
        with trio.move_on_after(ROOT_CHECK_S):
            await stop.wait()


def stop_on_signals(stop: trio.Event) -> None:
    """Set ``stop`` on SIGTERM, SIGINT and SIGHUP, until the end of the process.

    Not on SIGHUP if it was ignored at the start (``nohup``).
    """
    token = trio.lowlevel.current_trio_token()

    def on_signal(number: int, _: object) -> None:
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(_begin_stop, stop, number)

    for number in STOPPING:
        if number is not signal.SIGHUP or signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, on_signal)


def ignore_signals() -> None:
    """Ignore the signals that stop the daemon: it ends by itself."""
    # At its exit Python restores the default handlers, which would kill the process.
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def _begin_stop(stop: trio.Event, number: int) -> None:
    if not stop.is_set():
        log.info("stopping", signal=signal.Signals(number).name)
        stop.set()


async def end_terminals(system: System) -> bool:
    """Write the records of running commands and end all processes of terminals.

    Returns whether they ended in time.
    """
    is_in_time = True
    with trio.CancelScope(shield=True):
        try:
            directory = system.registry.find("service", "terminals")
            assert directory is not None
            await ask_across_restarts(directory, EndAllTerminals(), timeout=END_TERMINALS_S)
        except AskError as error:
            is_in_time = False
            log.warning("terminals did not end in time", error=str(error))
    return is_in_time


async def end_left(*cookies: Container[str | None]) -> None:
    """End the processes with these cookies that a stop left, as it gave up waiting."""
    for each in cookies:
        for left in await end_processes([], each):
            log.error("process not ended", process=str(left))


def log_life_event(event: LifeCycleEvent) -> None:
    """Log a start or a crash of an actor."""
    if event.error is None:
        log.debug(event.kind, actor=event.path, incarnation=event.incarnation)
    elif isinstance(root_cause(event.error), StartupError):
        log.debug(event.kind, actor=event.path, error=describe(event.error))
    elif isinstance(root_cause(event.error), NodeError):  # another process died: no bug here
        log.warning(event.kind, actor=event.path, why=describe(event.error))
    elif isinstance(root_cause(event.error), StorageError):  # the disk failed: no traceback
        log.warning(event.kind, actor=event.path, error=describe(event.error))
    else:
        log.error(event.kind, actor=event.path, error=describe(event.error), exc_info=event.error)


def log_slow_step(step: SlowStep) -> None:
    """Log a step that blocked the event loop."""
    shown = {"stack": step.stack} if step.stack else {}
    ms = round(step.duration_s * 1000)
    log.warning("slow step", actor=step.path, task=step.task, ms=ms, **shown)


def startup_error(error: BaseException) -> StartupError:
    """Return the reason why the tree did not start, as one sentence."""
    cause = root_cause(error)
    if isinstance(cause, StartupError):
        return cause
    return StartupError(str(cause) if isinstance(cause, AegisError) else describe(cause))
