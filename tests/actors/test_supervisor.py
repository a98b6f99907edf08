"""Supervision: order, restarts, budgets, escalation."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing

from actors import (
    Actor,
    ActorStopped,
    AskDeadline,
    Backoff,
    ChildSpec,
    LifeCycleEvent,
    Node,
    Restart,
    RestartsExhausted,
    StartFailed,
    SupervisorSpec,
    System,
    open_system,
)
from tests.actors.children import (
    PAUSE,
    Child,
    Do,
    Life,
    Log,
    child,
    group,
    idle,
    states,
)

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
    log.failing = {"c": math.inf}
    spec = group("root", *(child(log, name) for name in "abcde"))
    with pytest.raises(StartFailed, match="root/c did not start: OSError: no c") as caught:
        async with open_system(spec):
            raise AssertionError("never up")
    assert isinstance(caught.value.__cause__, OSError)
    assert log.of("up") == ["a", "b"]
    assert log.of("down") == ["c", "b", "a"]


async def test_a_failed_first_start_deep_in_the_tree_fails_the_whole_start() -> None:
    log = Log()
    log.failing = {"c": math.inf}
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
    events: list[LifeCycleEvent] = []
    with pytest.raises(RestartsExhausted, match="OSError: no a"):  # noqa: PT012
        async with open_system(spec, observer=events.append) as system:
            started = trio.current_time()
            log.failing = {"a": math.inf}
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
        log.failing = {"a": math.inf}
        ref.tell(Do("crash"))
        reply = ref.send_request(Life())
        await trio.sleep(1.01)
        log.failing = {}
        assert await reply.wait() == 3


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


class Hasty(Actor[Life]):
    async def setup(self) -> None:
        await self.context.sibling("late", Child).ask(Life(), timeout=2.0)


async def test_a_set_up_that_asks_a_later_sibling_waits_in_vain(
    autojump_clock: trio.testing.MockClock,
) -> None:
    spec = group("root", ChildSpec.of("hasty", Hasty), child(Log(), "late"))
    with pytest.raises(StartFailed) as caught:
        async with open_system(spec):
            raise AssertionError("never up")
    assert isinstance(caught.value.__cause__, AskDeadline)


async def test_a_request_to_a_stopped_child_ends_when_its_supervisor_is_gone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()
    inner = group("inner", child(log, "a", linger_s=0.8), child(log, "b"))
    async with open_system(group("root", inner)) as system, trio.open_nursery() as nursery:
        b = system.ref("root/inner/b")
        nursery.start_soon(system.supervisor("root").stop_child, "inner")
        await idle()
        assert states(system.tree())["root/inner/b"] == "down"
        started = trio.current_time()
        with pytest.raises(ActorStopped):
            await b.ask(Life())
        assert trio.current_time() - started == pytest.approx(0.8)
