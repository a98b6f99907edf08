"""``TerminalDirectory``: which terminals there are; it spawns, lists and closes them.

Commands on an open terminal go to its front directly; here they come when it is not open.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio

from actors import (
    Actor,
    AskError,
    ChildSpec,
    Down,
    MailboxSpec,
    OnRestart,
    Ref,
    Reply,
    Request,
    Restart,
    SupervisorSpec,
    describe,
    root_cause,
)
from aegis.errors import AegisError, AlreadyExists, NotFound, StorageError, Unavailable
from aegis.journal.disk import storage_error
from aegis.journal.flusher import Flusher
from aegis.names import nearest
from aegis.protocol import terminals as api
from aegis.protocol.inboxes import Deliver
from aegis.protocol.naming import is_name, name_key
from aegis.terminals.history import History
from aegis.terminals.messages import AwaitPrompt, Describe, EndTerminal
from aegis.terminals.process_scan import ProcessScan
from aegis.terminals.reaper import look_at_all
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell import Shell
from aegis.terminals.spawning import check_descriptors, make_settings, save_settings
from aegis.terminals.terminal import Terminal
from aegis.terminals.writer import LedgerWriter

log = structlog.get_logger()

PROMPT_TIMEOUT_S = 10.0
"""How long spawn waits for a first prompt before it answers "starting"."""

DESCRIBE_TIMEOUT_S = 2.0
END_TIMEOUT_S = 5.0


@attrs.frozen(kw_only=True)
class EndAllTerminals(Request[api.Done]):
    """The daemon stops: end every terminal and write the records of what is in flight."""


DirectoryMessage = (
    api.SpawnTerminal
    | api.ListTerminals
    | api.CloseTerminal
    | api.RunCommand
    | api.SendKeys
    | api.ReadRecords
    | api.Subscribe
    | api.Unsubscribe
    | EndAllTerminals
    | Down
)


class TerminalDirectory(Actor[DirectoryMessage]):
    """Spawns terminals below ``supervisor`` (a path); their files are below ``directory``."""

    def __init__(
        self,
        *,
        root: Path,
        directory: Path,
        supervisor: str,
        flusher: Flusher,
        inboxes: str,
        shell_file_limit: int,
    ) -> None:
        self._root = root
        self._directory = directory
        self._supervisor = supervisor
        self._flusher = flusher
        self._inboxes_path = inboxes
        self._shell_file_limit = shell_file_limit
        self._open: dict[str, str] = {}
        self._busy: dict[str, str] = {}
        self._scan = ProcessScan(look_at_all)
        self._ending = False

    async def setup(self) -> None:
        """Be found; learn which terminals are open, should this be a later life."""
        self.context.register("service", "terminals")
        self._inboxes: Ref[Deliver] = self.context.system.ref(self._inboxes_path)
        for name in self.context.system.supervisor(self._supervisor).names:
            self._open[name_key(name)] = name

    async def receive(self, message: DirectoryMessage) -> None:
        """Spawn, list, close; read what a closed terminal did; refuse the rest."""
        match message:
            case api.SpawnTerminal():
                self._spawn(message)
            case api.ListTerminals():
                self.context.start_soon(self._list, self.defer(message))
            case api.CloseTerminal():
                self._close(message)
            case EndAllTerminals():
                self._ending = True
                self.context.start_soon(self._end_all, self.defer(message))
            case Down(path=path, final=final):
                if final:
                    self._front_gone(path)
            case _:
                self._answer_for_closed(message)

    # Spawning.

    def _spawn(self, request: api.SpawnTerminal) -> None:
        key = name_key(request.name)
        if self._ending:
            raise Unavailable("aegis_term_spawn: the daemon is stopping")
        self._check_not_busy(key)
        if key in self._open:
            raise AlreadyExists(
                f"aegis_term_spawn: a terminal named {self._open[key]!r} is open already; use it, "
                "or choose another name"
            )
        check_descriptors()
        self._busy[key] = "spawned"
        self.context.start_soon(self._spawn_and_answer, request, self.defer(request))

    def _check_not_busy(self, key: str) -> None:
        if key in self._busy:
            raise AlreadyExists(f"terminal {key!r} is being {self._busy[key]} right now; try again")

    async def _spawn_and_answer(
        self, request: api.SpawnTerminal, reply: Reply[api.TerminalInfo]
    ) -> None:
        key = name_key(request.name)
        try:
            front = await self._start(request)
            self._open[key] = request.name
        except AegisError as error:
            reply.fail(error)
            return
        finally:
            del self._busy[key]
        try:
            front.forward(AwaitPrompt(timeout_s=PROMPT_TIMEOUT_S), reply)
        except AskError as error:
            reply.fail(error)

    async def _start(self, request: api.SpawnTerminal) -> Ref[Any]:
        files = self._files(self._known_name(request.name) or request.name)
        is_new = not files.directory.exists()
        try:
            settings = make_settings(request, self._root, files)
            await self._flusher.call(partial(save_settings, files, settings))
            return await self._start_actors(settings, files)
        except Exception as error:
            if is_new:
                shutil.rmtree(files.directory, ignore_errors=True)
            raise _spawn_failure(request.name, files, error) from error

    async def _start_actors(self, settings: TerminalSettings, files: TerminalFiles) -> Ref[Any]:
        shared = {"files": files, "flusher": self._flusher}
        spec = SupervisorSpec(
            name=settings.name,
            restart=Restart.TEMPORARY,
            children=(
                ChildSpec(name="writer", actor=LedgerWriter, arguments=shared),
                ChildSpec(
                    name="terminal",
                    actor=Terminal,
                    arguments={**shared, "settings": settings, "inboxes": self._inboxes},
                ),
                ChildSpec(
                    name="shell",
                    actor=Shell,
                    arguments={
                        "settings": settings,
                        "files": files,
                        "file_limit": self._shell_file_limit,
                        "scan": self._scan,
                    },
                    mailbox=MailboxSpec(on_restart=OnRestart.CLEAR),
                ),
            ),
        )
        await self.context.system.supervisor(self._supervisor).start_child(spec)
        front = self._front(settings.name)
        assert front is not None
        self.context.monitor(front)
        return front

    # Listing and ending.

    async def _list(self, reply: Reply[api.TerminalList]) -> None:
        infos: dict[str, api.TerminalInfo] = {}

        async def describe_one(key: str, front: Ref[Any]) -> None:
            try:
                infos[key] = await front.ask(Describe(), timeout=DESCRIBE_TIMEOUT_S)
            except AskError as error:
                log.warning("terminal does not answer", terminal=key, error=str(error))

        async with trio.open_nursery() as nursery:
            for key in self._open:
                front = self._front(key)
                if front is not None:
                    nursery.start_soon(describe_one, key, front)
        reply.send(api.TerminalList(result=[infos[key] for key in sorted(infos)]))

    def _close(self, request: api.CloseTerminal) -> None:
        key = name_key(request.name)
        self._check_not_busy(key)
        if key not in self._open and not (request.purge and self._known_name(request.name)):
            raise self._not_open(request.name)
        self._busy[key] = "closed"
        self.context.start_soon(self._close_and_answer, request, self.defer(request))

    async def _close_and_answer(self, request: api.CloseTerminal, reply: Reply[api.Done]) -> None:
        key = name_key(request.name)
        try:
            await self._end(key, "closed")
            if request.purge:
                await self._purge(self._known_name(request.name) or request.name)
        except AegisError as error:
            reply.fail(error)
        else:
            reply.send(api.Done())
        finally:
            del self._busy[key]

    async def _end(self, key: str, end: Any) -> None:
        front = self._front(key)
        if front is not None:
            try:
                await front.ask(EndTerminal(end=end), timeout=END_TIMEOUT_S)
            except AskError as error:
                log.warning("terminal did not end in order", terminal=key, error=str(error))
        if key in self._open:
            await self.context.system.supervisor(self._supervisor).stop_child(self._open[key])
            self._open.pop(key, None)

    async def _end_all(self, reply: Reply[api.Done]) -> None:
        async with trio.open_nursery() as nursery:
            for key in list(self._open):
                nursery.start_soon(self._end, key, "killed_by_restart")
        reply.send(api.Done())

    async def _purge(self, name: str) -> None:
        try:
            await self._flusher.call(partial(shutil.rmtree, self._files(name).directory))
        except OSError as error:
            raise StorageError(
                f"aegis_term_close: the history of terminal {name!r} could not be deleted: "
                f"{error.strerror}; the terminal is closed"
            ) from error

    def _front_gone(self, path: str) -> None:
        for key, name in list(self._open.items()):
            is_expected = self._ending or key in self._busy
            if path == f"{self._supervisor}/{name}/terminal" and not is_expected:
                log.error("terminal gave up", terminal=name)
                del self._open[key]

    # Terminals that are not open.

    def _answer_for_closed(self, message: Any) -> None:
        front = self._front(message.name)
        if front is not None:
            self.pass_on(message, front)
        elif isinstance(message, api.ReadRecords) and self._known_name(message.name):
            history = History(self._files(self._known_name(message.name) or "").ledger)
            self.context.start_soon(history.answer, message, self.defer(message))
        else:
            raise self._not_open(message.name)

    def _not_open(self, name: str) -> AegisError:
        if self._known_name(name):
            return Unavailable(
                f"terminal {name!r} is closed; aegis_term_spawn opens it again over its history"
            )
        close = nearest(name, self._open.values())
        if close:
            hint = f"did you mean {' or '.join(map(repr, close))}?"
        else:
            hint = f"open now: {', '.join(sorted(self._open.values())[:20]) or 'none'}"
        return NotFound(
            f"there is no terminal {name!r}; {hint} aegis_term_spawn makes a new one"
            if close
            else f"there is no terminal {name!r} ({hint}); aegis_term_spawn makes one"
        )

    def _front(self, name: str) -> Ref[Any] | None:
        ref = self.context.system.registry.find("terminal", name_key(name))
        return None if ref is None or ref.is_stopped else ref

    def _files(self, name: str) -> TerminalFiles:
        return TerminalFiles(self._directory / name)

    def _known_name(self, name: str) -> str | None:
        """The name as its directory is written, if there is one."""
        if not self._directory.is_dir():
            return None
        for path in self._directory.iterdir():
            if name_key(path.name) == name_key(name) and is_name(path.name):
                return path.name
        return None


def _spawn_failure(name: str, files: TerminalFiles, error: Exception) -> AegisError:
    """What the caller is told when a terminal could not be started."""
    cause = root_cause(error)
    if isinstance(cause, AegisError):
        return cause
    if isinstance(cause, OSError):
        return storage_error("use", files.directory, cause)
    return Unavailable(
        f"aegis_term_spawn: terminal {name!r} could not be started: {describe(cause)}"
    )
