"""A host that has joined, in a process of its own: its terminals are terminals like any other, also
when it falls silent, is killed, or the daemon is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal
from tests.e2e.hosts import HostProcess, start_with_nodes, until
from tests.e2e.streams import Refused, stream_client

pytestmark = pytest.mark.real

Join = Callable[..., HostProcess]


@pytest.fixture
def join(own_daemon: DaemonProcess, tmp_path: Path) -> Iterator[Join]:
    """Starts the daemon, and hosts that join it."""
    hosts: list[HostProcess] = []
    addresses: list[str] = []

    def start(name: str = "gpu1", *options: str) -> HostProcess:
        if not addresses:
            addresses.append(start_with_nodes(own_daemon, *options))
        host = HostProcess(tmp_path, own_daemon, addresses[0], name)
        hosts.append(host)
        host.start()
        return host

    yield start
    for host in hosts:
        assert host.stop() in (0, None)


def spawn(daemon: DaemonProcess, name: str, node: str | None = "gpu1") -> LiveTerminal:
    where = {} if node is None else {"node": node}
    return LiveTerminal(daemon, name, daemon.call("term_spawn", name=name, **where))


def listed(daemon: DaemonProcess) -> dict[str, tuple[str, str]]:
    """State and node of each terminal."""
    infos = daemon.call("term_list")["result"]
    return {info["name"]: (info["state"], info["node"]) for info in infos}


def test_a_terminal_of_a_host_is_used_as_any_other(
    own_daemon: DaemonProcess, join: Join, gate: Gate
) -> None:
    host = join()
    train = spawn(own_daemon, "train")
    assert train.info["node"] == "gpu1"
    assert train.run("pwd")["stdout"] == f"{host.root}\n"
    wakes = train.subscribe("pm")
    started = train.start(f"{gate.hold}; printf 'so \\033[1mfar\\033[0m\\n'")
    gate.wait_reached()
    # A host that is busy with other things for two seconds is listed as unreachable.
    until(lambda: listed(own_daemon) == {"train": ("running", "gpu1")})
    assert host.status()["terminals"] == 1
    gate.open()
    assert started.result()["stdout"] == "so far\n"
    assert "so far" in wakes.next()["body"]
    assert "so far" in "\n".join(own_daemon.call("term_screen", name="train")["lines"])
    assert "so far" in own_daemon.call("term_output", name="train")["text"]
    resized = own_daemon.call("term_resize", name="train", cols=100, rows=30)
    assert (resized["cols"], resized["node"]) == (100, "gpu1")
    train.keys("sleep 1000\r")
    until(lambda: listed(own_daemon)["train"][0] == "running")
    own_daemon.call("term_signal", name="train", signal="INT")
    waited = own_daemon.call("term_wait", name="train", seq=2, timeout=GUARD_S)
    assert waited["record"]["exit"] == 130
    train.close()
    assert listed(own_daemon) == {}
    assert [record["seq"] for record in train.records()] == [0, 1, 2]
    assert spawn(own_daemon, "train", None).info["node"] == "gpu1"
    train.close(purge=True)
    assert spawn(own_daemon, "train", None).info["node"] == "local"


@pytest.mark.long
def test_a_host_that_falls_silent_is_unreachable_until_it_speaks_and_loses_nothing(
    own_daemon: DaemonProcess, join: Join, gate: Gate
) -> None:
    host = join()
    train = spawn(own_daemon, "train")
    wakes = train.subscribe("pm")
    run = train.start(f"{gate.hold}; echo meanwhile")
    gate.wait_reached()
    host.pause()
    host.wait_state("unreachable")
    assert run.outcome() == ("error", "unavailable")
    assert listed(own_daemon) == {"train": ("unreachable", "gpu1")}
    for refused in (
        own_daemon.refusal("term_run", name="train", cmd="true"),
        own_daemon.refusal("term_spawn", name="train"),
        own_daemon.refusal("term_close", name="train", purge=True),
    ):
        assert "is on node 'gpu1', which is unreachable" in str(refused)
    local = spawn(own_daemon, "here", None)
    assert local.run("echo on")["stdout"] == "on\n"
    gate.open()
    host.resume()
    host.wait_state("up")
    waited = own_daemon.call("term_wait", name="train", seq=0, timeout=GUARD_S)
    assert (waited["record"]["stdout"], waited["record"]["end"]) == ("meanwhile\n", "exited")
    assert "meanwhile" in wakes.next()["body"]
    assert train.run("echo after")["stdout"] == "after\n"
    assert "after" in wakes.next()["body"]
    assert wakes.unread() == []
    assert [record["cmd"] for record in train.records()[1:]] == ["echo after"]


def test_a_terminal_of_a_host_goes_on_while_the_daemon_is_killed(
    own_daemon: DaemonProcess, join: Join, gate: Gate
) -> None:
    host = join()
    address = host.address
    train = spawn(own_daemon, "train")
    wakes = train.subscribe("pm")
    train.start(f"{gate.hold}; echo meanwhile")
    gate.wait_reached()
    own_daemon.hang_up()
    own_daemon.kill()
    gate.open()
    own_daemon.start("--port", "0", "--nodes", address)
    host.wait_state("up")
    until(lambda: listed(own_daemon) == {"train": ("idle", "gpu1")})
    assert "meanwhile" in wakes.next()["body"]
    [record] = train.records()
    assert (record["stdout"], record["killed_by_restart"]) == ("meanwhile\n", False)
    assert train.described()["pid"] == train.info["pid"]
    assert wakes.unread() == []


@pytest.mark.long
def test_a_host_that_is_killed_has_its_terminals_again_when_it_joins_again(
    own_daemon: DaemonProcess, join: Join, gate: Gate
) -> None:
    host = join()
    train = spawn(own_daemon, "train")
    wakes = train.subscribe("pm")
    train.run("echo before")
    wakes.next()
    run = train.start(f"echo printed; {gate.hold}")
    gate.wait_reached()
    host.kill()
    host.wait_state("unreachable")
    assert run.outcome() == ("error", "unavailable")
    assert listed(own_daemon) == {"train": ("unreachable", "gpu1")}
    host.start()
    until(lambda: listed(own_daemon) == {"train": ("idle", "gpu1")})
    first, second = train.records()
    assert (first["stdout"], first["killed_by_restart"]) == ("before\n", False)
    assert (second["seq"], second["killed_by_restart"]) == (1, True)
    assert "killed by restart" in wakes.next()["body"]
    assert train.run("echo again")["stdout"] == "again\n"
    assert "again" in wakes.next()["body"]
    assert wakes.unread() == []


@pytest.mark.long
async def test_a_watcher_waits_for_a_host_that_cannot_be_reached_and_goes_on_at_its_byte(
    own_daemon: DaemonProcess, join: Join
) -> None:
    host = await trio.to_thread.run_sync(join)
    train = spawn(own_daemon, "train")
    async with stream_client(own_daemon) as client:
        stream = await client.open("terminal_output", name="train")
        await stream.type(b"echo be''fore; until test -e go; do sleep 0.05; done; echo af''ter\r")
        await stream.bytes_until(b"before")
        host.pause()
        await stream.item_where(lambda item: item.get("state") == "unreachable")
        with pytest.raises(Refused) as refused:
            await client.open("terminal_output", name="train")
        assert "is on node 'gpu1', which is unreachable" in str(refused.value)
        host.resume()
        await stream.item_where(lambda item: item.get("state") == "running")
        (host.root / "go").touch()
        await stream.bytes_until(b"after")
        train.close()
        _, frame = await stream.all_bytes()
        assert frame["code"] == "closed"
