"""Hosts that joined an earlier daemon and are away: what is shown of them, and how to let go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aegis.state.registration import claim_state
from aegis.terminals.remote.nodes import NodeMap, encode_nodes
from tests.aegis.terminals.remote.test_nodes import SINCE, info
from tests.e2e.conftest import Connect
from tests.e2e.harness import DaemonProcess

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

AWAY = (
    "terminal 'train' is on node 'gpu1', which is unreachable since 2026-05-22T12:03:04Z; it keeps "
    "running there and answers when the connection is restored"
)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    """A daemon that knows the host gpu1, which has the terminals train (open) and old (closed)."""
    own = DaemonProcess(tmp_path)
    nodes = NodeMap()
    nodes.opened("gpu1", info("train"))
    nodes.closed("gpu1", "old")
    nodes.lost("gpu1", SINCE)
    seal = claim_state(own.state).of(str(own.state.nodes))
    own.state.nodes.write_bytes(encode_nodes(nodes, seal))
    own.state.nodes.chmod(0o600)
    own.start()
    try:
        yield own
    finally:
        own.hang_up()
        code = own.stop()
    assert code == 0
    own.check_left_nothing()


def test_its_terminals_are_listed_as_unreachable_and_its_names_are_not_given_away(
    daemon: DaemonProcess,
) -> None:
    daemon.call("term_spawn", name="build")
    lines = daemon.cli("term", "list").stdout.splitlines()
    assert lines[0].split()[-1] == "node"
    assert lines[1].split()[:2] == ["build", "idle"]
    assert lines[2].split()[:2] == ["train", "unreachable"]
    assert lines[2].split()[-1] == "gpu1"
    spawned = daemon.cli("term", "spawn", "train")
    assert (spawned.returncode, spawned.stderr) == (
        1,
        f"aegis-actors: {AWAY}\n",
    )
    ran = daemon.cli("term", "run", "train", "true")
    assert (ran.returncode, AWAY in ran.stderr) == (125, True)
    assert str(daemon.refusal("term_read", name="train")) == AWAY
    assert "unreachable since" in str(daemon.refusal("term_close", name="train", purge=True))
    assert "unreachable since" in str(daemon.refusal("term_spawn", name="old"))


def test_the_status_names_it(daemon: DaemonProcess) -> None:
    [node] = daemon.json("status", "--json")["nodes"]
    assert node == {
        "name": "gpu1",
        "kind": "host",
        "state": "unreachable",
        "terminals": 1,
        "pid": None,
        "address": None,
        "since": SINCE,
    }
    shown = daemon.cli("status").stdout.partition("\n\n")[2].splitlines()
    assert shown[1].split() == ["gpu1", "host", "unreachable", "1", "-", SINCE]


def test_once_it_is_forgotten_its_names_are_free_for_good(daemon: DaemonProcess) -> None:
    forgotten = daemon.cli("node", "forget", "gpu1")
    assert (forgotten.returncode, forgotten.stdout) == (0, "names free again: old, train\n")
    assert "nodes" not in daemon.cli("status").stdout
    assert daemon.json("term", "spawn", "train", "--node", "local", "--json")["node"] == "local"
    assert daemon.stop() == 0
    daemon.start()
    assert [each["node"] for each in daemon.json("term", "list", "--json")["result"]] == ["local"]
    again = daemon.cli("node", "forget", "gpu1")
    assert (again.returncode, again.stderr) == (
        1,
        "aegis-actors: there is no node 'gpu1'; there are none\n",
    )


def test_a_place_that_is_not_there_is_told_with_those_that_are(daemon: DaemonProcess) -> None:
    spawned = daemon.cli("term", "spawn", "x", "--node", "cpu7")
    assert (spawned.returncode, spawned.stderr) == (
        1,
        "aegis-actors: there is no node 'cpu7'; there are gpu1, local\n",
    )
    assert daemon.cli("term", "spawn", "x", "--node", "LOCAL").returncode == 0


async def test_over_mcp_it_reads_the_same(daemon: DaemonProcess, connect_mcp: Connect) -> None:
    async with connect_mcp(daemon, "auto") as client:
        refused = await client.call_tool("aegis_term_run", {"name": "train", "cmd": "true"})
        assert refused.is_error
        assert refused.content[0].text == f"aegis_term_run: {AWAY}"  # type: ignore[union-attr]
