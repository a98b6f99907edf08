"""``AgentTerminals``: the terminals of one agent process, by their ids."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio

from actors import ActorError, ChildSpec, Ref, Reply, Restart, System
from actors.errors import root_cause
from aegis.agents.drivers.driver import Service
from aegis.agents.drivers.terminals.rules import KILL_S, KILLED, Question
from aegis.agents.drivers.terminals.run import (
    METHOD,
    CommandToRun,
    OutputStore,
    StoredOutput,
    read_run,
)
from aegis.agents.drivers.terminals.terminal import (
    AskTerminal,
    CommandTerminal,
    LookAtTerminal,
    OutputLook,
)
from aegis.errors import AegisError, InvalidRequest, NotFound, Unavailable
from aegis.limits import in_thread_or_here
from aegis.names import shorten
from aegis.path_text import text_of_path
from aegis.processes.environment import process_environment
from aegis.processes.guarded.guarded_process import Launch
from aegis.processes.process_scan import ProcessScan
from aegis.protocol.agent_events import AgentEvent, TerminalEnded, TerminalOutput, TerminalStarted

log = structlog.get_logger("aegis.agents")

MAX_TERMINALS = 16
"""Terminals of one agent that are not released."""

TERM_S = 1.0
"""Seconds between TERM and KILL. ``terminal/kill`` is answered within ``KILL_S``."""

CLEANUP_S = 2.0

MAX_TITLE_CHARS = 2000

MAX_STORED_CHARS = 64 * 1024
"""The end of the output that is stored in the transcript at the release.

