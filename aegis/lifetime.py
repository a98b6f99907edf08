"""What every process of ours does that has terminals for long: its start, its signals, its end."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

import structlog
import trio

from actors import AskError, LifeCycleEvent, MisuseError, SlowStep, System, describe, root_cause
from actors.errors import NodeError
from actors.faults import RUNTIME, armed
from aegis.daemon_process import HeldRoot
from aegis.errors import AegisError, StartupError, StorageError
from aegis.faults import VARIABLE, plan_from_environment
from aegis.inboxes.faults import INBOXES
from aegis.journal.disk import Disk, sync_directory
from aegis.journal.faults import JOURNAL
from aegis.servers.faults import SERVERS
from aegis.state.root import State
from aegis.terminals.directory.directory import EndAllTerminals
from aegis.terminals.faults import TERMINALS
from aegis.terminals.retry import ask_across_restarts

log = structlog.get_logger("aegis")

FAULT_TABLES = (RUNTIME, JOURNAL, TERMINALS, INBOXES, SERVERS)
"""Every fault point there is."""

END_TERMINALS_S = 1.4
"""How long the terminals may take to end; with all the rest the stop stays within two seconds."""

ROOT_CHECK_S = 1.0
"""Seconds between two looks at the lock and the state directory; one takes ten microseconds."""

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The signals that stop a daemon in order."""


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
def faults_armed() -> Iterator[None]:
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


async def wait_for_stop(held: HeldRoot, stop: trio.Event) -> None:
    """Return when ``stop`` is set; set it when the lock or the state directory is lost.

    Another daemon may then start in this root, and both would write the same files. PostgreSQL has
    the same rule for ``postmaster.pid``.
    """
    while not stop.is_set():
        why = held.loss_reason()
        if why is not None:
            log.error("stopping: another daemon may start in this root", why=why)
            stop.set()
        with trio.move_on_after(ROOT_CHECK_S):
            await stop.wait()


def stop_on_signals(stop: trio.Event) -> None:
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


def ignore_signals() -> None:
    """The process ends by itself now; Python would give these signals their deadly meaning back."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def _begin_stop(stop: trio.Event, number: int) -> None:
    if not stop.is_set():
        log.info("stopping", signal=signal.Signals(number).name)
        stop.set()


async def end_terminals(system: System) -> None:
    """Write the records of what is in flight and end every process, before anything else stops."""
    with trio.CancelScope(shield=True):
        try:
            directory = system.registry.find("service", "terminals")
            assert directory is not None
            await ask_across_restarts(directory, EndAllTerminals(), timeout=END_TERMINALS_S)
        except AskError as error:
            log.warning("terminals did not end in time", error=str(error))


def log_life_event(event: LifeCycleEvent) -> None:
    """Log the starts and crashes of actors."""
    if event.error is None:
        log.debug(event.kind, actor=event.path, incarnation=event.incarnation)
    elif isinstance(root_cause(event.error), StartupError):
        log.debug(event.kind, actor=event.path, error=describe(event.error))
    elif isinstance(root_cause(event.error), NodeError):  # a process died: nothing is wrong here
        log.warning(event.kind, actor=event.path, why=describe(event.error))
    elif isinstance(root_cause(event.error), StorageError):  # the disk's fault: no line of ours
        log.warning(event.kind, actor=event.path, error=describe(event.error))
    else:
        log.error(event.kind, actor=event.path, error=describe(event.error), exc_info=event.error)


def log_slow_step(step: SlowStep) -> None:
    """Log what held up everybody."""
    shown = {"stack": step.stack} if step.stack else {}
    ms = round(step.duration_s * 1000)
    log.warning("slow step", actor=step.path, task=step.task, ms=ms, **shown)


def startup_error(error: BaseException) -> StartupError:
    """The reason, as one sentence, why the tree did not come up."""
    cause = root_cause(error)
    if isinstance(cause, StartupError):
        return cause
    return StartupError(str(cause) if isinstance(cause, AegisError) else describe(cause))
