"""The kind of the stream of queues. Pure."""

from __future__ import annotations

from typing import Any

from aegis.client.stream_kinds import Gap, Kind, structured
from aegis.protocol.queue_streams import QueueItem, QueuesItem

QueuesValue = QueuesItem | QueueItem | Gap


class QueuesKind(Kind[QueuesValue]):
    """The states of queues: all of them, then changes."""

    stream = "queues"

    def item(self, document: dict[str, Any]) -> QueuesValue:
        """Return all queues, or one."""
        if "queues" in document:
            return structured(QueuesItem, document)
        return structured(QueueItem, document)
