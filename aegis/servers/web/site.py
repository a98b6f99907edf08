"""``Site``: serves the files of the web page, and logs browsers in."""

from __future__ import annotations

import gzip
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any

import attrs
import trio

from aegis.errors import AegisError, Forbidden, InvalidRequest
from aegis.json_bounds import read_json
from aegis.limits import in_thread, in_thread_or_here
from aegis.servers.access.admission import (
    ErrorResponse,
    Headers,
    body_refusal,
    cookie_name,
    page_cookies,
    turned_away,
    values,
)
from aegis.servers.access.pages import PAGE_S, PageKeys, PageLogin
from aegis.servers.calls import one_sentence

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

MAX_LOGIN_BYTES = 4096
LOGIN_LIMIT_S = 10.0
LOGIN_PATH = "/login"

_HERE = Path(__file__).parent
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
}
_NONCE = b"{{nonce}}"
_CSP = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; style-src 'self' 'nonce-{nonce}'; manifest-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types aegis-worker"
)
"""The policy of each page. ``nonce`` is for the style elements that xterm.js creates."""

_CSP_OF_FILES = b"default-src 'none'; connect-src 'self'; frame-ancestors 'none'"

_ASKED_AGAIN = (b"cache-control", b"no-cache")
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    _ASKED_AGAIN,
]
NOT_BUILT = (
    "The web page was not built when this was installed. With a connection to a registry of npm "
    "run 'pip install --force-reinstall aegis-actors', or in a checkout "
    "'python3 .ci/hatch_build.py', and start the daemon again."
)
PARTS = "/built/part-"
"""Begins the paths of files that never change: their names have a digest of their content."""


@attrs.frozen
class PageFile:
    """A file of the page, as it is sent."""

    content: bytes = attrs.field(repr=False)
    packed: bytes | None = attrs.field(repr=False)
    kind: str
    tag: str


def load_files(directory: Path = _HERE) -> dict[str, PageFile]:
    """Return the files of the page by their paths. Reads files: call it in a thread."""
    found = {}
    for folder, base in (("static", "/"), ("built", "/built/")):
        for path in sorted((directory / folder).rglob("*")):
            kind = _TYPES.get(path.suffix)
            if kind is not None and path.is_file():
                name = base + path.relative_to(directory / folder).as_posix()
                found[name] = _file(path.read_bytes(), kind)
    return found


def _file(content: bytes, kind: str) -> PageFile:
    packed = gzip.compress(content, 6, mtime=0) if len(content) > 1024 else None
    return PageFile(content, packed, kind, f'"{hashlib.sha256(content).hexdigest()[:24]}"')


