"""``Daemon``: the actor of the daemon's own commands: status, tree, keys, stop."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import structlog
import trio

from actors import Actor, ActorCrashed, AskError, Ref, Reply, count
from aegis.errors import AegisError, InvalidRequest
from aegis.examination import examine
from aegis.names import check_handle
from aegis.path_text import text_of_path
from aegis.protocol.daemon import (
    DaemonStatus,
    Examination,
    Examine,
    GetStatus,
    GetTree,
    ListSessionHandles,
    NewSession,
    RevokeSession,
    RotateToken,
    Session,
    SessionList,
    StopDaemon,
    Stopping,
    TreeNode,
    Voided,
    tree_node,
)
from aegis.protocol.nodes import ListNodes, NodeStatus, merged_nodes
from aegis.protocol.pages import (
    ListPages,
    NewLink,
    NewPageCode,
    PageAddress,
    PageList,
    PagesRevoked,
    RevokePage,
)
from aegis.protocol.requests import WithdrawRequests
from aegis.protocol.tool_sets import refuse_choice

FRESH_TREE_S = 0.5
"""Seconds that worker processes have to report their mailboxes."""

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

LIST_NODES_S = 2.0
"""Seconds to list the nodes; the status omits nodes that did not answer in time."""

WITHDRAW_S = 10.0
WITHDRAW_AGAIN_S = 1.0
"""Seconds that the desk may take to withdraw questions, and after which it is asked again."""

log = structlog.get_logger("aegis")

ChangesKeys = NewSession | RevokeSession | RotateToken | NewLink | RevokePage
Asked = (
    GetStatus
    | GetTree
    | Examine
    | ListSessionHandles
    | ListPages
    | NewPageCode
    | StopDaemon
    | ChangesKeys
)
KeyReply = Session | Voided | PageAddress | PagesRevoked


class Keyring(Protocol):
    """The keys of the daemon; a method that changes them returns once the change is durable."""

    @property
    def url(self) -> str:
        """The base URL of the daemon."""
        ...

    @property
    def handles(self) -> list[str]:
        """The handles that have a session."""
        ...

    def tools(self, handle: str) -> tuple[str, ...]:
        """Return the sets of tools that the handle's session offers."""
        ...

    async def session_url(self, handle: str, tools: Sequence[str] | None = None) -> str:
        """Return the URL of the handle's session, with these tools. Raises ``AegisError``."""
        ...

    async def revoke(self, handle: str, *, is_noted: bool = False) -> Voided:
        """Void the handle's session, and note that if so wanted. Raises ``AegisError``."""
        ...

    @property
    def revoked(self) -> Sequence[str]:
        """The handles whose revocation is noted."""
        ...

    async def drop_revoked(self, handle: str) -> None:
        """Delete the note about a handle. Raises ``AegisError``."""
        ...

    async def rotate(self, session: str | None, *, all_keys: bool) -> Voided:
        """Replace these keys. Raises ``AegisError``."""
        ...

    @property
    def logged_in(self) -> PageList:
        """The web pages that are logged in, and the read-only links."""
        ...

    def page_code(self) -> PageAddress:
        """Return an address that logs a browser in, once."""
        ...

    async def new_link(self, view: str, label: str, for_s: float) -> PageAddress:
        """Return a read-only link to ``view``. Raises ``AegisError``."""
        ...

    async def revoke_page(self, name: str) -> PagesRevoked:
        """Log out a page, or revoke a link. Raises ``AegisError``."""
        ...


