"""The rows of workflows, and what follows from them: runs, and the calls of a run. Pure.

A *run* is one run of a workflow, a row of the table of all runs. Each has a journal, a table of its
own: a *call* is one engine call of its function. A run that a person begins anew has another
``attempt``, to which no earlier call belongs. One that a person continues has another *round*
(``resumes``): ``holds`` says whether the outcome of a call counts in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from aegis.clock import moment_text
from aegis.errors import AegisError, InvalidRequest, Unavailable
from aegis.journal.table import HEAD_CHARS, StoredText, digest_of
from aegis.path_text import is_utf8
from aegis.protocol.history import HistoryEntry
from aegis.protocol.workflows import RunWorkflow, StepState, WorkflowInfo, WorkflowStep
from aegis.shown_text import shortened
from aegis.workflows.calls import MAX_CALLS, Outcome, is_cancelled, is_failure

End = Literal["completed", "failed", "cancelled"]
CallEnd = Literal["value", "failure", "cancelled"]

MAX_RUNNING = 16
"""Workflows that run at the same time: each is a process."""

MAX_LEDGER_BYTES = 64 * 1024 * 1024
"""The size of a journal at which a workflow makes no further call."""

LINE_CHARS = 500
"""About the size of the lines of a call without its outcome."""

MAX_ERROR_CHARS = 2_000

STEP_CHARS = 1_000
"""The part of a result or an error that a list of steps shows."""

KIND = "runs"
"""The kind of the archived rows."""


@attrs.frozen(kw_only=True)
class StoredRun:
    """One run of the workflow ``name``. Times are UTC, ISO 8601 with ``Z``.

    ``file`` is the plugin's. ``kwargs`` and ``result`` are JSON. ``attempt`` counts how often it
    was begun, ``resumes`` how often a person continued it, ``processes`` its processes. ``calls``
    and ``checkpoint`` are those at its end: before, its journal has them. ``is_settled``: its
    sessions are closed, and its starter has been notified.
    """

    id: str
    name: str
    file: str
    kwargs: StoredText
    sender: str
    callback: bool
    key: str | None
    started: str
    attempt: int = 1
    resumes: int = 0
    processes: int = 0
    phase: Literal["running", "completed", "failed", "cancelled"] = "running"
    calls: int = 0
    checkpoint: str | None = None
    result: StoredText | None = None
    error: str | None = None
    ended: str | None = None
    is_settled: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether it is completed, failed or cancelled."""
        return self.phase != "running"

    @property
    def starter(self) -> str | None:
        """The handle on whose behalf it acts; None for a person."""
        return self.sender.removeprefix("agent:") if self.sender.startswith("agent:") else None

    @property
    def end_id(self) -> str:
        """The id of the message about its end."""
        number = self.attempt + self.resumes
        return f"workflow:{self.id}/end" + (f"/{number}" if number > 1 else "")

    def call_id(self, position: str) -> str:
        """Return the id under which the call at a position acts: the same in each replay."""
        return f"workflow:{self.id}/{self.attempt}/{position}"

    def handle_of(self, position: str) -> str:
        """Return the handle of the session, or the name of the group, that only this call opens."""
        number = position.replace("/", "-")
        attempt = "" if self.attempt == 1 else f"r{self.attempt}-"
        return f"{self.name[:20]}-{self.id[-10:].lower()}-{attempt}{number}"[:64]


Seen = tuple[str, float | None]
"""A call whose outcome the function of a workflow got, and the workflow's time then.

Or a reading of the clock that moved it: ``#`` with the number of the reading.
"""


@attrs.frozen
class Moment:
    """The outcomes that a function had got when it made or left a call; their order is an input.

    ``seen`` are the outcomes since the moment before. ``time`` is the workflow's time, in seconds,
    which was ``at`` in seconds since 1970. The ``number`` is that of the change in the journal.
    """

    number: int
    round: int
    seen: tuple[Seen, ...] = ()
    time: float | None = None
    at: float | None = None


@attrs.frozen(kw_only=True)
class EngineCall:
    """One engine call of a function; its ``id`` is its position.

    ``began`` and ``ended`` are numbers of changes, 0 until it has ended. It was begun ``starts``
    times: in ``first_round``, and the last time in ``round``, by the ``process`` of this number.
    ``handle`` is the session or the group that it concerns, or the name of a checkpoint.
    ``outcome`` is JSON; ``end`` says what it is. ``began_at`` and ``ended_at`` are the times of its
    first begin and its end; calls of older versions have none.
    """

    id: str
    attempt: int
    name: str
    digest: str
    about: str
    began: int
    first_round: int = 0
    round: int = 0
    process: int = 0
    starts: int = 1
    handle: str | None = None
    moments: tuple[Moment, ...] = ()
    ended: int = 0
    ended_round: int = 0
    end: CallEnd | None = None
    outcome: StoredText | None = None
    began_at: str | None = None
    ended_at: str | None = None


