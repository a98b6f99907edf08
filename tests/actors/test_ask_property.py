"""G6 at random: whatever happens around it, an ask ends in exactly one outcome, and in time.

Each example is a script of asks, crashes, stops, pauses and cancellations, simulated by a seed.
Many asks have no time limit: what nobody answers must be ended by the end of a life, or at the
latest by the end of the system, and a hang shows at once. Long runs are also struck by faults.
"""

from __future__ import annotations

import contextlib
import functools
import math
import random
from collections import Counter
from typing import Any

import attrs
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors import (
    Actor,
    ActorError,
    ActorStopped,
    AskError,
    Backoff,
    ChildSpec,
    InjectedCrash,
    MailboxFull,
    MailboxSpec,
    OnRestart,
    Overflow,
    Ref,
    Refusal,
    Reply,
    Request,
    Restart,
    Strategy,
    SupervisorSpec,
    System,
)
from actors.faults import RUNTIME, Crash, Delay, Fault, Plan, armed
from actors.simulate import Simulation, Trace, simulate

WAYS = (
    "answer",
    "answer slowly",
    "answer twice",
    "refuse",
    "crash",
    "forget",
    "hang",
    "defer",
    "defer and crash",
    "defer and refuse",
    "helper crashes",
    "finish",
    "stop self",
    "pass on",
    "ask on",
    "ask on for ever",
)


RARE = {"hang": 2, "stop self": 1, "finish": 5}
"""How often these come in long runs, where others have 20: what ends an actor ends its tests."""


@attrs.frozen
class Do(Request[int]):
    number: int
    ways: tuple[str, ...]


class Erratic(Actor[Do]):
    """Ends each request as its first way says; passes the others on.

    What it asks itself is counted too, in ``outcomes``.
    """

    def __init__(self, outcomes: Counter[str]) -> None:
        self._outcomes = outcomes

    async def setup(self) -> None:
        self._owed: list[tuple[Reply[int], int]] = []

    async def receive(self, message: Do) -> None:
        match message.ways[0] if message.ways else "answer":
            case "answer":
                self.reply(message, message.number)
            case "answer slowly":
                await trio.sleep(0.3)
                self.reply(message, message.number)
            case "answer twice":
                self._answer_owed()
                self.reply(message, message.number)
                self.reply(message, -1)
            case "refuse":
                raise Refusal
            case "crash":
                raise ValueError
            case "hang":
                await trio.sleep_forever()
            case "pass on":
                self.pass_on(message, self._other, self._rest(message))
            case "ask on":
                rest = self._rest(message)
                self.reply(message, await counted_ask(self._other, rest, 1.0, self._outcomes))
            case "ask on for ever":
                rest = self._rest(message)
                self.reply(message, await counted_ask(self._other, rest, math.inf, self._outcomes))
            case way:
                self._end_oddly(way, message)

    def _end_oddly(self, way: str, message: Do) -> None:
        match way:
            case "defer":
                self._owed.append((self.defer(message), message.number))
            case "defer and crash":
                self.defer(message)
                raise ValueError
            case "defer and refuse":
                self.defer(message)
                raise Refusal
            case "helper crashes":
                self.context.start_soon(_crash)
            case "finish":
                self.context.finish()
            case "stop self":
                self.context.ref.stop()

    def _answer_owed(self) -> None:
        for reply, number in self._owed:
            reply.send(number)
        self._owed.clear()

    @property
    def _other(self) -> Ref[Do]:
        return self.context.sibling("b" if self.context.path.endswith("a") else "a", Erratic)

    @staticmethod
    def _rest(message: Do) -> Do:
        return Do(message.number, message.ways[1:])


async def _crash() -> None:
    raise OSError


@attrs.frozen
class Step:
    """One thing that happens ``after_s`` the one before."""

    what: str
    after_s: float
    target: str
    ways: tuple[str, ...]
    timeout_s: float