class Daemon(Actor[Asked]):
    """The actor of the daemon's own commands.

    It sends ``handle_seen`` to the actor at ``handles`` (a path) for each new session. ``left_out``
    are the names of variables that it does not hand on. ``examine`` examines a root.
    """

    def __init__(
        self,
        *,
        root: Path,
        version: str,
        stop: trio.Event,
        keyring: Keyring,
        handles: str,
        handle_seen: type[Any],
        left_out: Sequence[str] = (),
        examine: Callable[[Path], Awaitable[Examination]] = examine,
    ) -> None:
        self._root = root
        self._version = version
        self._stop = stop
        self._keyring = keyring
        self._handles_path = handles
        self._handle_seen = handle_seen
        self._left_out = left_out
        self._examine = examine
        self._examining: list[Reply[Examination]] = []
        """The callers of the examination that is under way."""
        self._began = trio.current_time()

    async def setup(self) -> None:
        """Register the service."""
        self.context.register("service", "daemon")
        self._handles: Ref[Any] = self.context.system.ref(self._handles_path)
        for handle in self._keyring.revoked:
            self.context.start_soon(self._withdraw_asked, handle)

    async def receive(self, message: Asked) -> None:
        match message:
            case GetStatus():
                self.context.start_soon(self._answer_status, self.defer(message))
            case GetTree():
                self.context.start_soon(self._answer_tree, self.defer(message))
            case Examine():
                self._examining.append(self.defer(message))
                if len(self._examining) == 1:
                    self.context.start_soon(self._answer_examination)
            case ListSessionHandles():
                self.reply(message, SessionList(handles=self._keyring.handles))
            case ListPages():
                self.reply(message, self._keyring.logged_in)
            case NewPageCode():
                self.reply(message, self._keyring.page_code())
            case NewSession() | RevokeSession() | RotateToken() | NewLink() | RevokePage():
                self.context.start_soon(self._change_keys, message, self.defer(message))
            case StopDaemon():
                self.reply(message, Stopping(pid=os.getpid()))
                self._stop.set()

    async def _answer_tree(self, reply: Reply[TreeNode]) -> None:
        reply.send(tree_node(await self.context.system.fresh_tree(FRESH_TREE_S)))

    async def _answer_examination(self) -> None:
        found: Examination | AegisError
        try:
            found = await self._examine(self._root)
        except AegisError as error:
            found = error
        callers, self._examining = self._examining, []
        for each in callers:
            if isinstance(found, AegisError):
                each.fail(found)
            else:
                each.send(found)

    async def _change_keys(self, message: ChangesKeys, reply: Reply[KeyReply]) -> None:
        # In a task: writing and syncing the keys takes time.
        try:
            outcome = await self._changed(message)
        except AegisError as error:
            reply.fail(error)
        else:
            reply.send(outcome)

    async def _changed(self, message: ChangesKeys) -> KeyReply:
        match message:
            case NewSession():
                return await self._new_session(message)
            case RevokeSession(handle=handle):
                # Keys and requests are two files: the note lets the next start withdraw the
                # questions if this daemon is killed between them.
                voided = await self._keyring.revoke(handle, is_noted=True)
                with trio.move_on_after(WITHDRAW_S):
                    await self._withdraw_asked(handle)
                    return voided
                self.context.start_soon(self._withdraw_asked, handle)
                return voided
            case RotateToken(session=session, all_keys=all_keys):
                return await self._keyring.rotate(session, all_keys=all_keys)
            case RevokePage(id=name):
                return await self._keyring.revoke_page(name)
            case NewLink(view=view, label=label, for_s=for_s):
                return await self._keyring.new_link(view, label, for_s)

    async def _withdraw_asked(self, handle: str) -> None:
        """Withdraw the questions of a revoked handle, then drop its note, until both are done."""
        request = WithdrawRequests(asker=handle, reason="its session URL was revoked")
        while True:
            desk = self.context.system.registry.find("service", "requests")
            try:
                if desk is not None:
                    await desk.ask(request, timeout=WITHDRAW_S)
                    await self._keyring.drop_revoked(handle)
                    return
            except (AskError, AegisError) as error:
                log.warning("questions not withdrawn", revoked=handle, why=str(error))
            await trio.sleep(WITHDRAW_AGAIN_S)

    async def _new_session(self, message: NewSession) -> Session:
        handle, tools = message.handle, message.tools
        check_handle(handle)
        refusal = None if tools is None else refuse_choice(tools)
        if refusal is not None:
            raise InvalidRequest(f"aegis_session_new: {refusal}")
        url = await self._keyring.session_url(handle, tools)
        self._handles.tell(self._handle_seen(handle=handle))
        return Session(handle=handle, url=url, tools=list(self._keyring.tools(handle)))

    async def _answer_status(self, reply: Reply[DaemonStatus]) -> None:
        running = await self._nodes_of("nodes")
        remembered = await self._nodes_of("terminals")
        reply.send(self._status(merged_nodes(running, remembered)))

    async def _nodes_of(self, service: str) -> list[NodeStatus]:
        """Return the nodes that a service lists; none if it is absent or does not answer."""
        with trio.move_on_after(LIST_NODES_S):
            while True:
                known = self.context.system.registry.find("service", service)
                try:
                    return [] if known is None else (await known.ask(ListNodes())).result
                except ActorCrashed:
                    continue
                except AskError:
                    break
        return []

    def _status(self, nodes: list[NodeStatus]) -> DaemonStatus:
        system = self.context.system
        return DaemonStatus(
            version=self._version,
            pid=os.getpid(),
            root=text_of_path(self._root),
            url=self._keyring.url,
            uptime_s=round(trio.current_time() - self._began, 3),
            rss_bytes=resident_bytes(),
            open_files=sum(1 for _ in Path("/proc/self/fd").iterdir()),
            actors=count(system.tree()),
            terminals=len(system.registry.names("terminal")),
            handles=system.registry.names("inbox"),
            connections=len(system.supervisor("root/connections").names),
            late_replies=system.late_replies,
            nodes=nodes,
            left_out=list(self._left_out),
        )


def resident_bytes() -> int:
    """Resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES
