"""The events of queues, and the actions that follow from them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from aegis.errors import AegisError
from aegis.journal.ledger import Append
from aegis.protocol.queues import Delegate, Enqueue, Enqueued, QueueInfo, TaskInfo
from aegis.queues.store import Dropped
from aegis.queues.tasks import QueueSettings, Task

# Events. A ``caller`` is a number under which the actor keeps a reply.


@attrs.frozen(kw_only=True)
class Loaded:
    """The state of one queue from its ledger; ``problem`` says why it could not be read.

    ``numbers`` tasks were enqueued, of which ``dropped`` have ended long ago.
    ``paused`` is a person's word; None: the configuration's holds.
    """

    settings: QueueSettings
    tasks: Sequence[Task] = ()
    dropped: Mapping[str, Dropped] = attrs.field(factory=dict)
    numbers: int = 0
    paused: bool | None = None
    problem: str = ""


@attrs.frozen(kw_only=True)
class Recovering:
    """The ledgers of all queues were read, or one that could not be read before."""

    queues: Sequence[Loaded]


@attrs.frozen(kw_only=True)
class Enqueuing:
    """A client enqueues a task; ``id`` is the id that it gets if it is new."""

    request: Enqueue | Delegate
    id: str
    sender: str
    caller: int


@attrs.frozen(kw_only=True)
class GivingUp:
    """The caller of ``Delegate`` has waited long enough for the task."""

    id: str
    caller: int


@attrs.frozen(kw_only=True)
class Cancelling:
    """A client cancels a task; ``by`` is its handle, None for the operator."""

    id: str
    by: str | None
    caller: int


@attrs.frozen(kw_only=True)
class Retrying:
    """A person enqueues an ended task again."""

    id: str
    caller: int


@attrs.frozen(kw_only=True)
class Pausing:
    """A person pauses a queue, or resumes it."""

    queue: str
    paused: bool
    caller: int


@attrs.frozen(kw_only=True)
class Idle:
    """The worker's session did nothing, is closed, and will not begin."""

    id: str
    worker: str
    reason: str


@attrs.frozen(kw_only=True)
class Began:
    """The worker's session has opened its first turn."""

    id: str
    worker: str


@attrs.frozen(kw_only=True)
class Done:
    """The worker is done; ``text`` is its last message."""

    id: str
    worker: str
    text: str


@attrs.frozen(kw_only=True)
class Lost:
    """The worker began and will not complete the task; ``text`` is what it said last."""

    id: str
    worker: str
    reason: str
    text: str = ""


@attrs.frozen(kw_only=True)
class Limited:
    """The worker has reached a usage limit, which ends at ``until`` (seconds since 1970)."""

    id: str
    worker: str
    until: float


@attrs.frozen(kw_only=True)
class Settled:
    """The worker of an ended task is closed, and its sender has been notified."""

    id: str


@attrs.frozen(kw_only=True)
class Tick:
    """A moment has come that ``Wake`` named."""


@attrs.frozen(kw_only=True)
class Synced:
    """The line of this number is durable."""

    number: int


@attrs.frozen(kw_only=True)
class Refused:
    """The disk refused: no line of this queue without ``Synced`` is in its ledger."""

    queue: str
    sentence: str


Event = (
    Recovering
    | Enqueuing
    | GivingUp
    | Cancelling
    | Retrying
    | Pausing
    | Idle
    | Began
    | Done
    | Lost
    | Limited
    | Settled
    | Tick
    | Synced
    | Refused
)


# Actions.


@attrs.frozen(kw_only=True)
class Write:
    """Append a line to the ledger of a queue."""

    queue: str
    append: Append


@attrs.frozen(kw_only=True)
class Open:
    """Open a session for the task and follow it; ``is_new``: none was opened for this dispatch."""

    task: Task
    agent: str
    is_new: bool


@attrs.frozen(kw_only=True)
class GoOn:
    """The usage limit has ended: have the worker continue."""

    task: Task


@attrs.frozen(kw_only=True)
class Stop:
    """Close the worker of a task that will be tried again."""

    worker: str


@attrs.frozen(kw_only=True)
class Settle:
    """Close the worker of an ended task; notify the sender too if ``notify``. Then ``Settled``.

    The sender is not notified if one of the callers ``unless`` still waits: it gets the end now.
    """

    task: Task
    notify: bool
    unless: tuple[int, ...] = ()


@attrs.frozen(kw_only=True)
class Return:
    """Answer the caller."""

    caller: int
    value: Enqueued | TaskInfo | QueueInfo


@attrs.frozen(kw_only=True)
class Fail:
    """Fail the caller's request."""

    caller: int
    error: AegisError


@attrs.frozen(kw_only=True)
class Changed:
    """A queue, or a task of it, has changed."""

    queue: str


@attrs.frozen(kw_only=True)
class Wake:
    """Send ``Tick`` at the moment ``at``, in seconds since 1970."""

    at: float


Action = Write | Open | GoOn | Stop | Settle | Return | Fail | Changed | Wake
