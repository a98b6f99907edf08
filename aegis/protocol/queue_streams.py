"""The stream of queues: its arguments and items. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from aegis.protocol.command import Command
from aegis.protocol.queues import QueueInfo


@attrs.frozen(kw_only=True)
class StreamQueues(Command[Any]):
    """Queues: all of them first, then each that has changed, or of which a task has changed.

    A slow client gets the newest state of a queue and none between.
    """


@attrs.frozen(kw_only=True)
class QueuesItem:
    """All queues, in the order of their names."""

    queues: list[QueueInfo]


@attrs.frozen(kw_only=True)
class QueueItem:
    """A queue as it is now."""

    queue: QueueInfo