# Runs.


def new_run(request: RunWorkflow, id_: str, sender: str, file: str, now: float) -> StoredRun:
    """Return the run of a request that is not refused."""
    return StoredRun(
        id=id_,
        name=request.name,
        file=file,
        kwargs=StoredText.of(json.dumps(request.kwargs, ensure_ascii=False)),
        sender=sender,
        callback=request.callback,
        key=request.key,
        started=moment_text(now),
    )


def refusal_of(request: RunWorkflow, running: int) -> AegisError | None:
    """Return why a workflow cannot be run; ``running`` others are."""
    if not is_utf8(request.key or ""):
        return InvalidRequest("the key is not valid Unicode; leave surrogates out")
    if running >= MAX_RUNNING:
        return Unavailable(
            f"{running} workflows run, which is the limit; run it again when one has ended, or "
            "cancel one with aegis_workflow_cancel"
        )
    return None


def other_arguments(request: RunWorkflow, known: str) -> InvalidRequest:
    """Return the error for a key that belongs to another run."""
    return InvalidRequest(
        f"the key {request.key!r} belongs to workflow {known}, which has another name or other "
        "arguments; choose another key"
    )


def refusal_of_reopening(run: StoredRun, running: int) -> AegisError | None:
    """Return why a person cannot run a workflow again."""
    if run.phase not in ("failed", "cancelled"):
        return InvalidRequest(
            f"workflow {run.id} is {run.phase}; only one that has failed or was cancelled can "
            "be continued"
        )
    if not run.is_settled:
        return Unavailable(f"workflow {run.id} is still being ended; try again")
    if running >= MAX_RUNNING:
        return Unavailable(f"{running} workflows run, which is the limit; try again later")
    return None


# What stays known of a run that is archived.


def entries_of(run: StoredRun, kwargs: str) -> dict[str, dict[str, Any]]:
    """Return what stays known of a run with these arguments as JSON, by name."""
    known = {"id": run.id, "name": run.name, "end": run.phase, "kwargs": kwargs_digest(kwargs)}
    entries: dict[str, dict[str, Any]] = {id_name(run.id): known}
    if run.key is not None:
        entries[key_name(run.sender, run.key)] = known
    return entries


def id_name(run: str) -> str:
    """Return the name under which an archived run is known."""
    return f"workflow {run}"


def key_name(sender: str, key: str) -> str:
    """Return the name under which the key of a sender is known."""
    return f"key {json.dumps([sender, key])}"


def kwargs_digest(kwargs: str) -> str:
    """Return a digest of arguments as JSON, in any order; empty for a damaged text."""
    try:
        return digest_of(json.dumps(json.loads(kwargs), sort_keys=True))
    except ValueError:
        return ""


def is_archived(entry: Mapping[str, Any]) -> InvalidRequest:
    """Return the error for a change of a run in the archive."""
    return InvalidRequest(
        f"workflow {entry['id']} has ended already: it is {entry['end']}, and in the archive; run "
        "it anew"
    )


def history_entry(run: StoredRun) -> HistoryEntry:
    """Return a run that has ended as a search shows it."""
    return HistoryEntry(
        kind="run",
        at=run.ended or run.started,
        name=run.name,
        id=run.id,
        text=run.kwargs.head,
        by=run.sender,
        outcome=run.phase,
        began=run.started,
    )


def archived_entry(line: Mapping[str, Any], by: object) -> HistoryEntry | None:
    """Return the run of a line of the archive; None if it is none. All may see it."""
    del by
    match line:
        case {"id": str(id_), "set": {"name": str(name), "kwargs": str(kwargs)} as fields}:
            return HistoryEntry(
                kind="run",
                at=str(fields.get("ended") or fields.get("started")),
                name=name,
                id=id_,
                text=kwargs[:HEAD_CHARS],
                by=str(fields.get("sender", "")),
                outcome=str(fields.get("phase", "")),
                archived=True,
                began=fields.get("started"),
            )
    return None


# The steps of a run.


