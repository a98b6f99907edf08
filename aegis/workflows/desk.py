"""``WorkflowDesk``: the actor of all workflows, between their starters and their processes.

The rules decide (``rules``); this actor writes their lines, starts and ends the processes, and has
the ``Carrier`` carry out calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio
from ulid import ULID

from actors import Actor, ActorError, ChildSpec, Down, Ref, Reply, Restart
from aegis.errors import AegisError, StorageError
from aegis.following import Followers
from aegis.journal.flusher import Flusher
from aegis.limits import in_thread
from aegis.processes.environment import Withhold, withhold_keys
from aegis.processes.process_scan import ProcessScan
from aegis.processes.reaper import end_processes
from aegis.protocol.agent_events import QuestionAnswer
from aegis.protocol.feeds import FollowWorkflows, StatesPlace, WorkflowsNews
from aegis.protocol.requests import ApplyAnswer
from aegis.protocol.workflows import (
    CancelWorkflow,
    GetWorkflow,
    ListWorkflows,
    ResumeWorkflow,
    RetryWorkflow,
    RunWorkflow,
    TrustedPlugins,
    TrustPlugins,
    WorkflowInfo,
    WorkflowList,
)
from aegis.shown_text import escape_text
from aegis.turns.services import Services
from aegis.workflows import events as e
from aegis.workflows import faults
from aegis.workflows.calls import value
from aegis.workflows.carrier import Carrier, MessageRights, Refuse, end_message
from aegis.workflows.cookie import WorkflowCookies, cookie_of_workflow
from aegis.workflows.files import WorkflowFiles
from aegis.workflows.frames import event_of, journal_frames, start_frame
from aegis.workflows.plugins.catalog import Catalog
from aegis.workflows.plugins.found import PluginFile, digest_of_all
from aegis.workflows.process import ProcessOver, PutFrames, Said, WorkflowProcess, launch_of
from aegis.workflows.records import Workflow
from aegis.workflows.rules import Workflows

log = structlog.get_logger("aegis.workflows")

LOG_BYTES = 8_192
"""The end of a log that is shown."""

MAX_LIST_BYTES = 200 * 1024
"""The size of one list of workflows."""


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


DeskMessage = (
    RunWorkflow
    | GetWorkflow
    | CancelWorkflow
    | ResumeWorkflow
    | RetryWorkflow
    | ListWorkflows
    | TrustPlugins
    | FollowWorkflows
    | ApplyAnswer
    | Said
    | ProcessOver
    | Down
    | e.Tick
)


class WorkflowDesk(Actor[DeskMessage]):
    """The workflows of a daemon, in ``directory``; ``supervisor`` has their processes."""

    def __init__(
        self,
        *,
        directory: Path,
        settings: WorkflowSettings,
        supervisor: str,
        flusher: Flusher,
        scan: ProcessScan,
        messages: MessageRights,
        refuse: Refuse,
        withhold: Withhold = withhold_keys,
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._supervisor = supervisor
        self._scan = scan
        self._messages, self._refuse = messages, refuse
        self._withhold = withhold
        self._flusher = flusher
        self._rules = Workflows()
        self._followers = Followers("the workflows", self._news)
        self._callers: dict[int, Reply[Any]] = {}
        self._count = 0
        self._processes: dict[str, tuple[int, Ref[Any]]] = {}
        self._calls: dict[str, dict[str, trio.CancelScope]] = {}
        self._catalog = Catalog(
            root=settings.root,
            directories=settings.directories,
            trusted=settings.trusted,
            scan=scan,
        )

    async def setup(self) -> None:
        """End the processes of an earlier life, read the files, and continue what has not ended."""
        self.context.register("service", "workflows")
        self._files = WorkflowFiles(
            directory=self._directory,
            flusher=self._flusher,
            start_soon=self.context.start_soon,
            synced=lambda number: self._handle(e.Synced(number=number)),
            refused=lambda id_, why: self._handle(e.Refused(id=id_, sentence=why)),
        )
        self._carrier = Carrier(
            services=Services(self.context.system), messages=self._messages, refuse=self._refuse
        )
        supervisor = self.context.system.supervisor(self._supervisor)
        for each in supervisor.names:
            await supervisor.stop_child(each)
        if self.context.incarnation == 1 and await self._files.exists():
            cookies = WorkflowCookies(self._settings.root)
            await end_processes([], cookies, scan=self._scan)
        self._handle(e.Recovering(workflows=await self._files.load()))

    async def teardown(self) -> None:
        self._files.close()

    async def receive(self, message: DeskMessage) -> None:
        """Handle a message of a client, a process, the desk of requests or a timer."""
        match message:
            case Said(frames=frames):
                self.reply(message, None)
                for frame in frames:
                    self._said(message.id, message.run, frame)
            case ProcessOver(id=id_, run=run, reason=reason):
                self.reply(message, None)
                if self._processes.get(id_, (0,))[0] == run:
                    del self._processes[id_]
                self._handle(e.RunEnded(id=id_, run=run, reason=reason))
            case Down(path=path):
                self._process_down(path)
            case ApplyAnswer(key=key):
                caller = self._keep(self.defer(message))
                outcome = value(_text_of(message))
                self._handle(e.Answered(call_id=key, outcome=outcome, caller=caller))
            case FollowWorkflows(place=place):
                self._followers.take(place, self.defer(message))
            case e.Tick():
                self._handle(message)
            case _:
                self._of_client(message)

    def _of_client(
        self,
        message: RunWorkflow
        | GetWorkflow
        | CancelWorkflow
        | ResumeWorkflow
        | RetryWorkflow
        | ListWorkflows
        | TrustPlugins,
    ) -> None:
        match message:
            case CancelWorkflow(workflow_id=id_, from_handle=by):
                self._handle(e.Cancelling(id=id_, by=by, caller=self._keep(self.defer(message))))
            case RunWorkflow():
                self._task(self._run, message, self.defer(message))
            case GetWorkflow():
                self._task(self._show, message, self.defer(message))
            case ResumeWorkflow() | RetryWorkflow():
                self._task(self._reopen, message, self.defer(message))
            case ListWorkflows():
                self._task(self._list, message, self.defer(message))
            case TrustPlugins():
                self._task(self._trust, message, self.defer(message))

    # Clients.

    def _task(self, act: Callable[..., Any], message: Any, reply: Reply[Any]) -> None:
        """Carry out a request in a task; a refusal is its answer."""

        async def answer() -> None:
            try:
                await act(message, reply)
            except AegisError as error:
                reply.fail(error)

        self.context.start_soon(answer)

    async def _run(self, request: RunWorkflow, reply: Reply[Any]) -> None:
        sender = "human" if request.from_handle is None else f"agent:{request.from_handle}"
        file = ""
        if self._rules.store.of_key(sender, request.key) is None:
            file = (await self._catalog.find()).checked(request).stem
        starting = e.Starting(
            request=request, id=str(ULID()), sender=sender, file=file, caller=self._keep(reply)
        )
        self._handle(starting)

    def _news(self, ids: list[str] | None, place: StatesPlace) -> WorkflowsNews:
        store = self._rules.store
        stored = [each for each in (store.live if ids is None else ids) if store.has(each)]
        infos = [store.info(each) for each in stored]
        return WorkflowsNews(workflows=infos, place=place, is_all=ids is None)

    async def _show(self, request: GetWorkflow, reply: Reply[Any]) -> None:
        info = self._rules.store.info(request.workflow_id)
        text = await self._files.log(request.workflow_id, LOG_BYTES)
        reply.send(attrs.evolve(info, log=escape_text(text)))

    async def _reopen(self, request: ResumeWorkflow | RetryWorkflow, reply: Reply[Any]) -> None:
        workflow = self._rules.store.workflow(request.workflow_id)
        loaded = e.Loaded(workflow=workflow)
        if workflow.id not in self._rules.store.live:  # otherwise the rules refuse it
            loaded = await self._files.open(workflow)
        self._handle(
            e.Reopening(
                loaded=loaded,
                from_beginning=isinstance(request, RetryWorkflow),
                caller=self._keep(reply),
            )
        )

    async def _list(self, request: ListWorkflows, reply: Reply[Any]) -> None:
        found = await self._catalog.find()
        infos, more, size = list[WorkflowInfo](), False, 0
        for each in self._rules.store.newest_first():
            info = self._rules.store.info(each)
            size += len(info.result or "") + 2_000
            if len(infos) >= request.limit or size > MAX_LIST_BYTES:
                more = True
                break
            infos.append(info)
        workflows = [found.workflows[each].info() for each in sorted(found.workflows)]
        reply.send(
            WorkflowList(result=infos, workflows=workflows, problems=[*found.problems], more=more)
        )

    async def _trust(self, _: TrustPlugins, reply: Reply[Any]) -> None:
        files = await self._catalog.files()
        digest = digest_of_all(self._settings.digest, files)
        try:
            await in_thread(self._settings.remember, digest)
        except OSError as error:
            raise StorageError(f"the trust could not be stored: {error.strerror}") from error
        self._catalog.trust(files)
        reply.send(TrustedPlugins(files=[each.shown for each in files if each.digest]))

    # Processes.

    def _process_down(self, path: str) -> None:
        """Take the end of an actor that could not report the end of its process: it crashed."""
        id_, _, run = path.rpartition("/")[2].partition(".")
        if self._processes.get(id_, (0,))[0] == int(run):
            del self._processes[id_]
            self._handle(e.RunEnded(id=id_, run=int(run), reason="its actor crashed"))

    def _said(self, id_: str, run: int, frame: dict[str, Any]) -> None:
        event = event_of(id_, run, frame)
        if event is not None:
            self._handle(event)

    async def _launch(self, workflow: Workflow) -> None:
        """Start a process with the journal. Its failure is the end of the run."""
        faults.LAUNCH_BEFORE.hit(workflow.name)
        try:
            found = await self._catalog.find()
            if workflow.file not in found.files:
                self._fail_run(workflow, "its plugin is gone, or not trusted", is_final=True)
                return
            journal = await self._files.journal(workflow)
            process = await self._start_process(workflow)
            if not self._rules.store.is_up(workflow.id, workflow.runs):
                process.stop()  # it was cancelled meanwhile, or the process has died already
                return
            self._processes[workflow.id] = workflow.runs, process
            self.context.monitor(process)
            start = start_frame(workflow, found.files, self._settings.config, self._settings.host)
            for frame in (start, *journal_frames(journal)):
                await process.ask(PutFrames(frames=[frame]), timeout=float("inf"))
            faults.LAUNCH_AFTER.hit(workflow.name)
        except (ActorError, StorageError) as error:
            self._fail_run(workflow, str(error))

    def _fail_run(self, workflow: Workflow, reason: str, *, is_final: bool = False) -> None:
        id_, run = workflow.id, workflow.runs
        self._handle(e.RunEnded(id=id_, run=run, reason=reason, is_final=is_final))

    async def _start_process(self, workflow: Workflow) -> Ref[Any]:
        root = self._settings.root
        cookie = cookie_of_workflow(root, workflow.id, workflow.starter, workflow.runs)
        spec = ChildSpec.of(
            f"{workflow.id}.{workflow.runs}",
            WorkflowProcess,
            workflow=workflow.id,
            run=workflow.runs,
            launch=launch_of(root, cookie, self._withhold(workflow.starter)),
            log=self._files.log_path(workflow.id),
            desk=self.context.ref,
            scan=self._scan,
        ).with_options(restart=Restart.TEMPORARY, shutdown_s=0.1)
        return await self.context.system.supervisor(self._supervisor).start_child(spec)

    def _put(self, id_: str, frame: dict[str, Any]) -> None:
        if id_ in self._processes:
            self._processes[id_][1].tell(PutFrames(frames=[frame]))

    def _end_run(self, id_: str) -> None:
        for scope in self._calls.pop(id_, {}).values():
            scope.cancel()
        if id_ in self._processes:
            self._processes.pop(id_)[1].stop()

    # Calls.

    async def _perform(self, call: e.Perform, scope: trio.CancelScope) -> None:
        id_, position = call.workflow.id, call.position
        with scope:
            await trio.lowlevel.checkpoint_if_cancelled()  # it has ended before this task ran
            faults.CALL_BEFORE.hit(call.name)
            outcome = await self._carrier.carry_out(call)
            faults.CALL_AFTER.hit(call.name)
        if self._calls.get(id_, {}).get(position) is scope:
            del self._calls[id_][position]
        if not scope.cancelled_caught and outcome is not None:
            done = e.Done(id=id_, run=call.workflow.runs, position=position, outcome=outcome)
            self._handle(done)

    async def _withdraw(self, workflow: Workflow, position: str) -> None:
        faults.WITHDRAW_BEFORE.hit(workflow.name)
        await self._carrier.withdraw(workflow, position)
        faults.WITHDRAW_AFTER.hit(workflow.name)

    async def _settle(self, workflow: Workflow) -> None:
        async with trio.open_nursery() as nursery:
            if workflow.callback:
                nursery.start_soon(self._notify, workflow)
            nursery.start_soon(self._carrier.settle, workflow)
        faults.SETTLE_AFTER.hit(workflow.name)
        self._handle(e.Settled(id=workflow.id))

    async def _notify(self, workflow: Workflow) -> None:
        faults.NOTIFY_BEFORE.hit(workflow.name)
        await self._carrier.services.answer("inboxes", end_message(workflow), 30.0)
        faults.NOTIFY_AFTER.hit(workflow.name)

    # The rules.

    def _keep(self, reply: Reply[Any]) -> int:
        self._count += 1
        self._callers[self._count] = reply
        return self._count

    def _handle(self, event: e.Event) -> None:
        for action in self._rules.handle(event, time.time()):
            self._perform_action(action)
        self._followers.look()

    def _perform_action(self, action: e.Action) -> None:
        match action:
            case e.Return() | e.Fail():
                self._answer(action)
            case e.Changed(id=id_):
                self._followers.changed(id_)
            case e.Wake(at=at):
                self.context.after(max(0.0, at - time.time()), e.Tick())
            case e.Write() | e.StoreMeta() | e.Release() | e.Drop():
                self._store(action)
            case _:
                self._act(action)

    def _act(
        self,
        action: e.Launch
        | e.Perform
        | e.Abandon
        | e.Withdraw
        | e.Proceed
        | e.Deliver
        | e.EndRun
        | e.Settle,
    ) -> None:
        match action:
            case e.Launch(workflow=workflow):
                self.context.start_soon(self._launch, workflow)
            case e.Perform():
                scope = trio.CancelScope()
                self._calls.setdefault(action.workflow.id, {})[action.position] = scope
                self.context.start_soon(self._perform, action, scope)
            case e.Abandon(id=id_, position=position):
                scope_of_call = self._calls.get(id_, {}).pop(position, None)
                if scope_of_call is not None:
                    scope_of_call.cancel()
            case e.Withdraw(workflow=workflow, position=position):
                self.context.start_soon(self._withdraw, workflow, position)
            case e.Proceed(id=id_, position=position):
                self._put(id_, {"kind": "proceed", "position": position})
            case e.Deliver(id=id_, position=position, outcome=outcome):
                self._put(id_, {"kind": "answer", "position": position, "outcome": outcome})
            case e.EndRun(id=id_):
                self._end_run(id_)
            case e.Settle(workflow=workflow):
                self.context.start_soon(self._settle, workflow)

    def _answer(self, action: e.Return | e.Fail) -> None:
        reply = self._callers.pop(action.caller, None)
        if reply is None:
            return
        if isinstance(action, e.Return):
            reply.send(action.value)
        else:
            reply.fail(action.error)

    def _store(self, action: e.Write | e.StoreMeta | e.Release | e.Drop) -> None:
        match action:
            case e.Write(id=id_, append=append):
                self._files.append(id_, append)
            case e.StoreMeta(workflow=workflow):
                self.context.start_soon(self._store_meta, workflow)
            case e.Release(id=id_):
                self._files.release(id_)
            case e.Drop(id=id_):
                self._followers.forget(id_)
                self.context.start_soon(self._files.drop, id_)

    async def _store_meta(self, workflow: Workflow) -> None:
        try:
            await self._files.store(workflow)
        except StorageError as error:
            self._handle(e.MetaRefused(id=workflow.id, sentence=str(error)))
            return
        faults.META_AFTER.hit(workflow.name)
        self._handle(e.MetaStored(id=workflow.id))


def _text_of(message: ApplyAnswer) -> str | None:
    """Return the answer to a question; None if the person has declined."""
    answer = message.answer
    if not isinstance(answer, QuestionAnswer) or answer.answers is None:
        return None
    return "\n".join(text for texts in answer.answers.values() for text in texts)
