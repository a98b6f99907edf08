"""The steps of a script on queues. Pure."""

from __future__ import annotations

from typing import Literal

import attrs

from tests.chaos.histories.script_steps import Step


@attrs.frozen(kw_only=True)
class QueueStep(Step):
    """A step on the queue ``queue``."""

    queue: str


@attrs.frozen(kw_only=True)
class EnqueueStep(QueueStep):
    """Enqueue an order of ``kind``. ``key`` numbers the keys of the client, ``after`` are draws."""

    kind: str
    by: str | None = None
    key: int | None = None
    callback: bool = True
    after: tuple[int, ...] = ()
    priority: int = 0


@attrs.frozen(kw_only=True)
class DelegateStep(QueueStep):
    """Enqueue an order of ``kind``, and wait so long for its end."""

    kind: str
    by: str | None = None
    timeout_s: float


@attrs.frozen(kw_only=True)
class PauseQueueStep(QueueStep):
    """Pause the queue, or resume it."""

    is_paused: bool


@attrs.frozen(kw_only=True)
class ReadTasksStep(QueueStep):
    """Read the queues, and the tasks of one."""


@attrs.frozen(kw_only=True)
class OrderTaskStep(Step):
    """Cancel or retry a task; ``draw`` picks it."""

    draw: int
    what: Literal["cancel", "retry"]
