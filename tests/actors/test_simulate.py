"""Simulated runs: one seed, one trace."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
import trio
import trio._core._run

from actors import (
    Actor,
    ActorError,
    Backoff,
    ChildSpec,
    MailboxSpec,
    MisuseError,
    Overflow,
    Request,
    Strategy,
    SupervisorSpec,
)
from actors.simulate import KEPT, Run, Simulation, seeded_scheduling, simulate

ROOT = Path(__file__).parents[2]


@attrs.frozen
class Work(Request[int]):
    number: int


@attrs.frozen
class Tick:
    pass


class Worker(Actor[Work | Tick]):
    async def setup(self) -> None:
        self.context.after(0.3, Tick())

    async def receive(self, message: Work | Tick) -> None:
        match message:
            case Tick():
                self.context.after(0.3, Tick())
            case Work(number) if number % 7 == 3:
                raise ValueError(f"no {number}")
            case Work(number):
                await trio.sleep(0.01 * (number % 3))
                self.reply(message, number)


def tree() -> SupervisorSpec:
    workers = tuple(
        ChildSpec.of(name, Worker).with_options(
            mailbox=MailboxSpec(capacity=2, overflow=Overflow.WAIT),
            backoff=Backoff(first_s=0.05, jitter=1.0),
        )
        for name in "abc"
    )
    return SupervisorSpec(
        name="root", children=workers, strategy=Strategy.ONE_FOR_ALL, intensity=1000
    )


async def play(simulation: Simulation) -> int:
    """Tasks that compete for three workers; some are cancelled together while they wait."""
    answered = 0

    async def ask(number: int) -> None:
        nonlocal answered
        path = f"root/{simulation.chance.choice('abc')}"
        with trio.move_on_after(simulation.chance.choice([0.02, 0.5])):
            try:
                await system.ref(path).ask(Work(number), timeout=1.0)
            except ActorError as error:
                simulation.note("failed", path, f"{number} {type(error).__name__}")
            else:
                answered += 1
                simulation.note("answered", path, str(number))

    async with simulation.open_system(tree()) as system:
        async with trio.open_nursery() as nursery:
            for number in range(60):
                nursery.start_soon(ask, number)
        await trio.sleep(1)
    return answered


def test_one_seed_gives_one_trace() -> None:
    first, second = simulate(play, seed=7), simulate(play, seed=7)
    assert str(first.trace) == str(second.trace)
    assert first == second
    assert first.trace.count == len(first.trace.events) > 100


def test_other_seeds_give_other_traces() -> None:
    assert len({simulate(play, seed=seed).trace.digest for seed in range(10)}) == 10


async def order_of_ready_tasks(simulation: Simulation) -> str:
    order: list[str] = []

    async def run(name: str) -> None:
        await trio.lowlevel.checkpoint()
        order.append(name)

    async with trio.open_nursery() as nursery:
        for name in "abcdefgh":
            nursery.start_soon(run, name)
    return "".join(order)


def test_the_seed_decides_the_order_of_the_tasks_that_are_ready() -> None:
    orders = [simulate(order_of_ready_tasks, seed=seed).value for seed in range(20)]
    assert len(set(orders)) > 10
    assert [simulate(order_of_ready_tasks, seed=seed).value for seed in range(20)] == orders


def test_the_trace_tells_of_lives_messages_and_timers_in_order_of_time() -> None:
    trace = simulate(play, seed=3).trace
    kinds = {event.kind for event in trace.events}
    assert kinds >= {"started", "crashed", "ended", "message", "timer", "answered", "failed"}
    times = [event.at for event in trace.events]
    assert times == sorted(times)
    lines = str(trace).splitlines()
    assert lines[0] == "0.000000 started root/a life 1"
    assert any(re.search(r" crashed root/[abc] life \d+ ValueError: no \d+$", x) for x in lines)
    assert any("message root/" in line and "Work(number=" in line for line in lines)


@pytest.mark.real
@pytest.mark.every_python
def test_the_trace_does_not_hang_on_the_hash_seed_of_the_process() -> None:
    def trace_of(hash_seed: str) -> str:
        code = (
            "import importlib.util as util, sys\n"
            f"spec = util.spec_from_file_location('it', {str(Path(__file__))!r})\n"
            "it = sys.modules['it'] = util.module_from_spec(spec)\n"
            "spec.loader.exec_module(it)\n"
            "for seed in range(5): print(it.simulate(it.play, seed=seed).trace)\n"
        )
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.stdout

    first, second = trace_of("1"), trace_of("4711")
    assert first.count("\n") > 500
    assert first == second
    here = "".join(f"{simulate(play, seed=seed).trace}\n" for seed in range(5))
    assert here == first


def test_a_run_starts_at_zero_and_jumps_over_waits() -> None:
    async def wait(simulation: Simulation) -> tuple[float, float]:
        started = trio.current_time()
        await trio.sleep(80_000)
        return started, trio.current_time()

    assert simulate(wait, seed=1) == Run(1, (0.0, 80_000.0), simulate(wait, seed=1).trace)


def test_a_failing_run_says_its_seed_and_what_happened_last() -> None:
    async def fail(simulation: Simulation) -> None:
        async with simulation.open_system(tree()) as system:
            await system.ref("root/a").ask(Work(1))
            raise KeyError("of the script")

    with pytest.raises(KeyError) as caught:
        simulate(fail, seed=42)
    (note,) = caught.value.__notes__
    assert note.startswith("to replay: simulate(..., seed=42); the last ")
    assert "message root/a Work(number=1)" in note


def test_the_pauses_before_restarts_come_from_the_seed() -> None:
    async def crash(simulation: Simulation) -> float:
        async with simulation.open_system(tree()) as system:
            for _ in range(3):
                system.ref("root/a").tell(Work(3))
                await trio.sleep(0.001)
            await system.ref("root/a").ask(Work(1), timeout=60)
            return trio.current_time()

    times = [simulate(crash, seed=seed).value for seed in range(5)]
    assert len(set(times)) == 5
    assert [simulate(crash, seed=seed).value for seed in range(5)] == times


def test_a_long_trace_keeps_its_end_and_the_digest_of_all() -> None:
    async def talk(simulation: Simulation, first: str) -> None:
        simulation.note("said", first)
        for number in range(KEPT):
            simulation.note("said", str(number))

    async def one(simulation: Simulation) -> None:
        await talk(simulation, "this")

    async def other(simulation: Simulation) -> None:
        await talk(simulation, "that")

    trace, differing = simulate(one, seed=1).trace, simulate(other, seed=1).trace
    assert (trace.count, len(trace.events)) == (KEPT + 1, KEPT)
    assert trace.events == differing.events
    assert trace != differing


def test_trio_is_left_as_it_was() -> None:
    scheduler = trio._core._run
    before = scheduler._r.getstate(), scheduler._ALLOW_DETERMINISTIC_SCHEDULING
    simulate(play, seed=1)
    with pytest.raises(ZeroDivisionError), seeded_scheduling(2):
        raise ZeroDivisionError
    assert (scheduler._r.getstate(), scheduler._ALLOW_DETERMINISTIC_SCHEDULING) == before


@pytest.mark.parametrize(
    ("hook", "value"),
    [("_r", None), ("_r", random), ("_ALLOW_DETERMINISTIC_SCHEDULING", None)],
)
def test_a_trio_without_the_hooks_is_refused_with_a_clear_sentence(
    monkeypatch: pytest.MonkeyPatch, hook: str, value: object
) -> None:
    monkeypatch.setattr(trio._core._run, hook, value)
    with pytest.raises(MisuseError, match=f"Trio {trio.__version__} cannot run by a seed"):
        simulate(play, seed=1)


def test_a_trio_that_moved_the_hooks_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(trio._core._run, "_r")
    with pytest.raises(MisuseError, match="cannot run by a seed"), seeded_scheduling(1):
        raise AssertionError("never seeded")
