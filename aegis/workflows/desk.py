"""``WorkflowDesk``: the actor of all workflows, between their starters and their processes.

    a start   → the run is durable → its starter gets the id, and a process the journal
    a call    → begun is durable → it acts → its outcome is durable → the process gets it
    its end   → durable → its sessions are drained and closed, its starter is notified → settled

A run that is not settled is followed by a coroutine (``_live_through``), which starts a process
again that has died. ``_advance`` does what follows from the durable state of a call. What a process
or a service has done is a fact, which a refusing disk delays and does not undo: the end of a call,
and the end of the function.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import attrs
import trio
from ulid import ULID

from actors import Actor, ActorError, ChildSpec, Down, Ref, Reply, Restart
from actors.codec import unstructure
from aegis.clock import moment_of, moment_text
from aegis.errors import (
    AegisError,
    Forbidden,
    InvalidRequest,
    NotFound,
    StorageError,
    Unavailable,
)
from aegis.following import Followers
from aegis.journal.archive import DEFAULT_KEEP, Archive, Keep
from aegis.journal.archiver import Archiver, Leaving, understood
from aegis.journal.disk import Disk, remove_tree, stored_names
from aegis.journal.flusher import Flusher
from aegis.journal.folding import exists
from aegis.journal.table import REOPEN_S, Table, read_rows, read_text
from aegis.limits import in_thread
from aegis.processes.environment import Withhold, withhold_keys
from aegis.processes.process_scan import ProcessScan
from aegis.processes.reaper import end_processes
from aegis.protocol.agent_events import QuestionAnswer
from aegis.protocol.command import json_size
from aegis.protocol.feeds import FollowWorkflows, StatesPlace, WorkflowsNews
from aegis.protocol.history import EndedEntries, ListEnded
from aegis.protocol.naming import name_key
from aegis.protocol.requests import AnswerReceived, ApplyAnswer
from aegis.protocol.workflows import (
    CancelWorkflow,
    GetWorkflow,
    ListWorkflows,
    ListWorkflowSteps,
    ResumeWorkflow,
    RetryWorkflow,
    RunWorkflow,
    TrustedPlugins,
    TrustPlugins,
    WorkflowInfo,
    WorkflowList,
    WorkflowStarted,
    WorkflowStep,
    WorkflowSteps,
)
from aegis.shown_text import escape_text
from aegis.turns.services import Services
from aegis.workflows import calls, faults, frames, runs
from aegis.workflows.calls import IN_PROCESS, REPEATABLE, Outcome, failure, value
from aegis.workflows.carrier import CarriedCall, Carrier, MessageRights, Refuse, end_message
from aegis.workflows.cookie import WorkflowCookies, cookie_of_workflow
from aegis.workflows.plugins.catalog import Catalog
from aegis.workflows.plugins.found import PluginFile, digest_of_all
from aegis.workflows.process import (
    ProcessFrames,
    ProcessOver,
    PutFrames,
    WorkflowProcess,
    launch_of,
)
from aegis.workflows.runs import EngineCall, Moment, Seen, StoredRun
from aegis.workflows.upgrade import (
    LEDGER,
    META,
    calls_before_tables,
    run_before_tables,
    upgrade_journal,
)

RUNS = "runs.jsonl"
LOG = "log.txt"

MAX_LOG_BYTES = 2 * 1024 * 1024
"""More than a log has, of which the newest MiB is kept."""

LOG_BYTES = 8_192
"""The end of a log that is shown."""

MAX_LIST_BYTES = 200 * 1024
"""The size of one list of workflows."""

RELAUNCH_S = 1.0
"""Seconds until a process that ended is started again; twice as long after the second."""

MAX_DEATHS = 3
"""Processes of a workflow in a row that may end without the end of a call."""


@attrs.frozen(kw_only=True)
class WorkflowSettings:
    """The settings of the workflows of a root (text).

    ``directories`` have plugins, of which ``trusted`` may run; ``digest`` is that of the
    configuration. ``config`` is the engine's. ``remember`` stores the digest of the trusted files
    and configuration, and raises ``OSError``.
    """

    root: str
    host: str
    directories: Sequence[str] = ()
    trusted: Sequence[PluginFile] = ()
    digest: str = ""
    config: Mapping[str, Any] = attrs.field(factory=dict)
    remember: Callable[[str], object] = str


@attrs.frozen
class _ProcessEnd:
    """The end of a process; ``is_final``: another one would fail in the same way."""

    reason: str
    is_final: bool = False


class LiveWorkflow:
    """A run that is not settled: its ``journal``, and the calls that its process waits for.

    The process of the ``number`` may make calls, none if it is 0. ``asked`` are its calls, of which
    those in ``left`` are cancelled, and those in ``carried`` are being carried out: by the process
    itself without a scope. ``deaths`` counts its processes in a row that ended without the end of
    a call. ``made`` are the calls of this attempt, of which ``ended_calls`` have an outcome, and
    ``size`` is about that of their lines. ``is_known`` once the journal was read, ``has_ended``
    once the end of the run is durable.
    """

    def __init__(self, id_: str, journal: Table[EngineCall]) -> None:
        self.id, self.journal = id_, journal
        self.is_known = trio.Event()
        self.has_ended = trio.Event()
        self.number = 0
        self.process: Ref[Any] | None = None
        self.process_end: _ProcessEnd | None = None
        self.process_ended = trio.Event()
        self.asked: dict[str, frames.Called] = {}
        self.left: dict[str, frames.LeftCall] = {}
        self.carried: dict[str, trio.CancelScope | None] = {}
        self.deaths = 0
        self.problem = ""
        self.made = self.ended_calls = self.size = 0
        self.checkpoint: str | None = None
        self.last: Mapping[str, int] = {}
        self._changes = 0

    def count(self, run: StoredRun) -> None:
        """Derive all from the journal."""
        calls = runs.current_calls(run, self.journal.all_shown())
        self.last = runs.last_positions(run, calls)
        self.made, self.size = len(calls), sum(map(runs.size_of, calls))
        self.ended_calls = sum(runs.holds(run, each, self.last) for each in calls)
        self.checkpoint = runs.checkpoint_of(calls)
        self._changes = max(map(runs.newest_change, self.journal.rows.values()), default=0)
        self.is_known.set()

    def next_change(self) -> int:
        """Return the number of a change that is made now."""
        self._changes += 1
        return self._changes

    @property
    def current(self) -> list[str]:
        """The calls that the process waits for, in words."""
        return [each.about for each in self.asked.values() if each.position in self.journal.rows]

    def begin_process(self, number: int) -> None:
        """Begin the life of a process."""
        self.number, self.process_end, self.process_ended = number, None, trio.Event()

    def end_process(self, end: _ProcessEnd) -> None:
        """End the process, if there is one, and the calls that are carried out for it."""
        self.number, self.process_end = 0, end
        for scope in self.carried.values():
            if scope is not None:
                scope.cancel()
        for each in (self.asked, self.left, self.carried):
            each.clear()
        if self.process is not None:
            self.process.stop()
            self.process = None
        self.process_ended.set()


DeskMessage = (
    RunWorkflow
    | GetWorkflow
    | CancelWorkflow
    | ResumeWorkflow
    | RetryWorkflow
    | ListWorkflows
    | ListWorkflowSteps
    | TrustPlugins
    | FollowWorkflows
    | ApplyAnswer
    | ListEnded
    | ProcessFrames
    | ProcessOver
    | Down
)


class WorkflowDesk(Actor[DeskMessage]):
    """The workflows of a daemon, in ``directory``; ``supervisor`` has their processes."""

    def __init__(
        self,
        *,
        directory: Path,
        archive: Path,
        settings: WorkflowSettings,
        supervisor: str,
        flusher: Flusher,
        scan: ProcessScan,
        messages: MessageRights,
        refuse: Refuse,
        withhold: Withhold = withhold_keys,
        keep: Keep = DEFAULT_KEEP,
    ) -> None:
        self._archive, self._keep = archive, keep
        self._directory, self._settings, self._supervisor = directory, settings, supervisor
        self._flusher, self._scan, self._withhold = flusher, scan, withhold
        self._messages, self._refuse = messages, refuse
        self._live: dict[str, LiveWorkflow] = {}
        self._settled: dict[str, None] = {}  # the oldest first
        self._keys: dict[tuple[str, str], str] = {}
        self._unread = "its workflows have not been read yet"
        self._is_read = trio.Event()
        self._shown_problem = ""
        self._followers = Followers("the workflows", self._news)
        self._catalog = Catalog(
            root=settings.root,
            directories=settings.directories,
            trusted=settings.trusted,
            scan=scan,
        )

    # Opening.

    async def setup(self) -> None:
        """End the processes of an earlier life, read the files, and continue what has not ended."""
        self.context.register("service", "workflows")
        self._carrier = Carrier(
            services=Services(self.context.system), messages=self._messages, refuse=self._refuse
        )
        self._runs = Table[StoredRun](
            self._directory / RUNS,
            StoredRun,
            self._flusher,
            self.context,
            changed=self._runs_changed,
            lost=self._runs_accept,
        )
        self._archiver = Archiver(
            Archive(self._archive, runs.KIND, self._flusher.disk, self._keep.archive_bytes),
            self._keep,
            self._flusher,
            self.context,
            find=self._leaving,
            leave=self._leave,
            left=self._left,
        )
        supervisor = self.context.system.supervisor(self._supervisor)
        for each in supervisor.names:
            await supervisor.stop_child(each)
        exists = await self._flusher.look(partial(self._flusher.disk.is_directory, self._directory))
        if not exists:
            self._unread = ""
            self._is_read.set()
            return
        if self.context.incarnation == 1:
            await end_processes([], WorkflowCookies(self._settings.root), scan=self._scan)
        await self._try_to_read()
        if self._unread:
            self.context.start_soon(self._read_later)

    async def teardown(self) -> None:
        for live in self._live.values():
            live.journal.close()
        self._runs.close()

    async def _try_to_read(self) -> None:
        try:
            await self._read()
        except StorageError as error:
            self._unread = str(error)
        else:
            self._unread = ""
            self._is_read.set()

    async def _read_later(self) -> None:
        while self._unread:
            await trio.sleep(REOPEN_S)
            await self._try_to_read()

    async def _read(self) -> None:
        """Read all runs, and continue those that are not settled. Raises ``StorageError``."""
        await self._runs.open()
        if self._runs.problem:
            raise StorageError(self._runs.problem)
        await self._read_directories()
        for run in self._runs.all_shown():
            self._know(run)
        self._sort_settled()
        unsettled = [each for each in self._runs.all_shown() if not each.is_settled]
        for run in unsettled:
            live = self._live[run.id] = self._new_live(run.id)
            await self._try_to_open(live)
        for run in unsettled:
            self.context.start_soon(self._live_through, self._live[run.id])

    async def _read_directories(self) -> None:
        """Add the runs of an older version, and remove what refused starts of it have left."""
        look, disk = self._flusher.look, self._flusher.disk
        known = {*self._runs.rows}
        for name in await look(partial(_to_look_at, disk, self._directory, known)):
            directory = self._directory / name
            if name not in known:
                run = await look(partial(run_before_tables, disk, directory))
                if run is None:
                    is_archived = await self._archiver.entry(runs.id_name(name)) is not None
                    remove = _remove_run if is_archived else _remove_unstarted
                    await self._flusher.call(partial(remove, disk, directory))
                    continue
                stored: Reply[None] = Reply()
                self._runs.put(run, partial(stored.send, None), stored)
                await stored.wait()
            await self._flusher.call(partial(_remove_meta, disk, directory))

    def _know(self, run: StoredRun) -> None:
        if run.key is not None:
            self._keys[run.sender, run.key] = run.id

    def _sort_settled(self) -> None:
        settled = [each for each in self._runs.all_shown() if each.is_settled]
        settled.sort(key=lambda each: each.ended or "")
        self._settled = {each.id: None for each in settled}
        for each in settled:
            self._add_settled(each)

    def _add_settled(self, run: StoredRun) -> None:
        ended = time.time() if run.ended is None else moment_of(run.ended).timestamp()
        self._archiver.add(run.id, ended)

    # Messages.

    async def receive(self, message: DeskMessage) -> None:
        """Handle a message of a client, a process, the desk of requests or the runtime."""
        match message:
            case ProcessFrames(id=id_, run=number, frames=said):
                self.reply(message, None)
                for frame in said:
                    self._take_frame(id_, number, frame)
            case ProcessOver(id=id_, run=number, reason=reason):
                self.reply(message, None)
                self._process_over(id_, number, _ProcessEnd(reason))
            case Down(path=path):
                # The actor could not report the end of its process: it crashed.
                id_, _, run = path.rpartition("/")[2].partition(".")
                self._process_over(id_, int(run), _ProcessEnd("its actor crashed"))
            case FollowWorkflows(place=place):
                self._followers.take(place, self.defer(message))
            case ApplyAnswer():
                self._task(self._apply, message)
            case ListEnded(ids=ids):
                self.reply(message, self._ended(ids))
            case CancelWorkflow():
                await self._check_archived(message.workflow_id)
                self._cancel(message)
            case TrustPlugins():
                self._task(self._trust, message)
            case RunWorkflow():
                self._task(self._run, message)
            case GetWorkflow():
                self._task(self._show, message)
            case ListWorkflowSteps():
                self._task(self._steps, message)
            case ListWorkflows():
                self._task(self._list, message)
            case ResumeWorkflow() | RetryWorkflow():
                await self._check_archived(message.workflow_id)
                self._reopen(message)

    def _task(self, act: Callable[..., Any], message: Any) -> None:
        """Carry out a request in a task; a refusal is its answer."""
        reply = self.defer(message)

        async def answer() -> None:
            try:
                await act(message, reply)
            except AegisError as error:
                reply.fail(error)

        self.context.start_soon(answer)

    # Clients.

    def _check_read(self) -> None:
        if self._unread:
            raise StorageError(self._unread)

    def _stored(self, id_: str) -> StoredRun:
        """Return a run that is durable. Raises ``NotFound``."""
        self._check_read()
        run = self._runs.shown(id_)
        if run is None:
            raise NotFound(f"there is no workflow {id_}; look with aegis_workflow_list")
        return run

    def _of_key(self, sender: str, key: str | None) -> StoredRun | None:
        """Return the run to which the sender has given this key."""
        known = None if key is None else self._keys.get((sender, key))
        return None if known is None else self._runs.rows.get(known)

    @property
    def _running(self) -> int:
        return sum(not each.has_ended for each in self._runs.rows.values())

    async def _run(self, request: RunWorkflow, reply: Reply[Any]) -> None:
        self._check_read()
        sender = "human" if request.from_handle is None else f"agent:{request.from_handle}"
        file = ""
        if self._of_key(sender, request.key) is None:
            if await self._was_run(request, sender, reply):
                return
            file = (await self._catalog.find()).checked(request).stem
        await self._runs.open()  # a refused request leaves no ledger
        known = self._of_key(sender, request.key)
        if known is not None:
            kwargs = json.loads(self._runs.text(known.kwargs, "kwargs"))
            if (known.name, kwargs) != (request.name, request.kwargs):
                raise runs.other_arguments(request, known.id)
            self._runs.settled(partial(self._return_started, known.id, reply), reply)
            return
        if not file:  # it has just been archived
            raise Unavailable("its run is just being archived; try again")
        refusal = runs.refusal_of(request, self._running)
        if refusal is not None:
            raise refusal
        run = runs.new_run(request, str(ULID()), sender, file, time.time())
        if self._runs.put(run, partial(self._started, run.id, reply), reply):
            self._know(run)

    async def _was_run(self, request: RunWorkflow, sender: str, reply: Reply[Any]) -> bool:
        """Answer a start whose key is that of an archived run; return whether it is."""
        if request.key is None:
            return False
        entry = await self._archiver.entry(runs.key_name(sender, request.key))
        if entry is None:
            return False
        kwargs = runs.kwargs_digest(json.dumps(request.kwargs))
        if entry["name"] != request.name or entry["kwargs"] not in ("", kwargs):
            raise runs.other_arguments(request, entry["id"])
        reply.send(WorkflowStarted(workflow_id=entry["id"], status=entry["end"]))
        return True

    async def _check_archived(self, id_: str) -> None:
        """Raise ``InvalidRequest`` if a run that is to change is archived."""
        if id_ not in self._runs.rows:
            entry = await self._archiver.entry(runs.id_name(id_))
            if entry is not None:
                raise runs.is_archived(entry)

    def _started(self, id_: str, reply: Reply[Any]) -> None:
        self._return_started(id_, reply)
        self._begin_life(id_)

    def _return_started(self, id_: str, reply: Reply[Any]) -> None:
        reply.send(WorkflowStarted(workflow_id=id_, status=self._stored(id_).phase))

    def _cancel(self, request: CancelWorkflow) -> None:
        run, by = self._stored(request.workflow_id), request.from_handle
        if by is not None and name_key(run.sender) != name_key(f"agent:{by}"):
            raise Forbidden(
                f"workflow {run.id} was started by {run.sender}, who may cancel it, as a person may"
            )
        newest = self._runs.rows.get(run.id, run)
        if newest.has_ended:
            phase = run.phase if run.has_ended else "ending"
            raise InvalidRequest(f"workflow {run.id} has ended already: it is {phase}")
        who = "human" if by is None else f"agent:{by}"
        reply = self.defer(request)
        after = self._ended_as("cancelled", error=f"it was cancelled by {who}")(newest)
        self._runs.put(after, partial(self._cancelled, run.id, reply), reply)

    def _cancelled(self, id_: str, reply: Reply[Any]) -> None:
        self._run_ended(id_)
        reply.send(self._info(self._stored(id_)))

    def _reopen(self, request: ResumeWorkflow | RetryWorkflow) -> None:
        run = self._stored(request.workflow_id)
        newest = self._runs.rows.get(run.id, run)
        refusal = runs.refusal_of_reopening(newest, self._running)
        if refusal is not None:
            raise refusal
        reply = self.defer(request)
        again = runs.reopened(newest, from_beginning=isinstance(request, RetryWorkflow))
        self._runs.put(again, partial(self._reopened, run.id, reply), reply)

    def _reopened(self, id_: str, reply: Reply[Any]) -> None:
        self._settled.pop(id_, None)
        self._archiver.remove(id_)
        self._begin_life(id_)
        reply.send(self._info(self._stored(id_)))

    async def _apply(self, message: ApplyAnswer, reply: Reply[Any]) -> None:
        """Take the answer of a person to a question; reply once it is durable.

        The desk of requests waits as long as that takes, and takes a refusal for the end of it.
        """
        await self._is_read.wait()
        id_, _, rest = message.key.removeprefix("workflow:").partition("/")
        if id_ in self._live:
            await self._live[id_].is_known.wait()
        live, call = self._call_of(id_, rest.partition("/")[2], message.key)
        if live is None or call is None:
            reason = "its workflow has ended, or was run again from its beginning"
            reply.send(AnswerReceived(applied=False, reason=reason))
            return
        run = self._runs.rows[live.id]
        applied = partial(reply.send, AnswerReceived(applied=True))
        if runs.holds(run, call, live.last):
            if call.end == "cancelled":
                reason = "its workflow did not wait for the answer any longer"
                reply.send(AnswerReceived(applied=False, reason=reason))
            else:
                live.journal.fact(call.id, lambda row: row, applied)
        elif run.has_ended:
            reply.send(AnswerReceived(applied=False, reason="its workflow has ended"))
        else:
            self._finish(live, call.id, value(_text_of(message)), then=applied)

    def _call_of(
        self, id_: str, position: str, key: str
    ) -> tuple[LiveWorkflow | None, EngineCall | None]:
        """Return a run and its call at a position; None if it does not act under this key."""
        live, run = self._live.get(id_), self._runs.rows.get(id_)
        if live is None or run is None or run.call_id(position) != key:
            return None, None
        call = live.journal.rows.get(position)
        return live, call if call is not None and call.attempt == run.attempt else None

    # What clients see.

    async def _show(self, request: GetWorkflow, reply: Reply[Any]) -> None:
        if self._runs.is_open and self._runs.shown(request.workflow_id) is None:
            await self._show_archived(request.workflow_id, reply)
            return
        info = self._info(self._stored(request.workflow_id))
        path = self._log_path(info.workflow_id)
        text = await self._flusher.look(partial(_read_log, path, LOG_BYTES))
        reply.send(attrs.evolve(info, log=escape_text(text)))

    async def _show_archived(self, id_: str, reply: Reply[Any]) -> None:
        entry = await self._archiver.entry(runs.id_name(id_))
        found = [] if entry is None else await self._archiver.lines(entry, id_)
        lines = {each["id"]: each for each in found}
        run = understood(StoredRun, lines[id_]) if id_ in lines else None
        if run is None:
            gone = ": it has ended, and the archive has it no more"
            why = "; look with aegis_workflow_list" if entry is None else gone
            raise NotFound(f"there is no workflow {id_}{why}")
        text = str(lines[f"{id_}/log"]["set"]["text"]) if f"{id_}/log" in lines else ""
        reply.send(attrs.evolve(self._info(run), log=escape_text(text[-LOG_BYTES:])))

    async def _list(self, request: ListWorkflows, reply: Reply[Any]) -> None:
        self._check_read()
        found = await self._catalog.find()
        infos, more, size = list[WorkflowInfo](), False, 0
        for run in self._newest_first():
            info = self._info(run)
            size += len(info.result or "") + 2_000
            if len(infos) >= request.limit or size > MAX_LIST_BYTES:
                more = True
                break
            infos.append(info)
        workflows = [found.workflows[each].info() for each in sorted(found.workflows)]
        reply.send(
            WorkflowList(result=infos, workflows=workflows, problems=[*found.problems], more=more)
        )

    async def _steps(self, request: ListWorkflowSteps, reply: Reply[Any]) -> None:
        id_, after = request.workflow_id, request.after
        is_known = not self._runs.is_open or self._runs.shown(id_) is not None
        if not is_known and await self._archiver.entry(runs.id_name(id_)) is not None:
            raise NotFound(f"the steps of workflow {id_} are not kept: it is in the archive")
        run, live = self._stored(id_), self._live.get(id_)
        path, disk = self._directory / id_ / LEDGER, self._flusher.disk
        if live is None:
            found = await self._flusher.look(partial(_calls_in, disk, path))
        elif live.journal.is_open:
            found = [*live.journal.all_shown()]
        else:
            why = live.problem or live.journal.problem
            raise StorageError(why or f"the steps of workflow {id_} are being read; call again")
        calls = runs.current_calls(run, found)
        steps, size = list[WorkflowStep](), 0
        for number, call in enumerate(calls[after : after + request.limit], start=after + 1):
            await trio.lowlevel.checkpoint()  # an outcome may be long
            text = None
            if call.outcome is not None and live is not None:
                text = live.journal.text_or_head(call.outcome, "outcome")
            elif call.outcome is not None:
                read = partial(read_text, disk, path, call.outcome, "outcome")
                text = await self._flusher.look(read)
            step = runs.step_of(run, number, call, text)
            size += json_size(unstructure(step))
            if steps and size > MAX_LIST_BYTES:
                break
            steps.append(step)
        more = len(calls) > after + len(steps)
        reply.send(WorkflowSteps(workflow_id=id_, result=steps, total=len(calls), more=more))

    def _newest_first(self) -> Iterator[StoredRun]:
        """Yield the runs that are durable: those that are not settled, then the others."""
        for each in (*sorted(self._live, reverse=True), *reversed(self._settled)):
            run = self._runs.shown(each)
            if run is not None:
                yield run

    def _info(self, run: StoredRun) -> WorkflowInfo:
        live = self._live.get(run.id)
        calls, checkpoint = run.calls, run.checkpoint
        current, problem = list[str](), ""
        if live is not None:
            problem = live.problem or live.journal.problem or self._runs.problem
            if not run.has_ended:
                calls, checkpoint = live.ended_calls, live.checkpoint
                current = live.current
        return runs.info_of(
            run,
            self._runs.text_or_head(run.kwargs, "kwargs"),
            None if run.result is None else self._runs.text_or_head(run.result, "result"),
            calls=calls,
            checkpoint=checkpoint,
            current=current,
            problem=problem,
        )

    def _news(self, ids: list[str] | None, place: StatesPlace) -> WorkflowsNews:
        found = map(self._runs.shown, self._live if ids is None else ids)
        infos = [self._info(each) for each in found if each is not None]
        return WorkflowsNews(workflows=infos, place=place, is_all=ids is None)

    def _touch(self, id_: str) -> None:
        """Publish that a run looks different to clients."""
        self._followers.changed(id_)
        self._followers.look()

    def _runs_changed(self) -> None:
        if self._runs.problem != self._shown_problem:
            self._shown_problem = self._runs.problem
            for each in self._live:
                self._touch(each)

    async def _trust(self, _: TrustPlugins, reply: Reply[Any]) -> None:
        files = await self._catalog.files()
        digest = digest_of_all(self._settings.digest, files)
        try:
            await in_thread(self._settings.remember, digest)
        except OSError as error:
            raise StorageError(f"the trust could not be stored: {error.strerror}") from error
        self._catalog.trust(files)
        reply.send(TrustedPlugins(files=[each.shown for each in files if each.digest]))

    # The life of a run.

    def _new_live(self, id_: str) -> LiveWorkflow:
        journal = Table[EngineCall](
            self._directory / id_ / LEDGER,
            EngineCall,
            self._flusher,
            self.context,
            changed=partial(self._touch, id_),
            lost=partial(self._journal_accepts, id_),
        )
        return LiveWorkflow(id_, journal)

    def _begin_life(self, id_: str) -> None:
        live = self._live[id_] = self._new_live(id_)
        self._touch(id_)
        self.context.start_soon(self._live_through, live)

    async def _live_through(self, live: LiveWorkflow) -> None:
        """Continue a run until it is settled."""
        await self._open_journal(live)
        run = self._runs.shown(live.id)
        assert run is not None, "only a durable run begins a life"
        if run.has_ended:
            live.has_ended.set()
        for call in [] if run.has_ended else live.journal.rows.values():
            is_cancelled = call.name == "ask_human" and call.end == "cancelled"
            if is_cancelled and runs.holds(run, call, live.last):
                self.context.start_soon(self._withdraw, run, call.id)  # perhaps it was not before
        while (next_run := await self._next_process(live)) is not None:
            live.begin_process(next_run.processes)
            self._touch(live.id)
            self.context.start_soon(self._launch, live, next_run)
            await live.process_ended.wait()
            await self._after_death(live)
        await self._settle(live)

    async def _open_journal(self, live: LiveWorkflow) -> None:
        while not live.journal.is_open:
            await self._try_to_open(live)
            if not live.journal.is_open:
                self._touch(live.id)
                await trio.sleep(REOPEN_S)

    async def _try_to_open(self, live: LiveWorkflow) -> None:
        try:
            path = self._directory / live.id / LEDGER
            await self._flusher.call(partial(upgrade_journal, self._flusher.disk, path))
        except StorageError as error:
            live.problem = f"its ledger cannot be read: {error}"
            return
        live.problem = ""
        await live.journal.open()
        if live.journal.is_open:
            live.count(self._runs.rows[live.id])
            self._touch(live.id)

    async def _next_process(self, live: LiveWorkflow) -> StoredRun | None:
        """Return the run once it is durable that another process is started; None if it ends."""
        while not live.has_ended.is_set():
            run = self._runs.rows[live.id]
            number = run.processes + 1
            if not run.has_ended:
                self._runs.put(attrs.evolve(run, processes=number))
            await self._runs.durable()
            stored = self._runs.shown(live.id)
            if stored is not None and not stored.has_ended and stored.processes == number:
                return stored
        return None

    async def _after_death(self, live: LiveWorkflow) -> None:
        """Wait until another process is to be started, or end a run whose processes die."""
        end = live.process_end
        assert end is not None
        if self._runs.rows[live.id].has_ended:
            return
        live.deaths += 1
        if end.is_final or live.deaths >= MAX_DEATHS:
            error = end.reason
            if not end.is_final:
                error = f"its process ended {live.deaths} times without progress: {error}"
            self._end_run(live, "failed", error=error)
            return
        live.problem = f"its process will be started again: {end.reason}"
        self._touch(live.id)
        with trio.move_on_after(RELAUNCH_S * 2 ** (live.deaths - 1)):
            await live.has_ended.wait()
        live.problem = ""

    def _end_run(
        self,
        live: LiveWorkflow,
        end: runs.End,
        *,
        result: str | None = None,
        error: str | None = None,
    ) -> None:
        """Note the end of a run, which is a fact; the first one counts."""
        change = self._ended_as(end, result=result, error=error)
        self._runs.fact(live.id, change, partial(self._run_ended, live.id))

    def _ended_as(
        self, end: runs.End, *, result: str | None = None, error: str | None = None
    ) -> Callable[[StoredRun], StoredRun]:
        """Return the change of a run that ends now."""
        at = moment_text(time.time())

        def change(run: StoredRun) -> StoredRun:
            live = self._live.get(run.id)
            calls = 0 if live is None else live.ended_calls
            checkpoint = None if live is None else live.checkpoint
            return runs.ended(
                run, end=end, at=at, calls=calls, checkpoint=checkpoint, result=result, error=error
            )

        return change

    def _run_ended(self, id_: str) -> None:
        """End the process of a run whose end is durable."""
        live = self._live.get(id_)
        if live is not None and not live.has_ended.is_set():
            live.has_ended.set()
            live.end_process(_ProcessEnd("its workflow has ended"))
            self._touch(id_)

    async def _settle(self, live: LiveWorkflow) -> None:
        """Do what follows from the end of a run, until it has nothing left to do."""
        run = self._runs.shown(live.id)
        assert run is not None
        await live.journal.durable()
        async with trio.open_nursery() as nursery:
            if run.callback:
                nursery.start_soon(self._notify, run)
            handles = runs.handles_of(run, live.journal.rows.values())
            nursery.start_soon(self._carrier.settle, run, handles)
        faults.SETTLE_AFTER.hit(run.name)
        self._runs.fact(live.id, runs.settled, partial(self._is_settled, live))

    async def _notify(self, run: StoredRun) -> None:
        faults.NOTIFY_BEFORE.hit(run.name)
        result = None if run.result is None else self._runs.text_or_head(run.result, "result")
        await self._carrier.services.answer("inboxes", end_message(run, result), 30.0)
        faults.NOTIFY_AFTER.hit(run.name)

    def _is_settled(self, live: LiveWorkflow) -> None:
        live.journal.close()
        del self._live[live.id]
        self._settled[live.id] = None
        self._touch(live.id)
        self._add_settled(self._runs.rows[live.id])

    def _leaving(self, id_: str) -> Leaving | None:
        """Return a run as the archive gets it, with its log; None if it is not settled."""
        run = self._runs.shown(id_) if id_ in self._settled else None
        if run is None or not run.is_settled:
            return None
        entries = runs.entries_of(run, self._runs.text_or_head(run.kwargs, "kwargs"))
        return Leaving(self._runs, (run,), entries, partial(_log_line, self._log_path(id_), id_))

    def _leave(self, id_: str) -> None:
        """Leave a run that is archived."""
        run = self._runs.rows[id_]
        del self._settled[id_]
        if run.key is not None and self._keys.get((run.sender, run.key)) == id_:
            del self._keys[run.sender, run.key]

    def _left(self, id_: str) -> None:
        """Remove the journal and the log of a run whose drop is durable."""
        self._followers.remove(id_)
        remove = partial(_remove_run, self._flusher.disk, self._directory / id_)
        self.context.start_soon(self._flusher.call, remove)

    def _ended(self, ids: list[str] | None) -> EndedEntries:
        """Return settled runs for a search of the history."""
        if ids is None:
            return EndedEntries(ids=self._archiver.newest_first())
        found = map(self._runs.shown, ids)
        entries = [runs.history_entry(e) for e in found if e is not None and e.has_ended]
        return EndedEntries(entries=entries)

    def _runs_accept(self) -> None:
        """Continue all runs once the disk accepts again."""
        if not self._unread:
            self._sort_settled()
            for run in self._runs.all_shown():
                self._know(run)
            for each in self._live.values():
                self._advance_all(each)

    def _journal_accepts(self, id_: str) -> None:
        live = self._live.get(id_)
        if live is not None:
            live.count(self._runs.rows[id_])
            self._advance_all(live)

    # Processes.

    def _log_path(self, id_: str) -> Path:
        return self._directory / id_ / LOG

    async def _launch(self, live: LiveWorkflow, run: StoredRun) -> None:
        """Start a process with the journal. Its failure is the end of the process."""
        try:
            faults.LAUNCH_BEFORE.hit(run.name)
            found = await self._catalog.find()
            if run.file not in found.files:
                end = _ProcessEnd("its plugin is gone, or not trusted", is_final=True)
                self._process_over(run.id, run.processes, end)
                return
            # The process gets what is durable only, and asks for no outcome that it was given.
            await live.journal.durable()
            process = await self._start_process(run)
            if live.number != run.processes:
                process.stop()  # the run has ended meanwhile, or the process has died already
                return
            live.process = process
            self.context.monitor(process)
            for frame in await self._first_frames(live, run, found.files):
                await process.ask(PutFrames(frames=[frame]), timeout=float("inf"))
            faults.LAUNCH_AFTER.hit(run.name)
        except (ActorError, StorageError) as error:
            self._process_over(run.id, run.processes, _ProcessEnd(str(error)))

    async def _first_frames(
        self, live: LiveWorkflow, run: StoredRun, files: Mapping[str, Sequence[str]]
    ) -> list[frames.Frame]:
        """Return the start, the journal in frames of a limited size, and the order of its calls.

        Raises ``StorageError`` if the journal is damaged.
        """
        kwargs = json.loads(self._runs.text(run.kwargs, "kwargs"))
        settings, rows = self._settings, [*live.journal.all_shown()]
        found = [frames.start_frame(run, kwargs, files, settings.config, settings.host)]
        batch, size = list[frames.Frame](), 0
        for call in runs.current_calls(run, rows):
            await trio.lowlevel.checkpoint()  # a journal may be long
            outcome = self._outcome(live, call) if runs.holds(run, call, live.last) else None
            batch.append(frames.kept_call(call, outcome))
            size += runs.size_of(call)
            if size >= frames.JOURNAL_BYTES:
                found.append({"kind": "journal", "calls": batch})
                batch, size = [], 0
        if batch:
            found.append({"kind": "journal", "calls": batch})
        return [*found, frames.go_frame(runs.order_of(run, rows))]

    @staticmethod
    def _outcome(live: LiveWorkflow, call: EngineCall) -> Outcome:
        """Return the outcome of a call that has ended. Raises ``StorageError``."""
        assert call.outcome is not None
        outcome: Outcome = json.loads(live.journal.text(call.outcome, "outcome"))
        return outcome

    async def _start_process(self, run: StoredRun) -> Ref[Any]:
        root = self._settings.root
        cookie = cookie_of_workflow(root, run.id, run.starter, run.processes)
        spec = ChildSpec.of(
            f"{run.id}.{run.processes}",
            WorkflowProcess,
            workflow=run.id,
            run=run.processes,
            launch=launch_of(root, cookie, self._withhold(run.starter)),
            log=self._log_path(run.id),
            desk=self.context.ref,
            scan=self._scan,
        ).with_options(restart=Restart.TEMPORARY, shutdown_s=0.1)
        return await self.context.system.supervisor(self._supervisor).start_child(spec)

    def _process_over(self, id_: str, number: int, end: _ProcessEnd) -> None:
        live = self._live.get(id_)
        if live is not None and live.number == number:
            live.end_process(end)

    def _put(self, live: LiveWorkflow, frame: frames.Frame) -> None:
        if live.process is not None:
            live.process.tell(PutFrames(frames=[frame]))

    def _take_frame(self, id_: str, number: int, frame: Mapping[str, Any]) -> None:
        """Handle a frame of a process; drop those of an earlier one."""
        live = self._live.get(id_)
        if live is None or live.number != number:
            return
        match frames.read_frame(frame):
            case frames.Called() as called:
                self._called(live, called)
            case frames.LeftCall(position=position) as left if position in live.asked:
                live.left.setdefault(position, left)
                self._advance(live, position)
            case frames.DoneCall(position=position, outcome=outcome):
                if position in live.carried and live.carried[position] is None:
                    self._finish(live, position, outcome)
            case frames.Returned(result=result, error=error):
                end: Literal["completed", "failed"] = "failed" if result is None else "completed"
                self._end_run(live, end, result=result, error=error)

    # Calls.

    def _called(self, live: LiveWorkflow, called: frames.Called) -> None:
        if called.position in live.asked:
            message = (
                f"call {called.position} is made twice: run calls at the same time with parallel"
            )
            self._put_answer(live, called.position, failure("CallFailed", message))
            return
        live.asked[called.position] = called
        self._advance(live, called.position)
        self._touch(live.id)

    def _advance_all(self, live: LiveWorkflow) -> None:
        for position in [*live.asked]:
            self._advance(live, position)

    def _advance(self, live: LiveWorkflow, position: str) -> None:
        """Do what follows from the durable state of a call that the process waits for."""
        called, call = live.asked.get(position), live.journal.rows.get(position)
        run = self._runs.rows[live.id]
        if called is None or run.has_ended or call is not live.journal.shown(position):
            return  # once the end is refused, or the call is durable
        if call is None or call.attempt != run.attempt:
            self._begin(live, run, called)
        elif call.digest != called.digest:
            self._answer(live, position, calls.changed(position, call.about, called.about))
        elif runs.holds(run, call, live.last):
            self._answer_again(live, call)
        elif position in live.left:
            scope = live.carried.get(position)
            if scope is not None:
                scope.cancel()
            left = live.left[position]
            self._finish(live, position, calls.cancelled(position, call.about), left)
        elif call.process == live.number:
            if position not in live.carried:
                self._carry_out(live, run, call, called)
        elif call.name in REPEATABLE or called.retry or call.round < run.resumes:
            self._begin_again(live, run, call, called)
        else:
            self._finish(live, position, calls.interrupted(position, call.about))

    def _begin(self, live: LiveWorkflow, run: StoredRun, called: frames.Called) -> None:
        """Store that a call will act. A checkpoint has its outcome at once."""
        refusal = runs.refusal_of_call(live.made, live.size)
        position = called.position
        if refusal is not None:
            self._answer(live, position, failure("CallFailed", refusal))
            return
        number = live.next_change()
        live.made, live.size = live.made + 1, live.size + runs.LINE_CHARS
        call = EngineCall(
            id=position,
            attempt=run.attempt,
            name=called.name,
            digest=called.digest,
            about=called.about,
            began=number,
            first_round=run.resumes,
            round=run.resumes,
            process=live.number,
            handle=_handle_of(run, called),
            began_at=moment_text(time.time()),
            moments=_moments(number, run, called.seen, called.time),
        )
        then = partial(self._advance, live, position)
        if called.name == "checkpoint":
            given = called.arguments
            outcome = value({"checkpoint": given["name"], "payload": given["payload"]})
            call = runs.with_outcome(
                call, outcome=outcome, number=number, round_=run.resumes, at=call.began_at
            )
            then = partial(self._call_ended, live, position, outcome)
        live.journal.put(call, then)

    def _begin_again(
        self, live: LiveWorkflow, run: StoredRun, call: EngineCall, called: frames.Called
    ) -> None:
        """Store that a call acts again, or is continued."""
        moments = _moments(live.next_change(), run, called.seen, called.time)
        again = attrs.evolve(
            call,
            round=run.resumes,
            process=live.number,
            starts=call.starts + 1,
            moments=(*call.moments, *moments),
        )
        live.journal.put(again, partial(self._advance, live, call.id))

    def _carry_out(
        self, live: LiveWorkflow, run: StoredRun, call: EngineCall, called: frames.Called
    ) -> None:
        """Carry out a call whose begin is durable, or let the process do it."""
        if call.name in IN_PROCESS:
            live.carried[call.id] = None
            self._put(live, {"kind": "proceed", "position": call.id})
            return
        scope = live.carried[call.id] = trio.CancelScope()
        handles = runs.handles_of(run, live.journal.rows.values() if call.name == "send" else ())
        carried = CarriedCall(
            run=run,
            spawned=handles.spawned,
            position=call.id,
            name=call.name,
            arguments=called.arguments,
            is_new=call.starts == 1,
        )
        self.context.start_soon(self._perform, live, carried, scope)

    async def _perform(
        self, live: LiveWorkflow, call: CarriedCall, scope: trio.CancelScope
    ) -> None:
        with scope:
            await trio.lowlevel.checkpoint_if_cancelled()  # it has ended before this task ran
            faults.CALL_BEFORE.hit(call.name)
            outcome = await self._carrier.carry_out(call)
            faults.CALL_AFTER.hit(call.name)
        is_wanted = live.carried.get(call.position) is scope and not scope.cancelled_caught
        if is_wanted and outcome is not None:  # a person answers a question
            self._finish(live, call.position, outcome)

    def _finish(
        self,
        live: LiveWorkflow,
        position: str,
        outcome: Outcome,
        left: frames.LeftCall | None = None,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Note the outcome of a call, which is a fact; the first one counts."""
        run, call = self._runs.rows[live.id], live.journal.rows[position]
        if runs.holds(run, call, live.last):
            return
        live.deaths = 0
        number = live.next_change()
        moments = () if left is None else _moments(number, run, left.seen, left.time)
        at = moment_text(time.time())

        def change(row: EngineCall) -> EngineCall:
            after = runs.with_outcome(
                row, outcome=outcome, number=number, round_=run.resumes, at=at
            )
            return row if after is row else attrs.evolve(after, moments=(*row.moments, *moments))

        def ended() -> None:
            self._call_ended(live, position, outcome)
            if then is not None:
                then()

        live.journal.fact(position, change, ended)

    def _call_ended(self, live: LiveWorkflow, position: str, outcome: Outcome) -> None:
        """Do what follows from an outcome that is durable."""
        call, run = live.journal.rows[position], self._runs.rows[live.id]
        live.ended_calls += 1
        live.size += 0 if call.outcome is None else call.outcome.chars
        if call.name == "checkpoint":
            live.checkpoint = call.handle
        if call.name == "ask_human" and call.end == "cancelled":
            self.context.start_soon(self._withdraw, run, position)
        if position in live.asked:
            self._answer(live, position, outcome)
        self._touch(live.id)

    async def _withdraw(self, run: StoredRun, position: str) -> None:
        """Withdraw the question of a call that was cancelled."""
        faults.WITHDRAW_BEFORE.hit(run.name)
        await self._carrier.withdraw(run, position)
        faults.WITHDRAW_AFTER.hit(run.name)

    def _answer_again(self, live: LiveWorkflow, call: EngineCall) -> None:
        """Answer a call from the journal."""
        try:
            outcome = self._outcome(live, call)
        except StorageError as error:
            self._process_over(live.id, live.number, _ProcessEnd(str(error)))
        else:
            self._answer(live, call.id, outcome)

    def _answer(self, live: LiveWorkflow, position: str, outcome: Outcome) -> None:
        """Send the outcome of a call to the process, which waits for it."""
        del live.asked[position]
        live.left.pop(position, None)
        live.carried.pop(position, None)
        self._put_answer(live, position, outcome)

    def _put_answer(self, live: LiveWorkflow, position: str, outcome: Outcome) -> None:
        self._put(live, {"kind": "answer", "position": position, "outcome": outcome})


