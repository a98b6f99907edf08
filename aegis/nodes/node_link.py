"""``NodeLink``: joins the daemon as a host, and joins again when the connection is lost."""

from __future__ import annotations

import random
from collections.abc import Sequence

import structlog
import trio

from actors import Actor
from actors.errors import NodeError
from actors.nodes.joining.join import join
from actors.nodes.links.key import NodeKey
from actors.nodes.links.link import Link
from actors.nodes.peer import PeerProcess
from aegis import __version__
from aegis.nodes.hello import HostIdentity, encode_hello
from aegis.nodes.host_link import run_link
from aegis.settings import JoinSettings

log = structlog.get_logger("aegis.nodes")

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 3.0
JITTER = 0.2


class NodeLink(Actor[None]):
    """The actor that keeps this host joined. ``peers`` has one peer: the daemon."""

    def __init__(
        self, *, settings: JoinSettings, key: NodeKey, identity: str, peers: Sequence[PeerProcess]
    ) -> None:
        self._settings = settings
        self._key = key
        self._hello = encode_hello(HostIdentity(version=__version__, identity=identity))
        self._peer = peers[0]
        self._failures = 0
        self._logged = ""

    async def setup(self) -> None:
        """Start joining."""
        self.context.start_soon(self._stay_joined)

    async def teardown(self) -> None:
        """Fail the requests that wait for the daemon."""
        self._peer.connection_lost()

    async def _stay_joined(self) -> None:
        while True:
            try:
                await self._be_joined()
            except NodeError as error:
                self._warn_once(str(error))
            self._failures += 1
            await trio.sleep(retry_delay(self._failures, random.random()))  # noqa: S311

    async def _be_joined(self) -> None:
        """Join; return when the connection is lost. Raises ``NodeError`` if there is none."""
        address = self._settings.address
        async with join(
            address.host, address.port, self._key, name=self._settings.name, hello=self._hello
        ) as (_, link):
            self._failures, self._logged = 0, ""
            log.info("joined", host=address.host, port=address.port, node=self._settings.name)
            why = await self._carry(link)
        log.warning("lost the root", why=why)

    async def _carry(self, link: Link) -> str:
        try:
            return await run_link(self._peer, link)
        finally:
            self._peer.connection_lost()

    def _warn_once(self, why: str) -> None:
        # One line for each reason: there is a try every few seconds.
        if why != self._logged:
            self._logged = why
            log.warning("cannot join; trying again and again", why=why)


def retry_delay(failures: int, chance: float) -> float:
    """Return the seconds before the next try after ``failures`` in a row; 0 <= ``chance`` < 1."""
    delay = min(LAST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(failures - 1, 10))
    return delay * (1 + JITTER * (2 * chance - 1))
