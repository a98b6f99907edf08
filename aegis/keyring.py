"""Giving keys out and voiding them: what the daemon does with its keys, beside looking them up."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import attrs
import trio

from aegis.errors import InvalidRequest
from aegis.journal.disk import storage_error
from aegis.protocol.daemon import Voided
from aegis.servers.access.auth import Keys
from aegis.servers.calls import OPERATOR, Identity
from aegis.servers.gateway.http_app import SESSION_PREFIX
from aegis.servers.gateway.open_connections import OpenConnections
from aegis.servers.serving import Address
from aegis.state.endpoint import Endpoint, write_endpoint
from aegis.state.root import State
from aegis.state.sealing import Seals

T = TypeVar("T")
A = TypeVarTuple("A")


@attrs.frozen
class Keyring:
    """The keys of a root, where they open, and who has come in with them.

    Each method that changes keys is over when the change is on the disk; it raises
    ``StorageError`` if the disk refuses, and then nothing has changed.
    """

    keys: Keys
    address: Address
    open_connections: OpenConnections
    state: State
    stop: trio.Event
    seals: Seals | None = None

    @property
    def url(self) -> str:
        """Where the daemon is reached."""
        return self.address.url

    @property
    def handles(self) -> list[str]:
        """Who has a session."""
        return self.keys.handles

    async def session_url(self, handle: str) -> str:
        """The address of the handle's session, made if there is none. Raises ``AegisError``."""
        secret = await self._in_thread(self.keys.session_secret, handle)
        return f"{self.address.url}{SESSION_PREFIX}{secret}"

    async def revoke(self, handle: str) -> Voided:
        """Forget the handle's secret. Raises ``NotFound`` if it has none."""
        return self._cut_off([await self._in_thread(self.keys.remove_session, handle)])

    async def rotate(self, session: str | None, *, all_keys: bool) -> Voided:
        """Put new keys in the place of those named: the token if none is.

        Raises ``NotFound`` if the handle has no session, ``InvalidRequest`` for both at once.
        """
        if session is not None and all_keys:
            raise InvalidRequest("token_rotate: give 'session' or 'all_keys', not both")
        if all_keys:
            identities = await self._in_thread(self.keys.renew_all)
        elif session is not None:
            identities = [await self._in_thread(self.keys.renew_session, session)]
        else:
            identities = [await self._in_thread(self.keys.renew_token)]
        voided = self._cut_off(identities)
        if voided.token:
            self._tell_new_token()
        return voided

    def endpoint(self) -> Endpoint:
        """What the endpoint file says of this process."""
        url = self.address.url
        return Endpoint(
            pid=os.getpid(),
            url=url,
            mcp=f"{url}/mcp",
            ws=f"ws{url.removeprefix('http')}/ws",
            socket=os.fsencode(self.address.socket).decode("utf-8", "surrogateescape"),
            token=self.keys.operator_token,
        )

    async def _in_thread(self, change: Callable[[*A], T], *arguments: *A) -> T:
        """A change of the keys writes and syncs."""
        try:
            return await trio.to_thread.run_sync(change, *arguments)
        except OSError as error:
            raise storage_error("write", self.keys.path, error) from error

    def _cut_off(self, identities: list[Identity]) -> Voided:
        return Voided(
            token=OPERATOR in identities,
            sessions=[each.handle for each in identities if each.handle is not None],
            connections=self.open_connections.revoke(identities),
        )

    def _tell_new_token(self) -> None:
        if self.stop.is_set():
            return  # the file is gone for good: nobody shall come any more
        try:
            write_endpoint(self.state, self.endpoint(), self.seals)
        except OSError as error:
            raise storage_error("put the new token into", self.state.endpoint, error) from error
