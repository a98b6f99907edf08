"""Results and errors of engine calls.

EngineError
├─ CallFailed            the daemon refused a call; ``code`` says why, as for other clients
├─ TaskFailed            a delegated task failed or was cancelled
├─ StepFailed            the function of a step raised
├─ StepInterrupted       a call that is not done twice was interrupted by a restart
└─ TimedOut              a call did not end within its ``timeout``

WorkflowChanged          the journal has another call at this position; it ends the run
"""

from __future__ import annotations

from typing import Any

import attrs


class EngineError(Exception):
    """Base of the errors of engine calls. The message is one sentence."""


class CallFailed(EngineError):
    """The daemon refused the call; ``code`` is that of other clients, such as ``not_found``."""

    def __init__(self, message: str, code: str = "error") -> None:
        super().__init__(message)
        self.code = code


class TaskFailed(EngineError):
    """The task that was delegated has failed or was cancelled."""


class StepFailed(EngineError):
    """The function of a step raised; in a replay there is no ``__cause__``."""


class StepInterrupted(EngineError):
    """The call had begun when the process ended; its effect is not known.

    ``retry=True`` at the call has it done again instead.
    """


class TimedOut(EngineError):
    """The call did not end within its ``timeout``, and is cancelled."""


class WorkflowChanged(BaseException):
    """The journal has another call at this position; both are named.

    The run has failed: no later call of it does anything. So it is no ``Exception``, which a
    workflow may catch to go another way.
    """


_ERRORS: dict[str, type[EngineError]] = {
    each.__name__: each for each in (TaskFailed, StepFailed, StepInterrupted)
}


def error_of(failure: dict[str, Any]) -> EngineError:
    """Return the exception of a call that has failed."""
    message = str(failure.get("message"))
    kind = _ERRORS.get(str(failure.get("type")))
    return CallFailed(message, str(failure.get("code", "error"))) if kind is None else kind(message)


@attrs.frozen(kw_only=True)
class BashResult:
    """The end of a command; ``exit`` is 128+n for death by signal n, None after the timeout.

    The texts have at most 64 KiB each; ``truncated``: one of them was truncated.
    """

    exit: int | None
    stdout: str
    stderr: str
    timed_out: bool = False
    truncated: bool = False


@attrs.frozen(kw_only=True)
class TerminalResult:
    """The record of a command on a shared terminal; ``seq`` is its number there.

    ``needs_input``: it waits for a person. ``timed_out``: it still runs.
    """

    seq: int | None
    exit: int | None
    stdout: str
    needs_input: bool
    timed_out: bool
    truncated: bool


@attrs.frozen(kw_only=True)
class GroupReplies:
    """The replies of a group's members: whole last messages, by handle, in the ``order`` they came.

    ``reduced`` is one text made from them, None without replies. ``missing`` says why the other
    members have not replied.
    """

    replies: dict[str, str]
    reduced: str | None
    order: list[str]
    missing: dict[str, str]


@attrs.frozen(kw_only=True)
class Checkpoint:
    """The last checkpoint of an earlier process of the workflow."""

    name: str
    payload: Any
