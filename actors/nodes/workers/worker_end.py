"""The end of a worker, judged by the observations of its parent. Pure."""

from __future__ import annotations

import enum

import attrs

from actors.nodes.links.wire import OutcomeFrame, OutcomeKind


class EndKind(enum.Enum):
    """How a worker ended."""

    DONE = "done"
    """Its function returned."""
    STOPPED = "stopped"
    """It was stopped, or the caller of ``Worker.run`` was cancelled."""
    CRASHED = "crashed"
    """Its function raised, or its process ended by itself."""
    KILLED = "killed"
    """By a signal that this side did not send to enforce a stop."""
    NEVER_STARTED = "never started"
    LOST = "lost"
    """The process ran, but the connection ended or timed out: the process was killed."""


@attrs.frozen
class WorkerEnd:
    """How a worker ended. ``text``: a traceback or a reason. ``signal``: the fatal one."""

    kind: EndKind
    text: str = ""
    signal: int | None = None

    def __str__(self) -> str:
        name = f" by signal {self.signal}" if self.signal else ""
        return f"{self.kind.value}{name}" + (f": {self.text.strip()}" if self.text else "")


@attrs.define
class Seen:
    """The observations of a worker until its process was reaped."""

    was_up: bool = False
    stop_asked: bool = False
    overdue: bool = False
    """It did not start or stop in time, and was killed."""
    outcome: OutcomeFrame | None = None
    lost: str = ""
    """Why the link ended before the process."""
    trouble: str = ""
    """An error on this side, or the reason why the worker did not start."""
    returncode: int | None = None


_OF_OUTCOME = {
    OutcomeKind.DONE: EndKind.DONE,
    OutcomeKind.STOPPED: EndKind.STOPPED,
    OutcomeKind.CRASHED: EndKind.CRASHED,
}


def how_it_ended(seen: Seen) -> WorkerEnd:
    """Return how the worker ended. Its own outcome takes precedence over the observations."""
    if seen.outcome is not None:
        return WorkerEnd(_OF_OUTCOME[seen.outcome.kind], seen.outcome.text)
    if seen.stop_asked:
        text = "It did not stop in time and was killed." if seen.overdue else ""
        return WorkerEnd(EndKind.STOPPED, text)
    if not seen.was_up:
        return WorkerEnd(EndKind.NEVER_STARTED, _why_never(seen))
    if seen.lost:
        return WorkerEnd(EndKind.LOST, seen.lost)
    if seen.returncode is not None and seen.returncode < 0:
        return WorkerEnd(EndKind.KILLED, signal=-seen.returncode)
    return WorkerEnd(EndKind.CRASHED, seen.trouble or _exited(seen))


def _why_never(seen: Seen) -> str:
    if seen.trouble:
        return seen.trouble
    if seen.overdue:
        return "It did not start in time."
    return _exited(seen)


def _exited(seen: Seen) -> str:
    if seen.returncode is None:
        return "There was no process."
    if seen.returncode < 0:
        return f"Its process was killed by signal {-seen.returncode}."
    return f"Its process ended with code {seen.returncode}."