def _handle_of(run: StoredRun, called: frames.Called) -> str | None:
    """Return the session or group that a call opens or writes to, or a checkpoint's name."""
    if called.name in ("spawn", "group"):
        return run.handle_of(called.position)
    named = "name" if called.name == "checkpoint" else "handle"
    found = called.arguments.get(named)
    return (
        found if called.name in ("send", "drain", "checkpoint") and isinstance(found, str) else None
    )


def _moments(
    number: int, run: StoredRun, seen: tuple[Seen, ...], moment: float | None
) -> tuple[Moment, ...]:
    """Return what the function had got when it made or left a call; nothing if it got nothing."""
    if not seen and moment is None:
        return ()
    at = None if moment is None else round(time.time(), 3)
    return (Moment(number, run.resumes, seen, moment, at),)


def _text_of(message: ApplyAnswer) -> str | None:
    """Return the answer to a question; None if the person has declined."""
    answer = message.answer
    if not isinstance(answer, QuestionAnswer) or answer.answers is None:
        return None
    return "\n".join(text for texts in answer.answers.values() for text in texts)


def _calls_in(disk: Disk, path: Path) -> list[EngineCall]:
    """Return the calls in the journal of a settled run, none if it made none. Blocking."""
    if not exists(disk, path):
        return []
    calls = calls_before_tables(disk, path)
    return [*(read_rows(disk, path, None, EngineCall) if calls is None else calls).values()]


