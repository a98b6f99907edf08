"""The table of the streams that a client can open. Pure."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from aegis.protocol.agent_streams import (
    AgentItem,
    AgentsItem,
    EntriesItem,
    SessionStart,
    StreamAgents,
    StreamSession,
)
from aegis.protocol.command import Command
from aegis.protocol.inboxes import Message
from aegis.protocol.streams import (
    CommandItem,
    DeltaItem,
    KeysRefusedItem,
    OpenRequestsItem,
    OutputStart,
    RequestItem,
    ResizedItem,
    ScreenItem,
    SnapshotItem,
    StateItem,
    StreamEvents,
    StreamInbox,
    StreamOutput,
    StreamRequests,
    StreamTree,
    TerminalItem,
)

StreamName = Literal["terminal_output", "tree", "inbox", "requests", "events", "agents", "session"]


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
        items=(ScreenItem, ResizedItem, StateItem, KeysRefusedItem),
        has_channel=True,
    ),
    StreamEntry(name="tree", arguments=StreamTree, items=(SnapshotItem, DeltaItem), operator=True),
    StreamEntry(name="inbox", arguments=StreamInbox, items=(Message,)),
    StreamEntry(name="requests", arguments=StreamRequests, items=(OpenRequestsItem, RequestItem)),
    StreamEntry(name="events", arguments=StreamEvents, items=(TerminalItem, CommandItem)),
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
)

BY_STREAM: dict[str, StreamEntry] = {entry.name: entry for entry in STREAMS}
