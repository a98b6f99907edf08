"""What the actor runtime costs, as ratios within one process: run it on a quiet machine.

python tests/bench/bench_actors.py

Where pykka is installed it is measured too: its actors have a thread each, so a message to one that
sleeps wakes a thread. Its messages are sent in one go and handled in one go, as ours.
"""

from __future__ import annotations

import functools
import gc
import importlib
import threading
import time
import timeit
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio

from actors import (
    Actor,
    Backoff,
    ChildSpec,
    MailboxSpec,
    Overflow,
    Request,
    SlowStep,
    SupervisorSpec,
    open_system,
)
from actors.faults import FaultTable
from tests.bench.table import Row, print_rows

MESSAGES = 20_000
ASKS = 3_000
CROWD = 64
ASKS_EACH = 50
RESTARTS = 300
IDLE_ACTORS = 10_000
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
        ChildSpec.of("echo", Echoer).with_options(
            backoff=Backoff(step_s=0),
            # A quarter of the room is reserved for messages that are not requests.
            mailbox=MailboxSpec(capacity=2 * MESSAGES, overflow=Overflow.WAIT),
        ),
    ),
    period_s=1e-9,  # each crash stands alone
)


def measure() -> list[Row]:
    """All rows; takes half a minute."""
    channel_s = best(channel_message_s)
    tell_s = best(tell_message_s)
    ask_s = best(ask_round_trip_s)
    return [
        ("channel send + receive, to tell + receive", channel_s / tell_s, "ratio, goal ≥ 3"),
        ("tell + receive, µs", tell_s * 1e6, f"channel {channel_s * 1e6:.1f} µs"),
        *rows_of_sends(tell_s, ask_s),
        *rows_of_watched_steps(tell_s, ask_s),
        *rows_of_pykka(tell_s, ask_s),
        ("crash to first answer, µs", best(restart_to_answer_s) * 1e6, "goal ≤ 150"),
        *rows_of_idle_actors(),
        ("a fault point not armed, ns", fault_point_s() * 1e9, "goal ≤ 100"),
    ]


def rows_of_sends(tell_s: float, ask_s: float) -> list[Row]:
    """What waits, against the least that Trio allows."""
    hand_over_s = best(hand_over_s_of_channels)
    send_s = best(send_message_s)
    return [
        ("send + receive, µs", send_s * 1e6, f"tell {tell_s * 1e6:.1f} µs"),
        ("ask round trip, to two channel hand-overs", ask_s / hand_over_s, "ratio, goal ≤ 2"),
        ("ask round trip, µs", ask_s * 1e6, f"hand-overs {hand_over_s * 1e6:.1f} µs"),
    ]


def rows_of_watched_steps(tell_s: float, ask_s: float) -> list[Row]:
    """What it costs to hear of slow steps: two calls around each step, not each message."""
    watched_tell_s = best(functools.partial(tell_message_s, on_slow_step=ignore))
    watched_ask_s = best(functools.partial(ask_round_trip_s, on_slow_step=ignore))
    return [
        ("tell with steps watched, to without", watched_tell_s / tell_s, "ratio, goal ≤ 1.1"),
        ("ask with steps watched, to without", watched_ask_s / ask_s, "ratio, goal ≤ 1.3"),
    ]


def ignore(_: SlowStep) -> None:
    """Hear of a slow step."""


def rows_of_pykka(tell_s: float, ask_s: float) -> list[Row]:
    """The same with pykka, if it is there."""
    try:
        pykka: Any = importlib.import_module("pykka")
    except ImportError:
        return []
    tell, ask, crowded = pykka_s(pykka)
    crowded_s = best(crowded_ask_s)
    return [
        (
            "pykka tell + receive, to tell + receive",
            tell / tell_s,
            f"ratio, goal ≥ 3 ({tell * 1e6:.1f} µs)",
        ),
        ("pykka lone ask, to ask", ask / ask_s, f"ratio, goal ≥ 3 ({ask * 1e6:.1f} µs)"),
        (f"pykka ask of {CROWD}, to ask", crowded / crowded_s, f"{crowded * 1e6:.1f} µs"),
        (f"ask of {CROWD}, µs", crowded_s * 1e6, "each"),
    ]