It is more than agents keep: kimi asks for 50,000 bytes. The ``OutputStore`` has all of it.
"""

PLAIN = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "MANPAGER": "cat"}
"""Nobody can draw on such a terminal, or leave a pager."""

MAX_SHOWN_CHARS = 2 * 1024
"""The end of the output that is stored each time while the command runs."""

ENDING = f"{METHOD}: the agent's process is ending"

QUESTIONS: Mapping[str, Question] = {
    "terminal/output": "output",
    "terminal/wait_for_exit": "wait",
    "terminal/kill": "kill",
    "terminal/release": "release",
}


@attrs.frozen(kw_only=True)
class TerminalPlan:
    """Where the commands of one agent process run, and with what.

    ``supervisor`` is the path of the supervisor of the terminals. ``launch`` is the number of the
    process and ``cookie`` the one of its processes. ``environment`` is that of the commands,
    without the cookie; secrets are not in it. ``outputs`` keeps the output of released commands.
    """

    supervisor: str
    launch: int
    cookie: str
    cwd: str
    environment: Mapping[str, str] = attrs.field(repr=False)
    scan: ProcessScan
    outputs: OutputStore
    open_files: int | None = None


@attrs.define
class _Terminal:
    run: CommandToRun
    ref: Ref[Any] | None = None


class AgentTerminals:
    """Serves ``terminal/*``. ``begin`` comes first, and ``end`` last."""

    def __init__(self, plan: TerminalPlan) -> None:
        self._plan = plan
        self._terminals: dict[str, _Terminal] = {}
        self._created = 0
        self._is_over = False

    def begin(self, system: System, emit: Callable[[AgentEvent], None]) -> None:
        """Use the supervisor of this system; ``emit`` takes an event for each release."""
        self._system = system
        self._emit = emit

    def serve(self, method: str, params: Mapping[str, Any]) -> Service:
        """Begin a method; return the function that waits for its result.

        Questions reach a terminal in the order of these calls: a wait before a release is answered.
        Both functions raise ``AegisError``.
        """
        if method == METHOD:
            return partial(self._create, read_run(params))
        id_ = params.get("terminalId")
        found = self._terminals.get(id_) if isinstance(id_, str) else None
        if found is None or found.ref is None:
            raise NotFound(
                f"{method}: there is no terminal {shorten(str(id_))!r}: it was released, or never "
                "created"
            )
        assert isinstance(id_, str)
        if method == "terminal/release":
            del self._terminals[id_]
            return self._release(id_, found)
        return self._ask(found.ref, QUESTIONS[method])

    async def end(self) -> None:
        """Release every terminal. Idempotent."""
        self._is_over = True
        terminals, self._terminals = self._terminals, {}
        async with trio.open_nursery() as nursery:
            for id_, terminal in terminals.items():
                if terminal.ref is not None:
                    nursery.start_soon(self._release(id_, terminal))
        # Also one that is being started, and one whose release was cancelled half-way.
        with suppress(ActorError):
            supervisor = self._system.supervisor(self._plan.supervisor)
            left = [each for each in supervisor.names if each.startswith(self._name(""))]
            async with trio.open_nursery() as nursery:
                for name in {*terminals, *left}:
                    nursery.start_soon(self._stop, name)

    async def _stop(self, name: str) -> None:
        with suppress(ActorError):  # the supervisor has ended, and its children before it
            await self._system.supervisor(self._plan.supervisor).stop_child(name)

    def _name(self, number: object) -> str:
        return f"term_{self._plan.launch}_{number}"

    # Creation.

    async def _create(self, run: CommandToRun) -> dict[str, Any]:
        if len(self._terminals) >= MAX_TERMINALS:
            raise Unavailable(
                f"{METHOD}: {MAX_TERMINALS} terminals are open, the limit of a session: release "
                "one with terminal/release"
            )
        self._created += 1
        id_ = self._name(self._created)
        self._terminals[id_] = terminal = _Terminal(run)
        try:
            launch = await in_thread_or_here(self._launch, run, self._created)
            terminal.ref = await self._start(id_, launch, run)
        finally:
            if terminal.ref is None:
                self._terminals.pop(id_, None)
        if self._is_over:
            raise Unavailable(ENDING)
        self._emit(TerminalStarted(terminal=id_, command=_title(run)))
        return {"terminalId": id_}

    async def _start(self, id_: str, launch: Launch, run: CommandToRun) -> Ref[Any]:
        if self._is_over:
            raise Unavailable(ENDING)
        show, scan = partial(self._show, id_), self._plan.scan
        spec = ChildSpec.of(id_, CommandTerminal, launch, run.limit, scan, show)
        spec = spec.with_options(restart=Restart.TEMPORARY, shutdown_s=CLEANUP_S)
        try:
            return await self._system.supervisor(self._plan.supervisor).start_child(spec)
        except ActorError as error:
            cause = root_cause(error)
            reason = cause if isinstance(cause, AegisError) else error
            raise Unavailable(f"{METHOD}: {reason}") from error

    def _show(self, id_: str, output: str, truncated: bool) -> None:
        text = output[-MAX_SHOWN_CHARS:]
        is_cut = truncated or len(text) < len(output)
        self._emit(TerminalOutput(terminal=id_, output=text, truncated=is_cut))

    def _launch(self, run: CommandToRun, number: int) -> Launch:
        """Return how the command is started. Raises ``InvalidRequest``."""
        plan = self._plan
        cwd = plan.cwd if run.cwd is None else _directory(run.cwd, plan.cwd)
        cookie = f"{plan.cookie}.{number}"
        given = {**PLAIN, **run.environment}
        environment = process_environment(plan.environment, given, cwd=cwd, cookie=cookie)
        argv = _argv(run, cwd, environment)
        return Launch(
            argv=argv, cwd=cwd, environment=environment, term_s=TERM_S, open_files=plan.open_files
        )

    # Questions.

    def _ask(self, ref: Ref[Any], question: Question) -> Service:
        """Ask a terminal; return the function that waits for its answer."""
        asked: Reply[dict[str, Any]] | ActorError
        try:
            asked = ref.send_request(AskTerminal(question))
        except ActorError as error:
            asked = error
        return partial(self._answer, ref, question, asked)

    async def _answer(
        self, ref: Ref[Any], question: Question, asked: Reply[dict[str, Any]] | ActorError
    ) -> dict[str, Any]:
        try:
            if isinstance(asked, ActorError):
                raise asked
            return await asked.wait()
        except AegisError:  # a refusal, which is an ActorError too
            raise
        except ActorError as error:
            log.warning("terminal of an agent lost", path=ref.path, why=str(error))
        # Its processes are ended by its teardown.
        match question:
            case "output":
                return {"output": "", "truncated": True, "exitStatus": KILLED.fields()}
            case "wait":
                return KILLED.fields()
        return {}

    def _release(self, id_: str, terminal: _Terminal) -> Service:
        assert terminal.ref is not None
        look: Reply[OutputLook] | None = None
        with suppress(ActorError):
            look = terminal.ref.send_request(LookAtTerminal())
        released = self._ask(terminal.ref, "release")
        return partial(self._report_end, id_, terminal.run, look, released)

    async def _report_end(
        self, id_: str, run: CommandToRun, looked: Reply[OutputLook] | None, released: Service
    ) -> Mapping[str, Any]:
        """Report the end of a terminal that is being released; then return the answer."""
        look = None
        if looked is not None:
            with suppress(ActorError), trio.move_on_after(KILL_S):
                look = await looked.wait()
        stored = None if look is None else _stored(run, look)
        look = look or OutputLook(output="", dropped=1, status=KILLED)
        status = look.status or KILLED
        kept = look.output[-MAX_STORED_CHARS:]
        event = TerminalEnded(
            terminal=id_,
            command=_title(run),
            output=kept,
            truncated=look.dropped > 0 or len(kept) < len(look.output),
            exit_code=status.exit_code,
            signal=status.signal,
        )
        self._emit(event)
        async with trio.open_nursery() as nursery:
            if stored is not None:
                nursery.start_soon(self._plan.outputs.keep, id_, stored)
            return await released()


def _stored(run: CommandToRun, look: OutputLook) -> StoredOutput:
    status = look.status or KILLED
    return StoredOutput(
        command=_title(run),
        output=look.output,
        begin=look.dropped,
        exit_code=status.exit_code,
        signal=status.signal,
    )


def _title(run: CommandToRun) -> str:
    return shorten(run.title, MAX_TITLE_CHARS)


def _directory(cwd: str, above: str) -> str:
    """Return a working directory that is inside of the session's. Raises ``InvalidRequest``."""
    shown = text_of_path(cwd)
    found, root = os.path.realpath(cwd), os.path.realpath(above)
    if not Path(found).is_dir():
        what = "is no directory" if os.path.lexists(found) else "does not exist"
        raise InvalidRequest(f"{METHOD}: cwd {shown!r} {what}")
    if not Path(found).is_relative_to(root):
        raise InvalidRequest(
            f"{METHOD}: cwd {shown!r} is outside of the directory of the session: choose one "
            f"inside of {text_of_path(above)!r}"
        )
    return found


def _argv(run: CommandToRun, cwd: str, environment: Mapping[str, str]) -> list[str]:
    """Return the program and its arguments. Raises ``InvalidRequest``.

    Most agents send a whole shell line as the command.
    """
    path = environment.get("PATH", os.defpath)
    name = str(Path(cwd, run.command)) if "/" in run.command else run.command
    found = shutil.which(name, path=path)
    if found is not None:
        return [found, *run.args]
    if run.args:
        raise InvalidRequest(
            f"{METHOD}: there is no program {shorten(run.command)!r}: install it, or send a shell "
            "line as the command, without args"
        )
    shell = shutil.which("bash", path=path) or "/bin/sh"
    return [shell, "-c", run.command]
