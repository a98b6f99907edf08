"""Supervision: order, restarts, budgets, escalation, children that come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import (
    Actor,
    ActorStopped,
    Backoff,
    ChildSpec,
    LifeEvent,
    MisuseError,
    Node,
    Ref,
    Request,
    Restart,
    RestartsExhausted,
    StartFailed,
    SupervisorSpec,
    System,
    count,
    open_system,
)

NO_PAUSE = Backoff(first_s=0, step_s=0)
PAUSE = Backoff(first_s=10.0)


@attrs.frozen
class Do:
    how: str


@attrs.frozen
class Life(Request[int]):
    pass


class Log:
    """What happened, in order; ``failing`` names whose set-up raises now."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self.failing: set[str] = set()
        self.slow: set[str] = set()

    def of(self, what: str) -> list[str]:
        """The names that ``what`` was logged for."""
        return [entry.split()[1] for entry in self.entries if entry.startswith(what + " ")]


class Child(Actor[Do | Life]):
    def __init__(self, log: Log, linger_s: float = 0.0) -> None:
        self._log = log
        self._linger_s = linger_s

    @property
    def _name(self) -> str:
        return self.context.path.rsplit("/", 1)[1]

    async def setup(self) -> None:
        if self._name in self._log.slow:
            await trio.sleep(0.5)
        if self._name in self._log.failing:
            raise OSError(f"no {self._name}")
        self._log.entries.append(f"up {self._name}")

    async def teardown(self) -> None:
        await trio.sleep(self._linger_s)
        self._log.entries.append(f"down {self._name}")

    async def receive(self, message: Do | Life) -> None:
        match message:
            case Life():
                self.reply(message, self.context.incarnation)
            case Do(how="crash"):
                raise ValueError("made to order")
            case Do(how="finish"):
                self.context.finish()
            case Do(how="hang"):
                await trio.sleep_forever()


def child(log: Log, name: str, **options: Any) -> ChildSpec:
    options.setdefault("backoff", NO_PAUSE)
    linger_s = options.pop("linger_s", 0.0)
    return ChildSpec(
        name=name, actor=Child, arguments={"log": log, "linger_s": linger_s}, **options
    )


def group(name: str, *children: ChildSpec | SupervisorSpec, **options: Any) -> SupervisorSpec:
    return SupervisorSpec(name=name, children=children, backoff=NO_PAUSE, **options)


def states(node: Node) -> dict[str, str]:
    found = {node.path: node.state}
    for each in node.children:
        found |= states(each)
    return found


async def idle() -> None:
    await trio.testing.wait_all_tasks_blocked()


# Order.


