"""One life: how it begins, how it ends, and what becomes of everything that belongs to it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import (
    Actor,
    ActorCrashed,
    ActorStopped,
    Backoff,
    ChildSpec,
    LifeCycleEvent,
    MailboxSpec,
    OnRestart,
    Request,
    Restart,
    StartFailed,
    SupervisorSpec,
    open_system,
)
from actors.incarnation import BATCH, CLEANUP_S


@attrs.frozen
class Do:
    """Told: do what ``how`` names."""

    how: str


@attrs.frozen
class Wait(Request[str]):
    """Asked: never answered in its own handler."""


@attrs.frozen
class Life(Request[int]):
    pass


class Mortal(Actor[Do | Wait | Life]):
    """Logs its life, and ends it as told."""

    def __init__(self, log: list[str], teardown: str = "", setup: str = "") -> None:
        self._log = log
        self._setup = setup
        self._teardown = teardown

    async def setup(self) -> None:
        self._log.append("setup")
        if self._setup:
            await self._do(self._setup)

    async def teardown(self) -> None:
        self._log.append("teardown")
        if self._teardown:
            await self._do(self._teardown)
        self._log.append("torn down")

    async def receive(self, message: Do | Wait | Life) -> None:
        match message:
            case Do(how=how):
                self._log.append(how)
                await self._do(how)
            case Wait():
                self.defer(message)
            case Life():
                self.reply(message, self.context.incarnation)

    async def _do(self, how: str) -> None:
        match how:
            case "crash":
                raise ValueError("handler")
            case "crash in teardown":
                raise KeyError("teardown")
            case "hang":
                await trio.sleep_forever()
            case "sleep":
                await trio.sleep(0.5)
            case "finish":
                self.context.finish()
            case "helper finishes":
                self.context.start_soon(self._finish_later)
            case "helper crashes":
                self.context.start_soon(self._crash)
            case "two helpers crash":
                self.context.start_soon(self._crash)
                self.context.start_soon(self._crash)
            case "helper":
                self.context.start_soon(self._linger)
                await trio.testing.wait_all_tasks_blocked()
            case "interrupt":
                raise KeyboardInterrupt
            case "exit":
                raise SystemExit(3)
            case "own stop":
                self.context.ref.stop()

    async def _finish_later(self) -> None:
        await trio.sleep(0.5)
        self.context.finish()

    async def _crash(self) -> None:
        raise OSError("helper")

    async def _linger(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self._log.append("helper gone")


def mortal(
    log: list[str],
    restart: Restart = Restart.PERMANENT,
    mailbox: MailboxSpec | None = None,
    shutdown_s: float = 1.0,
    **arguments: str,
) -> SupervisorSpec:
    child = ChildSpec.of("m", Mortal, log=log, **arguments).with_options(
        restart=restart,
        backoff=Backoff(step_s=0),
        mailbox=mailbox or MailboxSpec(),
        shutdown_s=shutdown_s,
    )
    return SupervisorSpec(name="root", children=(child,), intensity=10)


def crashes_of(events: list[LifeCycleEvent]) -> list[Exception | None]:
    return [event.error for event in events if event.kind == "crashed"]


async def test_an_ordered_stop_finishes_the_message_in_hand_and_leaves_the_others(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log: list[str] = []
    async with open_system(mortal(log)) as system:
        ref = system.ref("root/m")
        ref.tell(Do("sleep"))
        ref.tell(Do("never handled"))
        await trio.testing.wait_all_tasks_blocked()
    assert log == ["setup", "sleep", "teardown", "torn down"]


async def test_a_stop_that_takes_too_long_is_cancelled_and_still_torn_down(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log: list[str] = []
    async with open_system(mortal(log, shutdown_s=2.5)) as system:
        system.ref("root/m").tell(Do("hang"))
        await trio.testing.wait_all_tasks_blocked()
        started = trio.current_time()
    assert trio.current_time() - started == pytest.approx(2.5)
    assert log == ["setup", "hang", "teardown", "torn down"]


async def test_a_teardown_that_hangs_is_cut_and_reported(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log: list[str] = []
    events: list[LifeCycleEvent] = []
    async with open_system(mortal(log, teardown="hang"), observer=events.append):
        started = trio.current_time()
    assert trio.current_time() - started == pytest.approx(CLEANUP_S)
    assert log == ["setup", "teardown"]
    assert [(event.kind, event.path) for event in events] == [
        ("started", "root/m"),
        ("teardown_cut", "root/m"),
    ]


async def test_a_teardown_may_wait_although_everything_around_it_is_cancelled(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log: list[str] = []
    with trio.move_on_after(1):
        async with open_system(mortal(log, teardown="sleep")):
            await trio.sleep_forever()
    assert log == ["setup", "teardown", "torn down"]


@pytest.mark.parametrize("how", ["crash", "helper crashes", "two helpers crash"])
async def test_an_exception_anywhere_ends_the_life_as_a_crash(how: str) -> None:
    log: list[str] = []
    events: list[LifeCycleEvent] = []
    async with open_system(mortal(log), observer=events.append) as system:
        system.ref("root/m").tell(Do(how))
        assert await system.ref("root/m").ask(Life()) in (1, 2)
        await trio.testing.wait_all_tasks_blocked()
        assert await system.ref("root/m").ask(Life()) == 2
    assert len(crashes_of(events)) == 1
    assert log[:4] == ["setup", how, "teardown", "torn down"]


async def test_several_errors_of_one_life_are_one_group() -> None:
    log: list[str] = []
    events: list[LifeCycleEvent] = []
    async with open_system(mortal(log), observer=events.append) as system:
        system.ref("root/m").tell(Do("two helpers crash"))
        await trio.testing.wait_all_tasks_blocked()
    (error,) = crashes_of(events)
    assert isinstance(error, ExceptionGroup)
    assert [str(each) for each in error.exceptions] == ["helper", "helper"]


async def test_a_lone_error_is_reported_bare_with_its_life() -> None:
    log: list[str] = []
    events: list[LifeCycleEvent] = []
    async with open_system(mortal(log), observer=events.append) as system:
        system.ref("root/m").tell(Do("crash"))
        await trio.testing.wait_all_tasks_blocked()
    crash = next(event for event in events if event.kind == "crashed")
    assert isinstance(crash.error, ValueError)
    assert (crash.path, crash.incarnation) == ("root/m", 1)


async def test_a_crash_in_the_teardown_does_not_hide_what_came_before() -> None:
    log: list[str] = []
    events: list[LifeCycleEvent] = []
    spec = mortal(log, teardown="crash in teardown", restart=Restart.TEMPORARY)
    async with open_system(spec, observer=events.append) as system:
        system.ref("root/m").tell(Do("crash"))
        await trio.testing.wait_all_tasks_blocked()
    (error,) = crashes_of(events)
    assert isinstance(error, ExceptionGroup)
    assert error.subgroup(ValueError) is not None
    assert error.subgroup(KeyError) is not None


async def test_a_crash_in_the_teardown_of_an_ordered_stop_is_reported() -> None:
    events: list[LifeCycleEvent] = []
    async with open_system(mortal([], teardown="crash in teardown"), observer=events.append):
        pass
    assert [type(error) for error in crashes_of(events)] == [KeyError]


async def test_a_crash_in_the_teardown_of_a_cancelled_system_is_reported() -> None:
    events: list[LifeCycleEvent] = []
    with trio.CancelScope() as scope:
        async with open_system(mortal([], teardown="crash in teardown"), observer=events.append):
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert [type(error) for error in crashes_of(events)] == [KeyError]


async def test_a_failed_set_up_is_torn_down_and_is_the_cause() -> None:
    log: list[str] = []
    with pytest.raises(StartFailed, match="root/m did not start: ValueError: handler") as caught:
        async with open_system(mortal(log, setup="crash")):
            raise AssertionError("never up")
    assert isinstance(caught.value.__cause__, ValueError)
    assert log == ["setup", "teardown", "torn down"]


async def test_what_a_constructor_raises_is_a_failed_start_without_a_teardown() -> None:
    spec = ChildSpec.of("m", Mortal, no="log")  # type: ignore[call-arg]
    with pytest.raises(StartFailed, match="TypeError"):
        async with open_system(SupervisorSpec(name="root", children=(spec,))):
            raise AssertionError("never up")


@pytest.mark.parametrize("how", ["finish", "helper finishes"])
async def test_an_actor_may_end_its_own_life(
    how: str, autojump_clock: trio.testing.MockClock
) -> None:
    log: list[str] = []
    async with open_system(mortal(log, restart=Restart.TRANSIENT)) as system:
        ref = system.ref("root/m")
        ref.tell(Do(how))
        await trio.sleep(1)
        assert ref.is_stopped
    assert log == ["setup", how, "teardown", "torn down"]


async def test_an_actor_may_finish_in_its_set_up() -> None:
    log: list[str] = []
    async with open_system(mortal(log, restart=Restart.TRANSIENT, setup="finish")) as system:
        await trio.testing.wait_all_tasks_blocked()
        assert system.tree().children == []
    assert log == ["setup", "teardown", "torn down"]


async def test_what_comes_after_finish_is_left_to_the_next_life() -> None:
    async with open_system(mortal([])) as system:
        ref = system.ref("root/m")
        ref.tell(Do("finish"))
        assert await ref.ask(Life()) == 2


async def test_helper_tasks_end_with_their_life() -> None:
    log: list[str] = []
    async with open_system(mortal(log)) as system:
        ref = system.ref("root/m")
        ref.tell(Do("helper"))
        ref.tell(Do("crash"))
        assert await ref.ask(Life()) == 2
        assert log.count("helper gone") == 1


@pytest.mark.parametrize(
    ("how", "outcome"),
    [
        ("crash", ActorCrashed),
        ("helper crashes", ActorCrashed),
        ("finish", ActorStopped),
        ("own stop", ActorStopped),
    ],
)
async def test_replies_owed_are_settled_at_the_end_of_the_life(
    how: str, outcome: type[Exception]
) -> None:
    async with open_system(mortal([])) as system:
        ref = system.ref("root/m")
        replies = [ref.send_request(Wait()) for _ in range(200)]
        ref.tell(Do(how))
        for reply in replies:
            with pytest.raises(outcome, match="root/m"):
                await reply.wait()
            assert reply.late == 0


async def test_replies_owed_are_settled_when_the_system_is_cancelled() -> None:
    with trio.CancelScope() as scope:
        async with open_system(mortal([])) as system:
            ref = system.ref("root/m")
            owed = ref.send_request(Wait())
            ref.tell(Do("hang"))
            await trio.testing.wait_all_tasks_blocked()
            queued = ref.send_request(Life())
            scope.cancel()
            await trio.lowlevel.checkpoint()
    for reply in (owed, queued):
        with pytest.raises(ActorStopped):
            await reply.wait()
    with pytest.raises(ActorStopped):
        await ref.ask(Life())


async def test_abandoned_replies_are_not_kept() -> None:
    async with open_system(mortal([])) as system:
        ref = system.ref("root/m")
        replies = []
        for _ in range(500):
            reply = ref.send_request(Wait())
            with trio.move_on_after(0):
                await reply.wait()
            replies.append(reply)
        await trio.testing.wait_all_tasks_blocked()
        ref.stop()
        await trio.testing.wait_all_tasks_blocked()
        assert all(reply.late == 0 for reply in replies)


async def test_the_message_that_crashed_the_handler_is_dropped_and_the_rest_is_kept() -> None:
    log: list[str] = []
    async with open_system(mortal(log)) as system:
        ref = system.ref("root/m")
        for how in ("one", "crash", "two"):
            ref.tell(Do(how))
        assert await ref.ask(Life()) == 2
    handled = [entry for entry in log if entry in ("one", "crash", "two")]
    assert handled == ["one", "crash", "two"]


async def test_a_cleared_mailbox_begins_the_next_life_empty() -> None:
    log: list[str] = []
    spec = mortal(log, mailbox=MailboxSpec(on_restart=OnRestart.CLEAR))
    async with open_system(spec) as system:
        ref = system.ref("root/m")
        ref.tell(Do("crash"))
        ref.tell(Do("lost"))
        await trio.testing.wait_all_tasks_blocked()
        assert await ref.ask(Life()) == 2
    assert "lost" not in log


@pytest.mark.parametrize(("how", "error"), [("interrupt", KeyboardInterrupt), ("exit", SystemExit)])
@pytest.mark.parametrize("where", ["setup", "receive", "teardown"])
async def test_an_interrupt_or_an_exit_passes_through_the_whole_tree(
    how: str, error: type[BaseException], where: str
) -> None:
    log: list[str] = []
    events: list[LifeCycleEvent] = []
    ways = {where: how}
    spec = mortal(log, setup=ways.get("setup", ""), teardown=ways.get("teardown", ""))
    with pytest.raises(BaseExceptionGroup) as caught:  # noqa: PT012 - the body tells it
        async with open_system(spec, observer=events.append) as system:
            if where == "receive":
                system.ref("root/m").tell(Do(how))
                await trio.sleep_forever()
    assert caught.value.split(error)[1] is None
    assert crashes_of(events) == []
    assert "teardown" in log


async def test_cancellation_from_outside_is_a_shutdown_and_no_crash() -> None:
    log: list[str] = []
    events: list[LifeCycleEvent] = []
    with trio.CancelScope() as scope:
        async with open_system(mortal(log), observer=events.append) as system:
            system.ref("root/m").tell(Do("hang"))
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert crashes_of(events) == []
    assert log == ["setup", "hang", "teardown", "torn down"]


async def test_an_actor_lets_others_run_at_least_once_in_a_batch() -> None:
    log: list[str] = []
    turns: list[int] = []

    async def count_turns(done: Callable[[], bool]) -> None:
        while not done():
            turns.append(len(log))
            await trio.lowlevel.checkpoint()

    async with open_system(mortal(log)) as system, trio.open_nursery() as nursery:
        ref = system.ref("root/m")
        for number in range(5 * BATCH):
            ref.tell(Do(f"message {number}"))
        nursery.start_soon(count_turns, lambda: len(log) > 5 * BATCH)
    steps = [after - before for before, after in itertools.pairwise(turns)]
    assert max(steps) <= 2 * BATCH  # the order of tasks within one turn of the loop is random


async def test_a_stop_during_the_set_up_is_heard_when_it_is_done(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log: list[str] = []
    spec = SupervisorSpec(name="root", dynamic=True)
    child = mortal(log, setup="sleep").children[0]
    async with open_system(spec) as system, trio.open_nursery() as nursery:
        supervisor = system.supervisor("root")
        started: list[Any] = []

        @nursery.start_soon
        async def start() -> None:
            started.append(await supervisor.start_child(child))

        await trio.testing.wait_all_tasks_blocked()
        await supervisor.stop_child("m")
        assert log == ["setup", "teardown", "torn down"]
        await trio.testing.wait_all_tasks_blocked()
        assert started[0].is_stopped


class Closing(Actor[Life]):
    """Its teardown closes what its helper task uses."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    async def setup(self) -> None:
        self._send, self._receive = trio.open_memory_channel[int](0)
        self.context.start_soon(self._read)

    async def teardown(self) -> None:
        self._receive.close()
        await trio.testing.wait_all_tasks_blocked()
        self._log.append("closed")

    async def _read(self) -> None:
        try:
            await self._receive.receive()
        finally:
            self._log.append("helper over")


async def test_helper_tasks_still_run_during_the_teardown_and_may_crash_it() -> None:
    log: list[str] = []
    events: list[LifeCycleEvent] = []
    spec = ChildSpec.of("c", Closing, log=log)
    async with open_system(SupervisorSpec(name="root", children=(spec,)), observer=events.append):
        await trio.testing.wait_all_tasks_blocked()
    assert log == ["helper over", "closed"]
    assert [type(error) for error in crashes_of(events)] == [trio.ClosedResourceError]