def rows_of_idle_actors() -> list[Row]:
    """Many actors under one supervisor, with nothing to do."""
    start_s, stop_s, kib = trio.run(idle_actors)
    return [
        ("start of an actor, µs", start_s * 1e6, f"of {IDLE_ACTORS}, goal ≤ 150"),
        ("stop of an actor, µs", stop_s * 1e6, f"of {IDLE_ACTORS}, all at once, goal ≤ 150"),
        ("idle actor, KiB", kib, "Python objects, goal ≤ 8"),
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


async def tell_message_s(on_slow_step: Callable[[SlowStep], None] | None = None) -> float:
    """Seconds for one message told and handled."""
    async with open_system(ECHOER, on_slow_step=on_slow_step) as system:
        echo = system.ref("root/echo")
        started = time.perf_counter()
        for _ in range(MESSAGES - 1):
            echo.tell(Tick())
        await echo.ask(Echo(0), timeout=60)
        return (time.perf_counter() - started) / MESSAGES


async def send_message_s() -> float:
    """Seconds for one message sent, with a checkpoint each, and handled."""
    async with open_system(ECHOER) as system:
        echo = system.ref("root/echo")
        started = time.perf_counter()
        for _ in range(MESSAGES - 1):
            await echo.send(Tick())
        await echo.ask(Echo(0), timeout=60)
        return (time.perf_counter() - started) / MESSAGES


def pykka_s(pykka: Any) -> tuple[float, ...]:
    """Seconds for a tell, a lone ask and one of a crowd, with pykka's actors."""

    class PykkaEchoer(pykka.ThreadingActor):  # type: ignore[misc]
        def on_receive(self, message: object) -> object:
            return message.number if isinstance(message, Echo) else None

    echo = PykkaEchoer.start()
    try:
        works = (_pykka_tell_s, _pykka_ask_s, _pykka_crowded_ask_s)
        return tuple(min(work(echo) for _ in range(ROUNDS)) for work in works)
    finally:
        echo.stop()


def _pykka_tell_s(echo: Any) -> float:
    started = time.perf_counter()
    for _ in range(MESSAGES - 1):
        echo.tell(Tick())
    echo.ask(Echo(0))
    return (time.perf_counter() - started) / MESSAGES


def _pykka_ask_s(echo: Any) -> float:
    started = time.perf_counter()
    for number in range(ASKS):
        echo.ask(Echo(number))
    return (time.perf_counter() - started) / ASKS


def fault_point_s() -> float:
    """Seconds for passing a fault point that is not armed."""
    point = FaultTable().point("bench.pass.before")
    passes = 1_000_000
    return min(timeit.repeat("hit()", globals={"hit": point.hit}, number=passes, repeat=ROUNDS)) / (
        passes
    )


async def crowded_ask_s() -> float:
    """Seconds for one ask of many tasks that ask one actor at the same time."""

    async def ask() -> None:
        for number in range(ASKS_EACH):
            await echo.ask(Echo(number))

    async with open_system(ECHOER) as system:
        echo = system.ref("root/echo")
        started = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(CROWD):
                nursery.start_soon(ask)
        return (time.perf_counter() - started) / (CROWD * ASKS_EACH)


def _pykka_crowded_ask_s(echo: Any) -> float:
    def ask() -> None:
        for number in range(ASKS_EACH):
            echo.ask(Echo(number))

    threads = [threading.Thread(target=ask) for _ in range(CROWD)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - started) / (CROWD * ASKS_EACH)


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


async def ask_round_trip_s(on_slow_step: Callable[[SlowStep], None] | None = None) -> float:
    """Seconds for one ask and its answer."""
    async with open_system(ECHOER, on_slow_step=on_slow_step) as system:
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
        gc.collect()
        if traced:
            tracemalloc.start()
        started = time.perf_counter()
        for number in range(IDLE_ACTORS):
            await root.start_child(ChildSpec.of(f"a{number}", Echoer))
        start_s = time.perf_counter() - started
        if traced:
            kib = tracemalloc.get_traced_memory()[0] / 1024
            tracemalloc.stop()
        started = time.perf_counter()
    return start_s / IDLE_ACTORS, (time.perf_counter() - started) / IDLE_ACTORS, kib / IDLE_ACTORS


if __name__ == "__main__":
    print_rows(measure())
