"""Fault points: the table, plans, and every fault at every pass of every point of the runtime.

The scenario is run once to count the passes, then once for each fault at each pass. Whatever
strikes wherever, every ask ends in exactly one outcome, and nothing is left behind.
"""

from __future__ import annotations

import ast
import errno
import math
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

import actors
from actors import (
    Actor,
    ActorError,
    AskError,
    Backoff,
    ChildSpec,
    InjectedCrash,
    LifeCycleEvent,
    MailboxSpec,
    MisuseError,
    Overflow,
    Refusal,
    Request,
    Restart,
    RestartsExhausted,
    Strategy,
    SupervisorFailed,
    SupervisorSpec,
    System,
    faults,
    open_system,
)
from actors.faults import RUNTIME, Block, Crash, Delay, Fault, FaultTable, Plan, Raise, armed

TABLE = [
    "mailbox.deliver.before",
    "mailbox.deliver.after",
    "actor.setup.before",
    "actor.setup.after",
    "actor.receive.before",
    "actor.receive.after",
    "actor.teardown.before",
    "actor.teardown.after",
    "supervisor.start.before",
    "supervisor.start.after",
    "supervisor.restart.before",
    "supervisor.restart.after",
    "supervisor.stop.before",
    "supervisor.stop.after",
]
"""Every point of the runtime."""


@attrs.frozen
class Echo(Request[int]):
    number: int


@attrs.frozen
class CrashNow:
    pass


class Echoer(Actor[Echo | CrashNow]):
    async def receive(self, message: Echo | CrashNow) -> None:
        match message:
            case Echo(number):
                self.reply(message, number)
            case CrashNow():
                raise ValueError("made to order")


def echoer(name: str, overflow: Overflow = Overflow.REJECT) -> ChildSpec:
    return ChildSpec.of(name, Echoer).with_options(
        backoff=Backoff(first_s=0.1), mailbox=MailboxSpec(capacity=4, overflow=overflow)
    )


TREE = SupervisorSpec(
    name="root",
    children=(
        SupervisorSpec(
            name="pair",
            children=(echoer("a"), echoer("b", Overflow.WAIT)),
            strategy=Strategy.ONE_FOR_ALL,
        ),
        SupervisorSpec(name="pool", dynamic=True),
    ),
    intensity=5,
)


