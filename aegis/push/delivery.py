"""``PushDelivery``: sends one message to one browser, by its push service (RFC 8030)."""

from __future__ import annotations

import math
import ssl
import time
from email.utils import parsedate_to_datetime
from typing import Literal

import attrs
import httpx2 as httpx
import trio

from aegis.errors import InvalidRequest
from aegis.limits import in_thread_or_here
from aegis.push.encryption import encrypted
from aegis.push.endpoint import PushEndpoint, read_endpoint
from aegis.push.network import ForbiddenService, PushNetwork, UnreachableService
from aegis.push.notices import PushNotice
from aegis.push.rows import PushClient
from aegis.push.vapid import VapidKey

SEND_S = 20.0
"""Seconds in which a message must be sent: the name, the connection, TLS and the answer."""

STEP_S = 6.0
"""Seconds of each step of a request.

A handshake of TLS must end by this: httpcore leaves the socket of a cancelled one open.
"""

MAX_RETRY_S = 3_600.0

PushResult = Literal["sent", "gone", "refused", "again"]
"""``gone``: the browser has unsubscribed. ``again``: a later try may succeed."""


@attrs.frozen(kw_only=True)
class PushOutcome:
    """The result of one try; for ``retry_s`` seconds the push service wants no further one."""

    result: PushResult
    why: str = ""
    retry_s: float = 0.0


class PushDelivery:
    """Sends messages that are signed with ``key``."""

    def __init__(self, key: VapidKey, network: PushNetwork) -> None:
        self._key, self._network = key, network
        self._tls: ssl.SSLContext | None = None

    async def send(self, client: PushClient, notice: PushNotice) -> PushOutcome:
        """Send a notification to a browser."""
        try:
            endpoint = read_endpoint(client.endpoint)
            body = encrypted(notice.content(), client.p256dh, client.auth)
        except (InvalidRequest, ValueError) as error:
            return PushOutcome(result="refused", why=str(error))
        # One deadline for everything: a half-dead connection may send a byte now and then.
        with trio.move_on_after(SEND_S):
            try:
                if self._tls is None:  # it reads the certificates of the machine
                    self._tls = await in_thread_or_here(self._network.tls)
                return await self._post(endpoint, self._headers(endpoint, notice), body)
            except ForbiddenService as error:
                return PushOutcome(result="refused", why=str(error))
            except (UnreachableService, httpx.HTTPError, httpx.InvalidURL, OSError) as error:
                # The text of an error of the library may have the address of the browser.
                is_own = isinstance(error, UnreachableService)
                why = str(error) if is_own else f"{endpoint.host}: {type(error).__name__}"
                return PushOutcome(result="again", why=why)
        return PushOutcome(result="again", why=f"{endpoint.host}: no answer in {SEND_S:g} s")

    def _headers(self, endpoint: PushEndpoint, notice: PushNotice) -> list[tuple[str, str]]:
        return [
            ("Host", endpoint.host),
            ("Authorization", self._key.authorization(endpoint.origin, time.time())),
            ("Content-Encoding", "aes128gcm"),
            ("Content-Type", "application/octet-stream"),
            ("TTL", str(notice.ttl_s)),
            ("Urgency", notice.urgency),
            ("Topic", notice.topic),
        ]

    async def _post(
        self, endpoint: PushEndpoint, headers: list[tuple[str, str]], body: bytes
    ) -> PushOutcome:
        address = await self._network.address_of(endpoint.host)
        literal = f"[{address}]" if ":" in address else address
        # To the address that was checked: the certificate must be of the name all the same. Built
        # without the client, which would add headers of its own, and follow no redirect.
        request = httpx.Request(
            "POST",
            f"https://{literal}:{self._network.port}{endpoint.target}",
            headers=headers,
            content=body,
            extensions={
                "sni_hostname": endpoint.host.strip("[]"),
                "timeout": dict.fromkeys(("connect", "read", "write", "pool"), STEP_S),
            },
        )
        assert self._tls is not None
        # One client a message: a kept connection belongs to an address, not to a name.
        async with httpx.AsyncClient(
            verify=self._tls, trust_env=False, follow_redirects=False
        ) as client:
            answer = await client.send(request, stream=True)
            try:
                return _outcome(endpoint.host, answer.status_code, answer.headers)
            finally:
                with trio.CancelScope(shield=True), trio.move_on_after(1):
                    await answer.aclose()  # its body is not read


def _outcome(host: str, status: int, headers: httpx.Headers) -> PushOutcome:
    if 200 <= status < 300:
        return PushOutcome(result="sent")
    why = f"{host} answered {status}"
    if status in (404, 410):
        return PushOutcome(result="gone", why=why)
    if status == 429 or status >= 500:
        return PushOutcome(result="again", why=why, retry_s=_retry_s(headers.get("retry-after")))
    return PushOutcome(result="refused", why=why)


def _retry_s(text: str | None) -> float:
    """Return the seconds of a ``Retry-After`` header, within limits; 0 if there is none."""
    if text is None:
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, OverflowError, OSError):
            return 0.0
    return min(MAX_RETRY_S, max(0.0, seconds)) if math.isfinite(seconds) else 0.0
