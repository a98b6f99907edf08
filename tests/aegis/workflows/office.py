"""The workflows of a daemon on a simulated disk and clock, with processes that a test directs.

The desk, its files and the actor of a process are the real ones. A process is played at its frames,
and is a process of a simulated machine. The services that the desk asks are played by one actor
that loses nothing: it stands for durable sessions, inboxes, queues, groups and requests.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import attrs
import pytest
import trio

from actors import Actor, ActorError, ChildSpec, Reply, SupervisorSpec
from actors.faults import RUNTIME, Crash, Plan, armed
from actors.simulate import Simulation, simulate
from aegis.errors import AegisError, AlreadyExists, NotFound, StorageError, Unavailable
from aegis.journal.archive import Keep
from aegis.processes.guarded.guarded_process import Launch
from aegis.processes.guarded.line_process import LineSettings
from aegis.processes.process_scan import ProcessScan
from aegis.protocol.agent_events import QuestionAnswer
from aegis.protocol.agent_states import AgentProgram
from aegis.protocol.agents import (
    AgentInfo,
    CloseAgent,
    ResumeSession,
    ShowAgent,
    SpawnForWorkflow,
    TranscriptEntry,
)
from aegis.protocol.feeds import (
    FollowSession,
    FollowWorkflows,
    SessionNews,
    SessionPlace,
    WorkflowsNews,
)
from aegis.protocol.groups import (
    BroadcastSent,
    BroadcastToGroup,
    DissolveGroup,
    GroupInfo,
    GroupReplies,
    MemberReply,
    RepliesMetadata,
    ShowGroup,
    SpawnMixedGroup,
    WaitForAll,
)
from aegis.protocol.inboxes import Deliver, Receipt
from aegis.protocol.queues import Delegate, Enqueue, Enqueued, TaskInfo
from aegis.protocol.requests import (
    AnswerReceived,
    ApplyAnswer,
    OpenedRequest,
    OpenRequest,
    WithdrawnRequests,
    WithdrawRequests,
)
from aegis.protocol.terminals import CommandRecord, RunCommand
from aegis.protocol.workflows import (
    CancelWorkflow,
    GetWorkflow,
    ListWorkflows,
    PluginProblem,
    ResumeWorkflow,
    RetryWorkflow,
    RunWorkflow,
    WorkflowInfo,
    WorkflowList,
)
from aegis.workflows.calls import about, digest_of, value
from aegis.workflows.desk import WorkflowDesk, WorkflowSettings
from aegis.workflows.plugins.arguments import WorkflowParameter
from aegis.workflows.plugins.catalog import Definition, Found
from aegis.workflows.plugins.found import PluginFile
from tests.aegis.simulated_daemon import EMPTY, WRITES, Answer, SimulatedDaemon
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.machine.simulated_host import SimulatedHost
from tests.chaos.machine.simulated_line import SimulatedLine
from tests.chaos.machine.simulated_processes import Machine, SimulatedProcess
from tests.chaos.machine.simulated_tty import Bell
from tests.chaos.reproducible import reproducible

DIRECTORY = Path("/state/workflows")
ARCHIVE = Path("/state/archive")
ROOT = "/root"
PLUGIN = PluginFile("plugin", "/root/plugins/plugin.py", "plugins/plugin.py", "digest")

Frame = dict[str, Any]


# Processes.


class Program:
    """The program of one process: the frames that it got, and those that a test lets it send.

    ``journal`` are the calls of its journal by their positions, ``go`` the frame behind them, and
    ``answers`` the outcomes that it got. ``proceeds`` are the calls that it may carry out.
    """

    def __init__(self) -> None:
        self.output: deque[Frame] = deque()
        self.has_output = Bell()
        self.start: Frame = {}
        self.journal: dict[str, Frame] = {}
        self.go: Frame = {}
        self.answers: dict[str, Any] = {}
        self.proceeds: list[str] = []
        self.process: SimulatedProcess
        self._exits = trio.Event()

    @property
    def is_alive(self) -> bool:
        return self.process.is_alive

    def take(self, frame: Frame) -> None:
        """Take a frame of the daemon, as bytes would bring it."""
        frame = json.loads(json.dumps(frame))
        match frame["kind"]:
            case "start":
                assert not self.start
                self.start = frame
            case "journal":
                self.journal |= {each["position"]: each for each in frame["calls"]}
            case "go":
                self.go = frame
            case "proceed":
                assert frame["position"] not in self.proceeds, "it is done once"
                self.proceeds.append(frame["position"])
            case "answer":
                self.answers[frame["position"]] = frame["outcome"]

    def end_input(self) -> None:
        """Do nothing: the program ends by itself."""

    def says(self, frame: Frame) -> None:
        """Send a frame to the daemon."""
        assert self.go, "it has its journal"
        self.output.append(json.loads(json.dumps(frame)))
        self.has_output.ring()

    def exit(self) -> None:
        self._exits.set()

    async def main(self, _: SimulatedProcess) -> int:
        await self._exits.wait()
        return 0


# Services.


@attrs.define
class Session:
    """A session: its transcript, and its messages, of which those in ``waiting`` began no turn."""

    handle: str
    entries: list[TranscriptEntry] = attrs.field(factory=list)
    messages: dict[str, Deliver] = attrs.field(factory=dict)
    waiting: list[Deliver] = attrs.field(factory=list)
    state: str = "idle"
    turn: int = 0
    program: AgentProgram | None = None
    closes: int = 0

    @property
    def info(self) -> AgentInfo:
        state: Any = self.state
        return AgentInfo(
            id=self.handle,
            handle=self.handle,
            profile="a",
            provider="claude",
            state=state,
            since="",
            reason="",
            cwd="/",
            spawned_by="human",
            model="",
            turn=self.turn,
            waiting=len(self.waiting),
            quiet_s=0.0,
            tools=[],
            blocked=None,
            limited_until=None,
            conversation=None,
            program=self.program,
        )


@attrs.define
class Services:
    """All that the desk asks, and what became of it; nothing of it is lost.

    ``asked`` has every request, in order. Requests of the types in ``holds`` get no answer, and
    those in ``refuses`` this error. ``tasks`` are by their keys, None while they run; so are the
    ``replies`` to broadcasts.
    """

    asked: list[Any] = attrs.field(factory=list)
    holds: set[type] = attrs.field(factory=set)
    refuses: dict[type, AegisError] = attrs.field(factory=dict)
    sessions: dict[str, Session] = attrs.field(factory=dict)
    messages: dict[str, Deliver] = attrs.field(factory=dict)
    tasks: dict[str, TaskInfo | None] = attrs.field(factory=dict)
    groups: dict[str, GroupInfo] = attrs.field(factory=dict)
    replies: dict[str, GroupReplies | None] = attrs.field(factory=dict)
    questions: dict[str, OpenRequest] = attrs.field(factory=dict)
    withdrawn: list[str] = attrs.field(factory=list)
    record: CommandRecord | None = None
    waiting: list[tuple[Any, Reply[Any]]] = attrs.field(factory=list)

    def of(self, kind: type) -> list[Any]:
        """Return the requests of this type so far."""
        return [each for each in self.asked if isinstance(each, kind)]

    def session(self, handle: str) -> Session:
        if handle not in self.sessions:
            raise NotFound(f"there is no agent {handle!r}")
        return self.sessions[handle]

    def look(self) -> None:
        """Answer the requests that wait, if they can be answered now."""
        waiting, self.waiting = self.waiting, []
        for request, reply in waiting:
            self.take(request, reply)

    def take(self, request: Any, reply: Reply[Any]) -> None:
        try:
            answer = self._answer(request)
        except AegisError as error:
            reply.fail(error)
            return
        if answer is None:
            self.waiting.append((request, reply))
        else:
            reply.send(answer)

    def _answer(self, request: Any) -> Any:
        """Return the answer to a request; None if there is none yet."""
        if type(request) in self.holds:
            return None
        if type(request) in self.refuses:
            raise self.refuses[type(request)]
        match request:
            case SpawnForWorkflow(handle=str(handle)):
                if handle in self.sessions:
                    raise AlreadyExists(f"handle {handle!r} is or was used")
                self.sessions[handle] = Session(handle)
                return self.sessions[handle].info
            case ShowAgent(handle=handle):
                return self.session(handle).info
            case ResumeSession(handle=handle):
                self.session(handle).state = "idle"
                return self.session(handle).info
            case CloseAgent(handle=handle):
                return self._close(self.session(handle))
            case FollowSession():
                return self._news(request)
            case Deliver():
                return self._deliver(request)
            case Enqueue(key=str(key)):
                self.tasks.setdefault(key, None)
                return Enqueued(task_id=key, queued_position=0)
            case Delegate(key=str(key)):
                return self.tasks[key]
            case OpenRequest(key=key):
                self.questions.setdefault(key, request)
                return OpenedRequest(id=key, digest="", state="open")
            case WithdrawRequests(keys=keys):
                self.withdrawn += [*(self.questions if keys is None else keys)]
                return WithdrawnRequests(ids=[])
            case RunCommand():
                return self.record
        return self._of_group(request)

    def _of_group(self, request: Any) -> Any:
        match request:
            case SpawnMixedGroup(group=name):
                if name in self.groups:
                    raise AlreadyExists(f"group {name!r} exists")
                self.groups[name] = GroupInfo(
                    group=name, id=name, owner="human", created="", state="open", members=[]
                )
                return self.groups[name]
            case ShowGroup(group=name) | DissolveGroup(group=name) if name not in self.groups:
                raise NotFound(f"there is no group {name!r}")
            case ShowGroup(group=name):
                return self.groups[name]
            case DissolveGroup(group=name):
                self.groups[name] = attrs.evolve(self.groups[name], state="dissolved")
                return self.groups[name]
            case BroadcastToGroup(key=str(key)):
                self.replies.setdefault(key, None)
                return BroadcastSent(broadcast_id=key[-26:].rjust(26, "0").replace("/", "0"))
            case WaitForAll(broadcast_id=id_):
                return self.replies[next(each for each in self.replies if _same(each, id_))]
        raise AssertionError(f"nobody plays {request}")

    def _close(self, session: Session) -> AgentInfo:
        session.closes += 1
        if session.state != "closed":
            session.state = "closed"
            self.add(session, "closed")
        return session.info

    def _deliver(self, message: Deliver) -> Receipt:
        session = self.sessions.get(message.handle)
        if session is None:
            self.messages.setdefault(message.id, message)
        elif message.id not in session.messages:
            session.messages[message.id] = message
            session.waiting.append(message)
        return Receipt(id=message.id, status="queued", position=0)

    def _news(self, request: FollowSession) -> SessionNews | None:
        session = self.session(request.handle)
        newest, is_over = len(session.entries), session.state == "closed"
        since = newest if request.place is None else request.place.seq
        if request.place is not None and since == newest and not is_over:
            return None
        return SessionNews(
            entries=session.entries[since:],
            place=SessionPlace(seq=newest),
            newest=newest,
            is_over=is_over,
        )

    def add(self, session: Session, kind: str, **fields: object) -> None:
        """Add an entry to a transcript, and publish it."""
        seq, fields = len(session.entries) + 1, {"turn": session.turn, **fields}
        session.entries.append(TranscriptEntry(seq=seq, kind=kind, at="", fields=fields))
        self.look()


Asked = (
    SpawnForWorkflow
    | ShowAgent
    | ResumeSession
    | CloseAgent
    | FollowSession
    | Deliver
    | Enqueue
    | Delegate
    | OpenRequest
    | WithdrawRequests
    | RunCommand
    | SpawnMixedGroup
    | ShowGroup
    | DissolveGroup
    | BroadcastToGroup
    | WaitForAll
)


class PlayedServices(Actor[Asked]):
    """The services that the desk asks."""

    def __init__(self, *, services: Services) -> None:
        self._services = services

    async def setup(self) -> None:
        for service in ("agents", "inboxes", "requests", "queues", "groups", "terminals"):
            self.context.register("service", service)

    async def receive(self, message: Asked) -> None:
        self._services.asked.append(message)
        self._services.take(message, self.defer(message))


def _same(key: str, broadcast_id: str | None) -> bool:
    return key[-26:].rjust(26, "0").replace("/", "0") == broadcast_id


class Rights:
    """All agents may do everything, except for those with a refusal."""

    def __init__(self) -> None:
        self.no_messages: dict[str, AegisError] = {}
        self.no_terminals: dict[str, str] = {}
        self.sent: list[tuple[str, str]] = []

    def refuse_handoff(
        self, sender: str, target: str, *, interrupts: bool, now: float
    ) -> AegisError | None:
        del interrupts, now
        self.sent.append((sender, target))
        return self.no_messages.get(sender)

    def refuse_terminal(self, sender: str, command: str, names: Sequence[str]) -> str | None:
        assert (command, len(names)) == ("term_run", 1)
        return self.no_terminals.get(sender)


@attrs.define
class Plugins:
    """The catalog of plugins: one, with the workflows ``work`` and ``other``."""

    is_gone: bool = False
    trusted: list[PluginFile] = attrs.field(factory=list)

    async def files(self) -> tuple[PluginFile, ...]:
        await trio.lowlevel.checkpoint()
        return (PLUGIN,)

    def trust(self, files: Sequence[PluginFile]) -> None:
        self.trusted = [*files]

    async def find(self) -> Found:
        await trio.lowlevel.checkpoint()
        if self.is_gone:
            return Found({}, [PluginProblem(file="plugin.py", problem="it is gone")], {})
        parameter = WorkflowParameter(name="a", type="whole number", shown="int", required=False)
        found = {
            name: Definition(
                name=name, stem="plugin", file="plugin.py", line=1, doc="", parameters=[parameter]
            )
            for name in ("work", "other")
        }
        return Found(found, [], {"plugin": ["/root/plugins/plugin.py", "digest"]})


# The office.


class Office(SimulatedDaemon):
    """A daemon with workflows, their processes, and a client of it.

    With ``guards``, the processes of a daemon end with it.
    """

    intensity = 1_000

    def __init__(self, simulation: Simulation, keep: Keep | None = None) -> None:
        super().__init__(simulation, "root/workflows")
        self.keep = keep or Keep()
        self.services = Services()
        self.rights = Rights()
        self.plugins = Plugins()
        self.programs: list[Program] = []
        self.guards = True
        self.remembered: list[str] = []
        self.remembering_fails = False
        self.start_fails = ""
        self._machine: Machine | None = None
        self._host: SimulatedHost

    # Lives of the daemon.

    def actors(self) -> tuple[Any, ...]:
        if self._machine is None:
            self._machine = Machine(self._nursery, self.chance)
        self._host = SimulatedHost(self._machine)
        settings = WorkflowSettings(
            root=ROOT, host="here", digest="conf", config={"c": 1}, remember=self._remember
        )
        return (
            ChildSpec.of("played", PlayedServices, services=self.services),
            SupervisorSpec(name="workflow-processes", dynamic=True),
            ChildSpec.of(
                "workflows",
                WorkflowDesk,
                directory=DIRECTORY,
                archive=ARCHIVE,
                keep=self.keep,
                settings=settings,
                supervisor="root/workflow-processes",
                flusher=SimulatedFlusher(self.disk),
                scan=ProcessScan(self._host),
                messages=self.rights,
                refuse=self.rights.refuse_terminal,
            ),
        )

    def dies(self) -> None:
        self._host.is_dead = True
        self.services.waiting = []
        if self.guards:
            self.kill_all()

    def kill_all(self) -> None:
        """Kill all processes."""
        for each in self.programs:
            each.process.take(signal.SIGKILL)

    def _remember(self, digest: str) -> None:
        if self.remembering_fails:
            raise OSError(28, "No space left on device")
        self.remembered.append(digest)

    def disk_with(self, files: Mapping[str, bytes]) -> SimulatedDisk:
        """Return a disk with these files of workflows, by their paths below the directory."""
        directories = {str(DIRECTORY / each.rpartition("/")[0]): None for each in files}
        named = {str(DIRECTORY / path): data for path, data in files.items()}
        image = {**EMPTY, str(DIRECTORY): None, **directories, **named}
        return SimulatedDisk(image, self.plan)

    async def start_program(
        self, launch: Launch, _: LineSettings, scan: ProcessScan, over: trio.Event
    ) -> SimulatedLine:
        """Start the process of a run, as ``line_process.start_process`` does."""
        await trio.sleep(0.001)
        host = scan.host
        assert isinstance(host, SimulatedHost)
        if self.start_fails:
            raise Unavailable(self.start_fails)
        program = Program()
        run = launch.cookie.partition("//w/")[2].split("/")[1]
        alive = [each for each in self.programs if each.is_alive and self._run_of(each) == run]
        assert not alive, "a run has one process"
        program.process = host.machine.start(
            program.main, launch.argv, cwd=str(launch.cwd), cookie=launch.cookie
        )
        self.programs.append(program)
        return SimulatedLine(program, program.process, launch.cookie, scan, over)

    @staticmethod
    def _run_of(program: Program) -> str:
        return (program.process.cookie or "").partition("//w/")[2].split("/")[1]

    # Clients.

    async def run(self, name: str = "work", *, by: str | None = None, **fields: Any) -> str:
        """Run a workflow, and wait until its process has its journal; return its id."""
        started = await self.ask(RunWorkflow(name=name, from_handle=by, **fields))
        await self.settles()
        return started.workflow_id

    async def show(self, id_: str) -> WorkflowInfo:
        return await self.ask(GetWorkflow(workflow_id=id_))

    async def status(self, *ids: str) -> list[str]:
        return [(await self.show(each)).status for each in ids]

    async def cancel(self, id_: str, by: str | None = None) -> WorkflowInfo:
        info = await self.ask(CancelWorkflow(workflow_id=id_, from_handle=by))
        await self.settles()
        return info

    async def resume(self, id_: str) -> WorkflowInfo:
        info = await self.ask(ResumeWorkflow(workflow_id=id_))
        await self.settles()
        return info

    async def retry(self, id_: str) -> WorkflowInfo:
        info = await self.ask(RetryWorkflow(workflow_id=id_))
        await self.settles()
        return info

    async def listed(self, limit: int = 50) -> WorkflowList:
        return await self.ask(ListWorkflows(limit=limit))

    async def news(self, after: WorkflowsNews | None = None) -> WorkflowsNews:
        """Return the next news of the workflows."""
        return await self.ask(FollowWorkflows(place=None if after is None else after.place))

    def answers(
        self, key: str, answers: dict[str, list[str]] | None, number: int = 1
    ) -> Answer[AnswerReceived]:
        """Answer the question with this key, as the desk of requests does."""
        answer = QuestionAnswer(answers=answers)
        return self.ask_soon(
            ApplyAnswer(id=f"r{number}", key=key, answer=answer, scope="once", by="human")
        )

    async def answered(self, key: str, text: str | None = "yes") -> AnswerReceived:
        answer = self.answers(key, None if text is None else {"q": [text]})
        await self.settles()
        assert answer.value is not None
        received: AnswerReceived = answer.value
        return received

    def message(self, id_: str, number: int = 1) -> Deliver | None:
        """Return the message about the end of a run to its starter."""
        end = f"workflow:{id_}/end" + (f"/{number}" if number > 1 else "")
        return self.services.messages.get(end)

    # Processes, by the ids of their runs.

    def lives(self, id_: str) -> list[Program]:
        """Return all processes of a run so far."""
        return [each for each in self.programs if self._run_of(each) == id_]

    def program(self, id_: str) -> Program:
        """Return the newest process of a run."""
        return self.lives(id_)[-1]

    async def calls(
        self,
        id_: str,
        position: str,
        call: str = "step",
        /,
        *,
        retry: bool = False,
        seen: Sequence[tuple[str, float | None]] = (),
        time: float | None = None,
        **arguments: Any,
    ) -> None:
        """Let the process make an engine call."""
        self.program(id_).says(calling(position, call, retry, seen, time, **arguments))
        await self.settles()

    async def does(self, id_: str, position: str, outcome: Frame | None = None) -> None:
        """Let the process carry out a call that it makes itself."""
        found = value("did") if outcome is None else outcome
        self.program(id_).says({"kind": "done", "position": position, "outcome": found})
        await self.settles()

    async def makes(self, id_: str, position: str, outcome: Frame | None = None) -> Any:
        """Let the process make a step and carry it out; return the outcome that it got."""
        await self.calls(id_, position)
        assert position in self.program(id_).proceeds
        await self.does(id_, position, outcome)
        return self.program(id_).answers[position]

    async def leaves(
        self,
        id_: str,
        position: str,
        *,
        seen: Sequence[tuple[str, float | None]] = (),
        time: float | None = None,
    ) -> None:
        """Let the function cancel a call."""
        frame = {"kind": "left", "position": position, "seen": seen, "time": time}
        self.program(id_).says(frame)
        await self.settles()

    async def returns(self, id_: str, result: Any = "done") -> None:
        """Let the function return, and the process end."""
        end = {"kind": "returned", "end": "completed", "result": json.dumps(result)}
        self.program(id_).says(end)
        self.program(id_).exit()
        await self.settles()

    async def raises(self, id_: str, error: str = "no") -> None:
        """Let the function raise, and the process end."""
        self.program(id_).says({"kind": "returned", "end": "failed", "error": error})
        self.program(id_).exit()
        await self.settles()

    async def dies_in(self, id_: str, seconds: float = 10) -> None:
        """Kill the process, and wait so long."""
        self.program(id_).process.take(signal.SIGKILL)
        await self.passes(seconds)

    async def opens_session(self, id_: str, position: str) -> str:
        """Let a workflow spawn a session; return its handle."""
        await self.calls(id_, position, "spawn", profile="p", workspace=None)
        handle: str = self.program(id_).answers[position]["value"]
        return handle

    # Services.

    async def replies(self, handle: str, text: str = "reply", outcome: str = "completed") -> None:
        """Let a session begin and end the turn of its oldest message."""
        session = self.services.sessions[handle]
        await self.begins(handle)
        session.state = "idle"
        self.services.add(session, "turn_ended", outcome=outcome, text=text, reason="it said so")
        await self.settles()

    async def begins(self, handle: str) -> None:
        """Let a session begin the turn of its oldest message."""
        session = self.services.sessions[handle]
        message = session.waiting.pop(0)
        session.turn, session.state = session.turn + 1, "working"
        self.services.add(session, "turn_opened", messages=[{"id": message.id}])
        await self.settles()

    async def ends_task(self, key: str, status: str = "completed", result: str = "did it") -> None:
        """Let a task end."""
        self.services.tasks[key] = task(key, status, result)
        self.services.look()
        await self.settles()

    def add_session(self, handle: str, **fields: Any) -> Session:
        """Add a session that no workflow has spawned."""
        session = self.services.sessions[handle] = Session(handle, **fields)
        return session

    async def crashes(self) -> None:
        """Let the desk crash, and wait until it is restarted."""
        plan = Plan({("actor.receive.before[WorkflowDesk]", 1): Crash()})
        with armed(plan, RUNTIME), suppress(ActorError, StorageError):
            await self.ask(ListWorkflows())
        await self.passes(2)

    def refuse(self, *calls: str) -> None:
        """Refuse these calls of the disk; all that write if none is named."""
        self.plan.refuses = frozenset(calls) or WRITES

    async def accept(self) -> None:
        """Let the disk accept again, and wait until that is found."""
        self.plan.refuses = ()
        await self.passes(11)


def calling(
    position: str,
    call: str = "step",
    retry: bool = False,
    seen: Sequence[tuple[str, float | None]] = (),
    time: float | None = None,
    /,
    **arguments: Any,
) -> Frame:
    """Return the frame of an engine call."""
    given = arguments or {"name": f"s{position}"}
    return {
        "kind": "called",
        "position": position,
        "name": call,
        "arguments": given,
        "digest": digest_of(call, given),
        "about": about(call, given),
        "retry": retry,
        "seen": [*seen],
        "time": time,
    }


def task(key: str, status: Any, result: str) -> TaskInfo:
    """Return a task that has ended."""
    return TaskInfo(
        task_id=key,
        queue="q",
        status=status,
        queued_position=None,
        worker=None,
        attempt=1,
        max_attempts=1,
        result=result if status == "completed" else None,
        error=None if status == "completed" else "it went wrong",
        sender="human",
        payload="",
        key=key,
        priority=0,
        waiting_for=[],
        enqueued="",
        started=None,
        ended="now",
    )


def replies_of(members: Mapping[str, str | None], *, is_over: bool = True) -> GroupReplies:
    """Return the replies to a broadcast; a member with None has failed."""
    found = {name: text for name, text in members.items() if text is not None}
    shown = {
        name: MemberReply(status="failed" if text is None else "replied", profile="p", reason="why")
        for name, text in members.items()
    }
    return GroupReplies(
        broadcast_id="0" * 26,
        by_member=found,
        reduced="\n".join(found.values()) or None,
        order=[*found],
        metadata=RepliesMetadata(members=shown, is_over=is_over, timed_out=not is_over),
    )


def limited(monkeypatch: pytest.MonkeyPatch, name: str, limit: int) -> None:
    """Set a limit of workflows, in each module that uses it."""
    modules = [each for key, each in sys.modules.items() if key.startswith("aegis.workflows")]
    using = [each for each in modules if hasattr(each, name)]
    assert using
    for each in using:
        monkeypatch.setattr(each, name, limit)


def play(
    story: Callable[[Office], Awaitable[None]], *, seed: int = 1, keep: Keep | None = None
) -> None:
    """Run a story of an office."""

    async def run(simulation: Simulation) -> None:
        office = Office(simulation, keep)
        with (
            reproducible(simulation.chance),
            mock.patch("aegis.workflows.process.start_process", office.start_program),
            mock.patch("aegis.workflows.desk.Catalog", return_value=office.plugins),
        ):
            async with office.opened():
                await story(office)

    simulate(run, seed=seed)
