"""A daemon for the interface: the client's methods on plain lists, without a connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import trio

from aegis.client.stream_kinds import Chunk
from aegis.protocol.agent_streams import AgentItem, AgentsItem
from aegis.protocol.agents import AgentInfo, ProfileInfo, ProfileList
from aegis.protocol.inboxes import MessageList, Receipt
from aegis.protocol.output_streams import OutputStart, Redraw, StateItem
from aegis.protocol.queue_streams import QueuesItem
from aegis.protocol.queues import TaskInfo, TaskList
from aegis.protocol.requests import RequestInfo, RequestReply
from aegis.protocol.streams import OpenRequestsItem, RequestItem, TerminalItem, TerminalsItem
from aegis.protocol.terminals import CommandRecord, NeedsInput, RecordList, State, TerminalInfo
from aegis.protocol.workflows import WorkflowList
from aegis.protocol.workspaces import WorkspaceList
from aegis.tui.link import DaemonLink
from tests.aegis.tui.examples import agent, command, record, terminal

GUARD_S = 60.0
"""A guard against hanging, far above what anything here takes."""


class Feed:
    """A stream: what was put into it, then what is put later."""

    unread = 0

    def __init__(self, *values: Any) -> None:
        self._sender, self._receiver = trio.open_memory_channel[Any](1000)
        self.put(*values)

    def put(self, *values: Any) -> None:
        for value in values:
            self._sender.send_nowait(value)

    def __aiter__(self) -> Feed:
        return self

    async def __anext__(self) -> Any:
        return await self._receiver.receive()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Feed]:
        yield self


class OutputFeed(Feed):
    """The output of a terminal; keys that are typed are kept."""

    def __init__(self, start: OutputStart, *values: Any) -> None:
        super().__init__(*values)
        self.start = start
        self.typed = b""
        self.sizes: list[tuple[int, int]] = []

    async def type(self, keys: bytes) -> None:
        self.typed += keys

    def claim_size(self, cols: int, rows: int, *, take: bool = False) -> None:
        del take
        self.sizes.append((cols, rows))

    def release_size(self) -> None:
        pass


class EndedFeed(OutputFeed):
    """Output that ends after what was put into it."""

    async def __anext__(self) -> Any:
        try:
            return self._receiver.receive_nowait()
        except trio.WouldBlock:
            raise StopAsyncIteration from None


class FakeDaemon:
    """Terminals, sessions and requests, changed by the methods of the test."""

    def __init__(self) -> None:
        self.infos: dict[str, TerminalInfo] = {}
        self.records: dict[str, list[CommandRecord]] = {}
        self.output: dict[str, OutputFeed] = {}
        self.raw: dict[str, bytes] = {}
        """The raw output of the command that is replayed."""
        self.agents: dict[str, AgentInfo] = {}
        self.transcripts: dict[str, Feed] = {}
        self.requests: dict[str, RequestInfo] = {}
        self.queues: list[Any] = []
        self.tasks: list[Any] = []
        self.messages: list[Any] = []
        self.workflows = Feed()
        self.groups = Feed()
        self.runs = WorkflowList(result=[], workflows=[], problems=[])
        self.called: list[tuple[str, Any]] = []
        self.is_reached, self.may_spawn, self.may_watch = trio.Event(), trio.Event(), trio.Event()
        self.may_read = trio.Event()
        for each in (self.is_reached, self.may_spawn, self.may_watch, self.may_read):
            each.set()
        self.event_feed, self.agent_feed, self.request_feed = Feed(), Feed(), Feed()
        self.client = self._client()

    # What happens at the daemon.

    def open_terminal(self, name: str, *records: CommandRecord, **fields: Any) -> None:
        self.infos[name] = terminal(name, **fields)
        self.records[name] = [*records]
        self.event_feed.put(TerminalItem(event="terminal_opened", terminal=self.infos[name]))

    def start_command(self, name: str, cmd: str, seq: int) -> None:
        item = command(name=name, cmd=cmd, seq=seq)
        self.infos[name] = terminal(name, state="running", running=item.command)
        changed = TerminalItem(event="terminal_changed", terminal=self.infos[name])
        self.event_feed.put(item, changed)
        self.set_state(name, "running")

    def set_state(self, name: str, state: State, needs: NeedsInput | None = None) -> None:
        if name in self.output:
            self.output[name].put(StateItem(state=state, needs_input=needs))

    def print(self, name: str, text: str) -> None:
        self.output[name].put(Chunk(cursor=0, data=text.encode()))

    def end_command(self, name: str, finished: CommandRecord) -> None:
        self.records[name].append(finished)
        fields = {"last_exit": finished.exit, "last_cmd_at": finished.started_at}
        self.infos[name] = terminal(name, **fields)
        changed = TerminalItem(event="terminal_changed", terminal=self.infos[name])
        item = command("command_finished", name=name, seq=finished.seq, cmd=finished.cmd)
        self.event_feed.put(item, changed)
        self.set_state(name, "idle")

    def set_agent(self, handle: str, **fields: Any) -> None:
        self.agents[handle] = agent(handle, **fields)
        self.transcripts.setdefault(handle, Feed())
        self.agent_feed.put(AgentItem(agent=self.agents[handle]))

    def ask(self, asked: RequestInfo) -> None:
        self.requests[asked.id] = asked
        self.request_feed.put(RequestItem(request=asked))

    # The client.

    def _client(self) -> Any:
        return SimpleNamespace(
            is_connected=True,
            wait_connected=self._wait_connected,
            events=self._events,
            terminals=SimpleNamespace(
                read=self._read, run=self._run, watch=self._watch, spawn=self._spawn
            ),
            workspaces=SimpleNamespace(list=self._workspaces),
            agents=SimpleNamespace(
                follow=self._follow_agents,
                events=self._transcript,
                interrupt=self._interrupt,
                profiles=self._profiles,
                spawn=self._spawn_agent,
            ),
            requests=SimpleNamespace(watch=self._watch_requests, answer=self._answer),
            queues=SimpleNamespace(
                follow=self._follow_queues,
                tasks=self._list_tasks,
                pause=self._calls("pause"),
                cancel=self._calls("cancel"),
                retry=self._retry_task,
            ),
            workflows=SimpleNamespace(
                follow=lambda: self.workflows.opened(),
                list=self._list_workflows,
                cancel=self._calls("cancel"),
                resume=self._calls("resume"),
                retry=self._calls("retry"),
            ),
            groups=SimpleNamespace(
                follow=lambda: self.groups.opened(), dissolve=self._calls("dissolve")
            ),
            inboxes=SimpleNamespace(
                watch=lambda: Feed().opened(), read=self._inbox, handoff=self._handoff
            ),
        )

    async def _wait_connected(self, wanted: bool = True) -> None:
        if not wanted:
            await trio.sleep_forever()

    def _events(self) -> Any:
        self.event_feed = Feed(TerminalsItem(terminals=[*self.infos.values()]))
        return self.event_feed.opened()

    def _follow_agents(self) -> Any:
        self.agent_feed = Feed(AgentsItem(agents=[*self.agents.values()]))
        return self.agent_feed.opened()

    def _watch_requests(self) -> Any:
        items = [RequestItem(request=each) for each in self.requests.values()]
        self.request_feed = Feed(OpenRequestsItem(open=[*self.requests]), *items)
        return self.request_feed.opened()

    def _follow_queues(self) -> Any:
        return Feed(QueuesItem(queues=self.queues)).opened()

    def _watch(self, name: str, *, end: int | None = None, **_: Any) -> Any:
        info = self.infos[name]
        if end is not None:
            return self._replayed(name)
        start = OutputStart(
            cursor=0, cols=info.cols, rows=info.rows, state=info.state, alternate=False
        )
        drawing = Redraw(redraw="\x1bc\x1b]133;A\x07$ \x1b]133;B\x07", cursor=0, partial=False)
        self.output[name] = OutputFeed(start, drawing)
        return self._watched(self.output[name])

    @asynccontextmanager
    async def _watched(self, feed: OutputFeed) -> AsyncIterator[Feed]:
        await self.may_watch.wait()
        async with feed.opened() as opened:
            yield opened

    def _replayed(self, name: str) -> Any:
        info, raw = self.infos[name], self.raw.get(name, b"")
        start = OutputStart(
            cursor=0, cols=info.cols, rows=info.rows, state=info.state, alternate=False
        )
        return EndedFeed(start, Chunk(cursor=0, data=raw)).opened()

    def _transcript(self, handle: str, **_: Any) -> Any:
        return self.transcripts[handle].opened()

    async def _read(self, name: str, *, since_seq: int | None = None, **_: Any) -> RecordList:
        await self.may_read.wait()
        after = -1 if since_seq is None else since_seq
        return RecordList(result=[each for each in self.records[name] if each.seq > after])

    async def _run(self, name: str, cmd: str, **_: Any) -> CommandRecord:
        self.called.append(("run", (name, cmd)))
        return record(cmd=cmd)

    async def _spawn(self, name: str, **_: Any) -> TerminalInfo:
        self.called.append(("spawn", name))
        await self.may_spawn.wait()
        self.open_terminal(name)
        return self.infos[name]

    async def _workspaces(self) -> WorkspaceList:
        return WorkspaceList(result=[])

    async def _interrupt(self, handle: str) -> None:
        self.called.append(("interrupt", handle))

    async def _profiles(self) -> ProfileList:
        return ProfileList(
            result=[ProfileInfo(profile="asks", provider="claude", permission="ask")]
        )

    async def _spawn_agent(self, *, profile: str) -> AgentInfo:
        self.called.append(("spawn agent", profile))
        self.set_agent("new")
        return self.agents["new"]

    async def _answer(self, id: str, digest: str, answer: str, **fields: Any) -> RequestReply:  # noqa: A002
        self.called.append(("answer", (id, digest, answer, fields.get("scope"), fields["values"])))
        del self.requests[id]
        self.request_feed.put(OpenRequestsItem(open=[*self.requests]))
        return RequestReply(id=id, outcome="applied", text="answered", by="human", at=None)

    def _calls(self, name: str) -> Any:
        async def call(subject: str) -> None:
            self.called.append((name, subject))

        return call

    async def _list_workflows(self, **_: Any) -> WorkflowList:
        return self.runs

    async def _retry_task(self, task_id: str) -> TaskInfo:
        self.called.append(("retry", task_id))
        found: TaskInfo = next(each for each in self.tasks if each.task_id == task_id)
        return found

    async def _list_tasks(self, **_: Any) -> TaskList:
        return TaskList(result=self.tasks)

    async def _inbox(self, **_: Any) -> MessageList:
        return MessageList(messages=self.messages, next=None)

    async def _handoff(self, handle: str, text: str) -> Receipt:
        self.called.append(("handoff", (handle, text)))
        return Receipt(id="m", status="landed", position=0)


def link_to(daemon: FakeDaemon) -> type[DaemonLink]:
    """A link whose client is the fake daemon's."""

    class FakeLink(DaemonLink):
        async def _serve(self) -> None:
            await daemon.is_reached.wait()
            self._client = daemon.client
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self._feeds(daemon.client, nursery)
                await trio.sleep_forever()

    return FakeLink


async def until(holds: Any, what: str = "it holds") -> None:
    """Wait until ``holds``, in the event loop of the interface."""
    deadline = time.monotonic() + GUARD_S
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}"
        await asyncio.sleep(0.01)
