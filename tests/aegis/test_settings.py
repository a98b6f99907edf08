"""Addresses of nodes as they are written."""

from __future__ import annotations

import pytest

from aegis.settings import NodesAddress, nodes_address


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
