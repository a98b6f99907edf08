"""What is remembered of the terminals of other hosts, and how it is written down."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.codec import unstructure
from aegis.protocol.naming import NAME_PATTERN, name_key
from aegis.protocol.nodes import TerminalNames
from aegis.protocol.terminals import TerminalInfo
from aegis.terminals.remote.nodes import (
    MAX_CWD_CHARS,
    MOST_CLOSED,
    MOST_NODES,
    DamagedNodes,
    Holder,
    KnownHost,
    NewerNodes,
    NodeMap,
    decode_nodes,
    encode_nodes,
)

SINCE = "2026-05-22T12:03:04.120Z"

NAMES = st.lists(st.from_regex(NAME_PATTERN, fullmatch=True), unique_by=name_key, max_size=6)


def info(name: str, **changes: Any) -> TerminalInfo:
    known = TerminalInfo(
        name=name,
        pid=17,
        shell="/bin/bash",
        cwd="/work",
        started_at=SINCE,
        cols=80,
        rows=24,
        integration="osc133",
        state="idle",
        last_cmd_at=None,
        last_exit=None,
        subscribers=["pm"],
        restarts=0,
        node="gpu1",
    )
    return attrs.evolve(known, **changes)


def names(*opened: str, closed: tuple[str, ...] = ()) -> TerminalNames:
    return TerminalNames(open=[info(name) for name in opened], closed=list(closed))


def plain(nodes: NodeMap) -> list[tuple[str, str | None, list[str], list[str]]]:
    return [
        (
            node.name,
            node.since,
            [each.name for each in node.open.values()],
            sorted(node.closed.values()),
        )
        for node in nodes
    ]


def test_an_open_one_counts_before_a_closed_one_and_the_first_host_before_the_next() -> None:
    nodes = NodeMap()
    nodes.learned("a", names("one", closed=("two", "three")))
    nodes.learned("b", names("ONE", "Two", closed=("three",)))
    assert nodes.holder("One") == Holder("a", is_open=True)
    assert nodes.holder("two") == Holder("b", is_open=True)
    assert nodes.holder("three") == Holder("a", is_open=False)
    assert nodes.holder("four") is None


def test_what_changes_is_known_by_its_key_whatever_the_case() -> None:
    nodes = NodeMap()
    nodes.opened("gpu1", info("Build"))
    nodes.closed("GPU1", "build")
    assert plain(nodes) == [("gpu1", None, [], ["build"])]
    nodes.opened("gpu1", info("BUILD"))
    assert plain(nodes) == [("gpu1", None, ["BUILD"], [])]
    nodes.purged("gpu1", "build")
    assert plain(nodes) == [("gpu1", None, [], [])]
    nodes.closed("gpu1", "build")
    nodes.purged("gpu1", "BUILD")
    assert nodes.holder("build") is None


def test_what_the_host_says_takes_the_place_of_what_was_thought() -> None:
    nodes = NodeMap()
    nodes.learned("gpu1", names("a", "b", closed=("c",)))
    nodes.learned("gpu1", names("b", "d", closed=("a", "no name")))
    assert plain(nodes) == [("gpu1", None, ["b", "d"], ["a"])]


def test_what_is_open_no_longer_is_closed() -> None:
    nodes = NodeMap()
    nodes.learned("gpu1", names("a", "b", closed=("c",)))
    nodes.seen_open("gpu1", [info("B"), info("c")])
    assert plain(nodes) == [("gpu1", None, ["B", "c"], ["a"])]


def test_a_host_is_gone_since_a_time_until_it_is_there() -> None:
    nodes = NodeMap()
    nodes.joined("gpu1")
    nodes.lost("GPU1", SINCE)
    assert plain(nodes) == [("gpu1", SINCE, [], [])]
    nodes.joined("gpu1")
    assert plain(nodes) == [("gpu1", None, [], [])]


def test_what_is_forgotten_can_be_put_back() -> None:
    nodes = NodeMap([KnownHost("a"), KnownHost("b")])
    gone = nodes.forget("A")
    assert gone is not None
    assert [node.name for node in nodes] == ["b"]
    nodes.restore(gone)
    assert [node.name for node in nodes] == ["b", "a"]
    assert nodes.forget("c") is None


@pytest.mark.long
@given(st.dictionaries(st.from_regex(NAME_PATTERN, fullmatch=True), st.tuples(NAMES, NAMES)))
def test_what_is_written_is_read_again(hosts: dict[str, tuple[list[str], list[str]]]) -> None:
    nodes = NodeMap()
    for host, (opened, closed) in hosts.items():
        keys = set(map(name_key, opened))
        kept = tuple(name for name in closed if name_key(name) not in keys)
        nodes.learned(host, names(*opened, closed=kept))
        nodes.lost(host, SINCE)
    assert plain(decode_nodes(encode_nodes(nodes))) == plain(nodes)


def test_of_an_open_one_all_is_kept_that_is_still_worth_something() -> None:
    nodes = NodeMap()
    nodes.opened("gpu1", info("a", cwd="/" + "x" * MAX_CWD_CHARS, last_exit=3, state="running"))
    [node] = decode_nodes(encode_nodes(nodes))
    assert node.open["a"] == info(
        "a", cwd=None, last_exit=3, state="running", pid=None, subscribers=[]
    )


def test_it_is_bounded() -> None:
    nodes = NodeMap([KnownHost(f"n{number}") for number in range(MOST_NODES + 1)])
    nodes.learned("n0", names(closed=tuple(f"t{number}" for number in range(MOST_CLOSED + 1))))
    read = decode_nodes(encode_nodes(nodes))
    assert len(list(read)) == MOST_NODES
    first = read.find("n0")
    assert first is not None
    assert len(first.closed) == MOST_CLOSED


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "version"),
        (b'{"version": true, "nodes": []}', "version"),
        (b'{"version": 1}', "list"),
        (b'{"version": 1, "nodes": {}}', "list"),
    ],
)
def test_what_was_never_written_is_damaged(data: bytes, why: str) -> None:
    with pytest.raises(DamagedNodes, match=why):
        decode_nodes(data)


def test_a_newer_version_is_not_taken_for_damage() -> None:
    with pytest.raises(NewerNodes, match="2"):
        decode_nodes(b'{"version": 2}')


def test_of_what_cannot_be_read_the_name_is_kept() -> None:
    odd = {**unstructure(info("odd")), "state": "dancing"}
    good = unstructure(info("good"))
    unnamed = {**good, "name": "no name"}
    node = {"name": "gpu1", "open": [odd, good, unnamed, 5, {"name": 7}], "closed": ["x", "y z", 3]}
    others = [{"name": "no name", "open": [], "closed": []}, {"name": "half", "open": []}, 5]
    data = json.dumps({"version": 1, "nodes": [node, *others]}).encode()
    assert plain(decode_nodes(data)) == [("gpu1", None, ["good"], ["odd", "x"])]
