"""``Sources``: the daemon's ``StreamPort``: the source of each kind of stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from actors import ActorCrashed, Change, Gap, Node, Ref, Request, System
from aegis.errors import Forbidden, Unavailable
from aegis.protocol.agent_streams import StreamAgents, StreamSession
from aegis.protocol.daemon import tree_node
from aegis.protocol.derived.wire import arguments_from
from aegis.protocol.feeds import FollowInbox, InboxNews
from aegis.protocol.requests import FollowRequests, RequestNews
from aegis.protocol.stream_table import StreamEntry
from aegis.protocol.streams import (
    DeltaItem,
    OpenRequestsItem,
    RequestItem,
    SnapshotItem,
    StreamEvents,
    StreamInbox,
    StreamOutput,
    StreamRequests,
    StreamTree,
    TreeChange,
)
from aegis.servers.calls import Caller
from aegis.servers.connection import Names, Refuse, with_identity
from aegis.servers.streams.agent_source import follow_agents, follow_session
from aegis.servers.streams.event_hub import EventHub
from aegis.servers.streams.outlet import StreamOut
from aegis.servers.streams.output_source import follow_output

MESSAGES_AT_ONCE = 16
"""Messages of an inbox that are read at a time for a client."""

STOPPED = "the daemon stops"


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
        refuse: Refuse,
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
                refusal = self._refuse_keys(caller.identity.handle, command.name)
                return await follow_output(self._system, command, out, refusal)
            case StreamTree():
                return await self._follow_tree(out)
            case StreamInbox():
                return await self._follow_inbox(command, out)
            case StreamRequests(from_handle=handle):
                return await self._follow_requests(handle, out)
            case StreamAgents(from_handle=handle):
                return await follow_agents(self._system, handle, out)
            case StreamSession():
                return await follow_session(self._system, command, out)
            case StreamEvents():
                return await self._follow_events(out)
        raise AssertionError(f"there is no source for {entry.name}")

    def _refuse_keys(self, bound: str | None, terminal: str) -> str | None:
        """Return why a handle may not type. Raises ``Forbidden`` if it may not even look."""
        if bound is None:
            return None
        refusal = self._refuse(bound, "term_output", (terminal,))
        if refusal is not None:
            raise Forbidden(refusal)
        return self._refuse(bound, "term_keys", (terminal,))

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
            await out.opened(None)
            while True:
                await out.room()
                missed, event = await subscription.next()
                if missed:
                    await out.gap(missed)
                    await out.room()
                await out.item(event)
        finally:
            subscription.close()

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
