"""A daemon and a node on another host, whose wire is cut, and either of which is killed.

``AEGIS_CUTS`` says how often the wire is cut under load, and about as often as each is killed;
twice in the ordinary run. ``AEGIS_CUTS_SEED`` says how the load and the cuts are drawn.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aegis.chaos.checking.checker import violations
from aegis.chaos.real.processes import processes_of
from aegis.chaos.real.table import figures
from tests.crash.test_kills import told
from tests.e2e.node_load import NodeLoad, Place
from tests.e2e.nodes import PORT, DaemonOn, JoinedNode
from tests.netns import Hosts, needs_hosts, two_hosts

pytestmark = [
    pytest.mark.real,
    needs_hosts,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

CUTS = int(os.environ.get("AEGIS_CUTS", "2"))
SEED = int(os.environ.get("AEGIS_CUTS_SEED", "1"))

LOST_S = 5.0
"""After so long without a sign of life a host counts as cut off."""

LENGTHS = ((0.2, 2.0), (5.5, 8.0), (2.0, 5.0), (4.5, 6.0), (8.0, 12.0))
"""Bounds of how long a cut is, in seconds, in turn."""

CUTS_EACH = 5
"""After so many cuts the daemon is killed once, and the node once."""

NODE = "gpu1"


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with two_hosts() as both:
        yield both


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    return tmp_path / "witness"


@pytest.fixture
def root(hosts: Hosts, tmp_path: Path, witness: Path) -> Iterator[DaemonOn]:
    """A daemon on host A that takes nodes."""
    root = DaemonOn(tmp_path / "a", hosts.a)
    root.variables["WITNESS"] = str(witness)
    try:
        root.start()
        yield root
    finally:
        root.clean_up()


@pytest.fixture
def node(hosts: Hosts, root: DaemonOn, tmp_path: Path, witness: Path) -> Iterator[JoinedNode]:
    """A node on host B that joins it."""
    node = new_node(hosts, tmp_path, root.state.node_key)
    node.variables["WITNESS"] = str(witness)
    try:
        node.start()
        root.wait_node(NODE, "up")
        yield node
    finally:
        node.clean_up()


def new_node(hosts: Hosts, directory: Path, key_file: Path) -> JoinedNode:
    to = f"{hosts.a.address}:{PORT}"
    return JoinedNode(directory / "b", hosts.b, name=NODE, to=to, key_file=key_file)


class Harm:
    """What is done to a load whose terminals ``far`` are on the node."""

    def __init__(
        self, load: NodeLoad, hosts: Hosts, root: DaemonOn, node: JoinedNode, far: Place
    ) -> None:
        self.load, self.hosts, self.root, self.node = load, hosts, root, node
        self.far = far.terminals
        self.shown_s: list[float] = []

    def cut(self, seconds: float) -> None:
        """Cut the wire for so long, and until that is shown if it is long enough."""
        with self.load.trouble(self.far):
            began = time.monotonic()
            self.hosts.cut()
            if seconds > LOST_S:
                self.root.wait_listed("unreachable", *self.far)
                self.shown_s.append(round(time.monotonic() - began, 1))
            time.sleep(max(0.0, seconds - (time.monotonic() - began)))
            self.hosts.heal()
            self.root.wait_back(*self.far)

    def kill_root(self) -> None:
        """The node finds the next one."""
        with self.load.trouble(self.far):
            self.load.kill_daemon()
            before = processes_of(self.node.root)
            self.root.start()
            self.root.wait_node(NODE, "up")
            self.root.wait_back(*self.far)
            self.load.lives_again()
        assert {each.pid for each in before} & {each.pid for each in processes_of(self.node.root)}

    def kill_node(self) -> None:
        """The next one has the same terminals."""
        with self.load.trouble(self.far, is_crash=True):
            self.node.kill()
            before = processes_of(self.node.root)
            self.root.wait_node(NODE, "unreachable")
            self.node.start()
            self.root.wait_node(NODE, "up")
            self.root.wait_back(*self.far)
            assert not before & processes_of(self.node.root)


@pytest.mark.slow
def test_all_promises_hold_however_often_the_wire_is_cut_and_either_host_is_killed(
    hosts: Hosts, root: DaemonOn, node: JoinedNode, witness: Path
) -> None:
    chance = random.Random(SEED)
    far = Place(process=node, shared=("g0", "g1"), typed=("g2",), node=NODE)
    load = NodeLoad(root, [Place(process=root, shared=("t0",)), far], chance, witness)
    harm = Harm(load, hosts, root, node, far)
    load.prepare()
    for number in range(CUTS):
        time.sleep(chance.uniform(0.5, 2.0))
        harm.cut(chance.uniform(*LENGTHS[number % len(LENGTHS)]))
        if number % CUTS_EACH == 0:
            time.sleep(chance.uniform(0.2, 1.0))
            harm.kill_root()
            time.sleep(chance.uniform(0.2, 1.0))
            harm.kill_node()
    evidence = load.finish()
    found = violations(evidence)
    print({**figures(evidence, [], found), "cuts": CUTS, "shown after s": harm.shown_s})  # noqa: T201
    assert not found, told(found)
