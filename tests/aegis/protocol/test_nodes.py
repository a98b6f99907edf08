"""What is told of nodes, and how two lists of them become one."""

from __future__ import annotations

import pytest

from aegis.protocol.nodes import NodeStatus, merged_nodes, unreachable


def worker(name: str, terminals: int = 0) -> NodeStatus:
    return NodeStatus(name=name, kind="worker", state="up", terminals=terminals, pid=7)


def host(name: str, terminals: int = 0) -> NodeStatus:
    return NodeStatus(name=name, kind="host", state="unreachable", terminals=terminals)


@pytest.mark.parametrize(
    ("running", "remembered", "merged"),
    [
        ([], [], []),
        ([worker("w1", 2)], [], [worker("w1", 2)]),
        ([], [host("gpu1", 3)], [host("gpu1", 3)]),
        ([worker("w1")], [host("gpu1", 3)], [host("gpu1", 3), worker("w1")]),
        ([worker("gpu1")], [host("gpu1", 3)], [worker("gpu1", 3)]),
    ],
)
def test_a_node_is_as_it_runs_with_the_terminals_that_are_remembered(
    running: list[NodeStatus], remembered: list[NodeStatus], merged: list[NodeStatus]
) -> None:
    assert merged_nodes(running, remembered) == merged


def test_an_unreachable_terminal_is_told_with_its_node_and_since_when() -> None:
    assert unreachable("build", "gpu1", "2026-05-22T12:03:04.120Z") == (
        "terminal 'build' is on node 'gpu1', which is unreachable since 2026-05-22T12:03:04Z; it "
        "keeps running there and answers when the connection is restored"
    )
    assert "unreachable; it" in unreachable("build", "gpu1")
