"""Terminals of a host that joined: two systems in one process, each with its own directory and real
shells. What the daemon's directory is asked goes to the other where it must, and nothing else does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from actors import Actor, ChildSpec, Ref, Request, SupervisorSpec, System, open_system
from actors.errors import AskError, Unreachable
from aegis.errors import AlreadyExists, InvalidRequest, NotFound, Unavailable
from aegis.journal.flusher import Flusher
from aegis.processes.os_processes import OsProcessHost
from aegis.protocol.broadcast import Broadcast
from aegis.protocol.inboxes import Deliver
from aegis.protocol.nodes import (
    ForgetNode,
    KnownTerminals,
    ListNodes,
    NodeList,
    NodeReachable,
    NodeStatus,
    NodeUnreachable,
)
from aegis.protocol.output import ReadOutput, WaitTerminal
from aegis.protocol.streams import TerminalItem
from aegis.protocol.terminals import (
    CloseTerminal,
    ListTerminals,
    ReadRecords,
    RunCommand,
    SendKeys,
    SpawnTerminal,
    Subscribe,
    TerminalInfo,
)
from aegis.terminals.directory.directory import TerminalDirectory
from tests.fakes.linked import Linked

pytestmark = pytest.mark.real

GUARD_S = 60


class Inbox(Actor[Deliver]):
    """Nobody is woken here."""


@attrs.frozen
class TakeEvents(Request[list[tuple[str, str, str]]]):
    """Give what was told of terminals since the last time: event, name and state."""


class Hub(Actor[TerminalItem | TakeEvents]):
    """Who is told of events."""

    async def setup(self) -> None:
        self._told: list[tuple[str, str, str]] = []
        self.context.register("service", "events")

    async def receive(self, message: TerminalItem | TakeEvents) -> None:
        match message:
            case TerminalItem(event=event, terminal=info):
                self._told.append((event, info.name, info.state))
            case TakeEvents():
                told, self._told = self._told, []
                self.reply(message, told)


class Links(Actor[ListNodes]):
    """Who keeps the links; always the same ones."""

    def __init__(self, nodes: list[NodeStatus]) -> None:
        self._nodes = nodes

    async def setup(self) -> None:
        self.context.register("service", "nodes")

    async def receive(self, message: ListNodes) -> None:
        self.reply(message, NodeList(result=self._nodes))


def directory_spec(root: Path, at: str, **arguments: Any) -> ChildSpec:
    root.mkdir(exist_ok=True)
    return ChildSpec.of(
        "terminal-directory",
        TerminalDirectory,
        root=root,
        directory=root / "terminals",
        workspace=root / "workspace.json",
        restore=True,
        supervisor=f"{at}/terminals",
        flusher=Flusher(),
        inboxes=f"{at}/inbox",
        shell_file_limit=1024,
        host=OsProcessHost(),
        **arguments,
    )


def tree(name: str, *children: Any) -> SupervisorSpec:
    return SupervisorSpec(
        name=name,
        children=(
            ChildSpec.of("inbox", Inbox),
            SupervisorSpec(name="terminals", dynamic=True),
            *children,
        ),
    )


@attrs.define
class Place:
    """A system with a directory of terminals, and what tests ask it."""

    name: str
    system: System
    directory: Ref[Any]

    async def ask(self, request: Request[Any]) -> Any:
        return await self.directory.ask(request, timeout=GUARD_S)

    async def spawn(self, name: str, node: str | None = None, **rest: Any) -> TerminalInfo:
        info: TerminalInfo = await self.ask(SpawnTerminal(name=name, node=node, **rest))
        return info

    async def run(self, name: str, cmd: str) -> str:
        record = await self.ask(RunCommand(name=name, cmd=cmd, timeout=GUARD_S))
        return str(record.stdout)

    async def close(self, name: str, *, purge: bool = False) -> None:
        await self.ask(CloseTerminal(name=name, purge=purge))

    async def listed(self) -> list[tuple[str, str, str]]:
        """Name, node and state of each."""
        infos = (await self.ask(ListTerminals())).result
        return [(info.name, info.node, info.state) for info in infos]

    async def names(self) -> list[tuple[str, str]]:
        """Name and node of each."""
        return [(name, node) for name, node, _ in await self.listed()]

    async def status(self, node: str) -> NodeStatus:
        [found] = [each for each in (await self.ask(ListNodes())).result if each.name == node]
        assert isinstance(found, NodeStatus)
        return found

    async def refusal(self, request: Request[Any], error: type[Exception]) -> str:
        with pytest.raises(error) as refused:
            await self.ask(request)
        return str(refused.value)


@attrs.define
class Daemon(Place):
    """The root of it all, which hosts join."""

    ways: dict[str, Linked] = attrs.field(factory=dict)

    async def join(self, host: Place, terminals: int | None = None) -> None:
        """Let it join, and wait until it is known how many terminals are open there."""
        way = self.ways[host.name] = Linked(host.system)
        self.system.routers.add(f"root/nodes/{host.name}", way)
        self.directory.tell(NodeReachable(name=host.name, directory=host.directory.path))
        await self.knows(host, terminals)

    async def knows(self, host: Place, terminals: int | None = None) -> None:
        """Wait until it is known what the host has."""
        wanted = len((await host.ask(KnownTerminals())).open) if terminals is None else terminals
        await until(lambda: self._knows(host.name, wanted))

    async def _knows(self, node: str, terminals: int) -> bool:
        return (await self.status(node)).terminals == terminals

    async def lose(self, host: Place) -> None:
        self.ways[host.name].is_cut = True
        self.directory.tell(NodeUnreachable(name=host.name, why="the link is cut"))
        await self.ask(ListNodes())


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    with trio.fail_after(GUARD_S):
        while not await holds():  # noqa: ASYNC110
            await trio.sleep(0.01)  # what is waited for is told to nobody


@asynccontextmanager
async def open_daemon(root: Path, *more: ChildSpec) -> AsyncIterator[Daemon]:
    directory = directory_spec(root, "root", nodes=root / "nodes.json")
    with trio.fail_after(3 * GUARD_S):
        async with open_system(tree("root", *more, directory)) as system:
            yield Daemon("local", system, system.ref("root/terminal-directory"))


@asynccontextmanager
async def open_host(root: Path, name: str = "gpu1") -> AsyncIterator[Place]:
    at = f"root/nodes/{name}"
    with trio.fail_after(3 * GUARD_S):
        spec = tree(name, directory_spec(root, at, node=name))
        async with open_system(spec, above="root/nodes") as system:
            yield Place(name, system, system.ref(f"{at}/terminal-directory"))


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    async with open_daemon(tmp_path / "root") as running:
        yield running


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Place]:
    async with open_host(tmp_path / "gpu1") as running:
        yield running


# What goes there.


async def test_a_terminal_is_spawned_on_the_host_that_was_named_and_runs_there(
    daemon: Daemon, host: Place, tmp_path: Path
) -> None:
    await daemon.join(host)
    info = await daemon.spawn("train", "gpu1")
    assert (info.node, info.state, info.cwd) == ("gpu1", "idle", str(tmp_path / "gpu1"))
    await daemon.spawn("build")
    assert await daemon.names() == [("build", "local"), ("train", "gpu1")]
    assert await daemon.run("train", "pwd; echo $((6*7))") == f"{tmp_path}/gpu1\n42\n"
    assert [name for name, _ in await host.names()] == ["train"]
    assert not (tmp_path / "root/terminals/train").exists()


async def test_whatever_has_no_front_here_is_answered_by_the_host(
    daemon: Daemon, host: Place
) -> None:
    await daemon.join(host)
    await daemon.spawn("train", "gpu1")
    await daemon.run("train", "echo one")
    [first] = (await daemon.ask(ReadRecords(name="train"))).result
    await daemon.ask(SendKeys(name="train", keys="echo two\r"))
    printed = WaitTerminal(name="train", pattern="(?m)^two", cursor=first.raw_end, timeout=GUARD_S)
    assert (await daemon.ask(printed)).reason == "matched"
    waited = await daemon.ask(WaitTerminal(name="train", seq=1, timeout=GUARD_S))
    assert waited.record.stdout == "two\n"
    records = (await daemon.ask(ReadRecords(name="TRAIN"))).result
    assert [record.cmd for record in records] == ["echo one", "echo two"]
    assert "two" in (await daemon.ask(ReadOutput(name="train"))).text
    assert (await daemon.ask(Subscribe(name="train", from_handle="pm"))).subscribers == ["pm"]
    await daemon.spawn("build")
    both = await daemon.ask(Broadcast(names=["build", "train"], cmd="echo both", timeout=GUARD_S))
    assert [each.record and each.record.stdout for each in both.result] == ["both\n", "both\n"]


async def test_a_front_that_is_known_here_is_asked_directly(daemon: Daemon, host: Place) -> None:
    await daemon.join(host)
    await daemon.spawn("train", "gpu1")
    front = host.system.registry.find("terminal", "train")
    assert front is not None
    daemon.system.registry.add("terminal", "train", front)
    assert await daemon.run("train", "echo hello") == "hello\n"


async def test_a_closed_one_is_read_and_goes_on_where_its_history_is(
    daemon: Daemon, host: Place
) -> None:
    await daemon.join(host)
    await daemon.spawn("train", "gpu1")
    await daemon.run("train", "echo one")
    await daemon.close("Train")
    assert await daemon.names() == []
    assert [each.cmd for each in (await daemon.ask(ReadRecords(name="train"))).result] == [
        "echo one"
    ]
    told = await daemon.refusal(RunCommand(name="train", cmd="true", timeout=9), Unavailable)
    assert told == "terminal 'train' is closed; aegis_term_spawn opens it again over its history"
    assert (await daemon.spawn("train")).node == "gpu1"
    records = (await daemon.ask(ReadRecords(name="train", since_seq=-1))).result
    assert [each.seq for each in records] == [0]


async def test_a_purge_frees_the_name_for_any_place(daemon: Daemon, host: Place) -> None:
    await daemon.join(host)
    await daemon.spawn("train", "gpu1")
    await daemon.close("train", purge=True)
    assert (await daemon.spawn("train")).node == "local"
    assert await host.names() == []
    await daemon.close("train", purge=True)
    assert (await daemon.spawn("train", "gpu1")).node == "gpu1"
    await daemon.close("train")
    await daemon.close("train", purge=True)
    assert (await host.ask(KnownTerminals())).closed == []


async def test_what_a_host_brings_along_is_there(daemon: Daemon, host: Place) -> None:
    await host.spawn("one")
    await host.run("one", "echo before")
    await host.spawn("two")
    await host.close("two")
    await daemon.join(host)
    assert await daemon.names() == [("one", "gpu1")]
    assert (await daemon.ask(ReadRecords(name="one"))).result[0].stdout == "before\n"
    assert (await daemon.spawn("two")).node == "gpu1"
    status = await daemon.status("gpu1")
    assert (status.kind, status.state, status.terminals) == ("host", "up", 2)


# What is refused.


async def test_a_name_is_in_one_place_only(daemon: Daemon, host: Place) -> None:
    await daemon.join(host)
    await daemon.spawn("train", "gpu1")
    await daemon.spawn("build")
    for node in (None, "local", "gpu1"):
        told = await daemon.refusal(SpawnTerminal(name="Train", node=node), AlreadyExists)
        assert "open already on node 'gpu1'" in told
        await daemon.refusal(SpawnTerminal(name="build", node=node), AlreadyExists)
    await daemon.close("train")
    await daemon.close("build")
    for name, node, other in (("train", "gpu1", "local"), ("build", "local", "gpu1")):
        told = await daemon.refusal(SpawnTerminal(name=name, node=other), InvalidRequest)
        assert f"the history of terminal {name!r} is on node {node!r}" in told
    assert await daemon.names() == []


async def test_a_node_that_is_not_there_is_told_with_those_that_are(
    daemon: Daemon, host: Place
) -> None:
    await daemon.join(host)
    told = await daemon.refusal(SpawnTerminal(name="x", node="cpu9"), NotFound)
    assert told == "aegis_term_spawn: there is no node 'cpu9'; there are gpu1, local"
    told = await daemon.refusal(SpawnTerminal(name="x", node="gpu2"), NotFound)
    assert told.endswith("did you mean 'gpu1'?")


async def test_what_the_host_refuses_is_the_answer_and_leaves_the_name_free(
    daemon: Daemon, host: Place
) -> None:
    await daemon.join(host)
    nowhere = SpawnTerminal(name="x", node="gpu1", cwd="/no/such/directory")
    assert "does not exist" in await daemon.refusal(nowhere, InvalidRequest)
    assert (await daemon.spawn("x")).node == "local"


# A host that is away.


async def test_a_host_that_is_away_has_its_terminals_listed_as_unreachable(
    daemon: Daemon, host: Place
) -> None:
    await daemon.join(host)
    await daemon.spawn("train", "gpu1")
    await daemon.spawn("old", "gpu1")
    await daemon.close("old")
    await daemon.lose(host)
    status = await daemon.status("gpu1")
    assert (status.state, status.terminals) == ("unreachable", 1)
    assert status.since is not None
    since = f"{status.since[:19]}Z"
    sentence = (
        f"terminal 'train' is on node 'gpu1', which is unreachable since {since}; it keeps "
        "running there and answers when the connection is restored"
    )
    assert await daemon.listed() == [("train", "gpu1", "unreachable")]
    for request in (
        RunCommand(name="train", cmd="true", timeout=9),
        ReadRecords(name="train"),
        ReadOutput(name="train"),
        Subscribe(name="train", from_handle="pm"),
    ):
        assert await daemon.refusal(request, Unavailable) == sentence
    [outcome] = (await daemon.ask(Broadcast(names=["train"], cmd="true", timeout=9))).result
    assert outcome.error == sentence
    for purge in (True, False):
        told = await daemon.refusal(CloseTerminal(name="train", purge=purge), Unavailable)
        assert told == f"aegis_term_close: {sentence}"
    told = await daemon.refusal(CloseTerminal(name="old", purge=True), Unavailable)
    assert "unreachable since" in told
    told = await daemon.refusal(SpawnTerminal(name="train"), AlreadyExists)
    assert told == f"aegis_term_spawn: {sentence}"
    for name, node in (("old", None), ("new", "gpu1")):
        told = await daemon.refusal(SpawnTerminal(name=name, node=node), Unavailable)
        assert told.startswith(f"aegis_term_spawn: node 'gpu1' is unreachable since {since}; ")
    assert await host.run("train", "echo on") == "on\n"


async def test_when_it_is_back_what_happened_there_meanwhile_is_known(
    daemon: Daemon, host: Place
) -> None:
    await daemon.join(host)
    await daemon.spawn("one", "gpu1")
    await daemon.spawn("two", "gpu1")
    await daemon.lose(host)
    await host.run("one", "echo meanwhile")
    await host.close("two", purge=True)
    await host.spawn("three")
    await host.spawn("four")
    await host.spawn("five")
    await daemon.join(host, terminals=4)
    assert [name for name, _ in await daemon.names()] == ["five", "four", "one", "three"]
    assert (await daemon.ask(ReadRecords(name="one"))).result[0].stdout == "meanwhile\n"
    assert (await daemon.spawn("two")).node == "local"


async def test_whoever_watches_hears_that_terminals_cannot_be_reached_and_that_they_can(
    tmp_path: Path, host: Place
) -> None:
    hub = ChildSpec.of("hub", Hub)
    async with open_daemon(tmp_path / "root", hub) as daemon:
        await host.spawn("train")

        async def told(*expected: tuple[str, str, str]) -> None:
            seen: list[tuple[str, str, str]] = []

            async def is_told() -> bool:
                events: list[tuple[str, str, str]]
                events = await daemon.system.ref("root/hub").ask(TakeEvents())
                seen.extend(events)
                return seen == list(expected)

            await until(is_told)

        await daemon.join(host)
        await told(("terminal_changed", "train", "idle"))
        await daemon.lose(host)
        await told(("terminal_changed", "train", "unreachable"))
        await daemon.join(host)
        await told(("terminal_changed", "train", "idle"))
        await daemon.lose(host)
        await daemon.ask(ForgetNode(node="gpu1"))
        await told(
            ("terminal_changed", "train", "unreachable"), ("terminal_closed", "train", "closed")
        )


async def test_a_host_that_gives_no_answer_is_listed_as_it_was_known_last(
    daemon: Daemon, host: Place
) -> None:
    await daemon.join(host)
    await daemon.spawn("train", "gpu1")
    daemon.ways["gpu1"].is_cut = True  # and nobody has noticed yet
    assert await daemon.listed() == [("train", "gpu1", "unreachable")]
    with pytest.raises(Unreachable):
        await daemon.ask(RunCommand(name="train", cmd="true", timeout=9))
    with pytest.raises(Unreachable):
        await daemon.spawn("new", "gpu1")
    with pytest.raises(Unreachable):
        await daemon.close("train")
    daemon.ways["gpu1"].is_cut = False
    assert await daemon.listed() == [("train", "gpu1", "idle")]


async def test_a_spawn_whose_answer_is_lost_keeps_its_name_until_the_host_says_otherwise(
    daemon: Daemon, host: Place
) -> None:
    await daemon.join(host)
    daemon.ways["gpu1"].is_cut = True
    with pytest.raises(AskError):
        await daemon.spawn("new", "gpu1")
    await daemon.lose(host)
    told = await daemon.refusal(SpawnTerminal(name="new", node="local"), InvalidRequest)
    assert "is on node 'gpu1'" in told
    await daemon.join(host)

    async def is_free() -> bool:
        try:
            return (await daemon.spawn("new", "local")).node == "local"
        except InvalidRequest:
            return False

    await until(is_free)


# Names that are taken twice.


async def test_the_daemons_own_terminal_counts_and_the_hosts_is_there_once_that_is_closed(
    daemon: Daemon, host: Place
) -> None:
    await daemon.spawn("build")
    await host.spawn("build")
    await host.spawn("other")
    await daemon.join(host)
    assert await daemon.names() == [("build", "local"), ("other", "gpu1")]
    await daemon.run("build", "echo here")
    assert (await host.ask(ReadRecords(name="build"))).result == []
    await daemon.close("build")
    assert await daemon.names() == [("build", "gpu1"), ("other", "gpu1")]
    await daemon.run("build", "echo there")
    assert (await host.ask(ReadRecords(name="build"))).result[0].stdout == "there\n"
    await daemon.close("build")
    assert (await daemon.ask(ReadRecords(name="build"))).result[0].stdout == "here\n"
    assert (await daemon.spawn("build")).node == "local"


async def test_of_two_hosts_that_bring_a_name_the_first_counts(
    daemon: Daemon, host: Place, tmp_path: Path
) -> None:
    async with open_host(tmp_path / "gpu2", "gpu2") as second:
        await host.spawn("train")
        await second.spawn("Train")
        await daemon.join(second)
        await daemon.join(host)
        assert await daemon.names() == [("Train", "gpu2")]
        await daemon.close("train")
        assert await daemon.names() == [("train", "gpu1")]
        assert (await daemon.status("gpu2")).terminals == 0


# What outlives the directory and the daemon.


async def test_after_a_restart_of_the_daemon_names_and_terminals_of_a_host_are_known(
    tmp_path: Path, host: Place
) -> None:
    async with open_daemon(tmp_path / "root") as daemon:
        await daemon.join(host)
        await daemon.spawn("train", "gpu1", cols=100)
        await daemon.spawn("old", "gpu1")
        await daemon.close("old")
    async with open_daemon(tmp_path / "root") as daemon:
        assert await daemon.listed() == [("train", "gpu1", "unreachable")]
        [info] = (await daemon.ask(ListTerminals())).result
        assert (info.cols, info.pid) == (100, None)
        told = await daemon.refusal(SpawnTerminal(name="train"), AlreadyExists)
        assert "unreachable since" in told
        assert "'gpu1' is unreachable" in await daemon.refusal(
            SpawnTerminal(name="old"), Unavailable
        )
        await daemon.join(host)
        assert await daemon.run("train", "echo back") == "back\n"
        assert (await daemon.spawn("old")).node == "gpu1"


async def test_the_stop_of_a_daemon_ends_nothing_on_a_host(tmp_path: Path, host: Place) -> None:
    async with open_daemon(tmp_path / "root") as daemon:
        await daemon.join(host)
        await daemon.spawn("train", "gpu1")
        before = (await host.ask(ListTerminals())).result
    assert (await host.ask(ListTerminals())).result == before


async def test_after_a_crash_of_the_directory_the_links_are_found_again(
    tmp_path: Path, host: Place
) -> None:
    up = NodeStatus(name="gpu1", kind="host", state="up", terminals=0)
    away = NodeStatus(name="gpu2", kind="host", state="unreachable", terminals=0)
    worker = NodeStatus(name="w1", kind="worker", state="up", terminals=0)
    links = ChildSpec.of("links", Links, nodes=[up, away, worker])
    async with open_daemon(tmp_path / "root", links) as daemon:
        await daemon.join(host)
        await daemon.spawn("train", "gpu1")
        daemon.directory.tell(NodeUnreachable(name=5, why=""))  # type: ignore[arg-type]

        async def is_in_its_second_life() -> bool:
            nodes = {node.path: node for node in daemon.system.tree().children}
            return nodes[daemon.directory.path].restarts == 1

        await until(is_in_its_second_life)
        await daemon.knows(host)

        async def is_up() -> bool:
            return (await daemon.status("gpu1")).state == "up"

        await until(is_up)
        assert await daemon.run("train", "echo still") == "still\n"
        assert [each.name for each in (await daemon.ask(ListNodes())).result] == ["gpu1"]


@pytest.mark.long
async def test_a_host_that_will_not_come_back_is_forgotten_for_good(
    tmp_path: Path, host: Place
) -> None:
    async with open_daemon(tmp_path / "root") as daemon:
        await daemon.join(host)
        await daemon.spawn("train", "gpu1")
        await daemon.spawn("old", "gpu1")
        await daemon.close("old")
        told = await daemon.refusal(ForgetNode(node="gpu1"), InvalidRequest)
        assert told.startswith("aegis_node_forget: node 'gpu1' is joined: stop it there first")
        await daemon.lose(host)
        assert "there is no node 'gpu9'" in await daemon.refusal(ForgetNode(node="gpu9"), NotFound)
        forgotten = await daemon.ask(ForgetNode(node="GPU1"))
        assert forgotten.terminals == ["old", "train"]
        assert await daemon.names() == []
        assert (await daemon.spawn("train")).node == "local"
    async with open_daemon(tmp_path / "root") as daemon:
        assert (await daemon.ask(ListNodes())).result == []
        assert await daemon.names() == [("train", "local")]
        await daemon.join(host)
        assert await daemon.names() == [("train", "local")]
        assert (await daemon.spawn("old")).node == "gpu1"
