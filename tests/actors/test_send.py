"""``Ref.send`` and mailboxes whose policy is to wait for room."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import (
    Actor,
    ActorStopped,
    AskCycle,
    AskDeadline,
    Backoff,
    ChildSpec,
    MailboxFull,
    MailboxSpec,
    OnRestart,
    Overflow,
    Ref,
    Request,
    Restart,
    SupervisorSpec,
    System,
    WrongMessage,
    open_system,
)


@attrs.frozen
class Number:
    value: int


@attrs.frozen
class Sum(Request[int]):
    pass


@attrs.frozen
class Crash:
    pass


@attrs.frozen
class SendTo(Request[bool]):
    path: str


class Counter(Actor[Number | Sum | Crash | SendTo]):
    """Handles one message each time its gate is opened; notes what it handled."""

    def __init__(self, seen: list[int], gate: trio.Semaphore) -> None:
        self._seen = seen
        self._gate = gate

    async def receive(self, message: Number | Sum | Crash | SendTo) -> None:
        await self._gate.acquire()
        match message:
            case Number(value):
                self._seen.append(value)
            case Sum():
                self.reply(message, sum(self._seen))
            case Crash():
                raise ValueError("made to order")
            case SendTo(path):
                await self.context.system.ref(path).send(Number(0))
                self.reply(message, True)


class Bench:
    """A system with one slow counter; ``open`` lets it handle so many messages."""

    def __init__(self, system: System, seen: list[int], gate: trio.Semaphore) -> None:
        self.system = system
        self.ref: Ref[Any] = system.ref("root/counter")
        self.seen = seen
        self._gate = gate

    async def open(self, messages: int) -> None:
        for _ in range(messages):
            self._gate.release()
        await trio.testing.wait_all_tasks_blocked()

    def waiting(self) -> int:
        return self.system.tree().children[0].mailbox

    async def fill(self) -> None:
        """One message in hand, and a full mailbox behind it."""
        self.ref.tell(Number(0))
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(4):
            self.ref.tell(Number(0))


def spec(seen: list[int], gate: trio.Semaphore, **options: Any) -> SupervisorSpec:
    on_restart = options.pop("on_restart", OnRestart.KEEP)
    overflow = options.pop("overflow", Overflow.WAIT)
    counter = ChildSpec.of("counter", Counter, seen=seen, gate=gate).with_options(
        mailbox=MailboxSpec(capacity=4, overflow=overflow, on_restart=on_restart),
        backoff=Backoff(first_s=0),
        shutdown_s=0.1,
        **options,
    )
    return SupervisorSpec(name="root", children=(counter,), intensity=10)


@pytest.fixture
def seen() -> list[int]:
    return []


@pytest.fixture
def gate() -> trio.Semaphore:
    return trio.Semaphore(0)


async def test_a_send_to_a_full_mailbox_waits_for_room(
    seen: list[int], gate: trio.Semaphore
) -> None:
    async with open_system(spec(seen, gate)) as system, trio.open_nursery() as nursery:
        bench = Bench(system, seen, gate)
        await bench.fill()
        nursery.start_soon(bench.ref.send, Number(5))
        await trio.testing.wait_all_tasks_blocked()
        assert (bench.waiting(), len(nursery.child_tasks)) == (4, 1)
        await bench.open(1)
        assert (bench.waiting(), len(nursery.child_tasks)) == (4, 0)
        await bench.open(5)
        assert seen[-1] == 5


async def test_the_order_of_one_sender_is_kept_and_the_first_to_wait_is_the_first_in(
    seen: list[int], gate: trio.Semaphore
) -> None:
    async def send(first: int) -> None:
        for value in range(first, first + 20):
            await bench.ref.send(Number(value))

    async with open_system(spec(seen, gate)) as system:
        bench = Bench(system, seen, gate)
        async with trio.open_nursery() as nursery:
            for first in (100, 200, 300):
                nursery.start_soon(send, first)
            await bench.open(60)
        assert len(seen) == 60
        for first in (100, 200, 300):
            mine = [value for value in seen if first <= value < first + 100]
            assert mine == list(range(first, first + 20))


async def test_a_mailbox_never_holds_more_than_its_capacity(
    seen: list[int], gate: trio.Semaphore
) -> None:
    async with open_system(spec(seen, gate)) as system, trio.open_nursery() as nursery:
        bench = Bench(system, seen, gate)
        for value in range(30):
            nursery.start_soon(bench.ref.send, Number(value))
        for _ in range(30):
            await trio.testing.wait_all_tasks_blocked()
            assert bench.waiting() <= 4
            await bench.open(1)
        assert sorted(seen) == list(range(30))


async def test_a_cancelled_send_sends_nothing_and_lets_the_next_in(
    seen: list[int], gate: trio.Semaphore
) -> None:
    async with open_system(spec(seen, gate)) as system, trio.open_nursery() as nursery:
        bench = Bench(system, seen, gate)
        await bench.fill()
        scope = trio.CancelScope()

        async def send_cancelled() -> None:
            with scope:
                await bench.ref.send(Number(1))

        nursery.start_soon(send_cancelled)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(bench.ref.send, Number(2))
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
        await bench.open(6)
        assert seen == [0, 0, 0, 0, 0, 2]


async def test_when_a_request_goes_away_the_next_take_lets_in_what_there_is_room_for(
    seen: list[int], gate: trio.Semaphore
) -> None:
    async with open_system(spec(seen, gate)) as system, trio.open_nursery() as nursery:
        bench = Bench(system, seen, gate)
        await bench.fill()
        await bench.open(1)  # three wait: room for a message, not for a request
        scope = trio.CancelScope()

        async def ask_cancelled() -> None:
            with scope:
                await bench.ref.ask(Sum(), timeout=math.inf)

        nursery.start_soon(ask_cancelled)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(bench.ref.send, Number(7))
        await trio.testing.wait_all_tasks_blocked()
        assert bench.waiting() == 3
        scope.cancel()
        await bench.open(1)
        assert bench.waiting() == 3
        await bench.open(4)
        assert seen == [*[0] * 5, 7]


async def test_a_send_ends_when_the_actor_is_gone_for_good(
    seen: list[int], gate: trio.Semaphore
) -> None:
    async with open_system(spec(seen, gate)) as system, trio.open_nursery() as nursery:
        bench = Bench(system, seen, gate)
        await bench.fill()
        ended: list[str] = []

        async def send() -> None:
            with pytest.raises(ActorStopped, match="takes no messages"):
                await bench.ref.send(Number(1))
            ended.append("send")

        async def ask() -> None:
            with pytest.raises(ActorStopped):
                await bench.ref.ask(Sum(), timeout=math.inf)
            ended.append("ask")

        nursery.start_soon(send)
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        bench.ref.stop()
        await bench.open(1)
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(ended) == ["ask", "send"]
        with pytest.raises(ActorStopped):
            await bench.ref.send(Number(1))


@pytest.mark.parametrize("on_restart", OnRestart)
async def test_a_send_waits_through_a_restart(
    seen: list[int], gate: trio.Semaphore, on_restart: OnRestart
) -> None:
    async with open_system(spec(seen, gate, on_restart=on_restart)) as system:
        bench = Bench(system, seen, gate)
        bench.ref.tell(Crash())
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(4):
            bench.ref.tell(Number(1))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.ref.send, Number(2))
            await trio.testing.wait_all_tasks_blocked()
            await bench.open(6)
        assert seen == ([1, 1, 1, 1, 2] if on_restart is OnRestart.KEEP else [2])


async def test_a_send_ends_with_a_temporary_actor_that_crashes(
    seen: list[int], gate: trio.Semaphore
) -> None:
    async with open_system(spec(seen, gate, restart=Restart.TEMPORARY)) as system:
        bench = Bench(system, seen, gate)
        bench.ref.tell(Crash())
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(4):
            bench.ref.tell(Number(1))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.open, 1)
            with pytest.raises(ActorStopped):
                await bench.ref.send(Number(2))


async def test_a_tell_does_not_wait(seen: list[int], gate: trio.Semaphore) -> None:
    async with open_system(spec(seen, gate)) as system:
        bench = Bench(system, seen, gate)
        await bench.fill()
        with pytest.raises(MailboxFull):
            bench.ref.tell(Number(1))
        await bench.open(5)


@pytest.mark.parametrize("overflow", [Overflow.REJECT, Overflow.DROP_OLDEST])
async def test_with_other_policies_a_send_is_a_tell(
    seen: list[int], gate: trio.Semaphore, overflow: Overflow
) -> None:
    async with open_system(spec(seen, gate, overflow=overflow)) as system:
        bench = Bench(system, seen, gate)
        await bench.fill()
        if overflow is Overflow.REJECT:
            with pytest.raises(MailboxFull):
                await bench.ref.send(Number(1))
        else:
            await bench.ref.send(Number(1))
        await bench.open(5)
        assert seen[-1] == (0 if overflow is Overflow.REJECT else 1)


async def test_an_ask_waits_for_room_and_for_its_answer(
    seen: list[int], gate: trio.Semaphore
) -> None:
    answers: list[int] = []

    async def ask() -> None:
        answers.append(await bench.ref.ask(Sum(), timeout=math.inf))

    async with open_system(spec(seen, gate)) as system:
        bench = Bench(system, seen, gate)
        await bench.fill()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            await bench.open(6)
        assert answers == [0]


async def test_the_time_of_an_ask_includes_the_wait_for_room(
    seen: list[int], gate: trio.Semaphore, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_system(spec(seen, gate)) as system:
        bench = Bench(system, seen, gate)
        await bench.fill()
        started = trio.current_time()
        with pytest.raises(AskDeadline):
            await bench.ref.ask(Sum(), timeout=2.0)
        assert trio.current_time() - started == pytest.approx(2.0)
        await bench.open(5)
        assert seen == [0] * 5


async def test_the_time_goes_on_after_the_wait_for_room_and_is_named_whole(
    seen: list[int], gate: trio.Semaphore, autojump_clock: trio.testing.MockClock
) -> None:
    async def open_later() -> None:
        await trio.sleep(1.5)
        await bench.open(2)

    async with open_system(spec(seen, gate)) as system, trio.open_nursery() as nursery:
        bench = Bench(system, seen, gate)
        await bench.fill()
        nursery.start_soon(open_later)
        started = trio.current_time()
        with pytest.raises(AskDeadline, match="did not answer Sum within 2 s"):
            await bench.ref.ask(Sum(), timeout=2.0)
        assert trio.current_time() - started == pytest.approx(2.0)
        assert bench.waiting() == 3  # the request got in, and stays there
        await bench.open(5)


async def test_a_wrong_message_is_refused_before_it_waits(
    seen: list[int], gate: trio.Semaphore
) -> None:
    async with open_system(spec(seen, gate)) as system:
        bench = Bench(system, seen, gate)
        await bench.fill()
        with pytest.raises(WrongMessage):
            await bench.ref.send("nonsense")
        await bench.open(5)


async def test_an_actor_that_would_wait_for_room_in_its_own_mailbox_is_told_so(
    seen: list[int], gate: trio.Semaphore
) -> None:
    async with open_system(spec(seen, gate)) as system:
        bench = Bench(system, seen, gate)
        reply = bench.ref.send_request(SendTo("root/counter"))
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(4):
            bench.ref.tell(Number(1))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.open, 5)
            with pytest.raises(Exception, match="sending Number would wait for itself") as caught:
                await reply.wait()
        assert AskCycle.__name__ in str(caught.value)


async def test_a_send_is_always_a_checkpoint(seen: list[int], gate: trio.Semaphore) -> None:
    async with open_system(spec(seen, gate)) as system:
        bench = Bench(system, seen, gate)
        with trio.testing.assert_checkpoints():
            await bench.ref.send(Number(1))
        with trio.CancelScope() as scope:
            scope.cancel()
            await bench.ref.send(Number(2))
        await bench.open(2)
        assert seen == [1]
