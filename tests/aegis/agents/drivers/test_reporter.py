"""The order and the bounds of reports to a session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio

from actors import Actor, ChildSpec, MailboxSpec, Ref, Restart, SupervisorSpec, open_system
from aegis.agents.drivers.harness import Capabilities
from aegis.agents.drivers.reporter import (
    BATCH,
    GATHER_S,
    MAX_GATHERED_CHARS,
    MAX_PENDING,
    MAX_PENDING_BYTES,
    Reporter,
)
from aegis.agents.messages import DriverEnded, DriverEvents, DriverReady, DriverReport
from aegis.protocol.agent_events import AgentEvent, AssistantText, AssistantThinking, Result

READY = DriverReady(launch=1, conversation="c", capabilities=Capabilities())
ENDED = DriverEnded(launch=1, reason="it ended", exit_code=0)


@attrs.frozen
class Filler:
    """A message that fills a mailbox."""


class Session(Actor[DriverEvents | DriverReady | DriverEnded | Filler]):
    """Takes a report when the gate is open."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def receive(self, message: DriverEvents | DriverReady | DriverEnded | Filler) -> None:
        if isinstance(message, Filler):
            await self._gate.is_open.wait()
            return
        self._gate.begun.set()
        await self._gate.is_open.wait()
        if self._gate.crashes:
            raise KeyError("session")
        self._gate.taken.append(message)
        self.reply(message, None)


class Gate:
    """Holds a session back, and has its reports."""

    def __init__(self, *, is_open: bool = True, crashes: bool = False) -> None:
        self.is_open = trio.Event()
        self.begun = trio.Event()
        self.crashes = crashes
        self.taken: list[DriverReport] = []
        if is_open:
            self.is_open.set()


@asynccontextmanager
async def reporting(gate: Gate, capacity: int = 64) -> AsyncIterator[tuple[Reporter, Ref[Any]]]:
    """Run a reporter beside its session."""
    child = ChildSpec.of("session", Session, gate)
    child = child.with_options(restart=Restart.TEMPORARY, mailbox=MailboxSpec(capacity=capacity))
    async with open_system(SupervisorSpec(name="root", children=(child,))) as system:
        session: Ref[Any] = system.ref("root/session")
        async with trio.open_nursery() as nursery:
            reporter = Reporter(session, 1, trio.Event())
            nursery.start_soon(reporter.run)
            yield reporter, session
            gate.is_open.set()
            nursery.cancel_scope.cancel()


def text(number: int) -> AssistantText:
    return AssistantText(text=str(number), message=str(number))


async def has_room(reporter: Reporter, position: int) -> bool:
    await trio.testing.wait_all_tasks_blocked()
    with trio.move_on_after(0) as scope:
        await reporter.room(position)
    return not scope.cancelled_caught


async def test_reports_and_events_keep_their_order_and_events_are_joined() -> None:
    gate = Gate()
    async with reporting(gate) as (reporter, _):
        for number in range(3):
            reporter.add(text(number))
        reporter.add(READY)
        for number in range(BATCH + 1):
            reporter.add(text(number))
        reporter.add(ENDED)
        await reporter.flushed()
    assert [type(each) for each in gate.taken] == [
        DriverEvents,
        DriverReady,
        DriverEvents,
        DriverEvents,
        DriverEnded,
    ]
    sizes = [len(each.events) for each in gate.taken if isinstance(each, DriverEvents)]
    assert sizes == [3, BATCH, 1]
    assert isinstance(gate.taken[2], DriverEvents)
    assert gate.taken[2].events == tuple(map(text, range(BATCH)))


