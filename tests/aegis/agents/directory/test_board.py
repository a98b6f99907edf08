"""The states of sessions, and the streams that follow them."""

from __future__ import annotations

import random

import attrs
import pytest

from actors import Reply
from aegis.agents.directory.board import AT_ONCE, MAX_CLOSED, MAX_FOLLOWERS, Board
from aegis.agents.directory.replies import closed_info
from aegis.agents.directory.roster import Member
from aegis.errors import Busy
from aegis.protocol.agents import AgentInfo
from aegis.protocol.feeds import AgentsNews, AgentsPlace


def info(number: int, turn: int, state: str = "idle") -> AgentInfo:
    member = Member(
        id=f"s{number}",
        handle=f"agent{number}",
        profile="asks",
        provider="claude",
        place="/",
        spawned_by="human",
        parent=None,
        at="2027-01-15T07:59:00.000Z",
    )
    return attrs.evolve(closed_info(member, "/"), turn=turn, state=state)  # type: ignore[arg-type]


def everything(id_: str) -> bool:
    return True


def even(id_: str) -> bool:
    return int(id_[1:]) % 2 == 0


class Reader:
    """A stream with one request at a time; ``seen`` has the newest state of each session."""

    def __init__(self, board: Board, sees: object = everything) -> None:
        self.board = board
        self.sees = sees
        self.place: AgentsPlace | None = None
        self.reply: Reply[AgentsNews] | None = None
        self.seen: dict[str, AgentInfo] = {}
        self.most = 0

    def ask(self) -> None:
        if self.reply is None:
            self.reply = Reply()
            self.board.take(self.place, self.sees, self.reply)  # type: ignore[arg-type]

    async def take(self) -> bool:
        """Take the answer, if there is one."""
        if self.reply is None or not self.reply.is_settled:
            return False
        news, self.reply = await self.reply.wait(), None
        if news.is_all:
            self.seen.clear()
        else:
            self.most = max(self.most, len(news.agents))
        self.seen |= {each.id: each for each in news.agents}
        self.place = news.place
        return True


@pytest.mark.parametrize("seed", range(10))
async def test_every_reader_gets_the_newest_state_of_each_session_that_it_sees(seed: int) -> None:
    chance = random.Random(seed)
    board, states = Board(), dict[str, AgentInfo]()
    readers = [Reader(board), Reader(board, even), Reader(board), Reader(board, even)]
    for step in range(2_000):
        number = chance.randrange(150)
        states[f"s{number}"] = info(number, step, chance.choice(("idle", "working", "closed")))
        board.put(states[f"s{number}"])
        if chance.random() < 0.3:
            reader = chance.choice(readers[:2] if step > 500 else readers)
            reader.ask()
            await reader.take()
    for reader in readers:
        reader.ask()
        while await reader.take():
            reader.ask()
        assert reader.most <= AT_ONCE
        open_ones = {
            id_: each
            for id_, each in states.items()
            if each.state != "closed" and reader.sees(id_)  # type: ignore[operator]
        }
        seen = {id_: each for id_, each in reader.seen.items() if each.state != "closed"}
        assert seen == open_ones


async def test_a_reader_that_missed_an_end_gets_all_sessions_again() -> None:
    board = Board()
    reader = Reader(board)
    board.put(info(0, 0))
    reader.ask()
    await reader.take()
    board.put(info(0, 1, "closed"))
    for number in range(1, MAX_CLOSED + 1):
        board.put(info(number, 0, "closed"))
    reader.ask()
    await reader.take()
    assert reader.seen == {}


async def test_a_session_that_was_opened_again_is_not_dropped_with_the_closed_ones() -> None:
    board = Board()
    board.put(info(0, 1, state="closed"))
    board.put(info(0, 1))
    for number in range(1, MAX_CLOSED + 2):
        board.put(info(number, 1, state="closed"))
    reply: Reply[AgentsNews] = Reply()
    board.take(None, everything, reply)
    assert [each.id for each in (await reply.wait()).agents] == ["s0"]


def test_streams_that_wait_are_bounded_and_those_that_ended_make_room() -> None:
    board = Board()
    first: Reply[AgentsNews] = Reply()
    board.take(None, everything, first)
    place = AgentsPlace(board=board._name, change=0)
    waiting: list[Reply[AgentsNews]] = [Reply() for _ in range(MAX_FOLLOWERS)]
    for reply in waiting:
        board.take(place, everything, reply)
    with pytest.raises(Busy, match="256 streams follow the sessions already; close one first"):
        board.take(place, everything, Reply())
    waiting[7].give_up(TimeoutError())
    board.take(place, everything, Reply())
    board.put(info(1, 0))
    assert all(each.is_settled for each in waiting)
