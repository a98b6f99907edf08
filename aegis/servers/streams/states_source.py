"""The streams of queues, canvases, workflows and groups: all, then each that changes.

They buffer nothing: news are requested when the client has credit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from actors import ActorCrashed, System
from actors.messages import Request
from aegis.errors import Unavailable
from aegis.protocol.canvas_streams import CanvasesItem, CanvasItem, StreamCanvases
from aegis.protocol.feeds import (
    CanvasesNews,
    FollowCanvases,
    FollowGroups,
    FollowQueues,
    FollowWorkflows,
    GroupsNews,
    QueuesNews,
    StatesPlace,
    WorkflowsNews,
)
from aegis.protocol.group_streams import GroupItem, GroupsItem, StreamGroups
from aegis.protocol.queue_streams import QueueItem, QueuesItem, StreamQueues
from aegis.protocol.workflow_streams import StreamWorkflows, WorkflowItem, WorkflowsItem
from aegis.servers.streams.outlet import StreamOut

NEWS_S = 0.05
"""The interval, in seconds, between news: more changes of a thing become its newest state."""

News = QueuesNews | CanvasesNews | WorkflowsNews | GroupsNews


async def follow_states(
    system: System,
    command: StreamQueues | StreamCanvases | StreamWorkflows | StreamGroups,
    out: StreamOut,
) -> str:
    """Send all things of a stream to ``out``, then each change, until cancelled."""
    match command:
        case StreamQueues():
            return await _follow(system, out, "queues", lambda place: FollowQueues(place=place))
        case StreamCanvases():
            return await _follow(system, out, "canvases", lambda place: FollowCanvases(place=place))
        case StreamWorkflows():
            return await _follow(
                system, out, "workflows", lambda place: FollowWorkflows(place=place)
            )
        case StreamGroups():
            return await _follow(system, out, "groups", lambda place: FollowGroups(place=place))


async def _follow(
    system: System,
    out: StreamOut,
    service: str,
    after: Callable[[StatesPlace | None], Request[Any]],
) -> str:
    news = await _ask(system, service, after(None))
    await out.opened(None)
    while True:
        for item in _items(news):
            await out.room()
            await out.item(item)
        sent_at = trio.current_time()
        await out.room()
        await trio.sleep_until(sent_at + NEWS_S)
        news = await _ask(system, service, after(news.place))


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
