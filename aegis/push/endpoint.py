"""The addresses that a push service may have. Pure.

A browser gives the address, and the daemon sends requests to it: without these rules a page could
have the daemon reach machines that only the daemon can (server-side request forgery).
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import attrs

from aegis.errors import InvalidRequest

PORT = 443

_BEYOND_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
            *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"),
            *("192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
            *("224.0.0.0/4", "240.0.0.0/4"),
            "168.63.129.16/32",  # the metadata service of Azure, at a public address
        ),
    )
)
"""All but the public addresses: the special-purpose registry of IANA, and multicast.

Not ``is_global``: it differs between the releases of Python 3.11.
"""

_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
"""The global unicast addresses. Mapped IPv4, loopback, private and link-local ones are beyond."""

_BEYOND_V6 = tuple(
    map(
        ipaddress.IPv6Network,
        # Teredo and others, documentation, 6to4: the last holds an IPv4 address, which may be any.
        ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
    )
)


@attrs.frozen
class PushEndpoint:
    """The address of one browser at a push service: the ``host``, and the target of the request."""

    host: str
    target: str = attrs.field(repr=False)  # a key: with it, messages can be sent to the browser

    @property
    def origin(self) -> str:
        """The origin of the push service (RFC 6454)."""
        return f"https://{self.host}"


def read_endpoint(text: str) -> PushEndpoint:
    """Parse the address of a browser. Raises ``InvalidRequest``."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _unfit("it cannot be read") from None
    host = parts.hostname or ""
    if parts.scheme != "https":
        raise _unfit("it must begin with https://")
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise _unfit("it has characters that no address has")
    if "@" in parts.netloc or parts.fragment:
        raise _unfit("it must have neither a user nor a fragment")
    if not host or len(host) > 253 or port not in (None, PORT):
        raise _unfit("it must name a host, and no port but 443")
    literal = _address(host)
    if literal is not None and not is_public(host):
        raise _unfit(f"{host} is no public address")
    name = f"[{host}]" if ":" in host else host
    query = f"?{parts.query}" if parts.query else ""
    return PushEndpoint(name, f"{parts.path or '/'}{query}")


def is_public(address: str) -> bool:
    """Return whether an IP address is a public one, which every machine may reach."""
    found = _address(address)
    if isinstance(found, ipaddress.IPv4Address):
        return not any(found in network for network in _BEYOND_V4)
    if isinstance(found, ipaddress.IPv6Address) and found.scope_id is None:
        return found in _GLOBAL_V6 and not any(found in network for network in _BEYOND_V6)
    return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _unfit(why: str) -> InvalidRequest:
    return InvalidRequest(f"endpoint is not the address of a push service: {why}")
