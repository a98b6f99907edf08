"""``WorkspaceDirectory``: the workspaces, their shells, and the commands that run in them.

A shell is a terminal. It is spawned, written to, read and closed through the terminal directory,
with the commands that a client would use; this actor stores only which terminals are shells of
which workspace. It stores that before a shell is opened and after it is closed, so a crash leaves
at worst the name of a shell that does not run: it is listed as stopped, and can be closed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import trio

from actors import Actor, AskError, Ref, Reply, Request
from aegis.directories import find_directory
from aegis.errors import AegisError, Busy, InvalidRequest, NotFound, StorageError, Unavailable
from aegis.journal.flusher import Flusher
from aegis.path_text import text_of_path
from aegis.processes.environment import Withhold, withhold_keys
from aegis.processes.process_host import ProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.protocol import terminals
from aegis.protocol import workspaces as api
from aegis.protocol.agents import CloseWorkspaceAgents, ListWorkspaceAgents
from aegis.protocol.control import SignalTerminal
from aegis.protocol.naming import name_key
from aegis.protocol.output import ReadOutput
from aegis.workspaces.cookie import cookie_of_execution
from aegis.workspaces.execution import Execution
from aegis.workspaces.rules import Workspace
from aegis.workspaces.store import WorkspaceStore

MAX_EXECUTIONS = 64
"""Commands without a terminal that may run at a time."""

SPAWN_S = 30.0
CLOSE_S = 30.0
LIST_S = 10.0
"""Seconds that the owner of the terminals may take; it answers far earlier."""

WorkspaceMessage = (
    api.CreateWorkspace
    | api.ListWorkspaces
    | api.DeleteWorkspace
    | api.ExecCommand
    | api.OpenShell
    | api.ReadShell
    | api.WriteShell
    | api.SignalShell
    | api.CloseShell
)


class WorkspaceDirectory(Actor[WorkspaceMessage]):
    """The workspaces of ``root``, kept in the file ``path``; ``earlier`` are paths the root had.

    ``host`` is where what their commands leave behind is looked for. ``withhold`` is asked for each
    command.
    """

    def __init__(
        self,
        *,
        root: Path,
        path: Path,
        flusher: Flusher,
        host: ProcessHost,
        earlier: tuple[str, ...] = (),
        withhold: Withhold = withhold_keys,
    ) -> None:
        self._root = text_of_path(root)
        self._earlier = earlier
        self._path = path
        self._flusher = flusher
        self._scan = ProcessScan(host)
        self._withhold = withhold
        self._executions = 0
        self._executing: set[trio.CancelScope] = set()
        self._idle = trio.Event()

    async def setup(self) -> None:
        """Be found; learn which workspaces there are.

        If the disk does not confirm them, each request tries that again.
        """
        self.context.register("service", "workspaces")
        self._store = WorkspaceStore(self._path, self._flusher, self._root, self._earlier)
        with contextlib.suppress(StorageError):
            await self._store.confirm()

    async def teardown(self) -> None:
        """End the commands that run, and see them gone."""
        for scope in self._executing:
            scope.cancel()
        while self._executing:
            self._idle = trio.Event()
            await self._idle.wait()
        if hasattr(self, "_store"):
            self._store.close()

    async def receive(self, message: WorkspaceMessage) -> None:
        """Carry out what takes no time; let helper tasks do the rest."""
        await self._store.confirm()
        match message:
            case api.ListWorkspaces():
                self._answer(message, self._list)
            case api.CreateWorkspace():
                self._answer(message, partial(self._create, message))
            case api.DeleteWorkspace():
                self._answer(message, partial(self._delete, message))
            case api.OpenShell():
                self._answer(message, partial(self._open, message))
            case api.CloseShell():
                self._answer(message, partial(self._close_shell, message))
            case api.ExecCommand():
                self._execute(message)
            case _:
                self._pass_on_to_terminal(message)

    def _answer(self, request: Request[Any], work: Callable[[], Awaitable[Any]]) -> None:
        self.context.start_soon(_answer_with, self.defer(request), work)

    # Workspaces.

    async def _create(self, request: api.CreateWorkspace) -> api.WorkspaceInfo:
        directory = find_directory(request.directory, self._root, "workspace_create: directory")
        await self._store.change(lambda now: (now.created(request.workspace, directory), None))
        return api.WorkspaceInfo(workspace_id=request.workspace, directory=directory, shells=[])

    async def _list(self) -> api.WorkspaceList:
        infos, agents = await self._open_terminals(), await self._agents()
        workspaces = sorted(self._store.now.by_key.values(), key=lambda each: name_key(each.name))
        return api.WorkspaceList(
            result=[_workspace_info(each, infos, agents) for each in workspaces]
        )

    async def _agents(self) -> dict[str, str]:
        """Return the terminal agents of the workspaces, by their keys."""
        service = self.context.system.registry.find("service", "agents")
        if service is None:
            return {}
        found: dict[str, str] = await service.ask(ListWorkspaceAgents(), timeout=LIST_S)
        return found

    async def _delete(self, request: api.DeleteWorkspace) -> api.WorkspaceDeleted:
        workspace = self._store.now.find(request.workspace)
        agents = await self._close_agents(workspace.name, request.from_handle)
        leftover: list[str] = []
        for shell in workspace.shells:
            leftover += await self._close_terminal(shell, purge=request.purge)
        await self._store.change(lambda now: (now.deleted(workspace.name), None))
        return api.WorkspaceDeleted(closed=list(workspace.shells), leftover=leftover, agents=agents)

    async def _close_agents(self, workspace: str, by: str | None) -> list[str]:
        service = self.context.system.registry.find("service", "agents")
        if service is None:
            return []
        request = CloseWorkspaceAgents(workspace=workspace, from_handle=by)
        closed: list[str] = await service.ask(request, timeout=CLOSE_S)
        return closed

    # Shells.

    async def _open(self, request: api.OpenShell) -> api.ShellInfo:
        workspace = self._store.now.find(request.workspace)
        cwd = find_directory(request.cwd, workspace.directory, "shell_open: cwd")
        shell = await self._store.change(lambda now: now.opening(request.workspace, request.name))
        spawn = terminals.SpawnTerminal(
            name=shell,
            shell=request.shell,
            cwd=cwd,
            cols=request.cols,
            rows=request.rows,
            from_handle=request.from_handle,
        )
        try:
            info = await self._terminals().ask(spawn, timeout=SPAWN_S)
        except AegisError:
            await self._remove_unless_open(shell)
            raise
        return _shell_info(workspace.name, shell, info)

    async def _remove_unless_open(self, shell: str) -> None:
        """It could not be spawned: unless it was open before, it is no shell."""
        if name_key(shell) not in await self._open_terminals():
            await self._store.change(lambda now: (now.closed(shell), None))

    async def _close_shell(self, request: api.CloseShell) -> terminals.Closed:
        self._store.now.of_shell(request.shell)
        leftover = await self._close_terminal(request.shell, purge=False)
        await self._store.change(lambda now: (now.closed(request.shell), None))
        return terminals.Closed(leftover=leftover)

    async def _close_terminal(self, shell: str, *, purge: bool) -> list[str]:
        """Close the terminal of a shell; one that is not open, or not there, needs nothing."""
        try:
            closed = await self._terminals().ask(
                terminals.CloseTerminal(name=shell, purge=purge), timeout=CLOSE_S
            )
        except (NotFound, Unavailable):
            return []
        return list(closed.leftover)

    def _pass_on_to_terminal(
        self, message: api.ReadShell | api.WriteShell | api.SignalShell
    ) -> None:
        self._store.now.of_shell(message.shell)
        self.pass_on(message, self._terminal(message.shell), _terminal_command(message))

    # Commands without a terminal.

    def _execute(self, request: api.ExecCommand) -> None:
        workspace = self._store.now.find(request.workspace)
        if "\0" in request.command:
            raise InvalidRequest("workspace_exec: command contains a NUL byte: remove it")
        if len(self._executing) >= MAX_EXECUTIONS:
            raise Busy(
                f"workspace_exec: {MAX_EXECUTIONS} commands are running; wait for one to end"
            )
        self._executions += 1
        number = (self.context.incarnation << 32) + self._executions
        execution = Execution(
            command=request.command,
            cwd=find_directory(None, workspace.directory, "workspace_exec: directory"),
            cookie=cookie_of_execution(self._root, workspace.name, _caller(request), number),
            withheld=self._withhold(_caller(request)),
            timeout_s=request.timeout,
            scan=self._scan,
        )
        reply, scope = self.defer(request), trio.CancelScope()
        self._executing.add(scope)
        reply.on_abandon(scope.cancel)
        self.context.start_soon(self._run_and_answer, execution, reply, scope)

    async def _run_and_answer(
        self, execution: Execution, reply: Reply[api.ExecResult], scope: trio.CancelScope
    ) -> None:
        try:
            with scope:
                await _answer_with(reply, execution.run)
            if scope.cancelled_caught:
                reply.give_up(Unavailable("workspace_exec: the daemon is stopping"))
        finally:
            self._executing.discard(scope)
            self._idle.set()

    # Who owns the terminals.

    def _terminals(self) -> Ref[Any]:
        owner = self.context.system.registry.find("service", "terminals")
        if owner is None:
            raise Unavailable("the daemon is starting or stopping; try again")
        return owner

    def _terminal(self, name: str) -> Ref[Any]:
        front = self.context.system.registry.find("terminal", name_key(name))
        return self._terminals() if front is None or front.is_stopped else front

    async def _open_terminals(self) -> dict[str, terminals.TerminalInfo]:
        found = await self._terminals().ask(terminals.ListTerminals(), timeout=LIST_S)
        return {name_key(info.name): info for info in found.result}


async def _answer_with(reply: Reply[Any], work: Callable[[], Awaitable[Any]]) -> None:
    try:
        reply.send(await work())
    except (AegisError, AskError) as error:
        reply.fail(error)


def _caller(request: api.ExecCommand) -> str | None:
    """Return the handle for which a command runs; None for a person."""
    handle = request.from_handle
    return None if handle is None or handle.lower() == "human" else handle


def _terminal_command(message: api.ReadShell | api.WriteShell | api.SignalShell) -> Request[Any]:
    """Return the terminal's command for a command on a shell."""
    match message:
        case api.ReadShell():
            return ReadOutput(
                name=message.shell,
                cursor=message.cursor,
                max_bytes=message.max_bytes,
                plain=message.plain,
                wait_s=message.wait_s,
                from_handle=message.from_handle,
            )
        case api.WriteShell():
            keys = message.input + ("\r" if message.append_newline else "")
            return terminals.SendKeys(
                name=message.shell, keys=keys, from_handle=message.from_handle
            )
        case api.SignalShell():
            return SignalTerminal(
                name=message.shell, signal=message.signal, from_handle=message.from_handle
            )


def _workspace_info(
    workspace: Workspace, infos: dict[str, terminals.TerminalInfo], agents: dict[str, str]
) -> api.WorkspaceInfo:
    shells = [
        _shell_info(workspace.name, shell, infos.get(name_key(shell))) for shell in workspace.shells
    ]
    return api.WorkspaceInfo(
        workspace_id=workspace.name,
        directory=workspace.directory,
        shells=shells,
        agent=agents.get(name_key(workspace.name)),
    )


def _shell_info(workspace: str, shell: str, info: terminals.TerminalInfo | None) -> api.ShellInfo:
    is_running = info is not None and info.state in ("starting", "idle", "running")
    return api.ShellInfo(
        workspace_id=workspace,
        shell_id=shell,
        cols=terminals.DEFAULT_COLS if info is None else info.cols,
        rows=terminals.DEFAULT_ROWS if info is None else info.rows,
        cwd=None if info is None else info.cwd,
        state="running" if is_running else "stopped",
    )
