from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.servers.access.admission import (
    allowed_hosts,
    bearer_token,
    host_name,
    host_refusal,
    is_loopback,
    may_connect,
    origin_refusal,
    query_refusal,
    turned_away,
)

HOSTS = allowed_hosts("127.0.0.1")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8420", "localhost", "LOCALHOST:1", "[::1]", "[::1]:65535"],
)
def test_loopback_names_are_answered_to_on_any_port(host: str) -> None:
    assert host_refusal([host], HOSTS) is None


@pytest.mark.parametrize(
    "found",
    [
        [],
        ["localhost", "localhost"],
        ["evil.example"],
        ["evil.example:8420"],
        ["localhost.evil.example"],
        ["127.0.0.1.evil.example"],
        ["localhost:"],
        ["localhost:x"],
        ["localhost:99999"],
        ["localhost:80:80"],
        ["user@localhost"],
        ["::1"],
        ["[::1]x"],
        ["[::1"],
        [""],
        ["10.0.0.5"],
    ],
)
def test_any_other_host_is_misdirected(found: list[str]) -> None:
    refusal = host_refusal(found, HOSTS)
    assert refusal is not None
    assert refusal.status == 421
    assert "localhost" in refusal.sentence


@pytest.mark.parametrize(
    ("bound", "host"), [("10.0.0.5", "10.0.0.5:80"), ("fe80::1", "[fe80::1]:8420"), ("Box", "box")]
)
def test_the_bound_host_is_answered_to_as_well(bound: str, host: str) -> None:
    assert host_refusal([host], allowed_hosts(bound)) is None
    assert host_refusal([host], HOSTS) is not None


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("desk.example.org", True),
        ("DESK.example.org:443", True),
        ("[fd7a::1]:8420", True),
        ("localhost:8420", True),
        ("a.desk.example.org", False),
        ("desk.example.org.evil.example", False),
        ("desk.example.org.", False),
        ("example.org", False),
        ("xdesk.example.org", False),
    ],
)
def test_a_further_name_is_accepted_exactly(host: str, is_known: bool) -> None:
    hosts = allowed_hosts("127.0.0.1", ("desk.example.org", "[fd7a::1]"))
    assert (host_refusal([host], hosts) is None) is is_known


@pytest.mark.parametrize(
    ("origin", "host", "is_own"),
    [
        ("https://desk.example.org", "desk.example.org", True),
        ("https://desk.example.org", "desk.example.org:443", True),
        ("https://desk.example.org:8443", "desk.example.org:8443", True),
        ("http://desk.example.org:8420", "desk.example.org:8420", True),
        ("https://desk.example.org", "desk.example.org:80", False),
        ("https://desk.example.org", "desk.example.org:8420", False),
        ("http://desk.example.org", "desk.example.org:443", False),
        ("https://evil.example", "desk.example.org", False),
        ("wss://desk.example.org", "desk.example.org", False),
        ("https://localhost", "localhost", False),
        ("https://127.0.0.1:8420", "127.0.0.1:8420", False),
        ("https://[::1]", "[::1]", False),
    ],
)
def test_a_proxy_may_speak_tls_for_a_name(origin: str, host: str, is_own: bool) -> None:
    assert (origin_refusal([origin], [host]) is None) is is_own


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:8420", "127.0.0.1:8420"),
        ("http://LOCALHOST:8420", "localhost:8420"),
        ("http://localhost", "localhost:80"),
        ("http://localhost:80", "localhost"),
        ("http://[::1]:1", "[::1]:1"),
    ],
)
def test_the_daemons_own_origin_may_come_in(origin: str, host: str) -> None:
    assert origin_refusal([origin], [host]) is None


def test_a_client_without_an_origin_may_come_in() -> None:
    assert origin_refusal([], ["localhost"]) is None


@pytest.mark.parametrize(
    "found",
    [
        ["http://evil.example"],
        ["http://localhost:8421"],
        ["http://127.0.0.1:8420"],
        ["https://localhost:8420"],
        ["http://localhost:8420/"],
        ["http://localhost:8420?x"],
        ["http://user@localhost:8420"],
        ["http://[::1:8420"],
        ["null"],
        [""],
        ["http://localhost:8420", "http://localhost:8420"],
    ],
)
def test_any_other_origin_is_forbidden(found: list[str]) -> None:
    refusal = origin_refusal(found, ["localhost:8420"])
    assert refusal is not None
    assert refusal.status == 403


@pytest.mark.parametrize(
    "query", [b"token=x", b"a=1&token=x", b"TOKEN", b"access_token=", b"%74oken=x", b"key=1"]
)
def test_a_token_in_the_address_is_refused(query: bytes) -> None:
    refusal = query_refusal(query)
    assert refusal is not None
    assert refusal.status == 400
    assert "Authorization: Bearer" in refusal.sentence


@pytest.mark.parametrize("query", [b"", b"a=token", b"tokens=1", b"&&=", b"%zz\xff"])
def test_other_queries_pass(query: bytes) -> None:
    assert query_refusal(query) is None


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ([(b"authorization", b"Bearer abc")], "abc"),
        ([(b"authorization", b"bearer  abc ")], "abc"),
        ([(b"authorization", b"Bearer")], None),
        ([(b"authorization", b"Bearer ")], None),
        ([(b"authorization", b"Basic abc")], None),
        ([(b"authorization", b"Bearer a"), (b"authorization", b"Bearer a")], None),
        ([], None),
    ],
)
def test_the_bearer_token_is_taken_from_exactly_one_header(
    headers: list[tuple[bytes, bytes]], token: str | None
) -> None:
    assert bearer_token(headers) == token


def test_only_the_same_user_and_root_are_served_on_the_socket() -> None:
    assert may_connect(1000, 1000)
    assert may_connect(0, 1000)
    assert not may_connect(1001, 1000)
    assert not may_connect(65534, 0)


def test_the_host_is_judged_before_the_origin_and_the_query() -> None:
    foreign = [(b"host", b"evil.example"), (b"origin", b"http://evil.example")]
    refusal = turned_away(foreign, b"token=x", HOSTS)
    assert refusal is not None
    assert refusal.status == 421
    assert turned_away([(b"host", b"localhost:1")], b"", HOSTS) is None


@given(st.text(max_size=40))
def test_no_text_makes_the_rules_fail(text: str) -> None:
    host_name(text)
    refusal = origin_refusal([text], ["localhost"])
    assert (refusal is None) == (text.lower() in ("http://localhost", "http://localhost:80"))


@pytest.mark.parametrize(
    ("host", "only_here"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.7", False),
        ("build.example", False),
    ],
)
def test_what_other_machines_can_reach_is_not_loopback(host: str, only_here: bool) -> None:
    assert is_loopback(host) is only_here
