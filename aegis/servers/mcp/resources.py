"""Ledgers and inboxes as MCP resources, and the notifications that they have changed.

A client with a session subscribes to resources one by one and gets notifications on the stream that
it opens by GET; notifications for changes before that are sent when the stream opens. Over lines
the connection itself is the stream. A client without a session sends one request with a list of
URIs, and the response is the stream.

A notification says "read the resource again", so several changes before it is sent are one. A
client that reads slowly, or never, costs one entry for each URI that it subscribed to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
import mcp_types as types
import structlog
import trio
from mcp.server.connection import Connection
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.shared.exceptions import MCPError

from aegis.errors import Unavailable
from aegis.protocol.derived.wire import to_plain
from aegis.protocol.naming import name_key
from aegis.protocol.resources import (
    CANVAS_TEMPLATE,
    INBOX_TEMPLATE,
    LEDGER_TEMPLATE,
    QUEUE_TEMPLATE,
    CanvasResource,
    Inbox,
    Ledger,
    QueueResource,
    Resource,
    resource_at,
)
from aegis.protocol.table import BY_NAME
from aegis.servers.calls import Caller, CallPort, Failure, Identity, failure_of, internal_failure
from aegis.servers.mcp.context import STOPPING, Context, caller_of, connection_of, identity_of
from aegis.servers.mcp.documents import check_may_read, document_of, reading_of
from aegis.servers.mcp.running_calls import RunningCalls

MAX_WATCHED = 256
"""URIs that a session, or a stream without a session, may subscribe to."""

MAX_STREAMS = 1000
"""Open streams of clients without a session."""

MAX_VALUES = 100
"""The largest number of values in a response, by the MCP specification."""

MIME_TYPE = "application/json"

log = structlog.get_logger("aegis.servers.mcp")

Send = Callable[[Any], Awaitable[None]]


class ResourceSubscriptions:
    """The subscriptions of one client, by URI as the client spelled it."""

    def __init__(self) -> None:
        self._uris: dict[str, dict[str, None]] = {}
        self._changed: dict[str, None] = {}
        self._news = trio.Event()

    def __len__(self) -> int:
        """The number of subscribed URIs."""
        return sum(map(len, self._uris.values()))

    @property
    def keys(self) -> Iterable[str]:
        """The keys of the subscribed resources."""
        return list(self._uris)

    def add(self, resource: Resource, uri: str) -> None:
        """Subscribe to ``resource``, spelled ``uri``."""
        self._uris.setdefault(resource.key, {})[uri] = None

    def remove(self, uri: str) -> None:
        """Unsubscribe from ``uri``. Raises ``NotFound`` for an invalid address."""
        key = resource_at(uri).key
        spelled = self._uris.get(key, {})
        spelled.pop(uri, None)
        self._changed.pop(uri, None)
        if not spelled:
            self._uris.pop(key, None)

    def changed(self, key: str) -> None:
        """Note a change of the resource with this key."""
        self._changed |= self._uris.get(key, {})
        if self._changed:
            self._news.set()

    def changed_all(self) -> None:
        """Note a change of each resource: earlier notifications may have been lost."""
        for key in self.keys:
            self.changed(key)

    async def wait(self) -> None:
        """Wait until there is a change without a notification."""
        while not self._changed:
            self._news = trio.Event()
            await self._news.wait()

    def take(self) -> list[str]:
        """Return and clear the URIs of changed resources, in the order of the first changes."""
        changed, self._changed = list(self._changed), {}
        return changed


class Subscribers:
    """All subscribers, by the key of the resource."""

    def __init__(self) -> None:
        self._by_key: dict[str, dict[ResourceSubscriptions, None]] = {}

    def __len__(self) -> int:
        """The number of resources with a subscriber."""
        return len(self._by_key)

    def add(self, watch: ResourceSubscriptions, resource: Resource, uri: str) -> None:
        """Subscribe ``watch`` to ``resource``, spelled ``uri``."""
        watch.add(resource, uri)
        self._by_key.setdefault(resource.key, {})[watch] = None

    def remove(self, watch: ResourceSubscriptions, uri: str) -> None:
        """Unsubscribe ``watch`` from ``uri``. Raises ``NotFound`` for an invalid address."""
        key = resource_at(uri).key
        watch.remove(uri)
        if key not in watch.keys:
            self._drop(watch, key)

    def remove_all(self, watch: ResourceSubscriptions) -> None:
        """Remove all subscriptions of ``watch``."""
        for key in watch.keys:
            self._drop(watch, key)

    def changed(self, key: str) -> None:
        """Note a change of the resource with this key, for each of its subscribers."""
        for watch in self._by_key.get(key, {}):
            watch.changed(key)

    def _drop(self, watch: ResourceSubscriptions, key: str) -> None:
        watching = self._by_key.get(key, {})
        watching.pop(watch, None)
        if not watching:
            self._by_key.pop(key, None)


@attrs.define(eq=False)
class _Session:
    """A session with subscriptions; ``was_notified``: on a stream that may have ended."""

    was_notified: bool = False
    watch: ResourceSubscriptions = attrs.field(factory=ResourceSubscriptions)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)


class McpResources:
    """The handlers of ``resources/*``, ``completion/complete`` and ``subscriptions/listen``.

    ``run`` must be running for sessions to be notified.
    """

    def __init__(self, port: CallPort, running_calls: RunningCalls) -> None:
        self._port = port
        self._running_calls = running_calls
        self._watches = Subscribers()
        self._sessions: dict[str, _Session] = {}
        self._open: dict[str, None] = {}
        self._opened = trio.Event()
        self._streams = 0
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the tasks that notify sessions, until cancelled."""
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            await trio.sleep_forever()

    def changed(self, key: str) -> None:
        """Notify the subscribers of the resource with this key."""
        self._watches.changed(key)

    # Reading.

    async def list_resources(
        self, ctx: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List the ledgers of open terminals, canvases, queues, and the caller's own inbox."""
        with self._running_calls.call(), refusals("resources"):
            found: list[Resource] = []
            for command, resource, name in _LISTED:
                reply = await self._port.call(caller_of(ctx), BY_NAME[command], {})
                infos: Any = to_plain(reply)["result"]
                found += [resource(info[name]) for info in infos]
            found.append(Inbox(identity_of(ctx).handle or "human"))
            return types.ListResourcesResult(resources=[_described(each) for each in found])
        raise mcp_error(STOPPING, "resources")

    async def list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """List the templates of resource URIs."""
        return types.ListResourceTemplatesResult(resource_templates=_TEMPLATES)

    async def read(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return the resource as JSON."""
        with self._running_calls.call(), refusals(params.uri):
            text = await self._read(caller_of(ctx), _permitted(identity_of(ctx), params.uri))
            content = types.TextResourceContents(uri=params.uri, mime_type=MIME_TYPE, text=text)
            return types.ReadResourceResult(contents=[content])
        raise mcp_error(STOPPING, params.uri)

    async def _read(self, caller: Caller, resource: Resource) -> str:
        entry, arguments = reading_of(caller.identity, resource)
        return document_of(to_plain(await self._port.call(caller, entry, arguments)))

    async def _check_exists(self, caller: Caller, resource: Resource) -> None:
        """Raise as reading the resource would. An inbox exists for each caller that may read it."""
        if isinstance(resource, CanvasResource):
            await self._port.call(caller, BY_NAME["canvas_read"], {"name": resource.name})
        elif isinstance(resource, QueueResource):
            named = {"queue": resource.name, "limit": 1}
            await self._port.call(caller, BY_NAME["task_list"], named)
        elif isinstance(resource, Ledger):
            arguments: Mapping[str, object] = {"name": resource.name, "last_n": 1}
            await self._port.call(caller, BY_NAME["term_read"], arguments)

    # Completing a URI. Only templates have arguments: there are no prompts.

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Return the names that begin with the given text, ignoring case."""
        with self._running_calls.call(), refusals("completion/complete"):
            names = await self._names(ctx, params)
            return types.CompleteResult(completion=fitting(names, params.argument.value))
        raise mcp_error(STOPPING, "completion/complete")

    async def _names(self, ctx: Context, params: types.CompleteRequestParams) -> list[str]:
        if not isinstance(params.ref, types.ResourceTemplateReference):
            return []
        match params.ref.uri, params.argument.name:
            case str(uri), "name" if uri == LEDGER_TEMPLATE:
                return [info["name"] for info in (await self._reply(ctx, "term_list"))["result"]]
            case str(uri), "name" if uri == CANVAS_TEMPLATE:
                return [info["name"] for info in (await self._reply(ctx, "canvas_list"))["result"]]
            case str(uri), "name" if uri == QUEUE_TEMPLATE:
                return [info["queue"] for info in (await self._reply(ctx, "queue_list"))["result"]]
            case str(uri), "handle" if uri == INBOX_TEMPLATE:
                return await self._handles(ctx)
        return []

    async def _handles(self, ctx: Context) -> list[str]:
        """Return the handles whose inbox the caller may read."""
        own = identity_of(ctx).handle
        if own is not None:
            return [own]
        handles: list[str] = (await self._reply(ctx, "status"))["handles"]
        return ["human", *(each for each in handles if name_key(each) != "human")]

    async def _reply(self, ctx: Context, command: str) -> Any:
        return to_plain(await self._port.call(caller_of(ctx), BY_NAME[command], {}))

    # Watching, with a session.

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Subscribe the session to a resource."""
        with self._running_calls.call(), refusals(params.uri):
            resource = _permitted(identity_of(ctx), params.uri)
            await self._check_exists(caller_of(ctx), resource)
            session = self._session(connection_of(ctx))
            _check_room(len(session.watch) + 1)
            self._watches.add(session.watch, resource, params.uri)
            return types.EmptyResult()
        raise mcp_error(STOPPING, params.uri)

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Unsubscribe the session from a resource. Idempotent."""
        with refusals(params.uri):
            session = self._sessions.get(connection_of(ctx).session_id or "")
            if session is not None:
                self._watches.remove(session.watch, params.uri)
        return types.EmptyResult()

    def _session(self, connection: Connection) -> _Session:
        number = connection.session_id
        assert number is not None
        assert self._nursery is not None
        if number not in self._sessions:
            self._sessions[number] = session = _Session()
            connection.exit_stack.callback(self._end_session, number)
            self._nursery.start_soon(self._send_updates, number, session, connection)
        return self._sessions[number]

    def _end_session(self, number: str) -> None:
        session = self._sessions.pop(number)
        self._watches.remove_all(session.watch)
        session.scope.cancel()

    async def _send_updates(self, number: str, session: _Session, connection: Connection) -> None:
        with session.scope:
            while True:
                await session.watch.wait()
                while number not in self._open:
                    await self._opened.wait()
                for uri in session.watch.take():
                    session.was_notified = True
                    await connection.send_resource_updated(uri)

    @contextmanager
    def noticed(self, scope: Mapping[str, Any], send: Send) -> Iterator[Send]:
        """Detect whether this HTTP request opens the stream of a session's notifications.

        The value of the context is to be called instead of ``send``.
        """
        number = dict(scope["headers"]).get(b"mcp-session-id", b"").decode("latin-1")
        if scope["method"] != "GET" or not number:
            yield send
            return

        async def noticing(message: Any) -> None:
            await send(message)
            if message["type"] == "http.response.start" and message["status"] == 200:
                opened.append(number)
                self._stream_opened(number)

        opened: list[str] = []
        try:
            yield noticing
        finally:
            if opened:
                self._open.pop(number, None)

    @contextmanager
    def stream_of(self, number: str) -> Iterator[None]:
        """Treat a connection of lines as the open stream of its session, during the block."""
        self._stream_opened(number)
        try:
            yield
        finally:
            self._open.pop(number, None)

    def _stream_opened(self, number: str) -> None:
        self._open[number] = None
        self._opened.set()
        self._opened = trio.Event()
        session = self._sessions.get(number)
        # Notifications on the previous stream may not have arrived: they are sent again.
        if session is not None and session.was_notified:
            session.watch.changed_all()

    # Watching, without a session.

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Send notifications until the client disconnects, or the daemon stops."""
        with self._running_calls.call():
            await self._listen(ctx, params.notifications.resource_subscriptions or [])
        return types.SubscriptionsListenResult(_meta=_mark(ctx))

    async def _listen(self, ctx: Context, uris: list[str]) -> None:
        with refusals("subscriptions/listen"):
            _check_room(len(uris), self._streams)
        resources: dict[str, Resource] = {}
        for uri in uris:
            with refusals(uri):
                resources[uri] = _permitted(identity_of(ctx), uri)
                await self._check_exists(caller_of(ctx), resources[uri])
        watch = ResourceSubscriptions()
        self._streams += 1
        try:
            for uri, resource in resources.items():
                self._watches.add(watch, resource, uri)
            await _acknowledge(ctx, list(resources))
            while True:
                await watch.wait()
                for uri in watch.take():
                    await _notify(ctx, uri)
        finally:
            self._streams -= 1
            self._watches.remove_all(watch)


async def _acknowledge(ctx: Context, uris: list[str]) -> None:
    """Send the first frame of the stream: the accepted subscriptions, to resources only."""
    honored = types.SubscriptionFilter(resource_subscriptions=uris or None)
    params = types.SubscriptionsAcknowledgedNotificationParams(
        notifications=honored, _meta=_mark(ctx)
    )
    await ctx.session.send_notification(
        types.SubscriptionsAcknowledgedNotification(params=params),
        related_request_id=ctx.request_id,
    )


async def _notify(ctx: Context, uri: str) -> None:
    params = types.ResourceUpdatedNotificationParams(uri=uri, _meta=_mark(ctx))
    await ctx.session.send_notification(
        types.ResourceUpdatedNotification(params=params), related_request_id=ctx.request_id
    )


def _mark(ctx: Context) -> Any:
    """Return the metadata of each frame of a stream: the id of its request."""
    return {SUBSCRIPTION_ID_META_KEY: ctx.request_id}


def _permitted(identity: Identity, uri: str) -> Resource:
    """Return the resource at ``uri``. Raises ``NotFound``, ``Forbidden``."""
    resource = resource_at(uri)
    check_may_read(identity, resource)
    return resource


def _check_room(watched: int, streams: int = 0) -> None:
    if watched > MAX_WATCHED:
        raise Unavailable(
            f"a client may subscribe to at most {MAX_WATCHED} resources; unsubscribe from one first"
        )
    if streams >= MAX_STREAMS:
        raise Unavailable(f"{MAX_STREAMS} subscription streams are open already; close one first")


@contextmanager
def refusals(subject: str) -> Iterator[None]:
    """Convert errors to ``MCPError``."""
    try:
        yield
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            log.exception("a resource request failed", subject=subject)
            failure = internal_failure("the resource")
        raise mcp_error(failure, subject) from None


_CALLERS_FAULT = ("not_found", "invalid_request", "forbidden")


def mcp_error(failure: Failure, subject: str) -> MCPError:
    """Convert ``failure`` to an MCP error about ``subject``, a URI or a method."""
    code = types.INVALID_PARAMS if failure.code in _CALLERS_FAULT else types.INTERNAL_ERROR
    return MCPError(code, failure.sentence, {"code": failure.code, "uri": subject})


def _described(resource: Resource) -> types.Resource:
    if isinstance(resource, Ledger):
        name, description = f"Ledger of {resource.name}", _LEDGER_DOC
    elif isinstance(resource, CanvasResource):
        name, description = f"Canvas {resource.name}", _CANVAS_DOC
    elif isinstance(resource, QueueResource):
        name, description = f"Queue {resource.name}", _QUEUE_DOC
    else:
        name, description = f"Inbox of {resource.handle}", _INBOX_DOC
    return types.Resource(
        name=name, title=name, uri=resource.uri, description=description, mime_type=MIME_TYPE
    )


_LEDGER_DOC = "The newest commands of the terminal, as aegis_term_read gives them; at most 340 KiB."
_INBOX_DOC = "The unacknowledged messages of the handle, as aegis_inbox_read gives them."
_CANVAS_DOC = "The sections of the canvas with their revs, as aegis_canvas_read gives them."
_QUEUE_DOC = "The tasks of the queue, as aegis_task_list gives them; the newest ended ones last."

_LISTED: tuple[tuple[str, Callable[[str], Resource], str], ...] = (
    ("term_list", Ledger, "name"),
    ("canvas_list", CanvasResource, "name"),
    ("queue_list", QueueResource, "queue"),
)
"""The commands that list what has a resource, with the field of the name."""

_TEMPLATES = [
    types.ResourceTemplate(
        name=name, title=name, uri_template=template, description=doc, mime_type=MIME_TYPE
    )
    for name, template, doc in (
        ("Ledger of a terminal", LEDGER_TEMPLATE, _LEDGER_DOC),
        ("Inbox of a handle", INBOX_TEMPLATE, _INBOX_DOC),
        ("Canvas", CANVAS_TEMPLATE, _CANVAS_DOC),
        ("Queue", QUEUE_TEMPLATE, _QUEUE_DOC),
    )
]


def fitting(names: list[str], beginning: str) -> types.Completion:
    """Return the names that start with ``beginning``, at most ``MAX_VALUES``."""
    found = [each for each in names if name_key(each).startswith(name_key(beginning))]
    return types.Completion(
        values=found[:MAX_VALUES], total=len(found), has_more=len(found) > MAX_VALUES
    )
