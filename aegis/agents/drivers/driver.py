"""``Driver``: the actor that joins the protocol machine of an agent to its process.

It starts the process, passes frames to the machine in order, and carries out the machine's outputs
in order: frames go to the agent, events and reports to the session. However it ends, it leaves no
process of the agent behind; if the daemon itself is killed, the agent's guard sees to that.

Reading pauses while the session is slow. Writing never does: an agent that does not read its input
is ended after a time limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import structlog
import trio

from actors import Actor, Ref, Reply, System
from aegis.agents import faults
from aegis.agents.drivers.harness import (
    REPLAY_S,
    AgentFailed,
    AgentReady,
    AwaitsMcp,
    AwaitsReplay,
    ChecksSettings,
    Emit,
    FilesRewound,
    Frame,
    KeepImage,
    OrderRefused,
    Output,
    RewindsFiles,
    SentImage,
    Serve,
    Setting,
    SettingChanged,
    StopServing,
    Write,
)
from aegis.agents.drivers.image_files import keep_images, read_sent
from aegis.agents.drivers.plan import DriverPlan
from aegis.agents.drivers.reporter import Reporter
from aegis.agents.messages import (
    CheckSettings,
    CloseDriver,
    DriverEnded,
    DriverFailed,
    DriverReady,
    InterruptTurn,
    McpConnected,
    RewindFiles,
    SendAnswer,
    SendTurn,
    SetModel,
    SetPermission,
)
from aegis.errors import AegisError, Unavailable
from aegis.limits import in_thread_or_here
from aegis.processes.guarded.frames import LargeFrame
from aegis.processes.guarded.line_process import LineProcess, start_process
from aegis.processes.process_scan import ProcessScan
from aegis.protocol.agent_events import AgentEvent, StartNotice

log = structlog.get_logger("aegis.agents")

MAX_SERVED = 192
"""The number of requests of one agent to its client that may be in progress."""

TOGETHER = 256
"""The number of frames that are handled between two checkpoints."""


Service = Callable[[], Awaitable[Mapping[str, Any]]]
"""Waits for the result of a request to the client. Raises ``AegisError``."""


class ClientPort(Protocol):
    """The services of an ACP client: files, terminals."""

    def begin(self, system: System, emit: Callable[[AgentEvent], None]) -> None:
        """Serve an agent of this system; ``emit`` reports an event to its session."""
        ...

    def serve(self, method: str, params: Mapping[str, Any]) -> Service:
        """Begin one of ACP's client methods; return the function that waits for its result.

        An agent may send a request before it has the answer to another: they begin in the order of
        these calls. Both functions raise ``AegisError``.
        """
        ...

    async def end(self) -> None:
        """Release what the agent has left. Idempotent."""
        ...


@attrs.frozen
class ReadyDeadline:
    """The time limit for the agent's start."""


@attrs.frozen
class ReplayLook:
    """The time to look whether the agent still repeats its conversation."""


@attrs.frozen
class McpDeadline:
    """The time limit for the agent's connection to our MCP server."""


Order = (
    SendTurn | InterruptTurn | SendAnswer | SetPermission | SetModel | CheckSettings | McpConnected
)