def _read_log(path: Path, size: int) -> str:
    """Return the last ``size`` bytes of a log as text; empty without one."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - size))
            return file.read(size).decode("utf-8", "replace")
    except OSError:
        return ""


def _log_line(path: Path, id_: str) -> list[dict[str, Any]]:
    """Return a log as a line of the archive; none if it is empty."""
    text = _read_log(path, MAX_LOG_BYTES)
    return [{"id": f"{id_}/log", "set": {"text": text}}] if text else []


def _to_look_at(disk: Disk, directory: Path, known: set[str]) -> list[str]:
    """Return the directories of no known run, or with files of an older version."""
    return [
        each
        for each in stored_names(disk, directory)
        if disk.is_directory(directory / each)
        and (each not in known or META in disk.list_directory(directory / each))
    ]


def _remove_run(disk: Disk, directory: Path) -> None:
    with contextlib.suppress(OSError):
        remove_tree(disk, directory)


def _remove_unstarted(disk: Disk, directory: Path) -> None:
    """Remove the directory of a start that was never acknowledged.

    One with a damaged meta, or a journal of which no run is known, is kept for a person to look at.
    """
    with contextlib.suppress(OSError):
        if not {META, LEDGER} & {*disk.list_directory(directory)}:
            remove_tree(disk, directory)


def _remove_meta(disk: Disk, directory: Path) -> None:
    with contextlib.suppress(OSError):
        disk.unlink(directory / META)
