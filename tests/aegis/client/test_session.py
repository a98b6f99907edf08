"""What a client does when its connection is lost, on a clock that jumps."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from aegis.client.calls import FIRST_DELAY_S, MAX_DELAY_S, MAX_TRIES
from aegis.client.client import Client
from aegis.client.errors import CommandFailed, ConnectionLost, NoDaemon, ProtocolMismatch
from aegis.client.session import DEFAULT_PATIENCE_S, MAX_IN_FLIGHT, ClientSession
from aegis.protocol.terminals import Done, TerminalList
from tests.fakes.message_wire import MemoryDaemon

EMPTY: dict[str, Any] = {"result": []}
Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def daemon() -> MemoryDaemon:
    return MemoryDaemon()


@pytest.fixture
def connect(daemon: MemoryDaemon) -> Connect:
    @asynccontextmanager
    async def connected(**options: Any) -> AsyncIterator[Client]:
        session = ClientSession(daemon.dial, "the daemon", chance=lambda: 1.0, **options)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.run)
            await session.first()
            yield Client(session)
            nursery.cancel_scope.cancel()

    return connected


class Outcome:
    """How a call ended that runs beside the test."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.value: object = None
        self.done = trio.Event()

    async def of(self, call: Callable[[], Any]) -> None:
        with self.scope:
            try:
                self.value = await call()
            except Exception as error:
                self.value = error
        self.done.set()

    async def get(self) -> Any:
        with trio.fail_after(600):
            await self.done.wait()
        return self.value


@asynccontextmanager
async def beside(*calls: Callable[[], Any]) -> AsyncIterator[list[Outcome]]:
    """Run these calls while the body plays the daemon."""
    outcomes = [Outcome() for _ in calls]
    async with trio.open_nursery() as nursery:
        for outcome, call in zip(outcomes, calls, strict=True):
            nursery.start_soon(outcome.of, call)
        yield outcomes


