"""A daemon and a node on another host, whose wire is cut, and either of which is killed.

``AEGIS_CUTS`` says how often the wire is cut under load, and about as often as each is killed;
twice in the ordinary run. ``AEGIS_CUTS_SEED`` says how the load and the cuts are drawn.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

import aegis
from actors.nodes.links.key import new_key, write_key
from aegis.client.line import CommandFailed
from aegis.client.streams import OutputStream
from tests.chaos.checking.checker import violations
from tests.chaos.real.processes import processes_of
from tests.chaos.real.table import figures
from tests.crash.test_kills import summary
from tests.e2e.harness import GUARD_S, Gate, LiveTerminal
from tests.e2e.node_load import NodeLoad, Place
from tests.e2e.nodes import PORT, DaemonOn, JoinedNode
from tests.e2e.window import DETACH, window
from tests.netns import Host, Hosts, needs_hosts, two_hosts

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

NODE = "gpu1"

OWN_FILES = {
    *(".gitignore", "version", "lock", "node.id", "state.id", "place.json"),
    *("terminals", "workspace.json"),
}
"""What lies in the directory of a node's state: nothing that leads a client there."""


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


def spawn(root: DaemonOn, name: str) -> LiveTerminal:
    """A terminal on the node; one that is up again may take a moment to be used."""
    deadline = time.monotonic() + GUARD_S
    while True:
        try:
            return LiveTerminal(root, name, root.call("term_spawn", name=name, node=NODE))
        except CommandFailed as error:
            if "try again in a moment" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def test_a_terminal_on_another_host_is_used_like_one_here(
    hosts: Hosts, root: DaemonOn, node: JoinedNode
) -> None:
    build = spawn(root, "build")
    assert (build.info["node"], build.info["cwd"]) == (NODE, str(node.root))
    wakes = build.subscribe("pm")
    record = build.run("ip -o -4 address show eth0", from_handle="ann")
    assert hosts.b.address in record["stdout"]
    wake = wakes.next()
    assert wake["body"].split("\n")[0] == f"$ {record['cmd']} · run by agent:ann"
    with window(root, "term", "attach", "build") as shown:
        shown.wait_for(hosts.b.address.encode())
        shown.press(b"echo ty''ped\r")
        shown.wait_for(b"typed")
        shown.press(DETACH)
        assert shown.wait_exit() == 0
    assert wakes.next()["id"].split("/")[2] == "1"
    assert [each["cmd"] for each in build.records()] == [record["cmd"], "echo ty''ped"]
    assert wakes.unread() == []
    assert not (root.state.terminals / "build").exists()


@pytest.mark.long
async def test_output_of_another_host_streams_on_when_the_wire_is_whole_again(
    hosts: Hosts, root: DaemonOn, node: JoinedNode, gate: Gate
) -> None:
    spawn(root, "build")
    async with (
        aegis.connect(root.root) as client,
        client.terminals.watch("build") as output,
        trio.open_nursery() as nursery,
    ):
        command = f"echo be''fore; {gate.hold}; echo mean''while; seq 3000; echo af''ter"
        nursery.start_soon(client.terminals.keys, "build", f"{command}\r")
        data = await read_until(output, b"before\r\n")
        gate.wait_reached()
        hosts.cut()
        gate.open()
        await trio.sleep(1)
        hosts.heal()
        data += await read_until(output, b"after\r\n")
    lines = data.decode().split("\r\n")
    begin = lines.index("meanwhile")
    assert lines[begin + 1 : begin + 3001] == [str(number) for number in range(1, 3001)]


async def read_until(output: OutputStream, text: bytes) -> bytes:
    """What comes up to this text."""
    data = b""
    with trio.fail_after(GUARD_S):
        async for value in output:
            data += value.data if isinstance(value, aegis.Chunk) else b""
            if text in data:
                return data
    raise AssertionError(f"the stream ended after {data[-200:]!r}")


@pytest.mark.long
def test_a_host_that_is_cut_off_is_shown_so_and_goes_on_and_its_news_come_once_afterwards(
    hosts: Hosts, root: DaemonOn, node: JoinedNode, gate: Gate, tmp_path: Path
) -> None:
    build, proof = spawn(root, "build"), tmp_path / "proof"
    wakes = build.subscribe("pm")
    held = f"{gate.hold}; echo finished there; touch {proof}"
    running = build.start(held, from_handle="ann")
    gate.wait_reached()
    hosts.cut()
    at_once = build.refusal("echo never", timeout=0.5)
    root.wait_listed("unreachable", "build")
    root.wait_node(NODE, "unreachable")
    assert running.outcome() == ("error", "unavailable")
    now = build.refusal("echo never"), root.refusal("term_read", name="build")
    for refused in (at_once, *now):
        assert refused.code == "unavailable"
        assert "terminal 'build' is on node 'gpu1', which is unreachable" in str(refused)
    assert root.refusal("term_spawn", name="other", node=NODE).code == "unavailable"
    gate.open()
    wait_for(proof)
    assert wakes.unread() == []
    hosts.heal()
    root.wait_node(NODE, "up")
    news = [wakes.next()]
    build.run("echo after", from_handle="ann")
    news += [wakes.next(), *wakes.unread()]
    assert [wake["id"].split("/")[2:] for wake in news] == [["0", "pm"], ["1", "pm"]]
    assert "finished there" in news[0]["body"]
    [first, second] = build.records()
    assert (first["cmd"], first["stdout"], first["end"]) == (held, "finished there\n", "exited")
    assert second["cmd"] == "echo after"


