"""A process that joins the root of another: two real processes on one machine."""

from __future__ import annotations

import gc
import json
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.errors import HandshakeRefused, JoinFailed, LinkLost, MisuseError, NodeError
from actors.nodes import Beat, Joined, Link, NodeKey, NodeRuntime, join, open_runtime
from actors.nodes.compat.loading import load
from actors.nodes.links.key import new_key, write_key
from actors.nodes.links.wire import OutcomeFrame, OutcomeKind
from tests.actors.nodes.machine import (
    GUARD_S,
    descriptors,
    nothing_left,
    resident_kib,
    running,
    spec,
    tasks,
    until,
)
from tests.actors.nodes.processes import CALM, QUICK, Program, node_program, root_program
from tests.actors.nodes.programs import GOODBYE, REFUSED, STATE

pytestmark = pytest.mark.real

LOOPBACK = "127.0.0.1"


@pytest.fixture(scope="module")
def key() -> NodeKey:
    return new_key()


@pytest.fixture(scope="module")
def key_file(key: NodeKey, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key"
    write_key(path, key)
    return path


@pytest.fixture(autouse=True)
def loaded() -> None:
    """Import tractor before anything is counted."""
    load()


@asynccontextmanager
async def carried(link: Link) -> AsyncIterator[list[OutcomeFrame | LinkLost]]:
    """Run ``link`` in the block; how it ended is in the list then."""
    ended: list[OutcomeFrame | LinkLost] = []

    async def run() -> None:
        try:
            ended.append(await link.run())
        except LinkLost as error:
            ended.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        with trio.fail_after(GUARD_S):
            yield ended
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def joined_by(
    runtime: NodeRuntime, key_file: Path, *, beat: Beat = CALM
) -> AsyncIterator[tuple[Program, Joined]]:
    """A node in a process of its own that this root has accepted."""
    async with node_program(key_file, runtime.address[1], beat=beat) as node:
        with trio.fail_after(GUARD_S):
            joined = await runtime.next_join()
        joined.accept(b"welcome")
        yield node, joined


def only_the_root(runtime: NodeRuntime) -> bool:
    left = {name: count for name, count in runtime.remembered().items() if count}
    return left == {"_registry": 1, "_waiters": 1}


async def test_a_node_joins_says_who_it_is_and_messages_go_both_ways(
    key: NodeKey, key_file: Path
) -> None:
    with nothing_left():
        async with open_runtime(key=key) as runtime:
            async with node_program(key_file, runtime.address[1], hello="8 GPUs") as node:
                joined = await runtime.next_join()
                assert (joined.name, joined.hello) == ("gpu1", b"8 GPUs")
                assert joined.address.startswith("127.0.0.1:")
                joined.accept(b"you are the first")
                assert await node.line("joined") == "you are the first"
                async with carried(joined.link) as ended:
                    for number in range(300):
                        await joined.link.send(b"%d" % number)
                        assert await joined.link.receive() == b"%d" % number
                    await joined.link.send(GOODBYE)
                    await joined.link.over.wait()
                assert ended == [OutcomeFrame(OutcomeKind.DONE)]
                assert await node.line("ended") == "DONE"
                assert await node.process.wait() == 0
            await until(lambda: only_the_root(runtime))


async def test_the_root_can_ask_a_node_to_stop(key: NodeKey, key_file: Path) -> None:
    async with open_runtime(key=key) as runtime, joined_by(runtime, key_file) as (node, joined):
        async with carried(joined.link) as ended:
            joined.link.ask_to_stop()
            await joined.link.over.wait()
        assert ended == [OutcomeFrame(OutcomeKind.STOPPED)]
        assert await node.line("ended") == "STOPPED"


async def test_a_root_that_ends_the_link_in_order_is_understood(
    key: NodeKey, key_file: Path
) -> None:
    async with open_runtime(key=key) as runtime, joined_by(runtime, key_file) as (node, joined):
        async with carried(joined.link) as ended:
            for _ in range(50):
                await joined.link.send(bytes(60_000))
            await joined.link.finish(OutcomeFrame(OutcomeKind.STOPPED))
            await joined.link.over.wait()
        assert ended == [OutcomeFrame(OutcomeKind.STOPPED)]
        assert await node.line("ended") == "STOPPED"


async def test_a_node_that_is_killed_is_lost_at_once_and_forgotten(
    key: NodeKey, key_file: Path
) -> None:
    with nothing_left():
        async with open_runtime(key=key) as runtime:
            async with joined_by(runtime, key_file) as (node, joined):
                async with carried(joined.link) as ended:
                    node.signal(signal.SIGKILL)
                    await joined.link.over.wait()
                assert [type(end) for end in ended] == [LinkLost]
                assert "silent" not in str(ended[0])  # nobody waited until it would be
            await until(lambda: only_the_root(runtime))


async def test_a_node_that_is_silent_is_lost_in_time_and_learns_of_it(
    key: NodeKey, key_file: Path
) -> None:
    async with (
        open_runtime(key=key) as runtime,
        joined_by(runtime, key_file, beat=QUICK) as (node, joined),
    ):
        await node.line("joined")
        async with carried(joined.link) as ended:
            node.signal(signal.SIGSTOP)
            await joined.link.over.wait()
        assert str(ended[0]) == "The other side was silent for too long."
        await until(lambda: only_the_root(runtime))
        node.signal(signal.SIGCONT)
        await node.line("lost")


async def test_a_root_that_gives_a_link_up_is_noticed_by_the_node_which_joins_again(
    key: NodeKey, key_file: Path
) -> None:
    async with open_runtime(key=key) as runtime, joined_by(runtime, key_file) as (node, joined):
        await node.line("joined")
        async with carried(joined.link):
            pass
        await node.line("lost")
        again = await runtime.next_join()
        again.accept(b"once more")
        assert await node.line("joined") == "once more"


async def test_a_root_that_is_killed_is_noticed_at_once_and_found_again_when_it_is_back(
    key_file: Path,
) -> None:
    async with root_program(key_file) as (root, port), node_program(key_file, port) as node:
        await node.line("joined")
        await root.kill()
        await node.line("lost")
        assert "Cannot reach the root at 127.0.0.1" in await node.line("JoinFailed")
        async with root_program(key_file, port=port) as (back, _):
            assert await node.line("joined") == "welcome, a node"
            await back.line("joined gpu1")


async def test_a_refused_join_fails_with_the_sentence_of_the_root(
    key: NodeKey, key_file: Path
) -> None:
    async with root_program(key_file) as (_, port):
        with nothing_left(), pytest.raises(JoinFailed, match=r"Refused by .*: You asked for it\.$"):
            async with join(LOOPBACK, port, key, name="gpu1", hello=REFUSED.encode()):
                pass


@pytest.mark.long
async def test_a_join_that_nobody_takes_is_refused_in_time(key: NodeKey, key_file: Path) -> None:
    async with (
        open_runtime(key=key) as runtime,
        node_program(key_file, runtime.address[1]) as node,
    ):
        assert "Nobody took the join within 5 s" in await node.line("JoinFailed")
        # What went unanswered is not there to be taken any more.
        joined = await runtime.next_join()
        joined.accept(b"now")
        assert await node.line("joined") == "now"


async def test_a_node_that_has_gone_is_not_taken_and_an_answer_to_it_is_a_lost_link(
    key: NodeKey, key_file: Path
) -> None:
    async with open_runtime(key=key) as runtime:
        async with node_program(key_file, runtime.address[1]):
            await until(lambda: runtime.remembered()["joins"] == 1)
        await until(lambda: only_the_root(runtime))
        async with node_program(key_file, runtime.address[1]):
            joined = await runtime.next_join()  # not the first, which has gone
        await until(lambda: only_the_root(runtime))
        joined.accept(b"too late")
        with pytest.raises(LinkLost):
            await joined.link.run()


async def test_a_join_is_answered_once_and_taken_by_one_task(key: NodeKey, key_file: Path) -> None:
    async with open_runtime(key=key) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(runtime.next_join)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(MisuseError, match="One task at a time"):
            await runtime.next_join()
        nursery.cancel_scope.cancel()
    async with open_runtime(key=key) as runtime, joined_by(runtime, key_file) as (_, joined):
        with pytest.raises(NodeError, match="too long"):
            joined.accept(bytes(65_537))
        with pytest.raises(MisuseError, match="once"):
            joined.refuse("No.")


async def test_a_wrong_key_is_refused_and_says_so(key_file: Path) -> None:
    async with root_program(key_file) as (_, port):
        with nothing_left(), pytest.raises(HandshakeRefused, match="another key"):
            async with join(LOOPBACK, port, new_key(), name="gpu1"):
                pass


async def test_where_nobody_listens_the_join_fails_with_the_reason(key: NodeKey) -> None:
    listeners = await trio.open_tcp_listeners(0, host=LOOPBACK)
    port = listeners[0].socket.getsockname()[1]
    await listeners[0].aclose()
    for host, reason in ((LOOPBACK, "Connection refused"), ("no.invalid", "not known|resolution")):
        why = pytest.raises(JoinFailed, match=f"Cannot reach the root at {host} .*({reason})")
        with nothing_left(), why:
            async with join(host, port, key, name="gpu1"):
                pass


@asynccontextmanager
async def listening(greeting: bytes, *, hold: bool = True) -> AsyncIterator[int]:
    """Something else that listens: it sends ``greeting`` and holds the connection, or ends it."""

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            with suppress(trio.BrokenResourceError):
                await stream.send_all(greeting)
                if hold:
                    await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host=LOOPBACK)
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("greeting", "hold", "error", "reason"),
    [
        (b"", True, JoinFailed, "took too long"),  # an HTTP server waits for a request
        (b"HTTP/1.1 400 Bad Request\r\n", False, HandshakeRefused, "does not speak the protocol"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", True, HandshakeRefused, "does not speak the protocol"),
        (b"", False, HandshakeRefused, "closed the connection"),
        (b"AEGISNODE\x07" + bytes(32), True, HandshakeRefused, "version 7"),
    ],
)
async def test_where_something_else_listens_the_join_fails(
    key: NodeKey, greeting: bytes, hold: bool, error: type[Exception], reason: str
) -> None:
    async with listening(greeting, hold=hold) as port:
        with pytest.raises(error, match=reason), trio.fail_after(GUARD_S):
            async with join(LOOPBACK, port, key, name="gpu1"):
                pass