async def test_a_request_is_framed_as_the_protocol_says(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect(handle="ann") as client:
        end = await daemon.accept()
        async with beside(lambda: client.terminals.keys("build", "ls\r")) as [outcome]:
            request = await end.next()
            assert request == {
                "type": "request",
                "id": request["id"],
                "command": "term_keys",
                "arguments": {"name": "build", "keys": "ls\r", "from_handle": "ann"},
            }
            end.reply(request, ok=True)
            assert await outcome.get() == Done()


async def test_answers_find_their_calls_in_any_order(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client:
        end = await daemon.accept()
        async with beside(
            lambda: client.terminals.keys("a", "x"), lambda: client.terminals.list()
        ) as [keys, listed]:
            requests = {frame["command"]: frame for frame in [await end.next(), await end.next()]}
            end.reply(requests["term_list"], **EMPTY)
            assert await listed.get() == TerminalList(result=[])
            end.refuse(requests["term_keys"], "busy", "aegis_term_keys: somebody types")
            error = await keys.get()
    assert (error.code, str(error)) == ("busy", "somebody types")


async def test_a_cancelled_call_is_cancelled_at_the_daemon(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client:
        end = await daemon.accept()
        async with beside(lambda: client.terminals.wait("build")) as [outcome]:
            request = await end.next()
            outcome.scope.cancel()
            assert await end.next() == {"type": "cancel", "id": request["id"]}
        end.refuse(request, "cancelled", "cancelled by the client")
        async with beside(lambda: client.terminals.list()) as [listed]:
            end.reply(await end.next(), **EMPTY)
            assert await listed.get() == TerminalList(result=[])


async def test_a_call_beyond_those_in_flight_waits_its_turn_until_the_daemon_is_done(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client:
        end = await daemon.accept()
        waits = [lambda: client.terminals.wait("build")] * MAX_IN_FLIGHT
        async with beside(*waits) as outcomes:
            frames = [await end.next() for _ in waits]
            async with beside(client.terminals.list):
                await trio.testing.wait_all_tasks_blocked()
                assert end.waiting() == 0
                outcomes[0].scope.cancel()
                cancel = await end.next()
                await trio.testing.wait_all_tasks_blocked()
                assert (cancel["type"], end.waiting()) == ("cancel", 0)
                end.send(type="error", id=cancel["id"], code="cancelled", message="cancelled")
                further = await end.next()
                assert further["command"] == "term_list"
                for frame in [*frames, further]:
                    end.refuse(frame, "not_found", "it is gone")


async def test_a_call_that_reads_is_made_again_after_a_loss(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client, beside(lambda: client.terminals.list()) as [outcome]:
        end = await daemon.accept()
        first = await end.next()
        end.cut()
        end = await daemon.accept()
        again = await end.next()
        assert again["id"] != first["id"]
        assert {**again, "id": 0} == {**first, "id": 0}
        end.reply(again, **EMPTY)
        assert await outcome.get() == TerminalList(result=[])


async def test_a_call_that_reads_is_not_made_again_for_ever(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client, beside(lambda: client.terminals.list()) as [outcome]:
        for _ in range(MAX_TRIES):
            end = await daemon.accept()
            await end.next()
            end.cut("the daemon died")
        error = await outcome.get()
        assert isinstance(error, ConnectionLost)
        assert (error.command, error.maybe_done, error.may_repeat) == ("term_list", True, True)
        assert "the daemon died" in str(error)


async def test_a_call_that_does_something_is_never_made_again_by_itself(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client, beside(lambda: client.terminals.run("b", "make")) as [outcome]:
        end = await daemon.accept()
        await end.next()
        end.cut()
        error = await outcome.get()
        assert isinstance(error, ConnectionLost)
        assert (error.command, error.maybe_done, error.may_repeat) == ("term_run", True, False)
        end = await daemon.accept()
        await trio.sleep(100)
        assert end.waiting() == 0


async def test_a_call_without_a_connection_waits_for_the_next(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client:
        daemon.is_down = True
        (await daemon.accept()).cut()
        async with beside(lambda: client.terminals.run("b", "make")) as [outcome]:
            await trio.sleep(DEFAULT_PATIENCE_S - 5)
            daemon.is_down = False
            end = await daemon.accept()
            end.refuse(await end.next(), "busy", "no")
            assert isinstance(await outcome.get(), CommandFailed)


async def test_who_asks_is_told_when_a_connection_is_lost_and_made(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client:
        with trio.fail_after(60):
            await client.wait_connected()
            daemon.is_down = True
            (await daemon.accept()).cut()
            await client.wait_connected(False)
            assert not client.is_connected
            daemon.is_down = False
            await client.wait_connected()
        assert client.is_connected


async def test_a_call_waits_no_longer_than_its_patience_and_says_that_nothing_was_done(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect(patience_s=7.0) as client:
        end = await daemon.accept()
        daemon.is_down = True
        end.cut()
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        with pytest.raises(ConnectionLost) as caught:
            await client.terminals.run("b", "make")
        assert trio.current_time() - began == pytest.approx(7.0)
    assert (caught.value.maybe_done, caught.value.may_repeat) == (False, True)
    assert str(caught.value) == (
        "could not connect to the daemon within 7 s (no daemon runs here); the call was not made"
    )


async def test_the_tries_to_connect_become_rarer_and_go_on(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect():
        end = await daemon.accept()
        daemon.is_down = True
        end.cut()
        await trio.sleep(60)
        times = daemon.dialled[1:]
        waits = [round(later - earlier, 6) for earlier, later in itertools.pairwise(times)]
        assert waits[0] == pytest.approx(2 * FIRST_DELAY_S)
        assert waits == sorted(waits)
        assert waits[-1] == pytest.approx(MAX_DELAY_S)
        assert len(times) < 40


async def test_a_daemon_that_drops_every_connection_is_not_hammered(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect():
        until = trio.current_time() + 60
        while trio.current_time() < until:
            (await daemon.accept()).cut()
        assert len(daemon.dialled) < 45


async def test_the_first_connection_is_tried_once(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    daemon.is_down = True
    with pytest.RaisesGroup(pytest.RaisesExc(NoDaemon, match="no daemon runs here")):
        async with connect():
            raise AssertionError("it is down")
    assert len(daemon.dialled) == 1


async def test_a_key_that_is_not_valid_any_more_ends_the_client(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client:
        daemon.refuses_key = True
        (await daemon.accept()).cut()
        for _ in range(2):
            with pytest.raises(CommandFailed, match="the key is not valid") as caught:
                await client.terminals.list()
            assert caught.value.code == "forbidden"
        await trio.sleep(60)
        assert len(daemon.dialled) == 2


@pytest.mark.parametrize(
    "message",
    ["nonsense", '{"type": "reply"}', b"\0", '{"type":"error","id":null,"code":"x","message":"y"}'],
)
async def test_what_is_not_the_protocol_ends_the_connection_and_not_the_client(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock, message: str | bytes
) -> None:
    async with connect() as client, beside(client.terminals.list) as [outcome]:
        end = await daemon.accept()
        await end.next()
        end.send_raw(message)
        end = await daemon.accept()
        end.reply(await end.next(), **EMPTY)
        assert await outcome.get() == TerminalList(result=[])


async def test_a_reply_of_another_form_is_told(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client, beside(client.terminals.list) as [outcome]:
        end = await daemon.accept()
        end.reply(await end.next(), result=[], colour="red")
        assert isinstance(await outcome.get(), ProtocolMismatch)


async def test_frames_about_something_else_are_passed_over(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client, beside(client.terminals.list) as [outcome]:
        end = await daemon.accept()
        request = await end.next()
        end.send(type="reply", id=99, result={})
        end.send(type="item", id=99, item={})
        end.send(type="ended", id=99, code=None, message=None)
        end.send_raw(bytes(12) + b"nobody's")
        end.reply(request, **EMPTY)
        assert await outcome.get() == TerminalList(result=[])


async def test_a_frame_that_the_daemon_would_not_take_is_not_sent(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client:
        end = await daemon.accept()
        with pytest.raises(CommandFailed, match="accepts at most 4194304"):
            await client.terminals.run("b", "\1" * 1_000_000)
        assert end.waiting() == 0
        async with beside(client.terminals.list) as [outcome]:
            end.reply(await end.next(), **EMPTY)
            assert await outcome.get() == TerminalList(result=[])


async def test_calls_of_a_client_that_is_closed_are_told_so(
    daemon: MemoryDaemon, connect: Connect, autojump_clock: MockClock
) -> None:
    async with connect() as client:
        pass
    with pytest.raises(ConnectionLost, match="this client is closed"):
        await client.terminals.list()