async def test_children_start_in_order_and_stop_in_reverse(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    log.slow = {"a", "c"}
    inner = group("inner", child(log, "c"), child(log, "d", linger_s=0.3))
    async with open_system(group("root", child(log, "a"), child(log, "b"), inner, child(log, "e"))):
        assert log.of("up") == list("abcde")
    assert log.of("down") == list("edcba")


async def test_a_failed_first_start_stops_what_was_started_in_reverse() -> None:
    log = Log()
    log.failing = {"c"}
    spec = group("root", *(child(log, name) for name in "abcde"))
    with pytest.raises(StartFailed, match="root/c did not start: OSError: no c") as caught:
        async with open_system(spec):
            raise AssertionError("never up")
    assert isinstance(caught.value.__cause__, OSError)
    assert log.of("up") == ["a", "b"]
    assert log.of("down") == ["c", "b", "a"]


async def test_a_failed_first_start_deep_in_the_tree_fails_the_whole_start() -> None:
    log = Log()
    log.failing = {"c"}
    inner = group("inner", child(log, "b"), child(log, "c"), child(log, "d"))
    with pytest.raises(StartFailed, match=r"root/inner did not start: .*root/inner/c") as caught:
        async with open_system(group("root", child(log, "a"), inner, child(log, "e"))):
            raise AssertionError("never up")
    cause = caught.value.__cause__
    assert isinstance(cause, StartFailed)
    assert isinstance(cause.__cause__, OSError)
    assert log.of("down") == ["c", "b", "a"]


async def test_each_child_has_its_own_time_to_stop(autojump_clock: trio.testing.MockClock) -> None:
    log = Log()
    spec = group("root", child(log, "a", shutdown_s=1.0), child(log, "b", shutdown_s=2.0))
    async with open_system(spec) as system:
        for name in "ab":
            system.ref(f"root/{name}").tell(Do("hang"))
        await idle()
        started = trio.current_time()
    assert trio.current_time() - started == pytest.approx(3.0)


async def test_the_time_of_a_supervisor_bounds_the_stop_of_all_its_children(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    spec = group("root", *(child(log, name, shutdown_s=100.0) for name in "abc"), shutdown_s=3.0)
    async with open_system(spec) as system:
        for name in "abc":
            system.ref(f"root/{name}").tell(Do("hang"))
        await idle()
        started = trio.current_time()
    assert trio.current_time() - started == pytest.approx(3.0)
    assert sorted(log.of("down")) == ["a", "b", "c"]


async def test_the_children_of_a_dynamic_supervisor_stop_all_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        for number in range(20):
            await system.supervisor("root").start_child(child(log, f"c{number}", linger_s=0.5))
        started = trio.current_time()
    assert trio.current_time() - started == pytest.approx(0.5)
    assert len(log.of("down")) == 20


# Restarts.


@pytest.mark.parametrize(
    ("restart", "how", "comes_back"),
    [
        (Restart.PERMANENT, "crash", True),
        (Restart.PERMANENT, "finish", True),
        (Restart.TRANSIENT, "crash", True),
        (Restart.TRANSIENT, "finish", False),
        (Restart.TEMPORARY, "crash", False),
        (Restart.TEMPORARY, "finish", False),
    ],
)
async def test_the_restart_type_is_carried_out(
    restart: Restart, how: str, comes_back: bool
) -> None:
    log = Log()
    async with open_system(
        group("root", child(log, "a", restart=restart), child(log, "b"))
    ) as system:
        ref = system.ref("root/a")
        ref.tell(Do(how))
        await idle()
        assert ref.is_stopped is not comes_back
        assert log.of("up") == (["a", "b", "a"] if comes_back else ["a", "b"])
        if comes_back:
            assert await ref.ask(Life()) == 2
        else:
            with pytest.raises(ActorStopped):
                await ref.ask(Life())
        assert await system.ref("root/b").ask(Life()) == 1


async def test_the_last_waiting_request_is_failed_when_a_transient_child_finishes() -> None:
    log = Log()
    async with open_system(group("root", child(log, "a", restart=Restart.TRANSIENT))) as system:
        ref = system.ref("root/a")
        ref.tell(Do("finish"))
        with pytest.raises(ActorStopped):
            await ref.ask(Life())


async def test_restarts_within_the_budget_go_on_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    async with open_system(group("root", child(log, "a"), intensity=2, period_s=5.0)) as system:
        for _ in range(20):
            system.ref("root/a").tell(Do("crash"))
            await trio.sleep(2.6)
        assert await system.ref("root/a").ask(Life()) == 21


async def test_more_restarts_than_the_budget_end_the_system_with_the_cause() -> None:
    log = Log()
    with pytest.raises(RestartsExhausted, match=r"root gave up: 3 restarts .* root/a") as caught:  # noqa: PT012
        async with open_system(
            group("root", child(log, "a"), child(log, "b"), intensity=2)
        ) as system:
            for _ in range(3):
                system.ref("root/a").tell(Do("crash"))
            await trio.sleep_forever()
    assert isinstance(caught.value.__cause__, ValueError)
    assert log.of("up") == ["a", "b", "a", "a"]
    assert log.of("down")[-1] == "b"


async def test_a_system_that_gives_up_keeps_the_error_of_its_body_as_context() -> None:
    with pytest.raises(RestartsExhausted) as caught:  # noqa: PT012
        async with open_system(group("root", child(Log(), "a"), intensity=0)) as system:
            try:
                system.ref("root/a").tell(Do("crash"))
                await trio.sleep_forever()
            finally:
                raise KeyError("of the body")
    assert isinstance(caught.value.__cause__, ValueError)
    assert isinstance(caught.value.__context__, KeyError)


async def test_escalation_goes_up_through_two_levels() -> None:
    log = Log()
    inner = group("inner", child(log, "a"), child(log, "b"), intensity=1)
    middle = group("middle", inner, child(log, "c"), intensity=1)
    async with open_system(group("root", middle, child(log, "d"), intensity=1)) as system:
        ref = system.ref("root/middle/inner/a")
        lives = []
        for _ in range(4):
            ref.tell(Do("crash"))
            lives.append(await ref.ask(Life()))
        assert lives == [2, 3, 4, 5]
        await idle()
        restarts = {path: system_node.restarts for path, system_node in nodes(system).items()}
    assert restarts == {
        "root": 0,
        "root/middle": 1,
        "root/middle/inner": 2,
        "root/middle/inner/a": 4,
        "root/middle/inner/b": 2,
        "root/middle/c": 1,
        "root/d": 0,
    }


def nodes(system: System) -> dict[str, Node]:
    found: dict[str, Node] = {}
    waiting = [system.tree()]
    while waiting:
        node = waiting.pop(0)
        found[node.path] = node
        waiting.extend(node.children)
    return found


async def test_an_address_below_a_restarted_supervisor_stays_valid() -> None:
    log = Log()
    inner = group("inner", child(log, "a"), child(log, "b"), intensity=0)
    async with open_system(group("root", inner)) as system:
        a, b = system.ref("root/inner/a"), system.ref("root/inner/b")
        waiting = b.send_request(Life())
        a.tell(Do("crash"))
        assert await a.ask(Life()) == 2
        assert await b.ask(Life()) == 2
        assert await waiting.wait() in (1, 2)
        assert not a.is_stopped


async def test_a_failing_restart_is_tried_again_until_the_budget_is_spent(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    pauses = Backoff(first_s=1.0, step_s=2.0, factor=1.0, jitter=0)
    spec = group("root", child(log, "a", backoff=pauses), intensity=3, period_s=100.0)
    events: list[LifeEvent] = []
    with pytest.raises(RestartsExhausted, match="OSError: no a"):  # noqa: PT012
        async with open_system(spec, observer=events.append) as system:
            started = trio.current_time()
            log.failing = {"a"}
            system.ref("root/a").tell(Do("crash"))
            await trio.sleep_forever()
    assert trio.current_time() - started == pytest.approx(1.0 + 2.0 + 2.0)
    crashes = [type(event.error) for event in events if event.kind == "crashed"]
    assert crashes == [ValueError, OSError, OSError, OSError, RestartsExhausted]


async def test_a_restart_that_succeeds_after_failing_answers_who_waited(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    async with open_system(group("root", child(log, "a", backoff=Backoff(first_s=1.0)))) as system:
        ref = system.ref("root/a")
        log.failing = {"a"}
        ref.tell(Do("crash"))
        reply = ref.send_request(Life())
        await trio.sleep(1.01)
        log.failing = set()
        assert await reply.wait() == 3


# Dynamic children.


async def test_a_dynamic_child_is_started_named_found_and_stopped() -> None:
    log = Log()
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        supervisor = system.supervisor("root")
        ref = await supervisor.start_child(child(log, "a"))
        await supervisor.start_child(child(log, "b"))
        assert supervisor.names == ["a", "b"]
        assert ref == system.ref("root/a")
        await supervisor.stop_child("a")
        assert (supervisor.names, ref.is_stopped, log.of("down")) == (["b"], True, ["a"])
        with pytest.raises(ActorStopped, match="nothing at root/a"):
            system.ref("root/a")
        again = await supervisor.start_child(child(log, "a"))
        assert await again.ask(Life()) == 1


async def test_a_whole_subtree_can_be_a_dynamic_child() -> None:
    log = Log()
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        supervisor = system.supervisor("root")
        await supervisor.start_child(group("sub", child(log, "a"), child(log, "b")))
        assert count(system.tree()) == 4
        leaf = system.ref("root/sub/a")
        await supervisor.stop_child("sub")
        assert log.of("down") == ["b", "a"]
        assert leaf.is_stopped
        assert count(system.tree()) == 1


async def test_a_name_is_free_only_when_its_child_is_gone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        supervisor = system.supervisor("root")
        await supervisor.start_child(child(log, "a", linger_s=0.5))
        with pytest.raises(MisuseError, match="already has a child 'a'"):
            await supervisor.start_child(child(log, "a"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(supervisor.stop_child, "a")
            await idle()
            with pytest.raises(MisuseError):
                await supervisor.start_child(child(log, "a"))
        await supervisor.start_child(child(log, "a"))


async def test_a_dynamic_child_that_does_not_start_is_forgotten() -> None:
    log = Log()
    log.failing = {"a"}
    async with open_system(SupervisorSpec(name="root", dynamic=True, intensity=0)) as system:
        supervisor = system.supervisor("root")
        with pytest.raises(StartFailed, match="root/a did not start: OSError: no a") as caught:
            await supervisor.start_child(child(log, "a"))
        assert isinstance(caught.value.__cause__, OSError)
        assert supervisor.names == []
        log.failing = set()
        await supervisor.start_child(child(log, "a"))


async def test_a_fixed_supervisor_takes_no_children() -> None:
    async with open_system(group("root", child(Log(), "a"))) as system:
        with pytest.raises(MisuseError, match="not dynamic"):
            await system.supervisor("root").start_child(child(Log(), "b"))
        with pytest.raises(MisuseError, match="root/a is an actor"):
            system.supervisor("root/a")


async def test_stopping_nobody_is_no_error() -> None:
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        await system.supervisor("root").stop_child("nobody")


async def test_two_stops_of_one_child_both_end(autojump_clock: trio.testing.MockClock) -> None:
    log = Log()
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        supervisor = system.supervisor("root")
        await supervisor.start_child(child(log, "a", linger_s=0.5))
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(supervisor.stop_child, "a")
        assert log.of("down") == ["a"]


async def test_a_child_starts_all_the_same_when_its_caller_is_cancelled(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    log.slow = {"a"}
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        supervisor = system.supervisor("root")
        with trio.move_on_after(0.1) as scope:
            await supervisor.start_child(child(log, "a"))
        assert scope.cancelled_caught
        await trio.sleep(1)
        assert await system.ref("root/a").ask(Life()) == 1
    assert log.of("down") == ["a"]


async def test_a_start_that_is_pending_when_the_supervisor_stops_ends_with_an_error(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    log.slow = {"a"}
    spec = SupervisorSpec(name="root", children=(SupervisorSpec(name="pool", dynamic=True),))
    async with open_system(spec) as system, trio.open_nursery() as nursery:
        pool = system.supervisor("root/pool")
        outcomes: list[str] = []

        async def start(name: str) -> None:
            with pytest.raises(ActorStopped, match="root/pool is stopping"):
                await pool.start_child(child(log, name))
            outcomes.append(name)

        nursery.start_soon(start, "a")
        await idle()
        nursery.start_soon(system.supervisor("root").stop_child, "pool")
        await idle()
        nursery.start_soon(start, "b")
        await trio.sleep(1)
        assert sorted(outcomes) == ["a", "b"]
        with pytest.raises(ActorStopped, match="root/pool is not running"):
            await pool.start_child(child(log, "c"))
    assert log.of("up") == log.of("down") == ["a"]


async def test_a_stop_of_a_child_that_is_asked_for_while_its_supervisor_stops_waits_for_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    spec = SupervisorSpec(name="root", children=(SupervisorSpec(name="pool", dynamic=True),))
    async with open_system(spec) as system, trio.open_nursery() as nursery:
        pool = system.supervisor("root/pool")
        await pool.start_child(child(log, "a", linger_s=0.5))
        nursery.start_soon(system.supervisor("root").stop_child, "pool")
        await idle()
        await pool.stop_child("a")
        assert log.of("down") == ["a"]


async def test_a_dynamic_supervisor_that_gives_up_comes_back_empty() -> None:
    log = Log()
    pool = SupervisorSpec(name="pool", dynamic=True, intensity=0, backoff=NO_PAUSE)
    async with open_system(SupervisorSpec(name="root", children=(pool,))) as system:
        handle = system.supervisor("root/pool")
        a = await handle.start_child(child(log, "a"))
        b = await handle.start_child(child(log, "b"))
        a.tell(Do("crash"))
        await idle()
        assert a.is_stopped
        assert b.is_stopped
        assert handle.names == []
        again = await handle.start_child(child(log, "a"))
        assert await again.ask(Life()) == 1


# Stopping at bad moments.


StopChild = Callable[[System, Ref[Any]], None]


@pytest.fixture(params=["Ref.stop", "stop_child"])
def stop(request: pytest.FixtureRequest, nursery: trio.Nursery) -> StopChild:
    if request.param == "Ref.stop":
        return lambda system, ref: ref.stop()

    def stop_child(system: System, ref: Ref[Any]) -> None:
        parent, name = ref.path.rsplit("/", 1)
        nursery.start_soon(system.supervisor(parent).stop_child, name)

    return stop_child


async def test_a_stop_is_for_good_whatever_the_restart_type(stop: StopChild) -> None:
    log = Log()
    async with open_system(group("root", child(log, "a"))) as system:
        ref = system.ref("root/a")
        stop(system, ref)
        await idle()
        assert ref.is_stopped
        assert log.entries == ["up a", "down a"]


async def test_a_stop_during_the_pause_before_a_restart_is_heard_at_once(
    stop: StopChild, autojump_clock: trio.testing.MockClock
) -> None:
    log = Log()
    async with open_system(group("root", child(log, "a", backoff=PAUSE))) as system:
        ref = system.ref("root/a")
        ref.tell(Do("crash"))
        await idle()
        assert states(system.tree())["root/a"] == "down"
        reply = ref.send_request(Life())
        stop(system, ref)
        with pytest.raises(ActorStopped):
            await reply.wait()
        await trio.sleep(60)
    assert log.of("up") == ["a"]


async def test_a_stop_wins_over_a_crash_of_the_same_instant(stop: StopChild) -> None:
    log = Log()
    async with open_system(group("root", child(log, "a"))) as system:
        ref = system.ref("root/a")
        ref.tell(Do("crash"))
        ref.stop()
        stop(system, ref)
        await idle()
        assert ref.is_stopped


async def test_a_stop_of_a_hanging_child_is_bounded(
    stop: StopChild, autojump_clock: trio.testing.MockClock
) -> None:
    log = Log()
    async with open_system(group("root", child(log, "a", shutdown_s=2.0))) as system:
        ref = system.ref("root/a")
        ref.tell(Do("hang"))
        await idle()
        stop(system, ref)
        await trio.sleep(2.1)
        assert ref.is_stopped


async def test_a_child_stopped_before_its_turn_is_left_out_of_the_start(
    stop: StopChild, autojump_clock: trio.testing.MockClock
) -> None:
    log = Log()
    log.slow = {"a", "b", "c"}
    spec = group("inner", *(child(log, name) for name in "abc"))
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(system.supervisor("root").start_child, spec)
            await trio.sleep(0.1)
            stop(system, system.ref("root/inner/b"))
        assert log.of("up") == ["a", "c"]
        assert states(system.tree()) == {
            "root": "running",
            "root/inner": "running",
            "root/inner/a": "running",
            "root/inner/c": "running",
        }


async def test_a_child_stopped_in_its_turn_does_not_fail_the_start(
    stop: StopChild, autojump_clock: trio.testing.MockClock
) -> None:
    log = Log()
    log.slow = {"a", "b"}
    spec = group("inner", child(log, "a", shutdown_s=0.1), child(log, "b"))
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(system.supervisor("root").start_child, spec)
            await trio.sleep(0.1)
            stop(system, system.ref("root/inner/a"))
        assert log.of("up") == ["b"]
        assert system.supervisor("root/inner").names == ["b"]


async def test_a_supervisor_stopped_during_its_start_stops_what_it_has(
    stop: StopChild, autojump_clock: trio.testing.MockClock
) -> None:
    log = Log()
    log.slow = {"b"}
    spec = group("inner", *(child(log, name) for name in "abc"))
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def start() -> None:
                with pytest.raises(StartFailed, match="root/inner did not start: stopped"):
                    await system.supervisor("root").start_child(spec)

            await trio.sleep(0.1)
            stop(system, system.ref("root/inner"))
        assert log.of("up") == ["a", "b"]
        assert log.of("down") == ["b", "a"]
        assert system.supervisor("root").names == []


async def test_a_restarted_supervisor_starts_also_the_children_that_were_gone() -> None:
    log = Log()
    inner = group("inner", child(log, "a", restart=Restart.TEMPORARY), child(log, "b"), intensity=0)
    async with open_system(group("root", inner)) as system:
        old = system.ref("root/inner/a")
        old.tell(Do("finish"))
        await idle()
        system.ref("root/inner/b").tell(Do("crash"))
        await idle()
        assert old.is_stopped
        assert not system.ref("root/inner/a").is_stopped
        assert log.of("up") == ["a", "b", "a", "b"]


async def test_children_cut_together_with_their_supervisor_are_down_and_can_come_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    inner = group("inner", child(log, "a", shutdown_s=100.0), child(log, "b"), shutdown_s=1.0)
    outer = group("outer", inner, child(log, "c"), intensity=0)
    async with open_system(group("root", outer)) as system:
        a = system.ref("root/outer/inner/a")
        a.tell(Do("hang"))
        await idle()
        system.ref("root/outer/c").tell(Do("crash"))
        assert await a.ask(Life()) == 2
        await idle()
        assert set(states(system.tree()).values()) == {"running"}


async def test_a_supervisor_that_is_gone_for_good_takes_its_children_along() -> None:
    log = Log()
    inner = group("inner", child(log, "a"), child(log, "b"), intensity=0, restart=Restart.TEMPORARY)
    async with open_system(group("root", inner, child(log, "c"))) as system:
        a, b = system.ref("root/inner/a"), system.ref("root/inner/b")
        a.tell(Do("crash"))
        await idle()
        assert a.is_stopped
        assert b.is_stopped
        assert states(system.tree()) == {"root": "running", "root/c": "running"}


async def test_children_cut_together_with_their_supervisor_are_shown_as_down(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    inner = group("inner", child(log, "a", shutdown_s=100.0), shutdown_s=1.0)
    outer = SupervisorSpec(
        name="outer", children=(inner, child(log, "c")), intensity=0, backoff=PAUSE
    )
    async with open_system(group("root", outer)) as system:
        a = system.ref("root/outer/inner/a")
        a.tell(Do("hang"))
        await idle()
        system.ref("root/outer/c").tell(Do("crash"))
        await trio.sleep(2)
        assert set(states(system.tree()).values()) == {"running", "down"}
        assert states(system.tree())["root/outer/inner/a"] == "down"
        assert await a.ask(Life(), timeout=20) == 2
