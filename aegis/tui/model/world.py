"""The reports of the daemon's streams, folded into one state. Pure.

Each ``on_…`` method takes one value of a stream and returns the kind of the change. After a gap,
the feeds read the whole list again and pass it to a ``replace_…`` method.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from aegis.protocol.agents import AgentInfo
    from aegis.protocol.inboxes import Message
    from aegis.protocol.queues import QueueInfo
    from aegis.protocol.requests import RequestInfo
    from aegis.protocol.streams import CommandItem, TerminalItem
    from aegis.protocol.terminals import CommandHeader, TerminalInfo
    from aegis.protocol.workspaces import WorkspaceInfo


MAX_MESSAGES = 1_000
"""Messages of the inbox that are kept."""


class ChangeKind(Enum):
    """The meaning of a value of a stream for the person who watches."""

    NOTHING = auto()
    SHOWN = auto()
    """Something that is shown has changed."""
    OPENED = auto()
    """A terminal or an agent is new."""
    CLOSED = auto()
    STARTED = auto()
    FINISHED = auto()
    """A command or a turn has ended."""
    ASKS = auto()
    """A person is needed."""


MAX_CLOSED = 256
"""Closed sessions whose handles are kept, for tabs that still show them."""


@attrs.define
class World:
    """Terminals by name, agents by id, open requests by id, queues by name."""

    is_connected: bool = False
    terminals: dict[str, TerminalInfo] = attrs.field(factory=dict)
    running: dict[str, CommandHeader] = attrs.field(factory=dict)
    """The command that runs on a terminal, if it is known."""
    agents: dict[str, AgentInfo] = attrs.field(factory=dict)
    closed: dict[str, str] = attrs.field(factory=dict)
    """The handles of the sessions that were closed last, by their ids."""
    requests: dict[str, RequestInfo] = attrs.field(factory=dict)
    queues: dict[str, QueueInfo] = attrs.field(factory=dict)
    workspaces: list[WorkspaceInfo] = attrs.field(factory=list)
    messages: list[Message] = attrs.field(factory=list)

    # Terminals.

    def replace_terminals(self, infos: Iterable[TerminalInfo]) -> None:
        """Take the whole list of open terminals."""
        self.terminals = {each.name: each for each in infos}
        self.running = {
            name: each.running for name, each in self.terminals.items() if each.running is not None
        }

    def on_terminal(self, item: TerminalItem) -> ChangeKind:
        """Take the state of one terminal."""
        name = item.terminal.name
        if item.event == "terminal_closed":
            self.running.pop(name, None)
            return ChangeKind.CLOSED if self.terminals.pop(name, None) else ChangeKind.NOTHING
        is_new = name not in self.terminals
        self.terminals[name] = item.terminal
        if item.terminal.running is None:
            self.running.pop(name, None)
        else:
            self.running[name] = item.terminal.running
        return ChangeKind.OPENED if is_new else ChangeKind.SHOWN

    def on_command(self, item: CommandItem) -> ChangeKind:
        """Take the start, a change or the end of a command."""
        header = item.command
        if item.event != "command_finished":
            known = self.running.get(header.name)
            self.running[header.name] = header
            if item.event == "command_started":
                return ChangeKind.STARTED
            needed = known is not None and known.needs_input is not None
            asks = header.needs_input is not None and not needed
            return ChangeKind.ASKS if asks else ChangeKind.SHOWN
        known = self.running.get(header.name)
        if known is None or known.seq <= header.seq:
            self.running.pop(header.name, None)
        return ChangeKind.FINISHED

    # Agents.

    def replace_agents(self, infos: Iterable[AgentInfo]) -> None:
        """Take all open sessions."""
        before, self.agents = self.agents, {each.id: each for each in infos}
        for each in before.values():
            if each.id not in self.agents:
                self._closed(each)

    def on_agent(self, info: AgentInfo) -> ChangeKind:
        """Take the state of one session."""
        before = self.agents.get(info.id)
        if info.state == "closed":
            self._closed(info)
            return ChangeKind.CLOSED if self.agents.pop(info.id, None) else ChangeKind.NOTHING
        self.agents[info.id] = info
        if before is None:
            return ChangeKind.OPENED
        if info.state in ("blocked", "needs_input") and before.state != info.state:
            return ChangeKind.ASKS
        is_ended = before.state == "working" and info.state in ("idle", "error", "dormant")
        return ChangeKind.FINISHED if is_ended else ChangeKind.SHOWN

    def _closed(self, info: AgentInfo) -> None:
        self.closed[info.id] = info.handle
        while len(self.closed) > MAX_CLOSED:
            del self.closed[next(iter(self.closed))]

    def agent(self, handle: str) -> AgentInfo | None:
        """Return the open session with this handle."""
        return next((each for each in self.agents.values() if each.handle == handle), None)

    def agent_of_terminal(self, name: str) -> AgentInfo | None:
        """Return the terminal agent whose program runs on the terminal ``name``."""
        return next(
            (
                each
                for each in self.agents.values()
                if each.program is not None and each.program.terminal == name
            ),
            None,
        )

    # Requests.

    def keep_requests(self, ids: Iterable[str]) -> None:
        """Drop the requests that are not open any more."""
        is_open = set(ids)
        self.requests = {key: each for key, each in self.requests.items() if key in is_open}

    def on_request(self, info: RequestInfo) -> ChangeKind:
        """Take the state of one request."""
        if info.state != "open":
            return ChangeKind.SHOWN if self.requests.pop(info.id, None) else ChangeKind.NOTHING
        is_new = info.id not in self.requests
        self.requests[info.id] = info
        return ChangeKind.ASKS if is_new else ChangeKind.SHOWN

    def open_requests(self) -> list[RequestInfo]:
        """Return the open requests, the oldest first."""
        return sorted(self.requests.values(), key=lambda each: (each.created, each.id))

    # Queues and messages.

    def replace_queues(self, infos: Iterable[QueueInfo]) -> None:
        """Take all queues."""
        self.queues = {each.queue: each for each in infos}

    def on_message(self, message: Message) -> None:
        """Take a message of the inbox; one with a known id replaces it."""
        self.messages = [each for each in self.messages if each.id != message.id]
        self.messages.append(message)
        del self.messages[:-MAX_MESSAGES]
