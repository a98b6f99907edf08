"""The files of the page: the policy, the nonce, caching, and a page that was not built."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from aegis.servers.access.admission import ErrorResponse, allowed_hosts
from aegis.servers.access.pages import open_pages
from aegis.servers.web.site import Site

HOST = (b"host", b"localhost:8420")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    static = tmp_path / "static"
    static.mkdir()
    (static / "index.html").write_text("{{preload}}<script nonce={{nonce}}></script>{{missing}}")
    (static / "app.js").write_text("x" * 5000)
    (tmp_path / "state").mkdir()
    return Site(open_pages(tmp_path / "state"), frozenset({"localhost"}), tmp_path)


async def get(
    site: Site, path: str, *headers: tuple[bytes, bytes], method: str = "GET"
) -> tuple[int, dict[bytes, bytes], bytes]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"method": method, "path": path, "query_string": b"", "headers": [HOST, *headers]}
    refusal = await site.serve(scope, receive, send)
    if isinstance(refusal, ErrorResponse):
        return refusal.status, {}, refusal.sentence.encode()
    start, body = sent
    return start["status"], dict(start["headers"]), body["body"]


async def test_a_page_has_a_policy_without_unsafe_and_a_nonce_of_its_own(site: Site) -> None:
    nonces = set()
    for _ in range(3):
        status, headers, body = await get(site, "/")
        policy = headers[b"content-security-policy"].decode()
        assert status == 200
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        nonce = policy.partition("'nonce-")[2].partition("'")[0]
        assert f"nonce={nonce}>".encode() in body
        nonces.add(nonce)
    assert len(nonces) == 3


async def test_a_page_that_was_not_built_says_what_to_run(site: Site, tmp_path: Path) -> None:
    _, _, body = await get(site, "/")
    assert b"python3 .ci/hatch_build.py" in body
    built = tmp_path / "built"
    built.mkdir()
    (built / "page.json").write_text('{"first": ["part-A1.js"]}')
    (built / "part-A1.js").write_text("x")
    whole = Site(open_pages(tmp_path / "state"), frozenset({"localhost"}), tmp_path)
    _, _, body = await get(whole, "/")
    assert b"hatch_build" not in body
    assert b'<link rel="modulepreload" href="/built/part-A1.js">' in body
    _, of_part, _ = await get(whole, "/built/part-A1.js")
    assert b"immutable" in of_part[b"cache-control"]
    assert (await get(whole, "/"))[1][b"cache-control"] == b"no-cache"


async def test_a_file_is_sent_once_and_packed_for_who_can_read_that(site: Site) -> None:
    _, headers, body = await get(site, "/app.js")
    assert body == b"x" * 5000
    _, packed, small = await get(site, "/app.js", (b"accept-encoding", b"gzip, br"))
    assert packed[b"content-encoding"] == b"gzip"
    assert gzip.decompress(small) == body
    status, _, nothing = await get(site, "/app.js", (b"if-none-match", headers[b"etag"]))
    assert (status, nothing) == (304, b"")


async def test_only_known_paths_are_of_the_page(site: Site) -> None:
    for path in ("/static/app.js", "/../app.js", "/index.html/", "/mcp", "/health", "/state"):
        assert not await site.serves(path)
    assert await site.serves("/")
    assert await site.serves("/login")


@pytest.mark.parametrize(
    ("path", "method", "headers", "status"),
    [
        ("/", "POST", (), 405),
        ("/login", "GET", (), 405),
        ("/login", "POST", (), 403),
        ("/", "GET", ((b"origin", b"http://evil.example"),), 403),
        ("/login", "POST", ((b"origin", b"http://localhost:8420"),), 400),
    ],
)
async def test_what_is_not_served_is_refused(
    site: Site, path: str, method: str, headers: tuple[tuple[bytes, bytes], ...], status: int
) -> None:
    assert (await get(site, path, *headers, method=method))[0] == status


@pytest.mark.parametrize(
    ("origin", "is_secure"), [(b"https://desk.example", True), (b"http://desk.example", False)]
)
async def test_a_cookie_of_a_page_that_was_reached_by_tls_is_for_tls_only(
    tmp_path: Path, origin: bytes, is_secure: bool
) -> None:
    (tmp_path / "state").mkdir()
    pages = open_pages(tmp_path / "state")
    site = Site(pages, allowed_hosts("127.0.0.1", ("desk.example",)), tmp_path)
    body = json.dumps({"code": pages.new_code()[0]}).encode()
    # A header that a proxy would set, and anybody can: it decides nothing.
    forged = (b"x-forwarded-proto", b"http" if is_secure else b"https")
    headers = [(b"host", b"desk.example"), (b"origin", origin), forged]
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {"method": "POST", "path": "/login", "query_string": b"", "headers": headers}
    assert await site.serve(scope, receive, send) is None
    cookie = dict(sent[0]["headers"])[b"set-cookie"].decode()
    assert ("; Secure" in cookie) is is_secure
    assert "; HttpOnly; SameSite=Strict; Path=/" in cookie


async def test_a_foreign_host_gets_no_page(site: Site) -> None:
    scope = {"method": "GET", "path": "/", "query_string": b"", "headers": [(b"host", b"evil")]}

    async def never(*_: object) -> Any:
        raise AssertionError

    refusal = await site.serve(scope, never, never)
    assert refusal is not None
    assert refusal.status == 421
