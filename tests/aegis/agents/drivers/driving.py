"""Drivers of stand-in agents for tests: a small machine, a session that records, and a system."""

from __future__ import annotations

import math
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs
import trio

from actors import Actor, ChildSpec, Down, Ref, Restart, SupervisorSpec, System, open_system
from aegis.agents.drivers.client.files import SessionFiles
from aegis.agents.drivers.client.services import ClientServices
from aegis.agents.drivers.cookie import cookie_of_driver
from aegis.agents.drivers.driver import ClientPort, Driver
from aegis.agents.drivers.harness import (
    AgentReady,
    Beginning,
    Capabilities,
    Emit,
    Frame,
    Harness,
    OrderRefused,
    Output,
    Permission,
    SentImage,
    Serve,
    SettingChanged,
    Write,
)
from aegis.agents.drivers.plan import DriverPlan
from aegis.agents.drivers.terminals.service import AgentTerminals, TerminalPlan
from aegis.agents.messages import (
    CloseDriver,
    DriverEnded,
    DriverEvents,
    DriverFailed,
    DriverReady,
    DriverReport,
    SendTurn,
)
from aegis.agents.sessions.command_outputs import CommandOutputs
from aegis.journal.flusher import Flusher
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.processes.reaper import find_processes
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    RequestAnswer,
    RequestWithdrawn,
    Result,
)

GUARD_S = 60.0

MAIN = Path(__file__).resolve().parents[3] / "fakes" / "agents" / "main.py"
URL = "http://127.0.0.1:8420/mcp/s/Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA"

E = TypeVar("E", bound=DriverReport)


class SmallMachine:
    """A machine of the stand-in's stream-json: turns, texts and results."""

    def __init__(self, beginning: Beginning) -> None:
        self._beginning = beginning

    def begin(self) -> list[Output]:
        request = {"subtype": "initialize", "url": self._beginning.mcp_url}
        return [Write({"type": "control_request", "request_id": "1", "request": request})]

    def receive(self, frame: Frame) -> list[Output]:
        match frame:
            case {"type": "control_response", "response": {"request_id": "1"}}:
                return [AgentReady(conversation="c", capabilities=Capabilities())]
            case {"type": "assistant", "message": {"id": id_, "content": [{"text": str(text)}]}}:
                return [Emit(AssistantText(text=text, message=str(id_)))]
            case {"type": "result", "user_message_uuids": uuids, "is_error": is_error}:
                return [Emit(Result(messages=uuids, ok=not is_error, reason=""))]
            case {"type": "control_request", "request_id": id_, "request": {"tool_name": name}}:
                return [Serve(id=id_, method=name, params={})]
            case {"type": "control_response", "response": {"request_id": "3", **reply}}:
                return [SettingChanged("model", str(reply["error"]) if "error" in reply else None)]
        return []

    def receive_cut(self, frame: Frame, size: int) -> list[Output]:
        return self.receive(frame)

    def send(
        self, uuid: str, text: str, command: str = "", images: Sequence[SentImage] = ()
    ) -> list[Output]:
        if not text:
            return [OrderRefused("a turn needs a text")]
        content = {"role": "user", "content": text}
        return [Write({"type": "user", "uuid": uuid, "message": content})]

    def interrupt(self) -> list[Output]:
        request = {"subtype": "interrupt"}
        return [Write({"type": "control_request", "request_id": "2", "request": request})]

    def answer(self, request: str, answer: RequestAnswer) -> list[Output]:
        return [OrderRefused(f"there is no request {request!r}")]

    def served(
        self, serve: str, result: Mapping[str, Any] | None, error: str, code: str = ""
    ) -> list[Output]:
        behavior = {"behavior": "deny", "message": error} if result is None else dict(result)
        body = {"subtype": "success", "request_id": serve, "response": behavior}
        return [Write({"type": "control_response", "response": body})]

    def set_permission(self, permission: Permission) -> list[Output]:
        return []

    def set_model(self, model: str) -> list[Output]:
        request = {"subtype": "set_model", "model": model}
        return [Write({"type": "control_request", "request_id": "3", "request": request})]

    def ended(self) -> list[Output]:
        return [Emit(RequestWithdrawn(id="all"))]


class PlainClient:
    """The parts of a client that most tests do not need."""

    def begin(self, system: System, emit: Callable[[AgentEvent], None]) -> None:
        return

    async def end(self) -> None:
        return


@attrs.frozen
class Slowness:
    """A message of a test: take ``seconds`` for each of the next ``reports``."""

    seconds: float
    reports: float = math.inf


@attrs.frozen
class Watch:
    """A message of a test: monitor the actor at this path."""

    path: str


class Watcher(Actor[Watch | Down]):
    """Notes the end of a driver."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def receive(self, message: Watch | Down) -> None:
        match message:
            case Watch(path):
                self.context.monitor(self.context.system.ref(path))
            case Down():
                self._log.end_of_driver = message
                self._log.changed()


class Recorder(Actor[DriverEvents | DriverReady | DriverFailed | DriverEnded | Slowness]):
    """A session that keeps the reports of its driver."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._slowness = Slowness(0.0, 0)

    async def receive(
        self, message: DriverEvents | DriverReady | DriverFailed | DriverEnded | Slowness
    ) -> None:
        match message:
            case Slowness():
                self._slowness = message
            case _:
                await self._be_slow()
                self._log.add(message)
                self.reply(message, None)

    async def _be_slow(self) -> None:
        slowness = self._slowness
        if slowness.reports > 0:
            self._slowness = attrs.evolve(slowness, reports=slowness.reports - 1)
            await trio.sleep(slowness.seconds)