def ended(
    run: StoredRun,
    *,
    end: End,
    at: str,
    calls: int,
    checkpoint: str | None,
    result: str | None = None,
    error: str | None = None,
) -> StoredRun:
    """Return a run after its end; the first one counts."""
    if run.has_ended:
        return run
    return attrs.evolve(
        run,
        phase=end,
        ended=at,
        result=None if result is None else StoredText.of(result),
        error=None if error is None else shortened(error, MAX_ERROR_CHARS),
        calls=calls,
        checkpoint=checkpoint,
    )


def settled(run: StoredRun) -> StoredRun:
    """Return a run that has nothing left to do."""
    return attrs.evolve(run, is_settled=True)


def reopened(run: StoredRun, *, from_beginning: bool) -> StoredRun:
    """Return a run that a person continues, or begins anew."""
    again = attrs.evolve(
        run,
        phase="running",
        result=None,
        error=None,
        ended=None,
        calls=0,
        checkpoint=None,
        is_settled=False,
    )
    if from_beginning:
        return attrs.evolve(again, attempt=run.attempt + 1)
    return attrs.evolve(again, resumes=run.resumes + 1)


# Calls.


def refusal_of_call(calls: int, size: int) -> str | None:
    """Return why a workflow with so many calls, and a journal of this size, makes no other."""
    if calls >= MAX_CALLS:
        return f"a workflow makes at most {MAX_CALLS} calls: start another one for the rest"
    if size >= MAX_LEDGER_BYTES:
        return (
            f"its journal has reached {MAX_LEDGER_BYTES // 2**20} MiB, the limit: keep large "
            "results in files"
        )
    return None


def size_of(call: EngineCall) -> int:
    """Return about the size of the lines of a call."""
    return LINE_CHARS + (0 if call.outcome is None else call.outcome.chars)


def with_outcome(
    call: EngineCall, *, outcome: Outcome, number: int, round_: int, at: str | None = None
) -> EngineCall:
    """Return a call after its end, which was ``at`` a time; the first one of a round counts."""
    if call.end is not None and call.ended_round == round_:
        return call
    end: CallEnd = "value"
    if is_failure(outcome):
        end = "cancelled" if is_cancelled(outcome) else "failure"
    return attrs.evolve(
        call,
        outcome=StoredText.of(json.dumps(outcome)),
        end=end,
        ended=number,
        ended_round=round_,
        ended_at=at,
    )


def newest_change(call: EngineCall) -> int:
    """Return the number of the newest change of a call."""
    moments = (each.number for each in call.moments)
    return max(call.began, call.ended, *moments)


def current_calls(run: StoredRun, calls: Iterable[EngineCall]) -> list[EngineCall]:
    """Return the calls of the current attempt, in the order in which they began."""
    current = [each for each in calls if each.attempt == run.attempt]
    return sorted(current, key=lambda each: each.began)


def step_of(run: StoredRun, number: int, call: EngineCall, outcome: str | None) -> WorkflowStep:
    """Return a call as clients see it; ``outcome`` is JSON, None of one that has none."""
    state: StepState = "interrupted" if run.has_ended else "running"
    is_over = call.end is not None and call.ended_round >= call.round  # it may act again
    if is_over and call.end is not None:
        state = _STATES[call.end]
    result, error = _shown_outcome(outcome) if is_over and outcome is not None else (None, None)
    return WorkflowStep(
        number=number,
        position=call.id,
        kind=call.name,
        label=call.about,
        state=state,
        handle=call.handle,
        started=call.began_at,
        ended=call.ended_at if is_over else None,
        result=None if result is None else result[:STEP_CHARS],
        error=None if error is None else error[:STEP_CHARS],
        is_cut=max(len(result or ""), len(error or "")) > STEP_CHARS,
    )


_STATES: Mapping[CallEnd, StepState] = {
    "value": "completed",
    "failure": "failed",
    "cancelled": "cancelled",
}


def _shown_outcome(outcome: str) -> tuple[str | None, str | None]:
    """Return what a call has returned as JSON, or why it failed."""
    try:
        known = json.loads(outcome)
    except ValueError:  # it is damaged, and only its beginning is known
        return outcome, None
    error = known.get("error")
    if isinstance(error, dict):
        return None, f"{error.get('type')}: {error.get('message')}"
    return json.dumps(known.get("value"), ensure_ascii=False), None


def checkpoint_of(calls: Iterable[EngineCall]) -> str | None:
    """Return the name of the last checkpoint."""
    names = [each.handle for each in calls if each.name == "checkpoint"]
    return names[-1] if names else None