async def test_the_parts_of_a_text_become_few_events_and_the_first_is_sent_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    gate = Gate()
    async with reporting(gate) as (reporter, _):
        begun = trio.current_time()
        for number in range(400):  # ten seconds, word by word
            reporter.add(AssistantText(text=f"{number} ", message="m"))
            await trio.sleep(1 / 40)
            assert number or len(gate.taken) == 1
        reporter.add(Result(messages=[], ok=True, reason="completed"))
        await reporter.flushed()
        assert trio.current_time() - begun < 10.1  # what is no text waits for nothing
    events = [event for report in gate.taken for event in events_of(report)]
    assert isinstance(events.pop(), Result)
    parts = [event.text for event in events if isinstance(event, AssistantText)]
    assert "".join(parts) == "".join(f"{number} " for number in range(400))
    assert len(parts) == len(events) <= 10 / GATHER_S + 2


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (AssistantText(text="a", message="m"), AssistantText(text="b", message="n")),
        (AssistantText(text="a", aborted=True), AssistantText(text="b")),
        (AssistantText(text="a"), AssistantText(text="b", aborted=True)),
        (AssistantText(text="a"), AssistantThinking(text="b")),
        (AssistantText(text="a" * MAX_GATHERED_CHARS), AssistantText(text="b")),
    ],
)
async def test_other_texts_are_events_of_their_own(one: AgentEvent, two: AgentEvent) -> None:
    gate = Gate(is_open=False)
    async with reporting(gate) as (reporter, _):
        reporter.add(READY)
        await gate.begun.wait()
        reporter.add(one)
        reporter.add(two)
        gate.is_open.set()
        await reporter.flushed()
    assert events_of(gate.taken[1]) == (one, two)


def events_of(report: DriverReport) -> tuple[AgentEvent, ...]:
    return report.events if isinstance(report, DriverEvents) else ()


async def test_the_number_of_pending_reports_is_bounded() -> None:
    gate = Gate(is_open=False)
    async with reporting(gate) as (reporter, _):
        reporter.add(READY)
        await gate.begun.wait()
        for number in range(MAX_PENDING - 1):
            reporter.add(text(number))
        assert await has_room(reporter, 0)
        reporter.add(text(0))
        assert not await has_room(reporter, 0)
        gate.is_open.set()
        with trio.fail_after(60):
            await reporter.room(0)
            await reporter.flushed()
    assert len(gate.taken) == 1 + MAX_PENDING // BATCH


async def test_the_bytes_behind_pending_reports_are_bounded() -> None:
    gate = Gate(is_open=False)
    async with reporting(gate) as (reporter, _):
        assert await has_room(reporter, 10**9)  # nothing is pending
        reporter.add(text(0))
        await gate.begun.wait()
        assert await has_room(reporter, 10**9 + MAX_PENDING_BYTES - 1)
        assert not await has_room(reporter, 10**9 + MAX_PENDING_BYTES)
        gate.is_open.set()
        with trio.fail_after(60):
            await reporter.room(10**9 + MAX_PENDING_BYTES)


async def test_a_full_mailbox_of_the_session_is_tried_again() -> None:
    gate = Gate(is_open=False)
    async with reporting(gate, capacity=1) as (reporter, session):
        session.tell(Filler())
        await trio.testing.wait_all_tasks_blocked()
        session.tell(Filler())
        reporter.add(READY)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert gate.taken == []
        gate.is_open.set()
        with trio.fail_after(60):
            await reporter.flushed()
    assert gate.taken == [READY]


@pytest.mark.parametrize("crashes", [True, False])
async def test_after_the_end_of_the_session_reports_are_dropped_and_nothing_waits(
    crashes: bool,
) -> None:
    gate = Gate(is_open=False, crashes=crashes)
    async with reporting(gate) as (reporter, session):
        reporter.add(READY)
        await gate.begun.wait()
        for number in range(2 * MAX_PENDING):
            reporter.add(text(number))
        if not crashes:
            session.stop()
        gate.is_open.set()
        with trio.fail_after(60):
            await reporter.flushed()
            await reporter.room(10**12)
        if crashes:
            assert reporter.is_lost
            reporter.add(ENDED)
            assert gate.taken == []