@pytest.mark.long
async def test_a_root_that_is_stopped_is_silent_and_the_join_fails_in_time(
    key: NodeKey, key_file: Path
) -> None:
    async with root_program(key_file) as (root, port):
        root.signal(signal.SIGSTOP)
        with nothing_left(), pytest.raises(JoinFailed), trio.fail_after(GUARD_S):
            async with join(LOOPBACK, port, key, name="gpu1"):
                pass
        root.signal(signal.SIGCONT)


async def told(link: Link) -> dict[str, Any]:
    """What the root says that it has open, and remembers."""
    await link.send(STATE)
    state: dict[str, Any] = json.loads(await link.receive())
    return state


async def finished(link: Link, ended: list[OutcomeFrame | LinkLost]) -> None:
    await link.finish(OutcomeFrame(OutcomeKind.DONE))
    await link.over.wait()
    assert ended == [OutcomeFrame(OutcomeKind.DONE)]


@pytest.mark.long
async def test_hundreds_of_joins_from_one_process_leave_nothing_on_either_side(
    key: NodeKey, key_file: Path
) -> None:
    async with root_program(key_file) as (_, port):

        async def once(number: int) -> dict[str, Any]:
            """Join and leave: in order, or just so."""
            with trio.fail_after(GUARD_S):
                async with join(LOOPBACK, port, key, name=f"node-{number % 7}") as (_, link):
                    async with carried(link) as ended:
                        state = await told(link)
                        if number % 2:
                            await finished(link, ended)
                    return state

        there = [await once(number) for number in range(20)][-1]
        gc.collect()
        here = descriptors(), tasks()
        resident = resident_kib()
        for number in range(200):
            now = await once(number)
        assert (descriptors(), tasks()) == here
        assert resident_kib() - resident < 2_048
        assert now["resident_kib"] - there["resident_kib"] < 2_048
        # The one before may be about to go.
        assert now["descriptors"] <= there["descriptors"] + 1
        assert now["remembered"]["joins"] <= 2
        assert all(count <= 4 for count in now["remembered"].values()), now["remembered"]


