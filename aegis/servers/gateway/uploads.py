"""``Uploads``: takes files from the web page, which has bytes where ``agent_send`` takes paths.

    POST /upload?name=shot.png    the bytes as the body → {"path": "…/uploads/1f…-shot.png", …}
    POST /image?path=…            an image of a transcript, whose entry names its path

A page shows its cookie and its page key, another client of the operator the bearer token. A file is
kept for ``KEPT_S`` seconds, as an agent may read it by its path long after the message; of too many
the oldest are deleted.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs

import structlog
import trio

from aegis.errors import AegisError
from aegis.limits import in_thread
from aegis.path_text import text_of_path
from aegis.servers.access.admission import (
    ErrorResponse,
    bearer_token,
    body_refusal,
    page_cookies,
    turned_away,
    values,
)
from aegis.servers.access.auth import Keys
from aegis.servers.access.pages import PageKeys
from aegis.servers.calls import OPERATOR, Identity, within
from aegis.servers.gateway.http_server import Exchange
from aegis.state.state_files import DIRECTORY_MODE, check_directory, open_safely

UPLOAD_PATH = "/upload"
IMAGE_PATH = "/image"
PAGE_HEADER = b"x-aegis-page"
"""The header with the page key: a cookie alone may come from a server at another port."""

DIRECTORY = "uploads"

MAX_UPLOAD_BYTES = 16 * 1024 * 1024
MAX_FILES = 200
MAX_TOGETHER_BYTES = 256 * 1024 * 1024
KEPT_S = 7 * 86_400.0
SWEEP_S = 3_600.0

UPLOAD_LIMIT_S = 300.0
"""Seconds in which a file must have arrived."""

WRITE_BYTES = 1024 * 1024
"""The part of a file that is in memory."""

MAX_NAME_CHARS = 60

_UNSAFE = re.compile(r"[^\w.-]+")
_IMAGE = re.compile(
    r"/(?:.*/)?\.aegis/state/(agents/[0-9a-f]+/(?:images|sent)/[0-9a-f]+\.(png|jpg|gif|webp))",
    re.DOTALL,
)
"""An image beside a transcript, below a state directory: that of the daemon, which may have been at
another path when the transcript was written. An agent may name any path."""
_TYPES = {"jpg": b"image/jpeg"}

log = structlog.get_logger("aegis.servers.uploads")


class Uploads:
    """The files that pages have sent, in the state directory; ``hosts`` are the accepted names."""

    def __init__(self, pages: PageKeys, keys: Keys, hosts: frozenset[str]) -> None:
        self._pages, self._keys, self._hosts = pages, keys, hosts
        self._state = pages.path.parent
        self.directory = self._state / DIRECTORY
        self._busy: set[Identity] = set()

    async def run(self) -> None:
        """Delete files whose time is over, until cancelled."""
        while True:
            try:
                await in_thread(make_room, self.directory, 0)
            except OSError as error:
                log.warning("old uploads not deleted", why=error.strerror)
            await trio.sleep(SWEEP_S)

    async def serve(self, exchange: Exchange) -> ErrorResponse | None:
        """Store a file, or show an image; return a refusal for the caller to send."""
        admitted = self._admit(exchange)
        if isinstance(admitted, ErrorResponse):
            return admitted
        exchange.client.trust(admitted)
        if exchange.head.path == IMAGE_PATH:
            return await self._show(exchange)
        if admitted in self._busy:
            return ErrorResponse(429, "one file at a time: send this one again after the other")
        self._busy.add(admitted)
        try:
            return await self._store(exchange)
        except OSError as error:
            return ErrorResponse(507, f"the file could not be stored: {error.strerror}")
        finally:
            self._busy.discard(admitted)

    async def _show(self, exchange: Exchange) -> ErrorResponse | None:
        found = _IMAGE.fullmatch(_parameter(exchange.head.query, "path"))
        if found is None:
            return _NO_IMAGE
        try:
            data = await in_thread(_read, str(self._state / found[1]))
        except OSError:  # the oldest of many are deleted
            return _NO_IMAGE
        await _send(exchange, data, _TYPES.get(found[2], f"image/{found[2]}".encode()))
        return None

    def _admit(self, exchange: Exchange) -> Identity | ErrorResponse:
        head = exchange.head
        refusal = turned_away(head.headers, head.query, self._hosts) or body_refusal(head.headers)
        if refusal is not None:
            return refusal
        # For an image too: with a GET of its own a page sends no Origin.
        if head.method != "POST":
            return ErrorResponse(405, "use POST")
        identity = self._identity(exchange)
        if identity is None:
            return _NO_KEY
        if not identity.operator:
            return ErrorResponse(
                403, "only the operator's page sends files and reads images, not a read-only link"
            )
        try:
            return within(exchange.client.process or OPERATOR, identity)
        except AegisError as error:
            return ErrorResponse(403, str(error))

    def _identity(self, exchange: Exchange) -> Identity | None:
        headers = exchange.head.headers
        if values(headers, b"authorization"):
            token = bearer_token(headers)
            return None if token is None else self._keys.identity_of_token(token)
        shown = values(headers, PAGE_HEADER)
        return self._pages.identity_of(page_cookies(headers), shown[0]) if shown else None

    async def _store(self, exchange: Exchange) -> ErrorResponse | None:
        length = exchange.head.fields.get(b"content-length", b"0")
        if int(length) > MAX_UPLOAD_BYTES:
            return _TOO_LARGE
        await in_thread(make_room, self.directory, MAX_UPLOAD_BYTES)
        path = self.directory / f"{secrets.token_hex(6)}-{stored_name(exchange.head.query)}"
        fd = await in_thread(open_safely, str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            size = await _receive(exchange, fd)
        except BaseException:  # cancelled too: half a file must not be sent to an agent
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)
        if not isinstance(size, ErrorResponse) and size > 0:
            await _answer(exchange, {"path": text_of_path(path), "bytes": size})
            return None
        path.unlink(missing_ok=True)
        return size if isinstance(size, ErrorResponse) else _EMPTY


async def _receive(exchange: Exchange, fd: int) -> int | ErrorResponse:
    """Write the body to a file; return its size, or why it was refused."""
    size, part = 0, bytearray()
    with trio.move_on_after(UPLOAD_LIMIT_S) as limit:
        while True:
            message = await exchange.receive()
            if message["type"] == "http.disconnect":
                return ErrorResponse(400, "the file did not arrive whole")
            part += message["body"]
            size += len(message["body"])
            if size > MAX_UPLOAD_BYTES:
                return _TOO_LARGE
            is_last = not message["more_body"]
            if part and (is_last or len(part) >= WRITE_BYTES):
                await in_thread(_write, fd, bytes(part))
                part.clear()
            if is_last:
                return size
    assert limit.cancelled_caught
    return ErrorResponse(408, f"the file did not arrive within {UPLOAD_LIMIT_S:g} seconds")


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


async def _answer(exchange: Exchange, document: dict[str, object]) -> None:
    await _send(exchange, json.dumps(document).encode(), b"application/json")


async def _send(exchange: Exchange, body: bytes, kind: bytes) -> None:
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"content-security-policy", b"default-src 'none'"),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await exchange.send({"type": "http.response.start", "status": 200, "headers": headers})
    await exchange.send({"type": "http.response.body", "body": body})


def _read(path: str) -> bytes:
    with os.fdopen(open_safely(path, os.O_RDONLY), "rb") as file:
        return file.read(MAX_UPLOAD_BYTES)


def _parameter(query: bytes, name: str) -> str:
    return parse_qs(query.decode("latin-1"), max_num_fields=8).get(name, [""])[0]


def stored_name(query: bytes) -> str:
    """Return the end of the name of a file, from the query of its request. Pure."""
    given = _parameter(query, "name")
    # Letters of any language stay: the agent sees the name. Their order is not changed by marks.
    plain = _UNSAFE.sub("-", given.rpartition("/")[2]).strip(".-")
    return plain[-MAX_NAME_CHARS:].strip(".-") or "file"


def make_room(directory: Path, size: int) -> None:
    """Delete files whose time is over, and the oldest until another of ``size`` bytes fits.

    Makes the directory if ``size`` is not 0. Raises ``OSError``.
    """
    with _opened(directory, is_made=size > 0) as files:
        found = sorted(files)
    now, left = time.time(), sum(each[1] for each in found)
    for number, (at, length, path) in enumerate(found):
        is_full = len(found) - number >= MAX_FILES or left + size > MAX_TOGETHER_BYTES
        # A clock that was set back must not keep a file for ever.
        if abs(now - at) < KEPT_S and not is_full:
            break
        Path(path).unlink(missing_ok=True)
        left -= length


@contextmanager
def _opened(directory: Path, *, is_made: bool) -> Iterator[Iterator[tuple[float, int, str]]]:
    """Yield the files of the directory as moment, size and path; none if there is no directory."""
    try:
        if is_made:
            directory.mkdir(DIRECTORY_MODE, exist_ok=True)
        check_directory(str(directory), directory.lstat())
    except FileNotFoundError:
        yield iter(())
        return
    with os.scandir(directory) as entries:
        yield _files(entries)


def _files(entries: Iterator[os.DirEntry[str]]) -> Iterator[tuple[float, int, str]]:
    for each in entries:
        try:
            found = each.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(found.st_mode):
            yield found.st_mtime, found.st_size, each.path


_NO_KEY = ErrorResponse(
    403, "send the page's cookie and key from the page itself, or the operator's token"
)
_NO_IMAGE = ErrorResponse(404, "there is no such image of a transcript, or not any more")
_EMPTY = ErrorResponse(400, "the file is empty")
_TOO_LARGE = ErrorResponse(413, f"a file has at most {MAX_UPLOAD_BYTES // 2**20} MiB")
