"""Web pages that are logged in, and read-only links."""

from __future__ import annotations

import attrs

from aegis.protocol.command import Command, at_most_chars, between, described, matching
from aegis.protocol.naming import NAME_PATTERN

MAX_LINK_S = 30 * 24 * 3600.0
DEFAULT_LINK_S = 24 * 3600.0
_ID = "[a-z0-9]{1,32}"
_VIEW = f"(terminal|agent):{NAME_PATTERN}"


@attrs.frozen(kw_only=True)
class Page:
    """A browser that is logged in, or a read-only link.

    ``view`` is what it may see: null for everything, as the operator; ``terminal:NAME`` or
    ``agent:HANDLE`` for one terminal or session, without any right to change. ``label`` is what the
    browser calls itself. Times are UTC.
    """

    id: str
    view: str | None
    label: str
    created_at: str
    expires_at: str


@attrs.frozen(kw_only=True)
class PageList:
    """``pages`` are the browsers that are logged in, ``links`` the read-only links."""

    pages: list[Page]
    links: list[Page]


@attrs.frozen(kw_only=True)
class PageAddress:
    """An address that opens the web page. It contains a key: keep it secret.

    ``id`` is that of a read-only link, null for a one-time code.
    """

    id: str | None
    url: str
    expires_at: str


@attrs.frozen(kw_only=True)
class PagesRevoked:
    """``ids`` are the pages and links that were revoked, ``connections`` the ended connections."""

    ids: list[str]
    connections: int


@attrs.frozen(kw_only=True)
class NewPageCode(Command[PageAddress]):
    """Return an address that logs a browser in as the operator, once, within a minute.

    It replaces the code before it. A wrong code voids the right one.
    """


@attrs.frozen(kw_only=True)
class ListPages(Command[PageList]):
    """List the browsers that are logged in and the read-only links, without their keys."""


@attrs.frozen(kw_only=True)
class RevokePage(Command[PagesRevoked]):
    """Log a browser out, or revoke a read-only link, and end the connections that use it."""

    id: str = attrs.field(
        validator=matching(_ID, "the id of a page or link"),
        metadata=described("The id of the page or link, or 'all'.", pattern=f"^{_ID}$"),
    )


@attrs.frozen(kw_only=True)
class NewLink(Command[PageAddress]):
    """Return a read-only link to one terminal or to one agent's session.

    It shows the screen and the commands there, or the transcript, and gives no right to change
    anything. It ends after ``for_s`` seconds, or when it is revoked.
    """

    view: str = attrs.field(
        validator=matching(_VIEW, "'terminal:' and its name, or 'agent:' and its handle"),
        metadata=described(
            "What to show: 'terminal:NAME' or 'agent:HANDLE'.", pattern=f"^{_VIEW}$"
        ),
    )
    for_s: float = attrs.field(
        default=DEFAULT_LINK_S,
        validator=between(60.0, MAX_LINK_S, "seconds"),
        metadata=described(
            "Seconds until it ends, 60 to 2592000; default: a day.",
            minimum=60.0,
            maximum=MAX_LINK_S,
        ),
    )
    label: str = attrs.field(
        default="",
        validator=at_most_chars(200),
        metadata=described("A note of whom it is for, for the list."),
    )