async def test_what_is_raised_while_joined_comes_out_as_it_is(key: NodeKey, key_file: Path) -> None:
    async with root_program(key_file) as (root, port):
        with nothing_left(), pytest.raises(ZeroDivisionError):
            async with join(LOOPBACK, port, key, name="gpu1"):
                raise ZeroDivisionError
        await root.line("lost")


async def test_a_node_that_is_cancelled_can_still_say_its_last(
    key: NodeKey, key_file: Path
) -> None:
    async with root_program(key_file) as (root, port):
        with trio.CancelScope() as scope:
            async with join(LOOPBACK, port, key, name="gpu1") as (_, link), carried(link):
                await root.line("joined")
                scope.cancel()
                with trio.CancelScope(shield=True):
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(link.finish, OutcomeFrame(OutcomeKind.STOPPED))
        assert scope.cancelled_caught
        await root.line("lost gpu1")


async def test_who_joins_is_no_root_and_listens_on_loopback_only(
    key: NodeKey, key_file: Path
) -> None:
    async with root_program(key_file, host="127.0.0.7") as (_, port):
        async with join("127.0.0.7", port, key, name="gpu1"):
            actor = load().state.current_actor()
            assert not actor.is_arbiter
            addresses = [each.socket.getsockname() for each in actor._listeners]
            assert [host for host, _ in addresses] == [LOOPBACK]
            with pytest.raises(MisuseError, match="open in this process already"):
                async with join("127.0.0.7", port, key, name="gpu2"):
                    pass
        assert load().state.current_actor(err_on_no_runtime=False) is None


