"""The web pages of one root that are logged in, and its read-only links.

A browser logs in with a one-time code, or with the secret of a link, and gets two keys: a cookie,
which scripts cannot read, and a page key, which the page stores for its origin. Both are needed:
browsers send a cookie to every port of a host, so another server on this machine may receive it;
the page key is bound to the port, but scripts can read it.

Only digests are stored, in ``pages.json`` (mode 0600). They survive restarts.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs

from actors.codec import structure
from actors.errors import CodecError
from aegis.clock import utc_text
from aegis.errors import Forbidden, NotFound, StartupError, Unavailable
from aegis.names import shorten
from aegis.servers.access.auth import new_secret, replace_file
from aegis.servers.calls import Identity
from aegis.shown_text import escape_line
from aegis.state.sealing import Seal, Seals, document_fits, sealed_document
from aegis.state.state_files import read_safely

PAGES_FILE = "pages.json"
PAGES_VERSION = 1
MAX_PAGES, MAX_LINKS, MAX_OF_LINK = 256, 64, 16
"""The largest numbers of logins, of links, and of the pages of one link.

Separate counts: each holder of a link may open it, and must use up the room of that link alone.
"""

CODE_S = 60.0
PAGE_S = 30 * 24 * 3600.0
MAX_LABEL_CHARS = 120
MAX_FILE_BYTES = 4 * 1024 * 1024

REFUSED = "log in again with a new address: aegis-actors web"
LINK_REFUSED = "this link has ended or was revoked: ask for another one"


@attrs.frozen(kw_only=True)
class StoredPage:
    """A page or a link. ``link``: the id of the link that a page was opened with.

    ``cookie`` and ``key`` are digests; a link has only ``key``, the digest of its secret.
    """

    id: str
    view: str | None
    label: str
    created_at: str
    expires_at: str
    key: str = attrs.field(repr=False)
    cookie: str | None = attrs.field(default=None, repr=False)
    link: str | None = None

    @property
    def identity(self) -> Identity:
        """The identity of its clients."""
        return Identity(handle=None, operator=self.view is None, view=self.view, page=self.id)


@attrs.frozen
class PageLogin:
    """The keys of a page that has just logged in."""

    page: StoredPage
    cookie: str = attrs.field(repr=False)
    key: str = attrs.field(repr=False)


@attrs.frozen
class _Code:
    digest: str
    until: datetime


class PageKeys:
    """The pages and links. Safe to use from several threads.

    A method that changes them writes and syncs a file: call it in a thread. It raises ``OSError``
    if the disk refuses, and then nothing has changed.
    """

    def __init__(
        self, path: Path, stored: Sequence[StoredPage] = (), seal: Seal | None = None
    ) -> None:
        self.path = path
        self._seal = seal
        self._stored = tuple(stored)
        self._gave_way: list[StoredPage] = []
        """Removed pages of links whose connections may be open until ``drop_ended``."""
        self._code: _Code | None = None
        self._changing = threading.Lock()

    @property
    def pages(self) -> list[StoredPage]:
        """The pages that are logged in, oldest first."""
        return self._live(self._stored)

    def is_logged_in(self, page: str) -> bool:
        """Return whether the page with this id is logged in."""
        return bool(self._live(each for each in self._stored if each.id == page))

    @property
    def links(self) -> list[StoredPage]:
        """The links, oldest first."""
        now = _now()
        return [each for each in self._stored if each.cookie is None and not _is_over(each, now)]

    def new_code(self) -> tuple[str, str]:
        """Return a one-time code and its end; it replaces the one before it."""
        code = new_secret()
        until = _now() + timedelta(seconds=CODE_S)
        self._code = _Code(_digest(code), until)
        return code, utc_text(until)

    def log_in(
        self, code: str, label: str, cookies: Sequence[str] = (), key: str = ""
    ) -> PageLogin:
        """Log a page in with a one-time code. Raises ``Forbidden``, and the code is void then.

        A browser that shows both keys of its login keeps that login, with new keys. Raises
        ``Unavailable`` if there are too many logins, and the code stays valid then.
        """
        with self._changing:
            before = self._page_of(cookies, key)
            before = None if before is None or before.view is not None else before
            others = [page for page in self._stored if page is not before]
            _check_room(sum(each.view is None for each in self._live(others)), MAX_PAGES, "logins")
            known, self._code = self._code, None
            if known is None or not hmac.compare_digest(known.digest, _digest(code)):
                raise Forbidden(REFUSED)
            if _now() >= known.until:
                raise Forbidden(REFUSED)
            page = _new_page(None, label, _now() + timedelta(seconds=PAGE_S))
            return self._add(page if before is None else attrs.evolve(page, id=before.id), others)

    def open_link(self, secret: str, label: str, cookies: Sequence[str] = ()) -> PageLogin:
        """Log a page in with the secret of a link. Raises ``Forbidden``.

        A browser that shows the cookie of a page of a link keeps it: it has one for all its tabs.
        The oldest page of this link gives way if there are too many.
        """
        with self._changing:
            digest, now = _digest(secret), _now()
            for link in self._stored:
                is_it = link.cookie is None and hmac.compare_digest(link.key, digest)
                if is_it and not _is_over(link, now):
                    return self._open(link, label, cookies)
            raise Forbidden(LINK_REFUSED)

    def identity_of(self, cookies: Sequence[str], key: str) -> Identity | None:
        """Return the identity of the page with this key, if one of ``cookies`` is its cookie."""
        page = self._page_of(cookies, key)
        return None if page is None else page.identity

    def new_link(self, view: str, label: str, for_s: float) -> tuple[StoredPage, str]:
        """Create a link to ``view``; return it and its secret."""
        secret = new_secret()
        with self._changing:
            _check_room(len(self.links), MAX_LINKS, "read-only links")
            link = _new_page(view, label, _now() + timedelta(seconds=for_s))
            link = attrs.evolve(link, key=_digest(secret))
            self._store([*self._stored, link])
        return link, secret

    def revoke(self, name: str) -> list[Identity]:
        """Remove a page, or a link and its pages, or ``all``; return the void identities.

        Raises ``NotFound`` if there is none.
        """
        return self._remove(lambda page: name in ("all", page.id, page.link), name)

    def revoke_operators(self) -> list[Identity]:
        """Remove the pages of the operator, as the token was replaced; return their identities."""
        return self._remove(lambda page: page.view is None, None)

    def drop_ended(self) -> list[Identity]:
        """Remove the pages and links whose time is over; return the void identities.

        Those of the pages that gave way are among them.
        """
        now = _now()
        return self._remove(lambda page: page in self._gave_way or _is_over(page, now), None)

    def _remove(self, is_meant: Callable[[StoredPage], bool], name: str | None) -> list[Identity]:
        with self._changing:
            gone = [page for page in (*self._stored, *self._gave_way) if is_meant(page)]
            if not gone and name is not None and name != "all":
                raise NotFound(f"there is no page or link {shorten(name)!r}; list them: page_list")
            left = [page for page in self._stored if page not in gone]
            if len(left) < len(self._stored):
                self._store(left)
            self._gave_way = [page for page in self._gave_way if page not in gone]
        return [page.identity for page in gone]

    def _live(self, pages: Iterable[StoredPage]) -> list[StoredPage]:
        """Return the logged-in ones of ``pages``.

        The ended ones stay until ``drop_ended``, which returns them: their connections are open.
        """
        now = _now()
        return [each for each in pages if each.cookie is not None and not _is_over(each, now)]

    def _page_of(self, cookies: Sequence[str], key: str) -> StoredPage | None:
        """Return the page that is logged in with this key and one of these cookies."""
        digest, now = _digest(key), _now()
        for page in self._stored:
            if page.cookie is not None and hmac.compare_digest(page.key, digest):
                return page if _has_cookie(page, cookies) and not _is_over(page, now) else None
        return None

    def _open(self, link: StoredPage, label: str, cookies: Sequence[str]) -> PageLogin:
        oldest = [each for each in self._stored if each.link == link.id][: 1 - MAX_OF_LINK]
        views = [each for each in self.pages if each.view is not None]
        known = (each for each in cookies if any(_has_cookie(page, [each]) for page in views))
        page = _new_page(link.view, label, _time_of(link.expires_at))
        others = [each for each in self._stored if each not in oldest]
        login = self._add(attrs.evolve(page, link=link.id), others, next(known, None))
        self._gave_way += oldest
        return login

    def _add(
        self, page: StoredPage, others: Sequence[StoredPage], cookie: str | None = None
    ) -> PageLogin:
        cookie, key = cookie or new_secret(), new_secret()
        page = attrs.evolve(page, cookie=_digest(cookie), key=_digest(key))
        self._store([*others, page])
        return PageLogin(page, cookie, key)

    def _store(self, pages: Sequence[StoredPage]) -> None:
        document = {"version": PAGES_VERSION, "pages": [attrs.asdict(page) for page in pages]}
        text = json.dumps(sealed_document(document, self._seal), indent=1)
        replace_file(self.path, text.encode() + b"\n")
        self._stored = tuple(pages)


def open_pages(state_dir: Path, seals: Seals | None = None) -> PageKeys:
    """Return the pages of the root with this state directory.

    Reads a file. Raises ``StartupError`` if it is damaged or the disk refuses.
    """
    path = state_dir / PAGES_FILE
    seal = None if seals is None else seals.of(str(path))
    try:
        content = read_safely(str(path), MAX_FILE_BYTES)
        return PageKeys(path, () if content is None else decoded(content, seal), seal)
    except OSError as error:
        raise StartupError(f"cannot use {path}: {error.strerror}") from error
    except ValueError as error:
        raise StartupError(
            f"{path} is damaged ({error}); remove it, which logs all web pages out"
        ) from None


def decoded(content: bytes, seal: Seal | None) -> list[StoredPage]:
    """Parse the file's content. Raises ``ValueError`` with the reason; it contains no key."""
    try:
        document = json.loads(content)
    except ValueError:
        raise ValueError("it is not JSON") from None
    if not isinstance(document, dict) or document.get("version") != PAGES_VERSION:
        raise ValueError(f"it is not of version {PAGES_VERSION}")
    if not document_fits(document, seal):
        raise ValueError("it was not written by a daemon of this state")
    try:
        return [structure(StoredPage, page) for page in document["pages"]]
    except (CodecError, KeyError, TypeError):
        raise ValueError("its pages are not in their form") from None


def _new_page(view: str | None, label: str, until: datetime) -> StoredPage:
    return StoredPage(
        id=secrets.token_hex(4),
        view=view,
        label=escape_line(label)[:MAX_LABEL_CHARS],
        created_at=utc_text(_now()),
        expires_at=utc_text(until),
        key="",
    )


def _check_room(count: int, limit: int, of: str) -> None:
    """Raise ``Unavailable`` unless there is room for another one."""
    if count >= limit:
        raise Unavailable(f"{limit} {of} exist, which is the limit: revoke some")


def _has_cookie(page: StoredPage, cookies: Sequence[str]) -> bool:
    digest = page.cookie or ""
    return any(hmac.compare_digest(digest, _digest(each)) for each in cookies)


def _is_over(page: StoredPage, now: datetime) -> bool:
    return now >= _time_of(page.expires_at)


def _now() -> datetime:
    return datetime.now(UTC)


def _time_of(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)  # a damaged time is over


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
