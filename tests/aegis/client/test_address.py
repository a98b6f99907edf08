"""Where a client connects, by a directory or an address."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aegis.client.address import Address, BadAddress, Local, Remote, address_of
from aegis.client.errors import NoDaemon
from aegis.state.endpoint import Endpoint, write_endpoint
from aegis.state.root import StatePaths, make_directory


@pytest.mark.parametrize(
    ("url", "keys", "address"),
    [
        ("http://127.0.0.1:8420", {"token": "t"}, Remote("ws://127.0.0.1:8420/ws", "t", None)),
        ("https://far.example", {"token": "t"}, Remote("wss://far.example/ws", "t", None)),
        ("ws://[::1]:80/ws", {"token": "t"}, Remote("ws://[::1]:80/ws", "t", None)),
        ("wss://far.example/", {"session": "s"}, Remote("wss://far.example/ws", None, "s")),
        ("http://h:1/mcp/s/secret", {}, Remote("ws://h:1/ws", None, "secret")),
        ("http://h:1/mcp/s/secret/mcp", {}, Remote("ws://h:1/ws", None, "secret")),
        ("http://h:1/mcp/s/secret/mcp/", {}, Remote("ws://h:1/ws", None, "secret")),
    ],
)
def test_an_address_leads_to_its_websocket(
    url: str, keys: dict[str, str], address: Address
) -> None:
    assert address_of(url, **keys) == address


@pytest.mark.parametrize(
    ("url", "keys", "sentence"),
    [
        ("http://127.0.0.1:8420", {}, "needs a key"),
        ("http://h/mcp/s/", {}, "needs a key"),
        ("http://h/mcp/s/secret", {"token": "t"}, "contains its key"),
        ("http://h", {"token": "t", "session": "s"}, "not both"),
        ("ftp://h", {"token": "t"}, "http, https, ws or wss"),
        ("http://", {"token": "t"}, "http, https, ws or wss"),
        ("http://h:0", {"token": "t"}, "http, https, ws or wss"),
        ("http://h:99999", {"token": "t"}, "http, https, ws or wss"),
        ("http://[::1", {"token": "t"}, "http, https, ws or wss"),
        (".", {"token": "t"}, "needs none"),
    ],
)
def test_an_address_that_cannot_be_used_says_what_can(
    url: str, keys: dict[str, str], sentence: str
) -> None:
    with pytest.raises(BadAddress, match=sentence) as caught:
        address_of(url, **keys)
    assert "secret" not in str(caught.value)


def test_no_key_shows_in_a_repr() -> None:
    for address in (Remote("ws://h/ws", "sesame", None), Local(Path("/r"), "sesame")):
        assert "sesame" not in repr(address)


def test_a_directory_leads_to_the_nearest_root(tmp_path: Path) -> None:
    (tmp_path / ".aegis.yaml").touch()
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert address_of(inner) == address_of(os.fspath(inner)) == Local(tmp_path.resolve(), None)


def test_no_directory_is_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".aegis.yaml").touch()
    assert address_of(None, session="s") == Local(tmp_path.resolve(), "s")


def test_a_root_is_looked_up_each_time(tmp_path: Path) -> None:
    local = Local(tmp_path, None)
    with pytest.raises(NoDaemon, match="start one with: aegis-actors up"):
        local.endpoint()
    make_directory(StatePaths(tmp_path))
    endpoint = Endpoint(pid=1, url="u", mcp="m", ws="w", socket="s", token="t")
    write_endpoint(StatePaths(tmp_path), endpoint)
    assert local.endpoint() == endpoint
    StatePaths(tmp_path).endpoint.write_text("{")
    with pytest.raises(NoDaemon, match="does not hold the address"):
        local.endpoint()