@pytest.mark.parametrize(
    ("name", "hello", "beat"),
    [("", b"", Beat()), ("gpu1", bytes(65_537), Beat()), ("gpu1", b"", Beat(1, 100))],
)
async def test_what_no_root_would_take_is_not_sent(
    key: NodeKey, name: str, hello: bytes, beat: Beat
) -> None:
    with pytest.raises(NodeError):
        async with join(LOOPBACK, 1, key, name=name, hello=hello, beat=beat):
            pass


@pytest.mark.parametrize("host", ["127.0.0.9", "0.0.0.0", "::1", "localhost"])
async def test_a_root_that_listens_elsewhere_is_reached_there_and_by_its_workers(
    key: NodeKey, key_file: Path, host: str
) -> None:
    with nothing_left():
        async with open_runtime(key=key, host=host) as runtime:
            assert runtime.address[0] in (host, "127.0.0.1", "::1")
            async with running(runtime, spec("echo", argument=b"from afar")) as worker:
                assert await worker.receive() == b"from afar"
                async with node_program(key_file, runtime.address[1], host=host) as node:
                    joined = await runtime.next_join()
                    joined.accept(b"welcome")
                    await node.line("joined")
                    async with carried(joined.link) as ended:
                        # A worker that ends takes nothing with it that is the node's.
                        await worker.send(b"bye")
                        await worker.ended.wait()
                        await joined.link.send(b"still there?")
                        assert await joined.link.receive() == b"still there?"
                        assert ended == []


async def test_a_root_that_cannot_listen_says_so_and_leaves_nothing(key: NodeKey) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with nothing_left(), pytest.raises(OSError, match="in use"):
            async with open_runtime(key=key, host="0.0.0.0", port=port):
                pass


async def test_a_root_that_closes_leaves_no_node_behind(key: NodeKey, key_file: Path) -> None:
    async with root_program(key_file) as (root, port), node_program(key_file, port) as node:
        await node.line("joined")
        root.signal(signal.SIGINT)
        await node.line("lost")
        with trio.fail_after(GUARD_S):
            await root.process.wait()
