"""Addresses of nodes, and further names of the daemon, as they are written."""

from __future__ import annotations

import pytest

from aegis.settings import MAX_HOST_NAMES, NodesAddress, host_names, nodes_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8421", "127.0.0.1", 8421),
        ("gpu-host.example.org:1", "gpu-host.example.org", 1),
        ("0.0.0.0:0", "0.0.0.0", 0),
        ("[::1]:65535", "::1", 65535),
        ("[fe80::1%eth0]:7", "fe80::1%eth0", 7),
    ],
)
def test_an_address_is_a_host_and_a_port_and_reads_as_it_was_written(
    text: str, host: str, port: int
) -> None:
    address = nodes_address(text)
    assert address == NodesAddress(host, port)
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8421",
        ":8421",
        "host",
        "host:",
        "host:x",
        "host:-1",
        "host:65536",
        "host:123456",
        "::1:8421",
        "[::1]",
        "[host]:1",
        "a b:1",
        "http://host:1",
        "user@host:1",
        "host:1\n",
        "host:\u0661",
        f"{'h' * 254}:1",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be HOST:PORT"):
        nodes_address(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Desk.Example.org", "desk.example.org"),
        ("desk", "desk"),
        ("desk.tail1234.ts.net", "desk.tail1234.ts.net"),
        ("my_desk.local", "my_desk.local"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("192.168.1.7", "192.168.1.7"),
        ("FD7A::0001", "[fd7a::1]"),
        ("[fd7a::1]", "[fd7a::1]"),
    ],
)
def test_a_name_is_as_a_browser_writes_it(text: str, name: str) -> None:
    assert host_names([text, text]) == (name,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*.example.org",
        "https://desk.example.org",
        "desk.example.org:443",
        "desk.example.org.",
        "desk.example.org/",
        "user@desk",
        "b\xfccher.example",
        "a..b",
        "-a",
        "a-",
        f"{'a' * 64}.org",
        ".".join(["a" * 60] * 5),
        "10.0.0",
        "2130706433",
        "1.2.3.256",
        "fe80::1%eth0",
        "a b",
        "a\n",
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a name such as"):
        host_names([text])


def test_the_names_are_bounded() -> None:
    names = [f"n{each}.example" for each in range(MAX_HOST_NAMES)]
    assert host_names(names) == tuple(names)
    with pytest.raises(ValueError, match="at most 16 names"):
        host_names([*names, "one.more"])