steps = st.builds(
    Step,
    what=st.sampled_from(["ask"] * 3 + ["cancelled ask", "tell", "send", "stop", "stop_child"]),
    after_s=st.sampled_from([0.0, 0.0, 0.01, 0.5]),
    target=st.sampled_from("ab"),
    ways=st.lists(st.sampled_from(WAYS), max_size=4).map(tuple),
    timeout_s=st.sampled_from([0.0, 1.0, math.inf, math.inf]),
)

children = st.builds(
    lambda restart, overflow, on_restart, capacity, first_s: {
        "restart": restart,
        "backoff": Backoff(first_s=first_s),
        "mailbox": MailboxSpec(capacity=capacity, overflow=overflow, on_restart=on_restart),
        "shutdown_s": 0.2,
    },
    st.sampled_from(Restart),
    st.sampled_from(Overflow),
    st.sampled_from(OnRestart),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.4]),
)


class Script:
    """Runs the steps and counts how each ask ended; the askers outlive the system."""

    def __init__(self, system: System, askers: trio.Nursery) -> None:
        self._system = system
        self._askers = askers
        self._refs = {name: system.ref(f"root/inner/{name}") for name in "ab"}

    async def run(self, script: list[Step], outcomes: Counter[str]) -> None:
        for number, step in enumerate(script):
            await trio.sleep(step.after_s)
            ref, request = self._refs[step.target], Do(number, step.ways)
            match step.what:
                case "ask":
                    self._askers.start_soon(_ask, ref, request, step.timeout_s, outcomes)
                case "cancelled ask":
                    self._askers.start_soon(_cancelled_ask, ref, request, outcomes)
                case "tell":
                    _tell(ref, request)
                case "send":
                    self._askers.start_soon(_send, ref, request)
                case "stop":
                    ref.stop()
                case "stop_child":
                    self._askers.start_soon(self._stop_child, step.target)

    async def _stop_child(self, name: str) -> None:
        try:
            await self._system.supervisor("root/inner").stop_child(name)
        except ActorStopped:
            await trio.lowlevel.checkpoint()


async def counted_ask(ref: Ref[Do], request: Do, timeout_s: float, outcomes: Counter[str]) -> int:
    """Ask, and count that it began and how it ended."""
    started = trio.current_time()
    outcomes["begun"] += 1
    try:
        value = await ref.ask(request, timeout=timeout_s)
    except (AskError, Refusal, InjectedCrash) as error:
        outcomes[type(error).__name__] += 1
        raise
    except trio.Cancelled:
        outcomes["cancelled"] += 1
        raise
    finally:
        assert trio.current_time() <= started + timeout_s + 1e-6
    assert value == request.number
    outcomes["value"] += 1
    return value


async def _ask(ref: Ref[Do], request: Do, timeout_s: float, outcomes: Counter[str]) -> None:
    outcomes["begun by the script"] += 1
    with contextlib.suppress(AskError, Refusal, InjectedCrash):
        await counted_ask(ref, request, timeout_s, outcomes)


async def _cancelled_ask(ref: Ref[Do], request: Do, outcomes: Counter[str]) -> None:
    with trio.move_on_after(0.2):
        await _ask(ref, request, math.inf, outcomes)


def _tell(ref: Ref[Do], request: Do) -> None:
    with contextlib.suppress(MailboxFull, InjectedCrash):
        ref.tell(request)


async def _send(ref: Ref[Do], request: Do) -> None:
    with contextlib.suppress(AskError, InjectedCrash):
        await ref.send(request)


@attrs.frozen
class Case:
    """One example; ``faults`` strike at the points of the runtime."""

    script: list[Step]
    options: dict[str, Any]
    strategy: Strategy = Strategy.ONE_FOR_ONE
    faults: dict[tuple[str, int], Fault] = attrs.field(factory=dict)

    def spec(self, outcomes: Counter[str]) -> SupervisorSpec:
        """Two actors that count what they ask."""
        pair = tuple(
            ChildSpec.of(name, Erratic, outcomes=outcomes).with_options(**self.options)
            for name in "ab"
        )
        inner = SupervisorSpec(name="inner", children=pair, intensity=2, strategy=self.strategy)
        return SupervisorSpec(name="root", children=(inner,), intensity=50)