class Outcomes:
    """How the asks of one run ended."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self.asked = 0

    async def ask(self, system: System, path: str) -> None:
        self.asked += 1
        try:
            value = await system.ref(path).ask(Echo(self.asked), timeout=100.0)
            assert isinstance(value, int)
        except (AskError, Refusal, InjectedCrash, OSError) as error:
            self.counted[type(error).__name__] += 1
        else:
            self.counted["value"] += 1


async def use(system: System, outcomes: Outcomes) -> None:
    """Pass every point; what is struck on the way is left aside."""
    async with trio.open_nursery() as nursery:
        for path in ("root/pair/a", "root/pair/b"):
            nursery.start_soon(outcomes.ask, system, path)
    await _try(_crash, system)
    await outcomes.ask(system, "root/pair/b")
    await _try(_start_child, system)
    await outcomes.ask(system, "root/pool/c")
    await _try(system.supervisor("root/pool").stop_child, "c")


async def _try(work: object, *arguments: object) -> None:
    assert callable(work)
    try:
        await work(*arguments)
    except (ActorError, OSError):
        await trio.lowlevel.checkpoint()


async def _crash(system: System) -> None:
    await system.ref("root/pair/b").send(CrashNow())
    await trio.sleep(1)


async def _start_child(system: System) -> None:
    await system.supervisor("root/pool").start_child(echoer("c"))


@attrs.frozen
class Result:
    """What one run came to; ``failure`` is what ended the system, if something did."""

    outcomes: Outcomes
    failure: ActorError | None
    events: list[LifeCycleEvent]
    hits: Counter[str]


async def scenario(plan: Plan) -> Result:
    outcomes, events = Outcomes(), list[LifeCycleEvent]()
    failure = None
    with armed(plan, RUNTIME), trio.fail_after(1000):
        try:
            async with open_system(TREE, observer=events.append) as system:
                await use(system, outcomes)
        except ActorError as error:
            failure = error
    assert trio.lowlevel.current_statistics().tasks_living <= 3  # nothing of it lives on
    return Result(outcomes, failure, events, plan.hits)


def run(plan: Plan) -> Result:
    clock = trio.testing.MockClock(autojump_threshold=0)
    return trio.run(scenario, plan, clock=clock)


# The table.


def test_the_table_is_the_one_that_is_tested() -> None:
    assert RUNTIME.names == TABLE


def test_every_point_of_the_table_is_passed_when_nothing_strikes() -> None:
    result = run(Plan())
    assert [name for name in TABLE if result.hits[name] == 0] == []
    assert {name.partition("[")[0] for name in result.hits} == set(TABLE)
    assert result.failure is None
    assert result.outcomes.counted == {"value": 4}


def test_every_point_in_the_code_stands_in_the_table() -> None:
    """Each constant is passed by a file other than the one that names it."""
    constants = {name for name, value in vars(faults).items() if _is_point(value)}
    assert len(constants) == len(TABLE)
    assert {name for name in constants if not _users(name)} == set()


def _is_point(value: object) -> bool:
    return isinstance(value, faults.FaultPoint)


def _users(constant: str) -> list[str]:
    return [
        path.name
        for path in Path(actors.__file__).parent.glob("*.py")
        if path.name != "faults.py" and constant in _passed(ast.parse(path.read_text()))
    ]


def _passed(tree: ast.Module) -> set[str]:
    """The names that ``hit`` or ``reach`` is called on."""
    calls = [
        node.func.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("hit", "reach")
    ]
    return {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in calls
        if isinstance(node, ast.Attribute | ast.Name)
    }


# Every fault at every pass of every point.


def strikes(name: str) -> list[tuple[int, Fault]]:
    passes = run(Plan()).hits[name]
    kinds: list[Fault] = [Crash(), Raise(lambda: OSError(errno.ENOSPC, "no space"))]
    if next(point for point in RUNTIME if point.name == name).may_wait:
        kinds += [Delay(0.5), Delay(50.0)]
    return [(occurrence, kind) for occurrence in range(1, passes + 1) for kind in kinds]


@pytest.mark.parametrize("name", TABLE)
def test_whatever_strikes_at_a_point_every_ask_ends_and_nothing_is_left(name: str) -> None:
    for occurrence, fault in strikes(name):
        result = run(Plan({(name, occurrence): fault}))
        counted, case = result.outcomes.counted, (name, occurrence, fault)
        assert result.hits[name] >= occurrence, case
        assert counted.total() == result.outcomes.asked, case
        thrown_at_the_asker = counted["InjectedCrash"] + counted["OSError"]
        assert thrown_at_the_asker <= name.startswith("mailbox.deliver"), case


@pytest.mark.parametrize("name", [name for name in TABLE if name.startswith("supervisor")])
def test_a_supervisor_that_is_struck_crashes_and_is_restarted(name: str) -> None:
    first_in_pair = {"start": 2, "restart": 1, "stop": 1}[name.split(".")[1]]
    result = run(Plan({(name, first_in_pair): Crash()}))
    crashed = {event.path: event.error for event in result.events if event.kind == "crashed"}
    if result.failure is None:
        assert isinstance(crashed["root/pair"], SupervisorFailed)
    else:  # while it first came up: that is a failed start
        assert "itself failed: InjectedCrash" in str(result.failure)


async def test_the_root_that_is_struck_ends_the_system() -> None:
    plan = Plan({("supervisor.start.before", 1): Crash()})
    with armed(plan, RUNTIME), pytest.raises(SupervisorFailed, match="root itself failed"):
        async with open_system(TREE):
            raise AssertionError("never up")


async def test_a_set_up_that_is_struck_again_and_again_escalates(
    autojump_clock: trio.testing.MockClock,
) -> None:
    lone = SupervisorSpec(name="root", children=(echoer("a"),), intensity=2)
    plan = Plan({("actor.setup.before", occurrence): Crash() for occurrence in (2, 3, 4)})
    with armed(plan, RUNTIME), pytest.raises(RestartsExhausted) as caught:  # noqa: PT012
        async with open_system(lone) as system:
            system.ref("root/a").tell(CrashNow())
            await trio.sleep_forever()
    assert isinstance(caught.value.__cause__, InjectedCrash)


async def test_a_message_struck_before_its_delivery_is_not_there_and_after_it_is() -> None:
    lone = SupervisorSpec(name="root", children=(echoer("a"),))
    async with open_system(lone) as system:
        a = system.ref("root/a")
        for side, waiting in (("before", 0), ("after", 1)):
            plan = Plan({(f"mailbox.deliver.{side}", 1): Crash()})
            with armed(plan, RUNTIME), pytest.raises(InjectedCrash, match=f"{side}, pass 1"):
                a.tell(CrashNow())
            assert system.tree().children[0].mailbox == waiting


async def test_a_delay_holds_a_handler_on_trios_clock(
    autojump_clock: trio.testing.MockClock,
) -> None:
    lone = SupervisorSpec(name="root", children=(echoer("a"),))
    async with open_system(lone) as system:
        started = trio.current_time()
        with armed(Plan({("actor.receive.before", 1): Delay(7.0)}), RUNTIME):
            assert await system.ref("root/a").ask(Echo(3), timeout=math.inf) == 3
        assert trio.current_time() - started == pytest.approx(7.0)


async def test_a_teardown_that_is_held_is_cut_after_its_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    temporary = attrs.evolve(echoer("a"), restart=Restart.TEMPORARY)
    events: list[LifeCycleEvent] = []
    lone = SupervisorSpec(name="root", children=(temporary,))
    async with open_system(lone, observer=events.append) as system:
        with armed(Plan({("actor.teardown.before", 1): Delay(math.inf)}), RUNTIME):
            system.ref("root/a").stop()
            await trio.sleep(5)
    assert [event.kind for event in events] == ["started", "teardown_cut"]


# Plans and tables.


def test_a_plan_counts_every_pass_and_strikes_at_the_one_it_names() -> None:
    table = FaultTable()
    point = table.point("disk.write.before")
    plan = Plan({("disk.write.before", 2): Raise(lambda: OSError("torn"))})
    with armed(plan, table) as same:
        assert same is plan
        point.hit()
        with pytest.raises(OSError, match="torn"):
            point.hit()
        point.hit()
    point.hit()
    assert plan.hits == {"disk.write.before": 3}


def test_a_plan_may_arm_the_points_of_several_packages() -> None:
    table = FaultTable()
    table.point("disk.write.before")
    with armed(Plan({("disk.write.before", 1): Crash()}), RUNTIME, table):
        assert faults.SETUP_BEFORE.plan is not None
    assert faults.SETUP_BEFORE.plan is None


@pytest.mark.parametrize(
    ("name", "occurrence", "fault", "why"),
    [
        ("disk.write.before", 1, Crash(), "there is no fault point 'disk.write.before'"),
        ("actor.setup.before[Echoer", 1, Crash(), r"there is no fault point 'actor.setup.before\["),
        ("actor.setup.before[]", 1, Crash(), "there is no fault point"),
        ("actor.setup.before", 0, Crash(), "the first pass is 1"),
        ("mailbox.deliver.before", 1, Delay(1.0), "cannot wait"),
    ],
)
def test_a_plan_that_cannot_strike_is_refused(
    name: str, occurrence: int, fault: Fault, why: str
) -> None:
    with pytest.raises(MisuseError, match=why), armed(Plan({(name, occurrence): fault}), RUNTIME):
        raise AssertionError("never armed")
    assert faults.SETUP_BEFORE.plan is None


def test_only_one_plan_is_armed_at_a_time() -> None:
    with armed(Plan(), RUNTIME):
        with pytest.raises(MisuseError, match="another plan is armed"), armed(Plan(), RUNTIME):
            raise AssertionError("never armed")
        assert faults.SETUP_BEFORE.plan is not None


@pytest.mark.parametrize("name", ["", "disk.write", "disk.write.during", "Disk.write.before"])
def test_a_point_has_a_name_of_unit_step_and_side(name: str) -> None:
    with pytest.raises(MisuseError, match="is no fault point"):
        FaultTable().point(name)


def test_a_table_has_each_name_once() -> None:
    table = FaultTable()
    table.point("disk.write.before")
    with pytest.raises(MisuseError, match="already"):
        table.point("disk.write.before")


def test_a_fault_at_one_subject_leaves_the_others_alone() -> None:
    table = FaultTable()
    point = table.point("file.write.before")
    plan = Plan({("file.write.before[b]", 2): Crash()})
    with armed(plan, table):
        point.hit("b")
        point.hit("a")
        point.hit("a")
        with pytest.raises(InjectedCrash, match=r"file.write.before\[b\], pass 2"):
            point.hit("b")
    assert plan.hits == {
        "file.write.before": 4,
        "file.write.before[a]": 2,
        "file.write.before[b]": 2,
    }


async def test_a_block_holds_up_every_task_not_only_the_one_that_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entries: list[str] = []
    monkeypatch.setattr(time, "sleep", lambda seconds: entries.append(f"blocked {seconds}"))
    table = FaultTable()
    point = table.point("step.end.after")
    async with trio.open_nursery() as nursery:
        with armed(Plan({("step.end.after", 1): Block(3.0)}), table):
            nursery.start_soon(_note, entries, "another task")
            await point.reach()
            entries.append("passed")
    assert entries == ["blocked 3.0", "passed", "another task"]


async def _note(entries: list[str], entry: str) -> None:
    entries.append(entry)


def test_a_kill_ends_the_process_at_once() -> None:
    program = """
from actors.faults import FaultTable, Kill, Plan, armed
table = FaultTable()
point = table.point("step.end.after")
with armed(Plan({("step.end.after", 2): Kill()}), table):
    point.hit()
    print("once", flush=True)
    point.hit()
    print("twice", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"once\n")
