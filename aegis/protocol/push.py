"""Web Push: notifications of an installed page that is closed. For a person only."""

from __future__ import annotations

import attrs

from aegis.protocol.command import Command, at_most_chars, described, matching

MAX_ENDPOINT_CHARS = 1024
MAX_LABEL_CHARS = 120

_KEY = "[A-Za-z0-9_-]{87}=?"
_SECRET = "[A-Za-z0-9_-]{22}={0,2}"  # noqa: S105 -- a pattern
_ID = "[a-z0-9]{1,32}"


@attrs.frozen(kw_only=True)
class PushKey:
    """The public key of this daemon for push services: the ``applicationServerKey`` of a browser.

    It is a point of P-256, uncompressed, in base64url without padding.
    """

    public_key: str


@attrs.frozen(kw_only=True)
class PushSubscription:
    """A browser that gets notifications.

    ``service`` is the host of its push service: the whole address is a key, and is not shown.
    ``requests``, ``ends`` and ``hides`` are as in the subscription. ``page`` is the id of the login
    with which the browser subscribed: the subscription ends with it. ``problem`` says why the last
    notification could not be sent; empty: it was.
    """

    id: str
    service: str
    label: str
    requests: bool
    ends: bool
    hides: bool
    created_at: str
    page: str | None
    problem: str


@attrs.frozen(kw_only=True)
class PushSubscriptions:
    """``subscriptions``, the oldest first."""

    subscriptions: list[PushSubscription]


@attrs.frozen(kw_only=True)
class PushRemoved:
    """``ids`` are the subscriptions that were removed."""

    ids: list[str]


@attrs.frozen(kw_only=True)
class GetPushKey(Command[PushKey]):
    """Return the public key with which a browser subscribes to notifications.

    It is made once, and survives restarts. A browser that has subscribed with another key must
    subscribe again. Only a person may call it, and not over MCP.
    """


@attrs.frozen(kw_only=True)
class SubscribePush(Command[PushSubscription]):
    """Send notifications to a browser by its push service, until it unsubscribes or logs out.

    The same address again replaces the subscription. Only a person may call it, and not over MCP.
    """

    endpoint: str = attrs.field(
        validator=at_most_chars(MAX_ENDPOINT_CHARS),
        metadata=described("The address that the browser got from its push service: https://…"),
    )
    p256dh: str = attrs.field(
        validator=matching(_KEY, "a key of a browser, 65 bytes in base64url"),
        metadata=described("The browser's public key.", pattern=f"^{_KEY}$"),
    )
    auth: str = attrs.field(
        validator=matching(_SECRET, "the secret of a browser, 16 bytes in base64url"),
        metadata=described("The browser's secret.", pattern=f"^{_SECRET}$"),
    )
    label: str = attrs.field(
        default="",
        validator=at_most_chars(MAX_LABEL_CHARS),
        metadata=described("A name for the list, such as 'phone'."),
    )
    requests: bool = attrs.field(
        default=True, metadata=described("Notify of requests that wait for a person.")
    )
    ends: bool = attrs.field(
        default=False,
        metadata=described("Notify of messages to the person, such as that a task ended."),
    )
    hides: bool = attrs.field(
        default=False,
        metadata=described("Send no name and no text: only that something waits."),
    )


@attrs.frozen(kw_only=True)
class PageSubscribePush(SubscribePush):
    """The same, by a browser that is logged in as ``page``."""

    page: str | None = None


@attrs.frozen(kw_only=True)
class ListPush(Command[PushSubscriptions]):
    """List the browsers that get notifications while the page is closed.

    Only a person may call it, and not over MCP.
    """


@attrs.frozen(kw_only=True)
class RemovePush(Command[PushRemoved]):
    """Send no more notifications to a browser.

    Only a person may call it, and not over MCP.
    """

    id: str = attrs.field(
        validator=matching(_ID, "the id of a subscription"),
        metadata=described("The id of the subscription, or 'all'.", pattern=f"^{_ID}$"),
    )
