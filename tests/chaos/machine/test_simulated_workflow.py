"""Tests of the simulated process of a workflow: the frames that it sends, and its log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from aegis.workflows.frames import Called, DoneCall, Returned, read_frame
from tests.chaos.checking.workflow_evidence import StepEvent
from tests.chaos.machine.simulated_processes import Machine
from tests.chaos.machine.simulated_workflow import SimulatedChild, WorkflowWorld

PATIENCE_S = 5.0


@attrs.define
class Daemon:
    """The other side of the frames of one process."""

    child: SimulatedChild

    def start(self, *orders: str, journal: tuple[dict[str, Any], ...] = ()) -> None:
        start = {"kind": "start", "workflow_id": "w1", "host": "here", "config": {}}
        self.child.take({**start, "kwargs": {"orders": [*orders]}})
        if journal:
            self.child.take({"kind": "journal", "calls": [*journal]})
        self.child.take({"kind": "go"})

    async def next(self) -> Any:
        with trio.fail_after(PATIENCE_S):
            while not self.child.output:
                await self.child.has_output.wait()
        event = read_frame(self.child.output.popleft())
        assert event is not None
        return event

    async def answer(self, name: str, outcome: dict[str, Any]) -> Called:
        """Answer the next call, which has this name; return it."""
        called = await self.next()
        assert isinstance(called, Called)
        assert called.name == name
        self.child.take({"kind": "answer", "position": called.position, "outcome": outcome})
        return called

    async def step(self, name: str) -> Called:
        """Let the process do its step ``name``; return its call."""
        called = await self.next()
        assert isinstance(called, Called)
        assert called.arguments == {"name": name}
        self.child.take({"kind": "proceed", "position": called.position})
        done = await self.next()
        assert isinstance(done, DoneCall)
        self.child.take({"kind": "answer", "position": done.position, "outcome": done.outcome})
        return called


@asynccontextmanager
async def processes(log: list[StepEvent]) -> AsyncIterator[Any]:
    async with trio.open_nursery() as nursery:
        machine, world = Machine(nursery, Random(1)), WorkflowWorld(log=log.append)

        def start() -> Daemon:
            child = SimulatedChild(world)
            machine.start(child.main, ["python"], cwd="/")
            return Daemon(child)

        yield start
        nursery.cancel_scope.cancel()


async def test_it_calls_proceeds_and_returns_as_the_real_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log: list[StepEvent] = []
    async with processes(log) as start:
        daemon = start()
        daemon.start("step:a", "redo:b")
        assert not (await daemon.step("a")).retry
        assert (await daemon.step("b")).retry
        returned = await daemon.next()
    assert isinstance(returned, Returned)
    assert returned.result == '"did a in 1 did b in 1"'
    assert [(each.kind, each.step) for each in log] == [
        ("begun", "a"),
        ("passed", "a"),
        ("begun", "b"),
        ("passed", "b"),
    ]


async def test_a_step_of_the_journal_is_not_begun_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log: list[StepEvent] = []
    async with processes(log) as start:
        first, second = start(), start()
        first.start("step:a", "step:b")
        called = await first.step("a")
        kept = {"position": "1", "name": "step", "digest": called.digest, "about": called.about}
        second.start("step:a", "step:b", journal=({**kept, "outcome": {"value": "did a in 1"}},))
        await second.step("b")
        returned = await second.next()
    assert isinstance(returned, Returned)
    assert returned.result == '"did a in 1 did b in 2"'
    assert [each.step for each in log if each.process == 2] == ["a", "b", "b"]
    assert [each.kind for each in log if each.process == 2] == ["passed", "begun", "passed"]


async def test_an_exception_of_the_function_is_its_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with processes([]) as start:
        daemon = start()
        daemon.start("fail:on purpose")
        returned = await daemon.next()
    assert isinstance(returned, Returned)
    assert (returned.result, returned.error) == (None, "ValueError: on purpose")


async def test_the_results_of_calls_are_those_of_the_daemon(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log: list[StepEvent] = []
    async with processes(log) as start:
        daemon = start()
        daemon.start("spawn:1", "mark:here", "send:hello", "task:once:work", "ask:why", "ask:how")
        outcomes = [
            ("spawn", {"value": "scripted-1"}),
            ("checkpoint", {"value": None}),
            ("send", {"value": "did hello"}),
            ("delegate", {"error": {"type": "TaskFailed", "message": "task t1 has failed"}}),
            ("ask_human", {"value": "because"}),
            ("ask_human", {"value": None}),
        ]
        called = [await daemon.answer(name, outcome) for name, outcome in outcomes]
        returned = await daemon.next()
    assert called[1].arguments["payload"] == [2, "scripted-1"]
    assert called[2].arguments == {"handle": "scripted-1", "text": "hello"}
    assert called[3].arguments == {"queue": "once", "payload": "work"}
    assert isinstance(returned, Returned)
    assert returned.result == '"did hello no task because declined"'
    assert [(each.kind, each.step, each.result) for each in log] == [
        ("passed", "spawn:1", "scripted-1"),
        ("passed", "send:hello", "did hello"),
        ("refused", "task:once:work", "TaskFailed: task t1 has failed"),
        ("passed", "ask:why", "because"),
        ("passed", "ask:how", "declined"),
    ]


@pytest.mark.parametrize("orders", [("die:a",)])
async def test_a_process_that_dies_in_a_step_sends_no_end(
    autojump_clock: trio.testing.MockClock, orders: tuple[str, ...]
) -> None:
    log: list[StepEvent] = []
    async with processes(log) as start:
        daemon = start()
        daemon.start(*orders)
        called = await daemon.next()
        assert isinstance(called, Called)
        daemon.child.take({"kind": "proceed", "position": called.position})
        await trio.sleep(1.0)
        assert not daemon.child.output
    assert [each.kind for each in log] == ["begun"]
