"""How a worker ended, judged by what was seen of it. Pure."""

from __future__ import annotations

import enum

import attrs

from actors.nodes.links.wire import Outcome, OutcomeKind


class EndKind(enum.Enum):
    """How a worker ended."""

    DONE = "done"
    """Its function returned."""
    STOPPED = "stopped"
    """It was asked to, or whoever ran it was cancelled."""
    CRASHED = "crashed"
    """Its function raised, or its process ended by itself."""
    KILLED = "killed"
    """By a signal that this side did not send to enforce a stop."""
    NEVER_STARTED = "never started"
    LOST = "lost"
    """Its process was there, but the connection ended or was silent: the process was killed."""


@attrs.frozen
class WorkerEnd:
    """How a worker ended. ``text`` says more: a traceback, a reason. ``signal``: of one killed."""

    kind: EndKind
    text: str = ""
    signal: int | None = None

    def __str__(self) -> str:
        name = f" by signal {self.signal}" if self.signal else ""
        return f"{self.kind.value}{name}" + (f": {self.text.strip()}" if self.text else "")


@attrs.define
class Seen:
    """What was seen of a worker until its process was reaped."""

    was_up: bool = False
    stop_asked: bool = False
    overdue: bool = False
    """It did not stop, or not start, in its time, and was killed."""
    outcome: Outcome | None = None
    lost: str = ""
    """Why the link ended although the process had not."""
    trouble: str = ""
    """What went wrong on this side, or kept the worker from starting."""
    returncode: int | None = None


_OF_OUTCOME = {
    OutcomeKind.DONE: EndKind.DONE,
    OutcomeKind.STOPPED: EndKind.STOPPED,
    OutcomeKind.CRASHED: EndKind.CRASHED,
}


def how_it_ended(seen: Seen) -> WorkerEnd:
    """Return what all of it comes to. What the worker itself said counts before anything else."""
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