class Site:
    """The web page at the daemon's address; ``hosts`` are the accepted host names."""

    def __init__(self, pages: PageKeys, hosts: frozenset[str], directory: Path = _HERE) -> None:
        self._pages = pages
        self._hosts = hosts
        self._directory = directory
        self._files: dict[str, PageFile] | None = None

    async def serves(self, path: str) -> bool:
        """Return whether a path belongs to the page."""
        return path in ("/", LOGIN_PATH) or path in await self._known()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> ErrorResponse | None:
        """Answer a request for a path of the page; return a refusal for the caller to send."""
        headers = scope["headers"]
        refusal = turned_away(headers, scope["query_string"], self._hosts) or body_refusal(headers)
        if refusal is not None:
            return refusal
        if scope["path"] == LOGIN_PATH:
            return await self._log_in(scope, receive, send)
        if scope["method"] not in ("GET", "HEAD"):
            return ErrorResponse(405, "use GET")
        await self._send_file(scope, send)
        return None

    async def _known(self) -> dict[str, PageFile]:
        if self._files is None:
            self._files = await in_thread_or_here(load_files, self._directory)
        return self._files

    async def _send_file(self, scope: Scope, send: Send) -> None:
        files = await self._known()
        path = "/index.html" if scope["path"] == "/" else scope["path"]
        file, extra = files[path], list(_SAFE)
        content, packed = file.content, file.packed
        if path == "/index.html":
            nonce = secrets.token_urlsafe(16)
            content, packed = self._with_nonce(file.content, nonce, files), None
            extra.append((b"content-security-policy", _CSP.format(nonce=nonce).encode()))
        else:
            extra += [(b"etag", file.tag.encode()), (b"content-security-policy", _CSP_OF_FILES)]
            if path.startswith(PARTS):
                extra.remove(_ASKED_AGAIN)
                extra.append((b"cache-control", b"max-age=31536000, immutable"))
            if file.tag in values(scope["headers"], b"if-none-match"):
                await _respond(send, 304, b"", extra)
                return
        if packed is not None and b"gzip" in b",".join(
            value for name, value in scope["headers"] if name == b"accept-encoding"
        ):
            content = packed
            extra.append((b"content-encoding", b"gzip"))
        extra += [(b"content-type", file.kind.encode()), (b"vary", b"accept-encoding")]
        await _respond(send, 200, content, extra)

    def _with_nonce(self, page: bytes, nonce: str, files: dict[str, PageFile]) -> bytes:
        note = files.get("/built/page.json")
        first = [] if note is None else json.loads(note.content)["first"]
        preload = "".join(f'<link rel="modulepreload" href="/built/{each}">\n' for each in first)
        page = page.replace(b"{{preload}}", preload.encode())
        page = page.replace(b"{{missing}}", NOT_BUILT.encode() if note is None else b"")
        return page.replace(_NONCE, nonce.encode())

    async def _log_in(self, scope: Scope, receive: Receive, send: Send) -> ErrorResponse | None:
        if scope["method"] != "POST":
            return ErrorResponse(405, "use POST")
        if not values(scope["headers"], b"origin"):
            return ErrorResponse(403, "only the page itself logs in: the Origin header is missing")
        try:
            login = await self._login(await _read_little(receive), scope["headers"])
        except Forbidden as error:
            return ErrorResponse(403, one_sentence(str(error)))
        except AegisError as error:
            return ErrorResponse(400, one_sentence(str(error)))
        except OSError:
            return ErrorResponse(507, "the login could not be stored: the disk refuses")
        # The page keeps drafts by it: another project may be served at this address tomorrow.
        project = hashlib.sha256(str(self._pages.path).encode("utf-8", "surrogateescape"))
        page = {"key": login.key, "view": login.page.view, "id": login.page.id}
        body = json.dumps({**page, "project": project.hexdigest()[:16]})
        cookie = self._cookie(login, scope["headers"])
        kind = (b"content-type", b"application/json")
        await _respond(send, 200, body.encode(), [*_SAFE, kind, (b"set-cookie", cookie.encode())])
        return None

    async def _login(self, body: bytes, headers: Headers) -> PageLogin:
        try:
            document = read_json(body)
        except (ValueError, RecursionError):
            document = None
        label, cookies = " ".join(values(headers, b"user-agent")), page_cookies(headers)
        match document:
            case {"code": str(code), "key": str(key)}:
                return await in_thread(self._pages.log_in, code, label, cookies, key)
            case {"code": str(code)}:
                return await in_thread(self._pages.log_in, code, label)
            case {"link": str(secret)}:
                return await in_thread(self._pages.open_link, secret, label, cookies)
        raise InvalidRequest("send a JSON object with 'code' or 'link'")

    def _cookie(self, login: PageLogin, headers: Headers) -> str:
        host = "".join(values(headers, b"host"))
        name = cookie_name(host, is_view=login.page.view is not None)
        # The browser says by which scheme it reached the page: a header of a proxy that says so
        # could be anybody's.
        is_tls = any(each.startswith("https:") for each in values(headers, b"origin"))
        secure = "; Secure" if is_tls else ""
        of_page = f"HttpOnly; SameSite=Strict; Path=/; Max-Age={PAGE_S:.0f}{secure}"
        return f"{name}={login.cookie}; {of_page}"


async def _read_little(receive: Receive) -> bytes:
    """Return the body of a login. Raises ``InvalidRequest``."""
    body = bytearray()
    with trio.move_on_after(LOGIN_LIMIT_S):
        while len(body) <= MAX_LOGIN_BYTES:
            message = await receive()
            body += message.get("body", b"")
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return bytes(body)
    raise InvalidRequest(f"a login has at most {MAX_LOGIN_BYTES} bytes, sent at once")


async def _respond(
    send: Send, status: int, content: bytes, headers: Iterable[tuple[bytes, bytes]]
) -> None:
    length = [] if status == 304 else [(b"content-length", str(len(content)).encode())]
    start = {"type": "http.response.start", "status": status, "headers": [*headers, *length]}
    await send(start)
    await send({"type": "http.response.body", "body": content})
