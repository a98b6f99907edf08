"""A node on another host: two network namespaces, and a wire that is cut."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from actors.nodes import Beat
from actors.nodes.links.key import new_key, write_key
from tests.actors.nodes.machine import exists
from tests.actors.nodes.processes import QUICK, Program, node_program, root_program
from tests.actors.nodes.programs import COUNT
from tests.netns import Hosts, needs_hosts, two_hosts

pytestmark = [pytest.mark.real, needs_hosts]

DEFAULT = Beat()
"""The one that is promised: a cut is noticed within its 5 s."""


@attrs.frozen
class Tree:
    """A root with a worker on host A, a node on host B."""

    hosts: Hosts
    root: Program
    node: Program
    port: int


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with two_hosts() as both:
        yield both


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    write_key(tmp_path / "key", new_key())
    return tmp_path / "key"


@asynccontextmanager
async def tree(hosts: Hosts, key: Path, *, beat: Beat = QUICK) -> AsyncIterator[Tree]:
    at = hosts.a.address
    async with (
        root_program(key, "worker", host=at, on=hosts.a) as (root, port),
        node_program(key, port, host=at, hello=COUNT, beat=beat, on=hosts.b) as node,
    ):
        yield Tree(hosts, root, node, port)


async def test_a_node_on_another_host_joins_and_both_see_where_the_other_is(
    hosts: Hosts, key_file: Path
) -> None:
    async with tree(hosts, key_file) as both:
        assert await both.node.line("joined") == f"welcome, {COUNT}"
        assert (await both.root.line("joined gpu1")).startswith(f"{hosts.b.address}:")
        assert await both.root.line("echoed") == "gpu1"


@pytest.mark.long
@pytest.mark.parametrize("beat", [QUICK, pytest.param(DEFAULT, marks=pytest.mark.alone)])
async def test_a_cut_that_nobody_tells_of_is_noticed_on_both_sides_in_time(
    hosts: Hosts, key_file: Path, beat: Beat
) -> None:
    async with tree(hosts, key_file, beat=beat) as both:
        worker = int(await both.root.line("worker"))
        await both.node.line("joined")
        await both.root.line("echoed")
        hosts.cut()
        began = trio.current_time()
        noticed: list[float] = []

        async def notice(program: Program, line: str) -> None:
            assert "silent for too long" in await program.line(line)
            noticed.append(trio.current_time() - began)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(notice, both.root, "lost gpu1")
            nursery.start_soon(notice, both.node, "lost")
        # The promise of the default beat, asserted once; what else is fast may be held up here.
        if beat == DEFAULT:
            assert max(noticed) <= beat.lost_after_s + 1
        assert exists(worker)
        hosts.heal()
        await both.node.line("joined")
        await both.root.line("echoed")


@pytest.mark.long
async def test_a_root_that_was_killed_and_is_back_is_found_again_by_a_node_on_another_host(
    hosts: Hosts, key_file: Path
) -> None:
    async with tree(hosts, key_file) as both:
        await both.node.line("joined")
        await both.root.kill()
        await both.node.line("lost")
        await both.node.line("JoinFailed")
        there = {"host": hosts.a.address, "port": both.port, "on": hosts.a}
        async with root_program(key_file, **there) as (back, _):  # type: ignore[arg-type]
            await both.node.line("joined")
            assert await back.line("echoed") == "gpu1"


@pytest.mark.long
async def test_a_root_that_is_killed_while_the_wire_is_cut_is_found_again(
    hosts: Hosts, key_file: Path
) -> None:
    async with tree(hosts, key_file) as both:
        await both.node.line("joined")
        hosts.cut()
        await both.root.kill()
        await both.node.line("lost")
        there = {"host": hosts.a.address, "port": both.port, "on": hosts.a}
        async with root_program(key_file, **there) as (back, _):  # type: ignore[arg-type]
            hosts.heal()
            await both.node.line("joined")
            assert await back.line("echoed") == "gpu1"


@pytest.mark.long
async def test_a_short_cut_is_survived_and_what_was_under_way_arrives_in_order(
    hosts: Hosts, key_file: Path
) -> None:
    async with tree(hosts, key_file, beat=Beat(0.5, 20.0)) as both:
        await both.node.line("joined")
        await both.root.line("echoed")
        for _ in range(3):
            hosts.cut()
            await trio.sleep(0.3)  # how long the cut is, not a wait for anything
            hosts.heal()
            await both.root.line("echoed")
        both.node.signal(signal.SIGKILL)
        # It had not been lost before.
        assert "ended" in await both.root.line("lost gpu1")


@pytest.mark.long
async def test_a_node_with_another_key_and_one_that_asks_the_wrong_port_say_so(
    hosts: Hosts, key_file: Path, tmp_path: Path
) -> None:
    write_key(tmp_path / "other", new_key())
    at = hosts.a.address
    async with root_program(key_file, host=at, on=hosts.a) as (_, port):
        async with node_program(tmp_path / "other", port, host=at, on=hosts.b) as node:
            assert "another key" in await node.line("HandshakeRefused")
        async with node_program(key_file, 1, host=at, on=hosts.b) as node:
            assert "Connection refused" in await node.line("JoinFailed")
        async with node_program(key_file, port, host="10.77.0.99", on=hosts.b) as node:
            assert "Cannot reach the root at 10.77.0.99" in await node.line("JoinFailed")


@pytest.mark.long
async def test_workers_of_a_root_on_a_network_reach_it_though_that_network_goes_down(
    hosts: Hosts, key_file: Path
) -> None:
    at = hosts.a.address
    async with root_program(key_file, "worker", host=at, on=hosts.a) as (root, _):
        worker = int(await root.line("worker"))
        hosts.a.run("ip", "link", "set", "eth0", "down")
        for _ in range(3):
            await root.line("answered")
        assert exists(worker)
