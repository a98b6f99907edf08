"""Messages and transcripts of sessions that a test plays, through restarts of their services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import Actor, ChildSpec, Reply, SupervisorSpec, System, open_system
from aegis.errors import Forbidden, NotFound, Unavailable
from aegis.protocol.agents import AgentProgram, AgentState, ShowAgent, TranscriptEntry
from aegis.protocol.feeds import FollowSession, SessionNews, SessionPlace
from aegis.protocol.inboxes import Deliver, FindMessage, Place, Receipt, WithdrawMessage
from aegis.turns.services import AGAIN_S, Services
from aegis.turns.sessions import SYNC_S, AgentSessions
from aegis.turns.watch import TurnOutcome
from tests.aegis.turns.test_watch import ended, info, opened

MESSAGE = Deliver(handle="ann", id="broadcast:1/ann", sender="group:g", body="do", timestamp="t")


@attrs.define
class Ann:
    """The only session: its durable parts. ``on_message`` plays what it does with a message."""

    entries: list[TranscriptEntry] = attrs.field(factory=list)
    inbox: list[str] = attrs.field(factory=list)
    state: AgentState = "idle"
    reason: str = ""
    program: AgentProgram | None = None
    is_known: bool = True
    on_message: Callable[[Ann], None] = lambda ann: None
    place: Place | None = None
    withdrawn: list[str] = attrs.field(factory=list)
    crashes: int = 0
    gap: int = 0
    """The number of the entry before which one is missing."""

    @property
    def newest(self) -> int:
        return len(self.entries)

    def add(self, *entries: TranscriptEntry) -> None:
        for each in entries:
            self.entries.append(attrs.evolve(each, seq=len(self.entries) + 1))


class Directory(Actor[ShowAgent | Deliver | FindMessage | FollowSession | WithdrawMessage]):
    """The services of a daemon, as far as they are asked here; it crashes as often as told."""

    def __init__(self, *, ann: Ann) -> None:
        self.ann = ann
        self.waiting: list[tuple[FollowSession, Reply[SessionNews]]] = []

    async def setup(self) -> None:
        for name in ("agents", "inboxes"):
            self.context.register("service", name)
        self.context.register("session", "s1")

    async def receive(self, message: Any) -> None:
        ann = self.ann
        if ann.crashes:
            ann.crashes -= 1
            raise RuntimeError("as the test ordered")
        match message:
            case ShowAgent(handle=handle):
                if not ann.is_known:
                    raise NotFound(f"there is no agent {handle!r}")
                shown = info(ann.state, reason=ann.reason)
                self.reply(message, attrs.evolve(shown, program=ann.program))
            case Deliver(id=id_):
                if id_ not in ann.inbox:
                    ann.inbox.append(id_)
                    ann.on_message(ann)
                self.reply(message, Receipt(id=id_, status="queued", position=0))
            case WithdrawMessage(message=wanted):
                ann.withdrawn.append(wanted)
                self.reply(message, None)
            case FindMessage():
                self.reply(message, ann.place)
            case FollowSession():
                self.waiting.append((message, self.defer(message)))
        self.waiting = [each for each in self.waiting if not self.is_answered(*each)]

    def is_answered(self, request: FollowSession, reply: Reply[SessionNews]) -> bool:
        if reply.is_settled:
            return True
        ann, place = self.ann, request.place
        at = ann.newest if place is None else place.seq
        entries, is_over = ann.entries[at : at + 2], ann.state == "closed" and at >= ann.newest
        if place is not None and not entries and not is_over:
            return False
        reply.send(
            SessionNews(
                entries=entries,
                place=SessionPlace(seq=at + len(entries)),
                newest=ann.newest,
                is_over=is_over,
                missed=int(at < ann.gap <= at + len(entries)),
            )
        )
        return True


@asynccontextmanager
async def running(ann: Ann) -> AsyncIterator[System]:
    spec = SupervisorSpec(
        name="root",
        intensity=100,
        children=(ChildSpec.of("directory", Directory, ann=ann),),
    )
    async with open_system(spec) as system:
        yield system


async def outcome(ann: Ann, *, since: int = 0) -> TurnOutcome:
    async with running(ann) as system:
        with trio.fail_after(600):
            return await AgentSessions(Services(system)).outcome(MESSAGE, since=since)


def answers(ann: Ann) -> None:
    ann.add(opened(7, "other"), ended(7, "stale"), opened(8, MESSAGE.id), ended(8, "the answer"))


async def test_a_message_is_delivered_and_its_turn_is_the_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ann = Ann(on_message=answers)
    assert await outcome(ann) == TurnOutcome(end="completed", text="the answer", turn=8, seq=4)
    assert ann.inbox == [MESSAGE.id]


async def test_a_caller_that_was_restarted_finds_the_turn_and_delivers_nothing_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ann = Ann(state="closed")
    answers(ann)
    found = await outcome(ann)
    assert (found.end, found.text) == ("completed", "the answer")
    assert ann.inbox == []
    assert await outcome(ann, since=2) == found


async def test_restarts_of_the_services_are_waited_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    for crashes in range(1, 8):
        ann = Ann(on_message=answers, crashes=crashes)
        assert (await outcome(ann)).text == "the answer"
        assert ann.inbox == [MESSAGE.id]


@pytest.mark.parametrize("seconds", [SYNC_S - 1, SYNC_S + 1])
async def test_with_a_gap_in_the_transcript_an_end_that_is_being_synced_is_waited_for(
    seconds: float, autojump_clock: trio.testing.MockClock
) -> None:
    def open_turn(ann: Ann) -> None:
        ann.add(opened(1, MESSAGE.id), opened(0), opened(0))

    ann, found = Ann(on_message=open_turn, gap=3), list[TurnOutcome]()
    async with running(ann) as system, trio.open_nursery() as nursery:
        sessions = AgentSessions(Services(system))

        async def ask() -> None:
            found.append(await sessions.outcome(MESSAGE))

        nursery.start_soon(ask)
        await trio.sleep(seconds)
        ann.add(ended(1, "whole"))
        await sessions.show("ann")
    [outcome] = found
    in_time = seconds < SYNC_S
    assert (outcome.end, outcome.text) == (("completed", "whole") if in_time else ("lost", ""))


async def test_a_closed_session_gets_no_message(autojump_clock: trio.testing.MockClock) -> None:
    ann = Ann(state="closed")
    found = await outcome(ann)
    assert (found.end, ann.inbox) == ("lost", [])


async def test_a_session_that_does_not_exist_or_takes_no_turns_loses_the_message(
    autojump_clock: trio.testing.MockClock,
) -> None:
    program = AgentProgram(
        terminal="ann",
        command="top",
        source="",
        need=None,
        launches=1,
        exit_code=None,
        progress=None,
        title="",
    )
    for ann, why in ((Ann(is_known=False), "no agent"), (Ann(program=program), "takes no turns")):
        found = await outcome(ann)
        assert (found.end, ann.inbox) == ("lost", [])
        assert why in found.reason


async def test_a_session_that_cannot_be_started_loses_the_message(
    autojump_clock: trio.testing.MockClock,
) -> None:
    def fails(ann: Ann) -> None:
        ann.state, ann.reason, ann.place = "error", "no such program", Place()

    found = await outcome(Ann(on_message=fails))
    assert found == TurnOutcome(end="lost", reason="no such program")


async def test_a_session_whose_error_is_older_than_the_message_may_yet_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    def starts(ann: Ann) -> None:
        ann.place = Place(is_landed=True)
        answers(ann)

    assert (await outcome(Ann(state="error", on_message=starts))).text == "the answer"


async def test_a_service_that_refuses_is_not_asked_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    class Refusing(Actor[ShowAgent]):
        async def setup(self) -> None:
            self.context.register("service", "agents")

        async def receive(self, message: Any) -> None:
            raise Forbidden("not you")

    spec = SupervisorSpec(name="root", children=(ChildSpec.of("refusing", Refusing),))
    async with open_system(spec) as system:
        with pytest.raises(Forbidden):
            await Services(system).answer("agents", ShowAgent(handle="ann"), 1.0)


async def test_a_service_that_is_not_there_is_asked_until_it_is(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        services = Services(system)
        with pytest.raises(Unavailable, match="the service agents is not running"):
            await services.ask("agents", ShowAgent(handle="ann"), 1.0)
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(services.answer, "agents", ShowAgent(handle="ann"), 1.0)
            await trio.sleep(2.5 * AGAIN_S)
            spec = ChildSpec.of("directory", Directory, ann=Ann())
            await system.supervisor("root").start_child(spec)
        assert trio.current_time() - began == 3 * AGAIN_S


async def test_news_can_be_waited_for_until_a_moment(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(Ann()) as system:
        sessions = AgentSessions(Services(system))
        began = trio.current_time()
        assert await sessions.news("ann", SessionPlace(seq=0), until=began + 5) is None
        assert trio.current_time() == began + 5
        assert await sessions.newest("ann") == 0


async def test_a_message_is_withdrawn_through_restarts_but_not_from_a_closed_session(
    autojump_clock: trio.testing.MockClock,
) -> None:
    for crashes in range(4):
        ann = Ann(crashes=crashes)
        async with running(ann) as system:
            await AgentSessions(Services(system)).withdraw("ann", MESSAGE.id, "group:g")
            assert ann.withdrawn == [MESSAGE.id]
            ann.state = "closed"
            await AgentSessions(Services(system)).withdraw("ann", "another", "group:g")
            assert ann.withdrawn == [MESSAGE.id]
