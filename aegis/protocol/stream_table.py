"""The table of the streams that a client can open. Pure."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from aegis.protocol.agent_streams import (
    AgentItem,
    AgentsItem,
    CommandOutputItem,
    EntriesItem,
    SessionStart,
    StreamAgentCommand,
    StreamAgents,
    StreamSession,
)
from aegis.protocol.canvas_streams import CanvasesItem, CanvasItem, StreamCanvases
from aegis.protocol.command import Command
from aegis.protocol.group_streams import GroupItem, GroupsItem, StreamGroups
from aegis.protocol.inboxes import Message
from aegis.protocol.output_streams import (
    BellItem,
    KeysRefusedItem,
    OutputStart,
    ResizedItem,
    ScreenItem,
    SizeOwnerItem,
    SizeRefusedItem,
    StateItem,
    StreamOutput,
    TitleItem,
    TypingItem,
)
from aegis.protocol.queue_streams import QueueItem, QueuesItem, StreamQueues
from aegis.protocol.streams import (
    CommandItem,
    DeltaItem,
    OpenRequestsItem,
    RequestItem,
    SnapshotItem,
    StreamEvents,
    StreamInbox,
    StreamRequests,
    StreamTree,
    TerminalItem,
    TerminalsItem,
)
from aegis.protocol.workflow_streams import StreamWorkflows, WorkflowItem, WorkflowsItem

StreamName = Literal[
    "terminal_output",
    "tree",
    "inbox",
    "requests",
    "events",
    "agents",
    "session",
    "agent_command",
    "queues",
    "canvases",
    "workflows",
    "groups",
]


@attrs.frozen(kw_only=True)
class StreamEntry:
    """One stream: the classes of its arguments, its items and its ``start`` fields in ``opened``.

    ``has_channel``: it has binary messages, both ways. ``operator``: only for the operator.
    """

    name: StreamName
    arguments: type[Command[Any]]
    items: tuple[type, ...]
    start: type | None = None
    has_channel: bool = False
    operator: bool = False


STREAMS: tuple[StreamEntry, ...] = (
    StreamEntry(
        name="terminal_output",
        arguments=StreamOutput,
        start=OutputStart,
        items=(
            ScreenItem,
            ResizedItem,
            StateItem,
            TitleItem,
            BellItem,
            TypingItem,
            SizeOwnerItem,
            SizeRefusedItem,
            KeysRefusedItem,
        ),
        has_channel=True,
    ),
    StreamEntry(name="tree", arguments=StreamTree, items=(SnapshotItem, DeltaItem), operator=True),
    StreamEntry(name="inbox", arguments=StreamInbox, items=(Message,)),
    StreamEntry(name="requests", arguments=StreamRequests, items=(OpenRequestsItem, RequestItem)),
    StreamEntry(
        name="events", arguments=StreamEvents, items=(TerminalsItem, TerminalItem, CommandItem)
    ),
    StreamEntry(
        name="agents",
        arguments=StreamAgents,
        items=(AgentsItem, AgentItem),
    ),
    StreamEntry(
        name="session",
        arguments=StreamSession,
        start=SessionStart,
        items=(EntriesItem,),
    ),
    StreamEntry(name="agent_command", arguments=StreamAgentCommand, items=(CommandOutputItem,)),
    StreamEntry(name="queues", arguments=StreamQueues, items=(QueuesItem, QueueItem)),
    StreamEntry(name="canvases", arguments=StreamCanvases, items=(CanvasesItem, CanvasItem)),
    StreamEntry(name="workflows", arguments=StreamWorkflows, items=(WorkflowsItem, WorkflowItem)),
    StreamEntry(name="groups", arguments=StreamGroups, items=(GroupsItem, GroupItem)),
)

BY_STREAM: dict[str, StreamEntry] = {entry.name: entry for entry in STREAMS}
