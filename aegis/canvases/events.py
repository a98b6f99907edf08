"""The events and actions of the rules of a canvas (``rules``). Pure."""

from __future__ import annotations

from typing import Literal

import attrs

from aegis.canvases.differences import Difference
from aegis.canvases.document import Document
from aegis.errors import AegisError
from aegis.journal.file_content import NO_FILE, Exchanged
from aegis.journal.ledger import Append
from aegis.protocol.canvases import (
    CanvasChange,
    CanvasInfo,
    CanvasSubscription,
    CanvasText,
    CanvasWritten,
)

JobKind = Literal["look", "open", "read", "write", "append"]


@attrs.frozen(kw_only=True)
class Job:
    """A request that needs the file; ``caller`` is None if nobody waits for it."""

    kind: JobKind
    caller: int | None = None
    section: str | None = None
    text: str = ""
    writer: str = ""
    if_rev: int | None = None
    force: bool = False


@attrs.frozen(kw_only=True)
class New:
    """The file as a job would leave it; ``text`` is that of its section."""

    document: Document
    data: bytes
    digest: str
    key: str
    text: str
    added: int
    removed: int


@attrs.frozen(kw_only=True)
class Found:
    """The file now. ``problem`` says why it cannot be used. ``new``: what the job would make of it.

    ``swap`` is the digest of a file that an exchange left, ``swap_texts`` are its sections; None if
    that is no canvas. ``is_open``: a program may be writing to one of the two.
    """

    problem: str = ""
    is_open: bool = False
    digest: str = NO_FILE
    document: Document | None = None
    swap: str = NO_FILE
    swap_texts: dict[str, str] | None = None
    new: New | AegisError | None = None


# Events.


@attrs.frozen(kw_only=True)
class Asked:
    """A job is to be done after those before it."""

    job: Job


@attrs.frozen(kw_only=True)
class Subscribing:
    """A handle wants to be woken by changes of sections, None for all."""

    handle: str
    sections: list[str] | None
    caller: int


@attrs.frozen(kw_only=True)
class Unsubscribing:
    """A handle wants to be woken no more."""

    handle: str
    caller: int


@attrs.frozen(kw_only=True)
class Examined:
    """The result of ``Examine``."""

    found: Found


@attrs.frozen(kw_only=True)
class Compared:
    """The result of ``Compare``."""

    differences: tuple[Difference, ...]


@attrs.frozen(kw_only=True)
class ExchangeEnded:
    """The result of ``Exchange``; ``error`` is the sentence of the disk that refused."""

    outcome: Exchanged
    error: str = ""


@attrs.frozen(kw_only=True)
class Discarded:
    """The result of ``Discard``; ``error`` is the sentence of the disk that refused."""

    error: str = ""


@attrs.frozen(kw_only=True)
class Resume:
    """The pause of the current job is over; ``pause`` numbers those for a file to become quiet."""

    pause: int = 0


@attrs.frozen(kw_only=True)
class Confirmed:
    """The inboxes of these handles have the changes up to these."""

    revs: dict[str, int]


@attrs.frozen(kw_only=True)
class Synced:
    """The line of this number is durable."""

    number: int


@attrs.frozen(kw_only=True)
class Refused:
    """The disk refused: no line without ``Synced`` is in the ledger."""

    sentence: str


Event = (
    Asked
    | Subscribing
    | Unsubscribing
    | Examined
    | Compared
    | ExchangeEnded
    | Discarded
    | Resume
    | Confirmed
    | Synced
    | Refused
)


# Actions.


@attrs.frozen(kw_only=True)
class Examine:
    """Read the file; ``document`` is that of the content ``digest``. Then ``Examined``.

    ``is_unclear``: an exchange may not have been synced, so the names are synced first.
    """

    job: Job
    digest: str
    document: Document | None
    is_unclear: bool = False


@attrs.frozen(kw_only=True)
class Compare:
    """Compare the texts of sections. Then ``Compared``."""

    before: dict[str, str]
    after: dict[str, str]


@attrs.frozen(kw_only=True)
class Exchange:
    """Put ``data`` in place of the content ``expected``. Then ``ExchangeEnded``."""

    data: bytes
    expected: str


@attrs.frozen(kw_only=True)
class Discard:
    """Remove the swap file, or keep it under a name of its own. Then ``Discarded``."""

    keep_as: str = ""


@attrs.frozen(kw_only=True)
class Later:
    """Send the event after so many seconds."""

    seconds: float
    event: Resume | Asked


@attrs.frozen(kw_only=True)
class Return:
    """Answer the caller."""

    caller: int
    value: CanvasInfo | CanvasText | CanvasWritten | CanvasSubscription


@attrs.frozen(kw_only=True)
class Fail:
    """Fail the caller's request."""

    caller: int
    error: AegisError


@attrs.frozen(kw_only=True)
class Changed:
    """Sections, subscribers or the problem have changed; ``changes`` wake the subscribers."""

    changes: tuple[CanvasChange, ...] = ()


Action = Append | Examine | Compare | Exchange | Discard | Later | Return | Fail | Changed