def wait_for(path: Path) -> None:
    """Wait until it is there."""
    deadline = time.monotonic() + GUARD_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.02)


@pytest.mark.long
def test_a_node_that_may_not_or_cannot_join_says_so_and_joins_once_it_can(
    hosts: Hosts, root: DaemonOn, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    write_key(key, new_key())
    node = new_node(hosts, tmp_path, key)
    try:
        node.start()
        node.wait_said("cannot join")
        assert root.node(NODE) == {}
        root.stop()
        root.state.node_key.unlink()
        shutil.copy(key, root.state.node_key)
        hosts.cut()
        root.start("--trust")
        node.wait_said("No answer from")
        assert root.node(NODE) == {}
        assert {path.name for path in node.state.directory.iterdir()} <= OWN_FILES
        assert node.cli("status").returncode != 0
        hosts.heal()
        root.wait_node(NODE, "up")
        assert spawn(root, "build").run("echo at last")["stdout"] == "at last\n"
        assert {path.name for path in node.state.directory.iterdir()} <= OWN_FILES
        assert node.stop() == 0
        root.wait_node(NODE, "unreachable")
    finally:
        node.clean_up()


class Harm:
    """What is done to a load whose terminals ``far`` are on the node."""

    def __init__(
        self, load: NodeLoad, hosts: Hosts, root: DaemonOn, node: JoinedNode, far: Place
    ) -> None:
        self.load, self.hosts, self.root, self.node = load, hosts, root, node
        self.far = far.terminals
        self.shown_s: list[float] = []

    def cut(self, seconds: float, silent: Host | None = None) -> None:
        """Cut the wire for so long, and until that is shown if it is long enough.

        With ``silent`` what this one sends is lost, and it hears the other.
        """
        with self.load.trouble(self.far):
            began = time.monotonic()
            if silent is None:
                self.hosts.cut()
            else:
                self.hosts.silence(silent)
            if seconds > LOST_S:
                self.root.wait_listed("unreachable", *self.far)
                self.shown_s.append(round(time.monotonic() - began, 1))
            time.sleep(max(0.0, seconds - (time.monotonic() - began)))
            self.hosts.heal()
            self.root.wait_back(*self.far)

    def kill_root(self, *, is_cut: bool = False) -> None:
        """The node finds the next one; ``is_cut``: which is started while the wire is cut."""
        with self.load.trouble(self.far):
            if is_cut:
                self.hosts.cut()
            self.load.kill_daemon()
            before = processes_of(self.node.root)
            self.root.start()
            if is_cut:
                self.root.wait_listed("unreachable", *self.far)
                self.hosts.heal()
            self.root.wait_node(NODE, "up")
            self.root.wait_back(*self.far)
            self.load.lives_again()
        assert {each.pid for each in before} & {each.pid for each in processes_of(self.node.root)}

    def kill_node(self, *, is_cut: bool = False) -> None:
        """The next one has the same terminals; ``is_cut``: it is started while the wire is cut."""
        with self.load.trouble(self.far, is_crash=True):
            if is_cut:
                self.hosts.cut()
            self.node.kill()
            before = processes_of(self.node.root)
            self.root.wait_node(NODE, "unreachable")
            self.node.start()
            if is_cut:
                self.node.wait_said("No answer from")
                self.hosts.heal()
            self.root.wait_node(NODE, "up")
            self.root.wait_back(*self.far)
            assert not before & processes_of(self.node.root)

    def do(self, number: int, seconds: float) -> None:
        """The cut of this number, and what else comes with it."""
        self.cut(seconds, (None, None, self.hosts.a, self.hosts.b)[number % 4])
        if number % 2 == 0:
            self.kill_root(is_cut=number % 4 == 2)
        if number % 5 in (0, 3):
            self.kill_node(is_cut=number % 5 == 3)


@pytest.mark.long
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
        harm.do(number, chance.uniform(*LENGTHS[number % len(LENGTHS)]))
    evidence = load.finish()
    assert load.book.refusals  # some calls have met it
    found = violations(evidence)
    print({**figures(evidence, [], found), "cuts": CUTS, "shown after s": harm.shown_s})  # noqa: T201
    assert not found, summary(found)