class Driver(Actor[Order | RewindFiles | CloseDriver | ReadyDeadline | ReplayLook | McpDeadline]):
    """The driver of one process; it finishes after its last report, ``DriverEnded``.

    ``client`` answers the agent's requests to its client; None refuses them.
    """

    def __init__(
        self, plan: DriverPlan, session: Ref[Any], scan: ProcessScan, client: ClientPort | None
    ) -> None:
        self._plan = plan
        self._scan = scan
        self._client = client
        self._is_over = trio.Event()  # the process is to be ended, or has ended
        self._reporter = Reporter(session, plan.launch, self._is_over)
        self._harness = plan.make_harness(plan.beginning)
        self._process: LineProcess | None = None
        self._is_ready = False
        self._has_failed = False
        self._end_reason: str | None = None
        self._is_ordered = False
        self._is_gone = trio.Event()
        self._serving: dict[str, trio.CancelScope] = {}
        self._changing: dict[Setting, Reply[str | None]] = {}
        self._rewinding: Reply[FilesRewound] | None = None

    async def setup(self) -> None:
        if self._client is not None:
            self._client.begin(self.context.system, self._reporter.add)
        self.context.start_soon(self._reporter.run)
        self.context.start_soon(self._live)
        self._alarm = self.context.after(self._plan.ready_within_s, ReadyDeadline())

    async def teardown(self) -> None:
        """End the processes at once, unless they have ended."""
        self._delete_secret()
        async with trio.open_nursery() as nursery:
            if self._client is not None:
                nursery.start_soon(self._client.end)
            if self._process is not None:
                nursery.start_soon(self._end_at_once, self._process)

    async def receive(
        self, message: Order | RewindFiles | CloseDriver | ReadyDeadline | ReplayLook | McpDeadline
    ) -> None:
        match message:
            case CloseDriver():
                self._is_ordered = True
                self._end(f"{self._plan.agent} was closed")
                self.context.start_soon(self._reply_when_gone, self.defer(message))
            case ReadyDeadline():
                self._check_ready()
            case McpDeadline():
                self._note_late_mcp()
            case ReplayLook():
                self._look_at_replay()
            case SetModel():
                self._change("model", message)
            case SetPermission():
                self._change("permission", message)
            case RewindFiles():
                self._rewind(message)
            case SendTurn(images=names) if names and self._plan.directory is not None:
                try:
                    images = await in_thread_or_here(read_sent, self._plan.directory, names)
                except OSError as error:
                    self.reply(message, f"an image of the message cannot be read: {error.strerror}")
                else:
                    self.reply(message, self._ordered(message, images))
            case _:
                self.reply(message, self._ordered(message))

    async def _reply_when_gone(self, reply: Any) -> None:
        await self._is_gone.wait()
        reply.send(None)

    def _check_ready(self) -> None:
        if not self._is_ready:
            reason = (
                f"{self._plan.agent} was not ready within {self._plan.ready_within_s:g} s; its "
                "process was ended; start it by hand to see what it waits for"
            )
            self._fail(AgentFailed(reason=reason))

    def _note_late_mcp(self) -> None:
        machine = self._harness
        if isinstance(machine, AwaitsMcp) and not self._is_over.is_set():
            self._perform(machine.mcp_is_late())

    def _look_at_replay(self) -> None:
        machine = self._harness
        if isinstance(machine, AwaitsReplay) and not self._is_over.is_set():
            outputs = machine.replay_looked_at()
            if outputs is None:
                self.context.after(REPLAY_S, ReplayLook())
            else:
                self._perform(outputs)

    def _change(self, setting: Setting, order: SetModel | SetPermission) -> None:
        """Change a setting; the order is answered when the agent has answered."""
        if setting in self._changing:
            self.reply(order, f"the {setting} is being changed already: try again in a moment")
            return
        self._changing[setting] = self.defer(order)
        refusal = self._ordered(order)
        if refusal is not None:
            self._changed(SettingChanged(setting, refusal))

    def _changed(self, changed: SettingChanged) -> None:
        reply = self._changing.pop(changed.setting, None)
        if reply is not None:
            reply.send(changed.refusal)

    def _rewind(self, order: RewindFiles) -> None:
        """Have the agent set files back; the order is answered when the agent has answered."""
        agent, machine, refusal = self._plan.agent, self._harness, None
        if not isinstance(machine, RewindsFiles):
            refusal = f"{agent} cannot set files back to an earlier turn; only Claude Code can"
        elif self._rewinding is not None:
            refusal = "files are being set back already: try again in a moment"
        elif self._is_over.is_set() or not self._is_ready:
            refusal = f"{agent} is not ready: try again in a moment"
        if refusal is not None:
            self.reply(order, FilesRewound(refusal=refusal))
            return
        assert isinstance(machine, RewindsFiles)
        self._rewinding = self.defer(order)
        refusal = self._perform(machine.rewind(order.uuid, is_dry=order.is_dry))
        if refusal is not None:
            self._rewound(FilesRewound(refusal=refusal))

    def _rewound(self, rewound: FilesRewound) -> None:
        reply, self._rewinding = self._rewinding, None
        if reply is not None:
            reply.send(rewound)

    def _ordered(self, order: Order, images: Sequence[SentImage] = ()) -> str | None:
        """Carry out an order; return why it was refused, or None."""
        agent = self._plan.agent
        if isinstance(order, CheckSettings):
            machine = self._harness
            # Its start checks it too.
            if self._is_ready and isinstance(machine, ChecksSettings):
                return refusal_of(machine, order)
            return None
        if self._is_over.is_set():
            return f"the process of {agent} has ended"
        if not self._is_ready and not isinstance(order, McpConnected):
            return f"{agent} is not ready yet"
        match order:
            case McpConnected():
                machine = self._harness
                outputs = machine.mcp_connected() if isinstance(machine, AwaitsMcp) else []
            case SendTurn(uuid=uuid, text=text, command=command):
                outputs = self._harness.send(uuid, text, command, images)
            case InterruptTurn():
                outputs = self._harness.interrupt()
            case SendAnswer(request=request, answer=answer):
                outputs = self._harness.answer(request, answer)
            case SetPermission(permission=permission):
                outputs = self._harness.set_permission(permission)
            case SetModel(model=model):
                outputs = self._harness.set_model(model)
        return self._perform(outputs)

    # The life of the process.

    async def _live(self) -> None:
        while (process := await self._start()) is not None:
            self._process = process
            if not await self._live_with(process):
                return
        await self._finish((), None, "")

    async def _live_with(self, process: LineProcess) -> bool:
        """Use a process to its end. Return whether an older version is to be started instead."""
        is_older = False
        try:
            # The start is not cancelled half-way, so it may have outlived the teardown.
            await trio.lowlevel.checkpoint_if_cancelled()
            self.context.start_soon(process.run)
            left = await self._use(process)
            is_older = not left and self._is_older(process)
            if is_older:
                self._begin_again()
            else:
                self._note_end(process)
                await self._finish(left, process.exit_code, process.stderr_tail())
        finally:
            if not is_older:
                with trio.CancelScope(shield=True):
                    await self._end_at_once(process)
        return is_older

    def _is_older(self, process: LineProcess) -> bool:
        """Whether the program has refused the arguments of newer versions."""
        is_wanted = not (self._is_ready or self._has_failed or self._is_ordered)
        has_plan = self._plan.older is not None and not self._reporter.is_lost
        return is_wanted and has_plan and self._plan.refusal in process.stderr_tail()

    def _begin_again(self) -> None:
        """Start the program as an older version."""
        assert self._plan.older is not None
        self._plan = self._plan.older
        self._harness = self._plan.make_harness(self._plan.beginning)
        self._is_over = self._reporter.on_lost = trio.Event()
        self._end_reason = None
        self._process = None

    async def _start(self) -> LineProcess | None:
        plan = self._plan
        try:
            if plan.secret_file is not None:
                plan.secret_file.write()
            return await start_process(plan.process(), plan.settings(), self._scan, self._is_over)
        except Unavailable as error:
            self._fail(AgentFailed(reason=str(error)))
            return None

    async def _use(self, process: LineProcess) -> tuple[str, ...]:
        """Read until the process is over, end it, and read the rest of its output."""
        async with trio.open_nursery() as nursery:
            if not self._is_over.is_set():
                self._perform(self._harness.begin())
            nursery.start_soon(self._read, process)
            await self._is_over.wait()
            is_waited_for = self._is_ordered and not self._has_failed
            left = await process.close(self._plan.eof_s if is_waited_for else 0)
        await process.release()
        return left

    async def _read(self, process: LineProcess) -> None:
        while (frames := await process.read()) is not None:
            await self._take(frames, process.position)
        self._is_over.set()

    async def _take(self, frames: list[Frame | LargeFrame], position: int) -> None:
        """Pass frames to the machine, and wait while the session is slow."""
        # A piece of output can hold thousands of frames: others must run in between.
        for number, frame in enumerate(frames, 1):
            if isinstance(frame, LargeFrame):
                outputs = self._harness.receive_cut(frame.frame, frame.size)
            else:
                outputs = self._harness.receive(frame)
            if images := [each for each in outputs if isinstance(each, KeepImage)]:
                await in_thread_or_here(keep_images, images)
            self._perform(outputs)
            if number % TOGETHER == 0:
                await trio.lowlevel.checkpoint()
                await self._reporter.room(position)
        await self._reporter.room(position)

    def _note_end(self, process: LineProcess) -> None:
        """Note why the process ended, unless it was ended by order or because of a failure."""
        agent = self._plan.agent
        if self._reporter.is_lost:
            self._end(f"the session of {agent} has ended")
        self._end(process.end_reason(agent))
        if process.noise:
            log.info("lines that are no frames were skipped", agent=agent, lines=process.noise)
        if not self._is_ready and not self._has_failed and not self._is_ordered:
            last = process.stderr_tail().rpartition("\n")[2]
            reason = f"{self._end_reason} before it was ready" + (f": {last}" if last else "")
            self._fail(AgentFailed(reason=reason))

    async def _end_at_once(self, process: LineProcess) -> None:
        if not self._is_gone.is_set():
            await process.end_at_once()
            self._is_gone.set()

    async def _finish(self, left: tuple[str, ...], code: int | None, stderr: str) -> None:
        """Report the end, and finish when the session has taken the report."""
        if left:
            log.error("processes of an agent remain", agent=self._plan.agent, processes=list(left))
        if self._client is not None:
            await self._client.end()
        self._perform(self._harness.ended())
        self._is_gone.set()
        self._delete_secret()
        assert self._end_reason is not None
        ended = DriverEnded(
            launch=self._plan.launch,
            reason=self._end_reason,
            exit_code=code,
            stderr=stderr,
        )
        self._reporter.add(ended)
        for setting in list(self._changing):
            self._changed(SettingChanged(setting, f"{self._plan.agent} ended before it answered"))
        self._rewound(FilesRewound(refusal=f"{self._plan.agent} ended before it answered"))
        await self._reporter.flushed()
        self.context.finish()

    def _end(self, reason: str) -> None:
        """End the process; ``reason`` is reported unless there is one already."""
        if self._end_reason is None:
            self._end_reason = reason
        self._is_over.set()

    # The outputs of the machine.

    def _perform(self, outputs: Sequence[Output]) -> str | None:
        """Carry out outputs in order; return the reason of a refusal."""
        refusal = None
        for output in outputs:
            match output:
                case Write(frame):
                    self._write(frame)
                case Emit(event):
                    self._reporter.add(event)
                case AgentReady():
                    self._report_ready(output)
                case AgentFailed():
                    self._fail(output)
                case Serve():
                    self._serve(output)
                case StopServing(id=serve):
                    self._stop_serving(serve)
                case OrderRefused(reason):
                    refusal = reason
                case SettingChanged():
                    self._changed(output)
                case FilesRewound():
                    self._rewound(output)
                case KeepImage():
                    pass  # it is kept already: that blocks
        return refusal

    def _write(self, frame: Frame) -> None:
        if self._process is not None:
            faults.FRAME_BEFORE.hit(str(frame.get("type", "")))
            self._process.put(frame)

    def _report_ready(self, ready: AgentReady) -> None:
        if not self._is_ready and not self._has_failed:
            self._is_ready = True
            self._alarm.cancel()
            self.context.after(self._plan.mcp_within_s, McpDeadline())
            if isinstance(self._harness, AwaitsReplay):
                self.context.after(REPLAY_S, ReplayLook())
            self._delete_secret(is_read=True)
            report = DriverReady(
                launch=self._plan.launch,
                conversation=ready.conversation,
                capabilities=ready.capabilities,
            )
            self._reporter.add(report)
            for notice in self._plan.notices:
                self._reporter.add(StartNotice(text=notice))

    def _fail(self, failed: AgentFailed) -> None:
        """Report that the agent cannot be used, and end its process."""
        if not self._has_failed and not self._is_gone.is_set():
            self._has_failed = True
            report = DriverFailed(
                launch=self._plan.launch,
                reason=failed.reason,
                kind=failed.kind,
                logins=failed.logins,
            )
            self._reporter.add(report)
        self._delete_secret()
        self._end(failed.reason)

    def _delete_secret(self, *, is_read: bool = False) -> None:
        secret = self._plan.secret_file
        if secret is not None and not (is_read and secret.is_kept):
            try:
                secret.delete()
            except OSError as error:
                log.warning("the file with a secret was not deleted", reason=error.strerror)

    def _serve(self, serve: Serve) -> None:
        if self._client is None:
            self._served(serve.id, None, f"{serve.method} is not served here")
        elif len(self._serving) >= MAX_SERVED:
            self._served(serve.id, None, f"{MAX_SERVED} requests are in progress already")
        else:
            self._begin_service(self._client, serve)

    def _begin_service(self, client: ClientPort, serve: Serve) -> None:
        try:
            service = client.serve(serve.method, serve.params)
        except AegisError as error:
            self._served(serve.id, None, str(error), error.code)
        else:
            self._serving[serve.id] = scope = trio.CancelScope()
            self.context.start_soon(self._serve_by, service, serve, scope)

    async def _serve_by(self, service: Service, serve: Serve, scope: trio.CancelScope) -> None:
        try:
            result = None
            with scope:
                result = await service()
        except AegisError as error:
            self._served(serve.id, None, str(error), error.code)
        else:
            if result is not None:
                self._served(serve.id, result, "")
        finally:
            del self._serving[serve.id]

    def _stop_serving(self, serve: str) -> None:
        scope = self._serving.get(serve)
        if scope is not None:
            scope.cancel()

    def _served(
        self, serve: str, result: Mapping[str, Any] | None, error: str, code: str = ""
    ) -> None:
        if not self._is_gone.is_set():
            self._perform(self._harness.served(serve, result, error, code))


def refusal_of(machine: ChecksSettings, wanted: CheckSettings) -> str | None:
    """Return why an agent cannot use settings, in one sentence; None if it can."""
    refusal = None
    if wanted.effort is not None:
        refusal = machine.refuse_effort(wanted.effort, wanted.model)
    if wanted.thinking is not None:
        refusal = refusal or machine.refuse_thinking(wanted.thinking, wanted.model)
    return refusal
