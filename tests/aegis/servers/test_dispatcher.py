"""The actors of connections come and go with their callers, however quickly those leave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from actors import (
    Actor,
    ActorStopped,
    ChildSpec,
    NodeDied,
    Reply,
    SupervisorSpec,
    System,
    open_system,
)
from aegis.errors import Unavailable
from aegis.protocol.table import BY_NAME
from aegis.servers.calls import OPERATOR, Caller
from aegis.servers.connection import Invoke
from aegis.servers.dispatcher import GRACE_S, SHORTEST_S, Dispatcher

CALLER = Caller(OPERATOR, "line", "c1")


async def wait_forever(_: object) -> None:
    await trio.sleep_forever()


async def die_after(seconds: float, reply: Reply[object]) -> None:
    await trio.sleep(seconds)
    reply.fail(NodeDied("the front went down with worker w1"))


class Slow(Actor[Invoke]):
    """A connection whose set-up waits for ``begin``; it answers with its arguments, or never."""

    def __init__(self, begin: trio.Event, answers: Callable[[], bool], deaths: list[float]) -> None:
        self._begin = begin
        self._answers = answers
        self._deaths = deaths

    async def setup(self) -> None:
        await self._begin.wait()

    async def receive(self, message: Invoke) -> None:
        if self._deaths:
            self.context.start_soon(die_after, self._deaths.pop(0), self.defer(message))
        elif self._answers():
            self.reply(message, dict(message.arguments))
        else:
            self.context.start_soon(wait_forever, self.defer(message))


class Board:
    """A dispatcher over a real system; ``begin`` lets connections come up."""

    def __init__(self, system: System) -> None:
        self.begin = trio.Event()
        self.settings: dict[str, object] = {}
        self.answers = True
        self.deaths: list[float] = []
        """After how many seconds the next calls end with the worker of who has them in hand."""
        self._system = system
        self.port = Dispatcher(system, "root/connections", self._spec, self.settings)

    def _spec(self, name: str, caller: Caller) -> ChildSpec:
        return ChildSpec.of(
            name, Slow, begin=self.begin, answers=lambda: self.answers, deaths=self.deaths
        )

    @property
    def actors(self) -> list[str]:
        return self._system.supervisor("root/connections").names

    async def call(self, **arguments: object) -> object:
        given: Mapping[str, object] = arguments
        return await self.port.call(CALLER, BY_NAME["term_list"], given)


@asynccontextmanager
async def open_board() -> AsyncIterator[Board]:
    connections = SupervisorSpec(name="connections", dynamic=True)
    async with open_system(SupervisorSpec(name="root", children=(connections,))) as system:
        yield Board(system)


async def test_a_caller_has_one_actor_for_all_its_calls() -> None:
    async with open_board() as board:
        board.begin.set()
        assert [await board.call(number=n) for n in range(3)] == [{"number": n} for n in range(3)]
        assert board.actors == ["line:c1"]
        board.port.closed(CALLER)
        await trio.testing.wait_all_tasks_blocked()
        assert board.actors == []
        assert board.port.count == 0


async def test_a_caller_that_leaves_during_its_first_call_leaves_no_actor() -> None:
    async with open_board() as board, trio.open_nursery() as calls:
        calls.start_soon(board.call)
        await trio.testing.wait_all_tasks_blocked()
        assert board.actors == ["line:c1"]
        calls.cancel_scope.cancel()
        board.begin.set()
        await trio.testing.wait_all_tasks_blocked()
        board.port.closed(CALLER)
        await trio.testing.wait_all_tasks_blocked()
        assert board.actors == []


async def test_a_caller_closed_while_its_actor_starts_leaves_no_actor() -> None:
    async with open_board() as board, trio.open_nursery() as calls:

        async def call_in_vain() -> None:
            with pytest.raises(ActorStopped, match="was closed"):
                await board.call()

        calls.start_soon(call_in_vain)
        await trio.testing.wait_all_tasks_blocked()
        board.port.closed(CALLER)
        board.begin.set()
        await trio.testing.wait_all_tasks_blocked()
        assert board.actors == []
        assert board.port.count == 0


async def test_calls_that_wait_for_the_actor_share_it() -> None:
    async with open_board() as board, trio.open_nursery() as calls:
        for _ in range(5):
            calls.start_soon(board.call)
        await trio.testing.wait_all_tasks_blocked()
        board.begin.set()
        await trio.testing.wait_all_tasks_blocked()
        assert board.actors == ["line:c1"]


async def test_what_a_caller_leaves_out_is_as_the_daemon_is_configured() -> None:
    async with open_board() as board:
        board.begin.set()
        board.settings["terminals.timeout_s"] = 300.0
        entry = BY_NAME["term_wait"]
        assert await board.port.call(CALLER, entry, {"name": "b"}) == {
            "name": "b",
            "timeout": 300.0,
        }
        given = {"name": "b", "timeout": 5}
        assert await board.port.call(CALLER, entry, given) == given


async def test_a_call_is_given_up_only_after_the_time_that_is_configured(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_board() as board:
        board.settings["terminals.timeout_s"] = 300.0
        board.begin.set()
        await board.call()
        board.answers = False
        before = trio.current_time()
        with pytest.raises(Unavailable):
            await board.port.call(CALLER, BY_NAME["term_wait"], {"name": "b"})
        assert trio.current_time() - before == pytest.approx(300.0 + GRACE_S)


async def test_what_only_waits_is_asked_again_where_a_worker_died_with_the_time_that_is_left(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_board() as board:
        board.begin.set()
        board.deaths += [10.0, 5.5]
        entry = BY_NAME["term_wait"]
        given = {"name": "b", "seq": 3, "timeout": 40}
        assert await board.port.call(CALLER, entry, given) == {**given, "timeout": 24.5}
        board.deaths += [10.0]
        assert await board.port.call(CALLER, entry, {"name": "b"}) == {"name": "b", "timeout": 40}
        board.deaths += [60.0]
        answer = await board.port.call(CALLER, entry, given)
        assert answer == {**given, "timeout": SHORTEST_S}
        board.deaths += [1.0]
        output = {"name": "b", "cursor": 7}
        assert await board.port.call(CALLER, BY_NAME["term_output"], output) == output


@pytest.mark.parametrize("command", ["term_run", "term_keys", "term_subscribe"])
async def test_what_does_something_is_not_asked_again_where_a_worker_died(command: str) -> None:
    async with open_board() as board:
        board.begin.set()
        board.deaths.append(0.0)
        with pytest.raises(Unavailable, match="terminal 'b' lost its worker"):
            await board.port.call(CALLER, BY_NAME[command], {"name": "b"})
