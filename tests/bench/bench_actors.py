"""What the actor runtime costs, as ratios within one process: run it on a quiet machine.

python tests/bench/bench_actors.py
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Awaitable, Callable

import attrs
import trio

from actors import Actor, Backoff, ChildSpec, MailboxSpec, Request, SupervisorSpec, open_system
from tests.bench.table import Row, print_rows

MESSAGES = 20_000
ASKS = 3_000
RESTARTS = 300
IDLE_ACTORS = 1_000
ROUNDS = 5


@attrs.frozen
class Tick:
    pass


@attrs.frozen
class Echo(Request[int]):
    number: int


@attrs.frozen
class Crash:
    pass


class Echoer(Actor[Tick | Echo | Crash]):
    async def receive(self, message: Tick | Echo | Crash) -> None:
        if isinstance(message, Echo):
            self.reply(message, message.number)
        elif isinstance(message, Crash):
            raise RuntimeError  # noqa: TRY004 - a crash made to order


ECHOER = SupervisorSpec(
    name="root",
    children=(
        ChildSpec(
            name="echo",
            actor=Echoer,
            backoff=Backoff(step_s=0),
            mailbox=MailboxSpec(capacity=2 * MESSAGES),
        ),
    ),
    intensity=RESTARTS,
)


def measure() -> list[Row]:
    """All rows; takes a few seconds."""
    channel_s = best(channel_message_s)
    tell_s = best(tell_message_s)
    hand_over_s = best(hand_over_s_of_channels)
    ask_s = best(ask_round_trip_s)
    restart_s = best(restart_to_answer_s)
    start_s, stop_s, kib = trio.run(idle_actors)
    return [
        ("tell + receive, to channel send + receive", tell_s / channel_s, "ratio, goal ≤ 1"),
        ("tell + receive, µs", tell_s * 1e6, f"channel {channel_s * 1e6:.1f} µs"),
        ("ask round trip, to two channel hand-overs", ask_s / hand_over_s, "ratio, goal ≤ 2"),
        ("ask round trip, µs", ask_s * 1e6, f"hand-overs {hand_over_s * 1e6:.1f} µs"),
        ("crash to first answer, to an ask", restart_s / ask_s, "ratio, goal ≤ 20"),
        ("crash to first answer, µs", restart_s * 1e6, "no pause before a first restart"),
        ("start of an actor, µs", start_s * 1e6, f"of {IDLE_ACTORS}, one after the other"),
        ("stop of an actor, µs", stop_s * 1e6, f"of {IDLE_ACTORS}, all at once"),
        ("idle actor, KiB", kib, "Python objects, goal ≤ 16"),
    ]


def best(work: Callable[[], Awaitable[float]]) -> float:
    """The least of some runs: load from outside only ever adds."""
    return min(trio.run(work) for _ in range(ROUNDS))


async def channel_message_s() -> float:
    """Seconds for one message through a memory channel with room for all."""
    send, receive = trio.open_memory_channel[Tick](MESSAGES)
    started = time.perf_counter()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_receive_all, receive)
        async with send:
            for _ in range(MESSAGES):
                await send.send(Tick())
    return (time.perf_counter() - started) / MESSAGES


async def _receive_all(receive: trio.MemoryReceiveChannel[Tick]) -> None:
    async with receive:
        async for _ in receive:
            pass


async def tell_message_s() -> float:
    """Seconds for one message told and handled."""
    async with open_system(ECHOER) as system:
        echo = system.ref("root/echo")
        started = time.perf_counter()
        for _ in range(MESSAGES - 1):
            echo.tell(Tick())
        await echo.ask(Echo(0), timeout=60)
        return (time.perf_counter() - started) / MESSAGES


async def hand_over_s_of_channels() -> float:
    """Seconds for a message to another task and one back."""
    there_send, there_receive = trio.open_memory_channel[int](0)
    back_send, back_receive = trio.open_memory_channel[int](0)

    async def echo() -> None:
        async with back_send:
            async for number in there_receive:
                await back_send.send(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(echo)
        started = time.perf_counter()
        for number in range(ASKS):
            await there_send.send(number)
            await back_receive.receive()
        taken = time.perf_counter() - started
        there_send.close()
    return taken / ASKS


async def ask_round_trip_s() -> float:
    """Seconds for one ask and its answer."""
    async with open_system(ECHOER) as system:
        echo = system.ref("root/echo")
        started = time.perf_counter()
        for number in range(ASKS):
            await echo.ask(Echo(number))
        return (time.perf_counter() - started) / ASKS


async def restart_to_answer_s() -> float:
    """Seconds from a message that crashes an actor to the answer of its next life."""
    async with open_system(ECHOER) as system:
        echo = system.ref("root/echo")
        started = time.perf_counter()
        for number in range(RESTARTS):
            echo.tell(Crash())
            await echo.ask(Echo(number))
        return (time.perf_counter() - started) / RESTARTS


async def idle_actors() -> tuple[float, float, float]:
    """Seconds to start one of many actors and to stop it, and its memory in KiB."""
    started_s, stopped_s, _ = await _run_idle(traced=False)
    _, _, kib = await _run_idle(traced=True)
    return started_s, stopped_s, kib


async def _run_idle(*, traced: bool) -> tuple[float, float, float]:
    spec = SupervisorSpec(name="root", dynamic=True)
    kib = 0.0
    async with open_system(spec) as system:
        root = system.supervisor("root")
        if traced:
            tracemalloc.start()
        started = time.perf_counter()
        for number in range(IDLE_ACTORS):
            await root.start_child(ChildSpec(name=f"a{number}", actor=Echoer))
        start_s = time.perf_counter() - started
        if traced:
            kib = tracemalloc.get_traced_memory()[0] / 1024
            tracemalloc.stop()
        started = time.perf_counter()
    return start_s / IDLE_ACTORS, (time.perf_counter() - started) / IDLE_ACTORS, kib / IDLE_ACTORS


if __name__ == "__main__":
    print_rows(measure())
