"""Admission rules for addresses and headers, checked before anything is looked up. Pure.

A web page that the user visits can reach a loopback port, by a cross-site WebSocket or through a
name that it rebinds to 127.0.0.1 (DNS rebinding). Both show in the headers: the first has a
foreign ``Origin``, the second a foreign ``Host``. Clients that are not browsers send no Origin.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlsplit

import attrs

Headers = Iterable[tuple[bytes, bytes]]
"""Name in lower case, value; one pair for each line."""

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_PORTS = {"http": "80", "https": "443"}
MAX_COOKIES = 8
"""Values of one cookie that are compared with those of pages."""

TOKEN_PARAMETERS = frozenset({"token", "access_token", "key", "secret"})


@attrs.frozen
class ErrorResponse:
    """An HTTP status and one sentence: the response to a request that is not served."""

    status: int
    sentence: str


def allowed_hosts(bound_host: str, names: Iterable[str] = ()) -> frozenset[str]:
    """Return the accepted values of Host when listening on ``bound_host``, a name or an address.

    ``names`` are further ones (``host_names``).
    """
    bracketed = f"[{bound_host}]" if ":" in bound_host else bound_host
    return LOOPBACK_HOSTS | {bracketed.lower(), *names}


def turned_away(headers: Headers, query: bytes, hosts: frozenset[str]) -> ErrorResponse | None:
    """Return the refusal by the Host, Origin and query rules; None if all hold."""
    listed = list(headers)
    return (
        host_refusal(values(listed, b"host"), hosts)
        or origin_refusal(values(listed, b"origin"), values(listed, b"host"))
        or query_refusal(query)
    )


def host_refusal(found: list[str], hosts: frozenset[str]) -> ErrorResponse | None:
    """Return 421 unless there is exactly one Host header and it names one of ``hosts``."""
    if len(found) == 1 and host_name(found[0]) in hosts:
        return None
    return ErrorResponse(
        421, f"the Host header must name this daemon: one of {', '.join(sorted(hosts))}"
    )


def origin_refusal(found: list[str], host: list[str]) -> ErrorResponse | None:
    """Return 403 for an Origin header that differs from the requested host and port."""
    if not found or (len(found) == 1 and _same_origin(found[0], host)):
        return None
    return ErrorResponse(
        403, "requests from other web sites are refused: the Origin must be this daemon's"
    )


def query_refusal(query: bytes) -> ErrorResponse | None:
    """Return 400 if the query contains a token."""
    # URLs end up in logs and shell histories.
    names = {name.lower() for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)}
    if names.isdisjoint(TOKEN_PARAMETERS):
        return None
    return ErrorResponse(
        400, "a token in the URL is not accepted: send the header 'Authorization: Bearer <token>'"
    )


def body_refusal(headers: Headers) -> ErrorResponse | None:
    """Return the refusal of a body that is compressed; else None."""
    # A compressed body may expand to a thousand times its size.
    encodings = [each.lower() for each in values(headers, b"content-encoding")]
    if any(each not in ("", "identity") for each in encodings):
        return ErrorResponse(415, "send the body uncompressed: Content-Encoding is not supported")
    return None


def bearer_token(headers: Headers) -> str | None:
    """Return the token of the one ``Authorization: Bearer`` header (RFC 6750, 2.1), or None."""
    found = values(headers, b"authorization")
    if len(found) != 1:
        return None
    scheme, _, token = found[0].partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def may_connect(peer_uid: int, own_uid: int) -> bool:
    """Return whether a process of ``peer_uid`` is served on the Unix socket: same user, or root."""
    return peer_uid in (own_uid, 0)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a listener on ``host``, a name or an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def values(headers: Headers, name: bytes) -> list[str]:
    """Return the values of all headers called ``name`` (lower case)."""
    return [value.decode("latin-1").strip() for key, value in headers if key == name]


def host_name(authority: str) -> str | None:
    """Return the host of ``host[:port]`` in lower case, an IPv6 address with its brackets."""
    name, port = _split_authority(authority)
    return name if port is None or _is_port(port) else None


def cookie_name(host: str, *, is_view: bool) -> str:
    """Return the name of a page's cookie at the address ``host``, a value of the Host header.

    The name has the port: browsers send cookies to all ports of a host, and two daemons must not
    replace each other's. A read-only link has a cookie of its own.
    """
    _, port = _split_authority(host)
    return f"aegis-{'view-' if is_view else ''}{port or '80'}"


def cookie_values(headers: Headers, name: str) -> list[str]:
    """Return the last values of a cookie, the last one first.

    A page at another port of the host may set one of the same name for a longer path. Browsers send
    it too, before that of the shorter path (RFC 6265, 5.4).
    """
    pairs = (pair.strip() for line in values(headers, b"cookie") for pair in line.split(";"))
    found = [value for key, _, value in (pair.partition("=") for pair in pairs) if key == name]
    return found[: -MAX_COOKIES - 1 : -1]


def page_cookies(headers: Headers) -> list[str]:
    """Return the cookies of pages of this daemon; none if the request has no Origin header.

    ``turned_away`` compares the Origin.
    """
    listed = list(headers)
    if not values(listed, b"origin"):
        return []
    host = "".join(values(listed, b"host"))
    names = [cookie_name(host, is_view=is_view) for is_view in (False, True)]
    return [value for name in names for value in cookie_values(listed, name)]


def _split_authority(authority: str) -> tuple[str, str | None]:
    text = authority.lower()
    if text.startswith("["):
        inside, bracket, rest = text.partition("]")
        name = inside + bracket
        return (name, rest[1:]) if rest.startswith(":") else (name + rest, None)
    name, colon, port = text.partition(":")
    return name, port if colon else None


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text[:6]) <= 65535


def _same_origin(origin: str, host: list[str]) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in _PORTS or parts.path or parts.query or parts.fragment or len(host) != 1:
        return False
    # A proxy may speak TLS for a name. At a loopback name, a page of https is another program's.
    if parts.scheme == "https" and host_name(host[0]) in LOOPBACK_HOSTS:
        return False
    port = _PORTS[parts.scheme]
    return _with_port(parts.netloc, port) == _with_port(host[0], port)


def _with_port(authority: str, default: str) -> tuple[str, str]:
    name, port = _split_authority(authority)
    return name, port or default
