"""``Keyring``: creates and voids a daemon's keys, and ends connections that used them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import attrs
import structlog
import trio

from aegis.errors import InvalidRequest
from aegis.journal.disk import shown, storage_errors
from aegis.limits import in_thread
from aegis.protocol.daemon import Voided
from aegis.protocol.pages import Page, PageAddress, PageList, PagesRevoked
from aegis.servers.access.auth import Keys
from aegis.servers.access.pages import PageKeys, StoredPage, open_pages
from aegis.servers.calls import OPERATOR, Identity
from aegis.servers.gateway.http_app import SESSION_PREFIX
from aegis.servers.gateway.open_connections import OpenConnections
from aegis.servers.serving import Address
from aegis.state.endpoint import Endpoint, write_endpoint
from aegis.state.root import StatePaths
from aegis.state.sealing import Seals

log = structlog.get_logger("aegis")

T = TypeVar("T")
A = TypeVarTuple("A")


@attrs.define(eq=False)
class Keyring:
    """The keys of a root, the address they are for, and the connections that used them.

    A method that changes keys returns once the change is durable. It raises ``StorageError`` if the
    disk refuses, and then nothing has changed.
    """

    keys: Keys
    address: Address
    open_connections: OpenConnections
    state: StatePaths
    stop: trio.Event
    seals: Seals | None = None
    pages: PageKeys = attrs.field(
        default=attrs.Factory(
            lambda self: open_pages(self.state.directory, self.seals), takes_self=True
        )
    )
    _written: tuple[tuple[int, int] | None, Path] | None = attrs.field(default=None, init=False)
    _is_refused: bool = attrs.field(default=False, init=False)

    @property
    def url(self) -> str:
        """The base URL of the daemon."""
        return self.address.url

    @property
    def handles(self) -> list[str]:
        """The handles that have a session."""
        return self.keys.handles

    def tools(self, handle: str) -> tuple[str, ...]:
        """Return the sets of tools that the handle's session offers."""
        return self.keys.tools(handle)

    async def session_url(self, handle: str, tools: Sequence[str] | None = None) -> str:
        """Return the URL of the handle's session; create one if needed. Raises ``AegisError``.

        ``tools`` are the sets of tools that it offers from now on; None leaves them as they are.
        """
        secret = await self._in_thread(self.keys.session_secret, handle, tools)
        return f"{self.address.url}{SESSION_PREFIX}{secret}"

    async def revoke(self, handle: str, *, is_noted: bool = False) -> Voided:
        """Void the handle's secret. Raises ``NotFound`` if it has none.

        ``is_noted``: it is ``revoked`` until ``drop_revoked``, in a later life of the daemon too.
        """
        remove = partial(self.keys.remove_session, handle, is_noted=is_noted)
        return self._revoke([await self._in_thread(remove)])

    @property
    def revoked(self) -> tuple[str, ...]:
        """The handles that were revoked and noted, and not dropped since."""
        return self.keys.revoked

    async def drop_revoked(self, handle: str) -> None:
        """Delete the note that the handle was revoked."""
        await self._in_thread(self.keys.drop_revoked, handle)

    async def rotate(self, session: str | None, *, all_keys: bool) -> Voided:
        """Replace the named keys; the operator's token if none is named.

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
        if OPERATOR in identities:
            identities += await self._in_thread(self.pages.revoke_operators)
        voided = self._revoke(identities)
        if voided.token:
            self._write_new_token()
        return voided

    # Web pages.

    @property
    def logged_in(self) -> PageList:
        """The web pages that are logged in, and the read-only links."""
        pages, links = map(_shown, self.pages.pages), map(_shown, self.pages.links)
        return PageList(pages=[*pages], links=[*links])

    def page_code(self) -> PageAddress:
        """Return an address that logs a browser in, once."""
        code, until = self.pages.new_code()
        return PageAddress(id=None, url=f"{self.address.url}/#code={code}", expires_at=until)

    async def new_link(self, view: str, label: str, for_s: float) -> PageAddress:
        """Return a read-only link to ``view``. Raises ``AegisError``."""
        link, secret = await self._in_thread(self.pages.new_link, view, label, for_s)
        url = f"{self.address.url}/#v={secret}"
        return PageAddress(id=link.id, url=url, expires_at=link.expires_at)

    async def revoke_page(self, name: str) -> PagesRevoked:
        """Log out a page, or revoke a link. Raises ``NotFound``."""
        identities = await self._in_thread(self.pages.revoke, name)
        ids = [each.page for each in identities if each.page is not None]
        return PagesRevoked(ids=ids, connections=self.open_connections.revoke(identities))

    def endpoint(self) -> Endpoint:
        """Return the content of the endpoint file for this process."""
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
        # In a thread: a change of the keys writes and syncs a file.
        with storage_errors("write", self.keys.path):
            return await in_thread(change, *arguments)

    def _revoke(self, identities: list[Identity]) -> Voided:
        return Voided(
            token=OPERATOR in identities,
            sessions=[each.handle for each in identities if each.handle is not None],
            connections=self.open_connections.revoke(identities),
        )

    def write_endpoint(self) -> None:
        """Write the endpoint file. Raises ``OSError``."""
        write_endpoint(self.state, self.endpoint(), self.seals)
        self._written = _identity_of(self.state.endpoint), self.address.socket

    def keep_endpoint(self) -> None:
        """Write the endpoint file again if it was removed or replaced, or the socket is another.

        Until then clients would take the daemon for one that has ended.
        """
        if (_identity_of(self.state.endpoint), self.address.socket) == self._written:
            return
        try:
            self.write_endpoint()
        except OSError as error:
            if not self._is_refused:  # a full disk must not fill the log
                log.warning("endpoint not written again", why=error.strerror)
            self._is_refused = True
        else:
            log.warning("endpoint written again", file=shown(self.state.endpoint))
            self._is_refused = False

    def _write_new_token(self) -> None:
        if self.stop.is_set():
            return  # the endpoint file was removed for the stop
        with storage_errors("put the new token into", self.state.endpoint):
            self.write_endpoint()


def _identity_of(path: Path) -> tuple[int, int] | None:
    """Return inode and time of the last change of a file; None if it is gone."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _shown(page: StoredPage) -> Page:
    return Page(
        id=page.id,
        view=page.view,
        label=page.label,
        created_at=page.created_at,
        expires_at=page.expires_at,
    )