class Log:
    """The reports of a driver, and a wait for them."""

    def __init__(self) -> None:
        self.reports: list[DriverReport] = []
        self.events: list[AgentEvent] = []
        self.end_of_driver: Down | None = None
        self._changed = trio.Event()

    def add(self, report: DriverReport) -> None:
        self.reports.append(report)
        if isinstance(report, DriverEvents):
            self.events += report.events
        self.changed()

    def changed(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, is_true: Callable[[], bool]) -> None:
        with trio.fail_after(GUARD_S):
            while not is_true():
                assert self.end_of_driver is None, self.reports[-1]
                await self._changed.wait()

    async def driver_end(self) -> Down:
        """Wait for the end of the driver's actor."""
        await self.until(lambda: self.end_of_driver is not None)
        assert self.end_of_driver is not None
        return self.end_of_driver

    async def first(self, kind: type[E]) -> E:
        """Wait for the first report of this class."""
        await self.until(lambda: any(isinstance(each, kind) for each in self.reports))
        return next(each for each in self.reports if isinstance(each, kind))

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.events if isinstance(each, AssistantText)]

    @property
    def results(self) -> list[Result]:
        return [each for each in self.events if isinstance(each, Result)]

    async def text(self, beginning: str) -> str:
        """Wait for a text of the agent that begins so; gives the rest of it."""
        await self.until(lambda: any(each.startswith(beginning) for each in self.texts))
        text = next(each for each in self.texts if each.startswith(beginning))
        return text.removeprefix(beginning)


@attrs.frozen(kw_only=True)
class Driven:
    """A driver of a stand-in in a system of its own."""

    system: System
    driver: Ref[Any]
    session: Ref[Any]
    log: Log
    plan: DriverPlan

    async def turn(self, text: str, uuid: str = "u1") -> None:
        """Send a turn; it need not end."""
        await self.log.first(DriverReady)
        assert await self.driver.ask(SendTurn(uuid=uuid, text=text)) is None

    async def close(self) -> DriverEnded:
        """Close the driver, and wait for its last report."""
        await self.driver.ask(CloseDriver(), timeout=GUARD_S)
        return await self.log.first(DriverEnded)

    @property
    def processes(self) -> list[str]:
        """The processes of the agent and its guard, by name."""
        return [str(each) for each in find_processes([], [self.plan.cookie])]

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def pid_of_guard(self) -> int:
        found = find_processes([], [self.plan.cookie])
        return next(each.pid for each in found if each.parent == os.getpid())

    def pid_of_agent(self) -> int:
        found = find_processes([], [self.plan.cookie])
        return next(each.pid for each in found if each.parent == self.pid_of_guard())


def client_for(plan: DriverPlan) -> ClientServices:
    """The services of a session, with terminals below the supervisor of ``driven``."""
    files = plan.directory or Path(plan.beginning.cwd).with_name("state")
    terminals = TerminalPlan(
        supervisor="root/terminals",
        launch=plan.launch,
        cookie=plan.cookie,
        cwd=plan.beginning.cwd,
        environment=plan.command_environment(frozenset()),
        scan=ProcessScan(OsProcessHost()),
        outputs=CommandOutputs(files, Flusher()),
    )
    return ClientServices(SessionFiles(plan.beginning.cwd), AgentTerminals(terminals))


def plan_for(
    cwd: Path,
    *arguments: str,
    make_harness: Callable[[Beginning], Harness] = SmallMachine,
    **options: Any,
) -> DriverPlan:
    """A plan for a stand-in: ``claude``, ``acp`` or ``play FILE``."""
    given: dict[str, Any] = {
        "agent": "stand-in",
        "argv": [sys.executable, "-S", str(MAIN), *(arguments or ("claude",))],
        "beginning": Beginning(cwd=str(cwd), mcp_url=URL),
        "make_harness": make_harness,
        "inherited": {"PATH": os.environ["PATH"]},
        "launch": 1,
        "cookie": cookie_of_driver(str(cwd), secrets.token_hex(4), 1),
        "directory": cwd,
        "eof_s": 20.0,
        "term_s": 0.5,
    }
    return DriverPlan(**{**given, **options})


@asynccontextmanager
async def driven(
    plan: DriverPlan, client: ClientPort | None = None, *, slowness: float = 0.0
) -> AsyncIterator[Driven]:
    """Run a driver and a recording session until the end of the block; no process is left."""
    log = Log()
    scan = ProcessScan(OsProcessHost())
    spec = SupervisorSpec(
        name="root",
        children=(
            ChildSpec.of("watcher", Watcher, log),
            ChildSpec.of("session", Recorder, log),
            SupervisorSpec(name="terminals", dynamic=True),
            SupervisorSpec(name="drivers", dynamic=True),
        ),
    )
    async with open_system(spec) as system:
        session: Ref[Any] = system.ref("root/session")
        if slowness:
            session.tell(Slowness(slowness))
        child = ChildSpec.of("driver", Driver, plan, session, scan, client)
        child = child.with_options(restart=Restart.TEMPORARY)
        driver = await system.supervisor("root/drivers").start_child(child)
        system.ref("root/watcher").tell(Watch(driver.path))
        yield Driven(system=system, driver=driver, session=session, log=log, plan=plan)
    assert find_processes([], [plan.cookie]) == []
