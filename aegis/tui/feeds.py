"""The streams that keep the ``World`` up to date, each in a task of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import trio

from aegis.client.client import Client
from aegis.client.stream_kinds import Gap
from aegis.protocol.agent_streams import AgentsItem
from aegis.protocol.inboxes import Message
from aegis.protocol.queue_streams import QueuesItem
from aegis.protocol.requests import RequestInfo
from aegis.protocol.streams import CommandItem, OpenRequestsItem, TerminalItem, TerminalsItem
from aegis.tui.link import keep
from aegis.tui.model.world import ChangeKind, World

INBOX_START = 50
"""Messages of the inbox that are read at the start."""


class FeedSubscriber(Protocol):
    """The app, which gets every change."""

    def on_change(self, kind: str, key: str, change: ChangeKind) -> None:
        """Take a change of ``terminals``, ``agents``, ``requests``, ``queues`` or ``inbox``.

        ``key`` is a tab's key, the id of a request, or empty for a whole list.
        """

    def on_command_item(self, item: CommandItem) -> None:
        """Take the start or the end of a command."""

    def on_requests(self, request: RequestInfo) -> None:
        """Take a request that was settled or changed."""

    def on_connection(self, is_connected: bool) -> None:
        """Take the loss of the connection, or a new one."""

    def report(self, sentence: str) -> None:
        """Show a failure."""


class Feeds:
    """Starts the tasks that follow the daemon's streams."""

    def __init__(self, world: World, listener: FeedSubscriber) -> None:
        self._world = world
        self._listener = listener

    def start(self, client: Client, nursery: trio.Nursery) -> None:
        """Start all of them."""
        nursery.start_soon(self._connection, client)
        follows: dict[str, Callable[[Client], Awaitable[None]]] = {
            "terminals": self._events,
            "agents": self._agents,
            "requests": self._requests,
            "queues": self._queues,
            "inbox": self._inbox,
        }
        for name, follow in follows.items():
            nursery.start_soon(keep, client, name, partial(follow, client), self._listener.report)

    async def _connection(self, client: Client) -> None:
        while True:
            await client.wait_connected(True)
            self._set_connected(True)
            await client.wait_connected(False)
            self._set_connected(False)

    def _set_connected(self, is_connected: bool) -> None:
        self._world.is_connected = is_connected
        self._listener.on_connection(is_connected)

    async def _events(self, client: Client) -> None:
        async with client.events() as events:
            async for value in events:
                match value:
                    case TerminalsItem():
                        self._world.replace_terminals(value.terminals)
                        await self._read_workspaces(client)
                        self._changed("terminals", "", ChangeKind.SHOWN)
                    case TerminalItem():
                        change = self._world.on_terminal(value)
                        self._changed("terminals", f"term:{value.terminal.name}", change)
                        if change in (ChangeKind.OPENED, ChangeKind.CLOSED):
                            await self._read_workspaces(client)
                    case CommandItem():
                        change = self._world.on_command(value)
                        self._listener.on_command_item(value)
                        self._changed("terminals", f"term:{value.command.name}", change)
                    case Gap():
                        continue  # all terminals are sent again

    async def _read_workspaces(self, client: Client) -> None:
        self._world.workspaces = (await client.workspaces.list()).result

    async def _agents(self, client: Client) -> None:
        async with client.agents.follow() as agents:
            async for value in agents:
                match value:
                    case Gap():
                        continue  # all sessions are sent again
                    case AgentsItem():
                        self._world.replace_agents(value.agents)
                        self._changed("agents", "", ChangeKind.SHOWN)
                    case _:
                        change = self._world.on_agent(value.agent)
                        self._changed("agents", f"agent:{value.agent.id}", change)

    async def _requests(self, client: Client) -> None:
        async with client.requests.watch() as requests:
            async for value in requests:
                match value:
                    case Gap():
                        continue  # all open ones are sent again
                    case OpenRequestsItem():
                        self._world.keep_requests(value.open)
                        self._changed("requests", "", ChangeKind.SHOWN)
                    case _:
                        change = self._world.on_request(value.request)
                        self._listener.on_requests(value.request)
                        self._changed("requests", value.request.id, change)

    async def _queues(self, client: Client) -> None:
        async with client.queues.follow() as queues:
            async for value in queues:
                match value:
                    case Gap():
                        continue
                    case QueuesItem():
                        self._world.replace_queues(value.queues)
                    case _:
                        self._world.queues[value.queue.queue] = value.queue
                self._changed("queues", "", ChangeKind.SHOWN)

    async def _inbox(self, client: Client) -> None:
        async with client.inboxes.watch() as inbox:
            found = await client.inboxes.read(unread=False, limit=INBOX_START)
            for message in found.messages:
                self._world.on_message(message)
            self._changed("inbox", "", ChangeKind.SHOWN)
            async for value in inbox:
                if isinstance(value, Message):
                    self._world.on_message(value)
                    self._changed("inbox", value.id, ChangeKind.OPENED)

    def _changed(self, kind: str, key: str, change: ChangeKind) -> None:
        if change is not ChangeKind.NOTHING:
            self._listener.on_change(kind, key, change)
