"""``TerminalDirectory``: the actor that spawns, restores, lists and closes terminals.

Commands on an open terminal go to its front directly, and to the directory if it has none.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio

from actors import Actor, AskError, Down, Ref, Reply, Request
from aegis.errors import AegisError, AlreadyExists, StorageError, Unavailable
from aegis.journal import purging
from aegis.journal.flusher import Flusher
from aegis.journal.old_files import ARCHIVE_BYTES
from aegis.journal.opening import sync_ledger
from aegis.journal.raw_log import LIMIT_BYTES
from aegis.processes.environment import Withhold, withhold_keys
from aegis.processes.process_host import ProcessHost
from aegis.processes.process_scan import GroupScan, ProcessScan
from aegis.protocol import nodes as node_api
from aegis.protocol import output as out
from aegis.protocol import terminals as api
from aegis.protocol.broadcast import Broadcast
from aegis.protocol.feeds import FollowOutput, KeptBytes, ReadKept
from aegis.protocol.inboxes import Deliver
from aegis.protocol.naming import LOCAL_NODE, name_key
from aegis.protocol.resources import Ledger
from aegis.publishing import publish_change, publish_terminal
from aegis.terminals.directory import inactive
from aegis.terminals.directory.broadcast import broadcast
from aegis.terminals.directory.hosting import HostIsUp, Subtrees
from aegis.terminals.directory.inactive import FailedTerminal, unanswered_info
from aegis.terminals.directory.life_cycle import OpenTerminals
from aegis.terminals.directory.listing import commands_of_agents, known_terminals, open_terminals
from aegis.terminals.directory.moving import Move
from aegis.terminals.directory.placed_subtrees import PlacedSubtrees
from aegis.terminals.directory.spawning import check_descriptors
from aegis.terminals.directory.workspace import OpenNames
from aegis.terminals.front_port import ClientRequest
from aegis.terminals.history import History
from aegis.terminals.hooks.submission import check_command
from aegis.terminals.messages import AwaitPrompt
from aegis.terminals.remote.hosts import LocalTerminals, RemoteHosts
from aegis.terminals.remote.nodes import NodeFile
from aegis.terminals.sentences import no_such_terminal
from aegis.terminals.shell.processes import end_leftover_processes

log = structlog.get_logger()

PROMPT_TIMEOUT_S = 10.0
"""How long spawn waits for a first prompt before it returns the state "starting"."""


@attrs.frozen(kw_only=True)
class EndAllTerminals(Request[api.Done]):
    """End every terminal as the daemon stops, and write the records of the current commands."""


DirectoryMessage = (
    api.SpawnTerminal
    | api.ListTerminals
    | api.CloseTerminal
    | Broadcast
    | ClientRequest
    | ReadKept
    | node_api.KnownTerminals
    | node_api.NodeMessage
    | EndAllTerminals
    | HostIsUp
    | Down
)

_READS = api.ReadRecords | out.ReadOutput | out.WaitTerminal | ReadKept
"""The requests that are answered for a closed terminal too."""

_WAIT_FOR_MOVE = _READS | out.FollowCommand | FollowOutput
"""The requests that wait until a terminal that lost its worker is restarted."""


class TerminalDirectory(Actor[DirectoryMessage]):
    """Spawns terminals below ``supervisor`` (a path); their files are below ``directory``.

    ``workspace`` is the file with the names of the open terminals; unless ``restore`` is false, the
    first incarnation starts them again. The shells run on ``host``. A file of raw output grows to
    ``raw_log_bytes``; old records and archives have ``archive_bytes`` together. ``node`` names this
    process; ``workers`` name the worker processes for the terminals (none: the terminals run in
    this process). ``nodes`` is the file with the terminals of other hosts; without it they are not
    stored. ``earlier`` are the earlier paths of ``root``.
    ``withhold`` returns the variables that the terminals of a caller do not get.
    """

    def __init__(
        self,
        *,
        root: Path,
        directory: Path,
        workspace: Path,
        restore: bool,
        supervisor: str,
        flusher: Flusher,
        inboxes: str,
        shell_file_limit: int,
        host: ProcessHost,
        raw_log_bytes: int = LIMIT_BYTES,
        archive_bytes: int = ARCHIVE_BYTES,
        node: str = LOCAL_NODE,
        workers: tuple[str, ...] = (),
        nodes: Path | None = None,
        earlier: tuple[str, ...] = (),
        withhold: Withhold = withhold_keys,
    ) -> None:
        self._root = root
        self._earlier = earlier
        self._directory = directory
        self._workspace_path = workspace
        self._restore = restore
        self._supervisor = supervisor
        self._flusher = flusher
        self._inboxes_path = inboxes
        self._shell_file_limit = shell_file_limit
        self._raw_log_bytes = raw_log_bytes
        self._archive_bytes = archive_bytes
        self._host = host
        self._node = node
        self._workers = workers
        self._nodes_path = nodes
        self._withhold = withhold
        self._busy: dict[str, str] = {}
        self._scan = ProcessScan(host)
        self._groups = GroupScan(host)
        self._ending = False

    async def setup(self) -> None:
        """Register; start the terminals of the workspace that are not open."""
        self.context.register("service", "terminals")
        self._workspace = await OpenNames.open(self._workspace_path, self._flusher)
        self._terminals = self._new_terminals()
        self._remote = await self._new_remote()
        if self.context.incarnation == 1:
            await self._begin()
        else:
            await self._terminals.find_open()
            self.context.start_soon(self._remote.find_links)
        await self._terminals.restore()

    def _new_terminals(self) -> OpenTerminals:
        inboxes: Ref[Deliver] = self.context.system.ref(self._inboxes_path)
        subtrees = Subtrees(
            system=self.context.system,
            supervisor=self._supervisor,
            flusher=self._flusher,
            inboxes=inboxes,
            host=self._host,
            scan=self._scan,
            groups=self._groups,
            shell_file_limit=self._shell_file_limit,
            raw_log_bytes=self._raw_log_bytes,
            archive_bytes=self._archive_bytes,
            node=self._node,
        )
        return OpenTerminals(
            root=self._root,
            earlier=self._earlier,
            directory=self._directory,
            subtrees=PlacedSubtrees(local=subtrees, workers=self._workers),
            workspace=self._workspace,
            flusher=self._flusher,
            scan=self._scan,
            start_soon=self.context.start_soon,
            monitor=self.context.monitor,
            withhold=self._withhold,
        )

    async def _new_remote(self) -> RemoteHosts:
        file = await NodeFile.open(self._nodes_path, self._flusher)
        places = (self._node, *self._workers)
        here = LocalTerminals(places=places, has_open=self._has_open, has_history=self._has_history)
        return RemoteHosts(self.context.system, here, file, self.context.start_soon)

    def _has_open(self, name: str) -> bool:
        return self._terminals.has(name) or self._workspace.may_restore(name)

    def _has_history(self, name: str) -> bool:
        return self._terminals.known_name(name) is not None

    async def _begin(self) -> None:
        """Clean up after earlier daemons, as the daemon starts."""
        await end_leftover_processes(self._root, self._directory, self._scan, self._flusher)
        await self._flusher.call(
            partial(purging.delete_left_over, self._flusher.disk, self._directory)
        )
        await self._flusher.call(self._terminals.delete_unfinished)
        if self._workspace.was_missing:
            await self._flusher.look(self._terminals.report_missing_workspace)
        if not self._restore:
            await self._workspace.clear()

    async def receive(self, message: DirectoryMessage) -> None:
        """Handle one message."""
        match message:
            case api.SpawnTerminal():
                self._spawn(message)
            case api.ListTerminals():
                self.context.start_soon(self._list, self.defer(message))
            case api.CloseTerminal():
                self._close(message)
            case Broadcast():
                check_command(message.cmd)
                self.context.start_soon(broadcast, message, self.defer(message), self._find)
            case node_api.KnownTerminals():
                self.context.start_soon(self._name_known, self.defer(message))
            case _ if isinstance(message, node_api.NodeMessage):
                self._remote.handle(message, self.defer)
            case EndAllTerminals():
                self._ending = True
                self.context.start_soon(self._end_all, self.defer(message))
            case HostIsUp():
                self._terminals.subtrees.worker_up()
            case Down():
                self._subtree_down(message)
            case _:
                self._answer_without_front(message)

    # Spawning.

    def _spawn(self, request: api.SpawnTerminal) -> None:
        key = name_key(request.name)
        if self._ending:
            raise Unavailable("aegis_term_spawn: the daemon is stopping")
        self._check_not_busy(key)
        if key in self._terminals.failed:
            raise AlreadyExists(f"aegis_term_spawn: {self._terminals.failed[key].refusal()}")
        if key in self._terminals.open:
            raise AlreadyExists(
                f"aegis_term_spawn: a terminal named {self._terminals.open[key].name!r} is open "
                "already; use it, or choose another name"
            )
        node = self._remote.host_for(request, self._terminals.subtrees.check_node)
        if node is None:
            coming = [*self._busy.values()].count("spawned") + 1
            check_descriptors(coming=coming, at_rest=len(self._terminals.open))
        self._busy[key] = "spawned"
        self.context.start_soon(self._spawn_and_answer, request, node, self.defer(request))

    def _check_not_busy(self, key: str) -> None:
        if key in self._busy:
            raise AlreadyExists(f"terminal {key!r} is being {self._busy[key]} right now; try again")

    async def _spawn_and_answer(
        self, request: api.SpawnTerminal, node: str | None, reply: Reply[api.TerminalInfo]
    ) -> None:
        try:
            if node is not None:
                await self._remote.spawn(node, request, reply)
                return
            front = await self._terminals.spawn(request)
        except AegisError as error:
            reply.fail(error)
            return
        finally:
            del self._busy[name_key(request.name)]
        try:
            front.forward(AwaitPrompt(timeout_s=PROMPT_TIMEOUT_S), reply)
        except AskError as error:
            reply.fail(error)

    # Listing.

    async def _list(self, reply: Reply[api.TerminalList]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._remote.refresh)
            here = await open_terminals(self._terminals, self._busy)
        infos = self._remote.merged_with(here)
        result = [infos[key] for key in sorted(infos)]
        commands = await commands_of_agents(self.context.system)
        reply.send(api.TerminalList(result=result, of_agents=commands))

    async def _name_known(self, reply: Reply[node_api.TerminalNames]) -> None:
        try:
            reply.send(await known_terminals(self._terminals, self._busy))
        except StorageError as error:
            reply.fail(error)

    # Ending.

    def _close(self, request: api.CloseTerminal) -> None:
        name = request.name
        self._check_not_busy(name_key(name))
        node = self._remote.node_of(name)
        if node is not None:
            self.context.start_soon(self._remote.close, node, request, self.defer(request))
            return
        is_purge = request.purge and self._terminals.known_name(name) is not None
        if not (self._terminals.has(name) or self._workspace.may_restore(name) or is_purge):
            raise self._not_open(name)
        self._busy[name_key(name)] = "closed"
        self.context.start_soon(self._close_and_answer, request, self.defer(request))

    async def _close_and_answer(self, request: api.CloseTerminal, reply: Reply[api.Closed]) -> None:
        failed = self._terminals.failed.get(name_key(request.name))
        try:
            leftover = await self._terminals.end(request.name, "closed")
            if failed is not None:  # the front of any other terminal has published this event
                info = attrs.evolve(failed.info(), state="closed")
                publish_terminal(self.context.system, "terminal_closed", info)
            await self._leave_workspace(request.name)
            if request.purge:
                await self._terminals.purge(request.name)
                publish_change(self.context.system, Ledger(request.name))
        except AegisError as error:
            reply.fail(error)
        else:
            reply.send(api.Closed(leftover=list(leftover)))
        finally:
            del self._busy[name_key(request.name)]

    async def _leave_workspace(self, name: str) -> None:
        try:
            await self._workspace.remove(name)
        except StorageError as error:
            raise StorageError(
                f"aegis_term_close: terminal {name!r} is closed, but the next up starts it again "
                f"unless you close it once more: {error}"
            ) from error

    async def _end_all(self, reply: Reply[api.Done]) -> None:
        await self._terminals.end_all()
        reply.send(api.Done())

    def _subtree_down(self, down: Down) -> None:
        """Handle the end of a subtree: its restarts are spent, or its worker died."""
        key = name_key(down.path.rpartition("/")[2])
        if not down.final or self._ending or key in self._busy:
            return
        if down.with_node:
            settings = self._terminals.mover.worker_lost(down.path, down.reason)
            node = self._terminals.node_of(key)
            info = None if settings is None else unanswered_info(settings, node)
        else:
            self._terminals.subtree_failed(down.path, down.reason)
            failed = self._terminals.failed.get(key)
            info = None if failed is None else failed.info()
        if info is not None:
            publish_terminal(self.context.system, "terminal_changed", info)

    # Terminals without a front.

    def _answer_without_front(self, message: Any) -> None:
        is_kept = isinstance(message, ReadKept)
        remote = self._remote.ref_for(message.name, by_front=not is_kept)
        if remote is not None:
            self.pass_on(message, remote)
            return
        front = self._terminals.subtrees.front(message.name)
        failed = self._terminals.failed.get(name_key(message.name))
        move = self._terminals.mover.moves.get(name_key(message.name))
        if move is not None and isinstance(message, _WAIT_FOR_MOVE):
            self.context.start_soon(self._read_after_move, move, message, self.defer(message))
        elif front is not None and not is_kept:
            self.pass_on(message, front)
        elif isinstance(message, _READS) and self._terminals.known_name(message.name):
            self.context.start_soon(self._read, message, self.defer(message), failed)
        else:
            raise self._refusal(message.name)

    def _find(self, name: str) -> Ref[Any]:
        """Return the actor that answers for the terminal. Raises ``AegisError``."""
        front = self._remote.ref_for(name) or self._terminals.subtrees.front(name)
        if front is None:
            raise self._refusal(name)
        return front

    def _refusal(self, name: str) -> AegisError:
        move = self._terminals.mover.moves.get(name_key(name))
        if move is not None:
            return move.refusal()
        failed = self._terminals.failed.get(name_key(name))
        return self._not_open(name) if failed is None else failed.refusal()

    async def _read_after_move(self, move: Move, request: Any, reply: Reply[Any]) -> None:
        # The command that ran as the worker died has its record once the terminal is restarted.
        await move.done.wait()
        front = self._terminals.subtrees.front(request.name)
        failed = self._terminals.failed.get(name_key(request.name))
        if isinstance(request, ReadKept) or (front is None and isinstance(request, _READS)):
            await self._read(request, reply, failed)
            return
        try:
            if front is None:
                raise self._refusal(request.name)
            front.forward(request, reply)
        except (AegisError, AskError) as error:
            reply.fail(error)

    async def _read(
        self,
        request: api.ReadRecords | out.ReadOutput | out.WaitTerminal | ReadKept,
        reply: Reply[Any],
        failed: FailedTerminal | None,
    ) -> None:
        if failed is not None:
            await failed.settled.wait()
        disk = self._flusher.disk
        try:
            files = self._terminals.files(request.name)
            await sync_ledger(self._flusher, files.ledger)  # a record that is shown is durable
        except AegisError as error:
            reply.fail(error)
            return
        match request:
            case api.ReadRecords():
                await History(files.ledger, disk=disk).answer(request, reply)
            case out.ReadOutput():
                await inactive.answer_output(disk, files, request, reply)
            case out.WaitTerminal():
                await inactive.answer_wait(disk, files, request, reply)
            case ReadKept() if self._has_new_front(request.name):
                reply.send(KeptBytes(data=b"", cursor=request.cursor, failure=None, is_back=True))
            case ReadKept():
                inactive.answer_kept(disk, files, request, reply, self._failure(request.name))

    def _has_new_front(self, name: str) -> bool:
        """Whether the terminal has another front than the one that the stream knew."""
        terminals, is_ended = self._terminals, self._ending or name_key(name) in self._busy
        has_front = terminals.subtrees.front(name) is not None
        return has_front and not is_ended and terminals.mover.has_moved(name)

    def _failure(self, name: str) -> str | None:
        """Return why a terminal has no front; None if it is closed, or being closed."""
        key = name_key(name)
        if key in self._terminals.failed:
            return str(self._terminals.failed[key].refusal())
        if key in self._busy:
            return None
        if self._ending and self._workspace.may_restore(name):
            return f"the daemon stops; the next one starts terminal {name!r} again"
        if key in self._terminals.open and not self._ending:
            return f"terminal {name!r} has failed; look at its state with aegis_term_list"
        return None

    def _not_open(self, name: str) -> AegisError:
        if self._terminals.known_name(name):
            return Unavailable(
                f"terminal {name!r} is closed; aegis_term_spawn opens it again over its history"
            )
        return no_such_terminal(name, [each.name for each in self._terminals.open.values()])