async def play(case: Case, outcomes: Counter[str], simulation: Simulation) -> None:
    with trio.fail_after(1000):
        async with trio.open_nursery() as askers:
            try:
                async with simulation.open_system(case.spec(outcomes)) as system:
                    with armed(Plan(case.faults), RUNTIME):
                        await Script(system, askers).run(case.script, outcomes)
            except ActorError:  # it was struck so often, or at such a place, that it gave up
                assert case.faults
                outcomes["gave up"] += 1


def outcomes_of(case: Case, seed: int) -> tuple[Counter[str], Trace]:
    outcomes: Counter[str] = Counter()
    run = simulate(functools.partial(play, case, outcomes), seed=seed)
    begun, by_script = outcomes.pop("begun", 0), outcomes.pop("begun by the script", 0)
    gave_up = outcomes["gave up"]
    assert outcomes.total() - gave_up == begun
    asks = sum(step.what in ("ask", "cancelled ask") for step in case.script)
    assert gave_up or by_script == asks
    return outcomes, run.trace


@given(st.lists(steps, max_size=25), children, st.sampled_from(Strategy), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_an_ask_ends_in_exactly_one_outcome_and_never_hangs(
    script: list[Step], options: dict[str, Any], strategy: Strategy, seed: int
) -> None:
    outcomes_of(Case(script, options, strategy), seed)


def random_case(seed: int, *, struck: bool = False) -> Case:
    chance = random.Random(seed)
    weights = [RARE.get(way, 20) for way in WAYS]
    stops = chance.choice([["tell"], ["stop", "stop_child"]])
    script = [
        Step(
            chance.choice([*["ask", "cancelled ask", "tell", "send"] * 20, *stops]),
            chance.choice([0.0, 0.01, 0.3, 2.0]),
            chance.choice("ab"),
            tuple(chance.choices(WAYS, weights, k=chance.randint(0, 4))),
            chance.choice([1.0, math.inf]),
        )
        for _ in range(150)
    ]
    options = {
        "restart": chance.choice([Restart.PERMANENT, Restart.TRANSIENT]),
        "mailbox": MailboxSpec(
            capacity=chance.choice([1, 3, 100]),
            overflow=chance.choice(list(Overflow)),
            on_restart=chance.choice(list(OnRestart)),
        ),
    }
    strategy = chance.choice(list(Strategy))
    return Case(script, options, strategy, random_faults(chance) if struck else {})


def random_faults(chance: random.Random) -> dict[tuple[str, int], Fault]:
    faults: dict[tuple[str, int], Fault] = {}
    for _ in range(12):
        point = chance.choice(list(RUNTIME))
        kinds: list[Fault] = [Crash(), *[Delay(chance.choice([0.1, 3.0]))] * point.may_wait]
        faults[point.name, chance.randint(1, 40)] = chance.choice(kinds)
    return faults


def test_long_runs_meet_every_outcome_and_end_every_ask_once() -> None:
    met = sum((outcomes_of(random_case(seed), seed)[0] for seed in range(60)), Counter[str]())
    assert set(met) >= {
        "value",
        "Refusal",
        "ActorCrashed",
        "ActorStopped",
        "AskCycle",
        "AskDeadline",
        "MailboxFull",
        "NoReply",
        "cancelled",
    }


@pytest.mark.parametrize("tens", range(10))
def test_long_runs_that_are_struck_by_faults_end_every_ask_once(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        outcomes_of(random_case(seed, struck=True), seed)


def test_a_long_run_that_is_struck_can_be_replayed_by_its_seed() -> None:
    case = random_case(5, struck=True)
    assert outcomes_of(case, 5) == outcomes_of(case, 5)
    assert outcomes_of(case, 5) != outcomes_of(case, 6)