def last_positions(run: StoredRun, calls: Iterable[EngineCall]) -> dict[str, int]:
    """Return the number of the last call in each branch before the current round."""
    last: dict[str, int] = {}
    for each in calls:
        if each.attempt == run.attempt and each.first_round < run.resumes:
            for branch, number in _steps(each.id):
                last[branch] = max(last.get(branch, 0), number)
    return last


def holds(run: StoredRun, call: EngineCall, last: Mapping[str, int]) -> bool:
    """Return whether the outcome of a call counts; ``last`` is from ``last_positions``.

    A person who continues a run has done again what had failed or was interrupted; a session that
    was closed at the end is opened again. A call that the function cancelled stays so where the
    function had continued behind it.
    """
    if call.end is None or call.attempt != run.attempt:
        return False
    if call.ended_round == run.resumes:
        return True
    if call.end == "cancelled":
        return any(last.get(branch, 0) > number for branch, number in _steps(call.id))
    return call.end == "value" and call.name != "spawn"


def _steps(position: str) -> Iterator[tuple[str, int]]:
    """Yield each branch in which a position is, with the number of the call in it.

    "3/0/2" is call 2 of branch 0 of call 3: it is behind "3/0/1", and behind "2".
    """
    parts = position.split("/")
    for end in range(0, len(parts), 2):
        yield "/".join(parts[:end]), int(parts[end])


@attrs.frozen
class Order:
    """The order of the outcomes that a function got, for a replay.

    ``seen`` are those that it got, and ``unseen`` the calls whose outcomes nothing shows that it
    got, in the order of their ends. ``time`` is the newest recorded one, of the moment ``at``; None
    after a person has continued the run: its clock stood still until then.
    """

    seen: list[Seen]
    unseen: list[str]
    time: float | None
    at: float | None


def order_of(run: StoredRun, calls: Iterable[EngineCall]) -> Order:
    """Return the order of the outcomes that hold."""
    current = current_calls(run, calls)
    last = last_positions(run, current)
    held = {each.id: each for each in current if holds(run, each, last)}
    moments = sorted((m for each in current for m in each.moments), key=lambda each: each.number)
    seen = [
        (position, time)
        for moment in moments
        for position, time in moment.seen
        if position.startswith("#") or (position in held and held[position].ended < moment.number)
    ]
    known = {position for position, _ in seen}
    unseen = sorted(held.keys() - known, key=lambda each: held[each].ended)
    timed = [each for each in moments if each.time is not None and each.round == run.resumes]
    if timed:
        return Order(seen, unseen, timed[-1].time, timed[-1].at)
    begun = (each.moments[0].time for each in held.values() if each.moments)
    times = [each for each in (*(at for _, at in seen), *begun) if each is not None]
    return Order(seen, unseen, max(times, default=None), None)


@attrs.frozen
class RunHandles:
    """The sessions that a run has ``spawned`` or ``touched``, and its ``groups``."""

    spawned: tuple[str, ...]
    touched: tuple[str, ...]
    groups: tuple[str, ...]


def handles_of(run: StoredRun, calls: Iterable[EngineCall]) -> RunHandles:
    """Return the sessions and groups that the calls of a run concern."""
    found: dict[str, dict[str, None]] = {"spawn": {}, "group": {}, "send": {}, "drain": {}}
    for each in current_calls(run, calls):
        if each.handle is not None and each.name in found:
            found[each.name][each.handle] = None
    return RunHandles((*found["spawn"],), (*found["send"], *found["drain"]), (*found["group"],))


# The view of clients.

MAX_SHOWN_RESULT = 50_000
MAX_SHOWN_KWARGS = 500
MAX_SHOWN_CALLS = 20


def info_of(
    run: StoredRun,
    kwargs: str,
    result: str | None,
    *,
    calls: int,
    checkpoint: str | None,
    current: Sequence[str] = (),
    problem: str = "",
) -> WorkflowInfo:
    """Return a run as clients see it, without its log."""
    return WorkflowInfo(
        workflow_id=run.id,
        name=run.name,
        status=run.phase,
        sender=run.sender,
        kwargs=kwargs[:MAX_SHOWN_KWARGS],
        key=run.key,
        calls=calls,
        current=[*current[:MAX_SHOWN_CALLS]],
        checkpoint=checkpoint,
        runs=run.processes,
        result=None if result is None else result[:MAX_SHOWN_RESULT],
        error=run.error,
        problem=problem,
        started=run.started,
        ended=run.ended,
    )
