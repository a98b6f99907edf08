"""Which addresses a push service may have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import InvalidRequest
from aegis.push.endpoint import is_public, read_endpoint

LONG = "a" * 64


@pytest.mark.parametrize(
    ("text", "host", "target"),
    [
        ("https://push.example/send/abc?x=1", "push.example", "/send/abc?x=1"),
        ("https://PUSH.example:443", "push.example", "/"),
        ("https://93.184.216.34/a", "93.184.216.34", "/a"),
        ("https://[2606:4700::1111]/a", "[2606:4700::1111]", "/a"),
    ],
)
def test_an_address_of_a_push_service_is_taken(text: str, host: str, target: str) -> None:
    endpoint = read_endpoint(text)
    assert (endpoint.host, endpoint.target) == (host, target)
    assert endpoint.origin == f"https://{host}"
    assert target not in repr(endpoint) or target == "/"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "https"),
        ("http://push.example/a", "https"),
        ("file:///etc/passwd", "https"),
        ("//push.example/a", "https"),
        ("https:///a", "must name a host"),
        ("https://push.example:8443/a", "no port but 443"),
        ("https://push.example:99999/a", "cannot be read"),
        ("https://user@push.example/a", "user"),
        ("https://push.example/a#b", "fragment"),
        ("https://push.example/a b", "characters"),
        ("https://push.example/a\r\nX: y", "characters"),
        ("https://push.example\\@127.0.0.1/", "characters"),
        ("https://b\xfccher.example/a", "characters"),
        (f"https://{'.'.join([LONG] * 5)}/a", "must name a host"),
        ("https://127.0.0.1/a", "no public address"),
        ("https://[::1]/a", "no public address"),
        ("https://[::ffff:10.0.0.1]/a", "no public address"),
        ("https://169.254.169.254/latest/meta-data", "no public address"),
    ],
)
def test_another_address_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        read_endpoint(text)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.9.9.9"),
        *("169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.1.1", "192.0.0.192"),
        *("198.18.0.1", "203.0.113.5", "224.0.0.1", "239.255.255.255", "255.255.255.255"),
        "168.63.129.16",
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1"),
        *("2002:7f00:1::", "2001::1", "2001:db8::1"),
        *("", "localhost", "push.example", "2130706433", "0x7f.1", "127.1"),
    ],
)
def test_an_address_that_not_everybody_can_reach_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "2a00:1450::1"]
)
def test_other_addresses_are_public(address: str) -> None:
    assert is_public(address)


@given(st.text(max_size=60))
def test_no_text_makes_the_rules_fail(text: str) -> None:
    assert not is_public(text) or ":" in text or "." in text
    with pytest.raises(InvalidRequest):
        read_endpoint(f"https://127.0.0.1/{text}" if text.isprintable() else text)
