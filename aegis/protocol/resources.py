"""Resources that clients can watch: their URIs, and the event that one has changed."""

from __future__ import annotations

import re

import attrs

from aegis.errors import NotFound
from aegis.protocol.naming import NAME_PATTERN, name_key

LEDGER_TEMPLATE = "aegis://terminals/{name}/ledger"
INBOX_TEMPLATE = "aegis://inbox/{handle}"
CANVAS_TEMPLATE = "aegis://canvases/{name}"
QUEUE_TEMPLATE = "aegis://queues/{name}"

_LEDGER = re.compile(rf"aegis://terminals/({NAME_PATTERN})/ledger")
_INBOX = re.compile(rf"aegis://inbox/({NAME_PATTERN})")
_CANVAS = re.compile(rf"aegis://canvases/({NAME_PATTERN})")
_QUEUE = re.compile(rf"aegis://queues/({NAME_PATTERN})")
_SHOWN_CHARS = 80


@attrs.frozen(kw_only=True)
class ResourceChanged:
    """The resource of this key has changed; its watchers should read it again."""

    key: str


@attrs.frozen
class Ledger:
    """The newest records of the terminal ``name``."""

    name: str

    @property
    def uri(self) -> str:
        """The URI of the resource."""
        return f"aegis://terminals/{self.name}/ledger"

    @property
    def key(self) -> str:
        """The URI in lower case, the same for every spelling of the name."""
        return Ledger(name_key(self.name)).uri


@attrs.frozen
class Inbox:
    """The unacknowledged messages of ``handle``."""

    handle: str

    @property
    def uri(self) -> str:
        """The URI of the resource."""
        return f"aegis://inbox/{self.handle}"

    @property
    def key(self) -> str:
        """The URI in lower case, the same for every spelling of the handle."""
        return Inbox(name_key(self.handle)).uri


@attrs.frozen
class CanvasResource:
    """The sections of the canvas ``name``."""

    name: str

    @property
    def uri(self) -> str:
        """The URI of the resource."""
        return f"aegis://canvases/{self.name}"

    @property
    def key(self) -> str:
        """The URI in lower case, the same for every spelling of the name."""
        return CanvasResource(name_key(self.name)).uri


@attrs.frozen
class QueueResource:
    """The tasks of the queue ``name``."""

    name: str

    @property
    def uri(self) -> str:
        """The URI of the resource."""
        return f"aegis://queues/{self.name}"

    @property
    def key(self) -> str:
        """The URI in lower case, the same for every spelling of the name."""
        return QueueResource(name_key(self.name)).uri


Resource = Ledger | Inbox | CanvasResource | QueueResource


def resource_at(uri: str) -> Resource:
    """Return the resource of this URI, whether it exists or not. Raises ``NotFound``."""
    if (found := _LEDGER.fullmatch(uri)) is not None:
        return Ledger(found[1])
    if (found := _INBOX.fullmatch(uri)) is not None:
        return Inbox(found[1])
    if (found := _CANVAS.fullmatch(uri)) is not None:
        return CanvasResource(found[1])
    if (found := _QUEUE.fullmatch(uri)) is not None:
        return QueueResource(found[1])
    shown = uri if len(uri) <= _SHOWN_CHARS else f"{uri[: _SHOWN_CHARS - 1]}…"
    raise NotFound(
        f"there is no resource {shown!r}; there are {LEDGER_TEMPLATE}, {INBOX_TEMPLATE}, "
        f"{CANVAS_TEMPLATE} and {QUEUE_TEMPLATE}"
    )
