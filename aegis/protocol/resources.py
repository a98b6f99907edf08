"""Resources that clients can watch: their URIs, and the event that one has changed."""

from __future__ import annotations

import re

import attrs

from aegis.errors import NotFound
from aegis.protocol.naming import NAME_PATTERN, name_key

LEDGER_TEMPLATE = "aegis://terminals/{name}/ledger"
INBOX_TEMPLATE = "aegis://inbox/{handle}"

_LEDGER = re.compile(rf"aegis://terminals/({NAME_PATTERN})/ledger")
_INBOX = re.compile(rf"aegis://inbox/({NAME_PATTERN})")
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


Resource = Ledger | Inbox


def resource_at(uri: str) -> Resource:
    """Return the resource of this URI, whether it exists or not. Raises ``NotFound``."""
    if (found := _LEDGER.fullmatch(uri)) is not None:
        return Ledger(found[1])
    if (found := _INBOX.fullmatch(uri)) is not None:
        return Inbox(found[1])
    shown = uri if len(uri) <= _SHOWN_CHARS else f"{uri[: _SHOWN_CHARS - 1]}…"
    raise NotFound(
        f"there is no resource {shown!r}; there are {LEDGER_TEMPLATE} and {INBOX_TEMPLATE}"
    )
