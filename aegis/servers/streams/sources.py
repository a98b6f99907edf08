"""``Sources``: the daemon's ``StreamPort``: the source of each kind of stream.

The streams of queues, canvases, workflows and groups buffer nothing: news are requested when the
client has credit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import trio

from actors import ActorCrashed, Change, Gap, Node, Ref, Request, System
from aegis.errors import Forbidden, Unavailable
from aegis.protocol.agent_streams import StreamAgentCommand, StreamAgents, StreamSession
from aegis.protocol.canvas_streams import CanvasesItem, CanvasItem, StreamCanvases
from aegis.protocol.daemon import tree_node
from aegis.protocol.derived.wire import arguments_from
from aegis.protocol.feeds import (
    CanvasesNews,
    FollowCanvases,
    FollowGroups,
    FollowInbox,
    FollowQueues,
    FollowWorkflows,
    GroupsNews,
    InboxNews,
    QueuesNews,
    WorkflowsNews,
)
from aegis.protocol.group_streams import GroupItem, GroupsItem, StreamGroups
from aegis.protocol.output_streams import StreamOutput
from aegis.protocol.queue_streams import QueueItem, QueuesItem, StreamQueues
from aegis.protocol.requests import FollowRequests, RequestNews
from aegis.protocol.stream_table import StreamEntry
from aegis.protocol.streams import (
    DeltaItem,
    OpenRequestsItem,
    RequestItem,
    SnapshotItem,
    StreamEvents,
    StreamInbox,
    StreamRequests,
    StreamTree,
    TerminalsItem,
    TreeChange,
)
from aegis.protocol.terminals import ListTerminals, TerminalList
from aegis.protocol.workflow_streams import StreamWorkflows, WorkflowItem, WorkflowsItem
from aegis.servers.calls import Caller, Identity
from aegis.servers.connection import Names, RightsCheck, with_identity
from aegis.servers.streams.agent_source import follow_of_agents
from aegis.servers.streams.event_hub import EventHub
from aegis.servers.streams.outlet import StreamOut
from aegis.servers.streams.output_source import InputRights, follow_output

MESSAGES_AT_ONCE = 16
"""Messages of an inbox that are read at a time for a client."""

NEWS_S = 0.05
"""The interval, in seconds, between news: more changes of a thing become its newest state."""

STOPPED = "the daemon stops"

READ_ONLY = "this link is read-only: nothing can be typed or resized through it"


News = QueuesNews | CanvasesNews | WorkflowsNews | GroupsNews


class Sources:
    """The streams of ``system``. ``on_listener`` is called before each subscription to events.

    ``on_handle`` is called with the handle of a client that opens a stream: it exists from then on.
    ``refuse`` checks the rights of callers that are bound to a handle.
    """

    def __init__(
        self,
        system: System,
        events: EventHub,
        *,
        names: Names,
        on_listener: Callable[[], None],
        on_handle: Callable[[str], None],
        refuse: RightsCheck,
    ) -> None:
        self._system = system
        self._events = events
        self._names = names
        self._on_listener = on_listener
        self._on_handle = on_handle
        self._refuse = refuse

    async def stream(
        self,
        caller: Caller,
        entry: StreamEntry,
        arguments: Mapping[str, object],
        out: StreamOut,
    ) -> str:
        """Serve one stream; see ``StreamPort``."""
        command = with_identity(arguments_from(entry, arguments), caller.identity, self._names)
        if command.from_handle is not None:
            self._on_handle(command.from_handle)
        match command:
            case StreamOutput():
                rights = self._input_rights(caller.identity, command.name)
                return await follow_output(self._system, command, out, rights)
            case StreamTree():
                return await self._follow_tree(out)
            case StreamInbox():
                return await self._follow_inbox(command, out)
            case StreamRequests(from_handle=handle):
                return await self._follow_requests(handle, out)
            case StreamAgents() | StreamSession() | StreamAgentCommand():
                return await follow_of_agents(self._system, command, out)
            case StreamQueues():
                return await _follow_states(self._system, out, "queues", FollowQueues)
            case StreamCanvases():
                return await _follow_states(self._system, out, "canvases", FollowCanvases)
            case StreamWorkflows():
                return await _follow_states(self._system, out, "workflows", FollowWorkflows)
            case StreamGroups():
                return await _follow_states(self._system, out, "groups", FollowGroups)
            case StreamEvents():
                return await self._follow_events(out)
        raise AssertionError(f"there is no source for {entry.name}")

    def _input_rights(self, identity: Identity, terminal: str) -> InputRights:
        """Return why a client may not type or resize. Raises ``Forbidden`` if it may not look."""
        if identity.view is not None:
            return InputRights(keys_refusal=READ_ONLY, size_refusal=READ_ONLY)
        bound = identity.handle
        if bound is None:
            return InputRights()
        refusal = self._refuse(bound, "term_output", (terminal,))
        if refusal is not None:
            raise Forbidden(refusal)
        return InputRights(
            keys_refusal=self._refuse(bound, "term_keys", (terminal,)),
            size_refusal=self._refuse(bound, "term_resize", (terminal,)),
        )

    async def _follow_tree(self, out: StreamOut) -> str:
        with self._system.watch_tree() as watch:
            await out.opened(None)
            await out.room()
            async for view in watch:
                match view:
                    case Node():
                        await out.item(SnapshotItem(snapshot=tree_node(view)))
                    case Change():
                        await out.item(DeltaItem(delta=_change(view)))
                    case Gap(missed=missed):
                        await out.gap(missed)
                await out.room()
        return STOPPED

    async def _follow_events(self, out: StreamOut) -> str:
        self._on_listener()
        subscription = self._events.subscribe()
        try:
            listed = await self._terminals()
            await out.opened(None)
            await out.room()
            await out.item(listed)
            while True:
                await out.room()
                missed, event = await subscription.next()
                if missed:
                    await out.gap(missed)
                    await out.room()
                    await out.item(await self._terminals())
                    await out.room()
                await out.item(event)
        finally:
            subscription.close()

    async def _terminals(self) -> TerminalsItem:
        """Return all open terminals, after the events so far."""
        listed: TerminalList = await self._ask_across_crashes("terminals", ListTerminals())
        return TerminalsItem(terminals=listed.result)

    async def _follow_inbox(self, command: StreamInbox, out: StreamOut) -> str:
        handle = command.from_handle or "human"
        news = await self._ask_inbox(FollowInbox(handle=handle, after=command.after))
        await out.opened(None)
        while True:
            await out.room()
            news = await self._ask_inbox(
                FollowInbox(handle=handle, place=news.place, limit=MESSAGES_AT_ONCE)
            )
            if news.missed:
                await out.gap(news.missed)
            for message in news.messages:
                await out.room()
                await out.item(message)

    async def _follow_requests(self, handle: str | None, out: StreamOut) -> str:
        news = await self._ask_desk(FollowRequests(from_handle=handle))
        await out.opened(None)
        while True:
            await out.room()
            if news.open is not None:
                await out.item(OpenRequestsItem(open=news.open))
            for request in news.changed:
                await out.room()
                await out.item(RequestItem(request=request))
            await out.room()
            news = await self._ask_desk(FollowRequests(from_handle=handle, place=news.place))

    async def _ask_desk(self, request: FollowRequests) -> RequestNews:
        news: RequestNews = await self._ask_across_crashes("requests", request)
        return news

    async def _ask_inbox(self, request: FollowInbox) -> InboxNews:
        news: InboxNews = await self._ask_across_crashes("inboxes", request)
        return news

    async def _ask_across_crashes(self, service: str, request: Request[Any]) -> Any:
        """Ask a service without a time limit, and again if it crashes meanwhile."""
        ref: Ref[Any] | None = self._system.registry.find("service", service)
        if ref is None:
            raise Unavailable("the daemon is starting or stopping; try again")
        while True:
            try:
                return await ref.send_request(request).wait()
            except ActorCrashed:
                continue


def _change(change: Change) -> TreeChange:
    return TreeChange(
        path=change.path,
        kind=change.kind,
        state=change.state,
        restarts=change.restarts,
        mailbox=change.mailbox,
    )


async def _follow_states(
    system: System, out: StreamOut, service: str, follow: Callable[..., Request[Any]]
) -> str:
    """Send all things of a service to ``out``, then each change, until cancelled."""
    news = await _ask(system, service, follow(place=None))
    await out.opened(None)
    while True:
        for item in _items(news):
            await out.room()
            await out.item(item)
        sent_at = trio.current_time()
        await out.room()
        await trio.sleep_until(sent_at + NEWS_S)
        news = await _ask(system, service, follow(place=news.place))


def _items(news: News) -> list[Any]:
    match news:
        case QueuesNews(queues=queues):
            whole, each = QueuesItem(queues=queues), [QueueItem(queue=one) for one in queues]
            return [whole] if news.is_all else [*each]
        case CanvasesNews(canvases=canvases) if news.is_all:
            return [CanvasesItem(canvases=canvases)]
        case CanvasesNews(canvases=canvases):
            return [CanvasItem(canvas=one) for one in canvases]
        case WorkflowsNews(workflows=workflows) if news.is_all:
            return [WorkflowsItem(workflows=workflows)]
        case WorkflowsNews(workflows=workflows):
            return [WorkflowItem(workflow=one) for one in workflows]
        case GroupsNews(groups=groups) if news.is_all:
            return [GroupsItem(groups=groups)]
        case GroupsNews(groups=groups):
            return [GroupItem(group=one) for one in groups]


async def _ask(system: System, service: str, request: Request[Any]) -> News:
    """Ask the desk without a time limit, and again across crashes."""
    while True:
        desk = system.registry.find("service", service)
        if desk is None:
            raise Unavailable("the daemon is starting or stopping; try again")
        try:
            answer: News = await desk.send_request(request).wait()
        except ActorCrashed:
            continue
        return answer
