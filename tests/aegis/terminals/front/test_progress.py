"""Who is told what while a call waits: who holds the terminal, or what the command prints."""

from __future__ import annotations

from typing import Any

import pytest

from actors import ActorStopped, Reply
from aegis.errors import Busy
from aegis.processes.os_processes import OsProcessHost
from aegis.protocol.output import FollowCommand, Progress
from aegis.protocol.terminals import Typing
from aegis.terminals.front.progress import MAX_FOLLOWERS, ProgressRequests
from aegis.terminals.front.terminal_state import TerminalState
from aegis.terminals.messages import FetchLine
from aegis.terminals.record import UnrecordedCommand
from aegis.terminals.settings import TerminalSettings


def running(cmd: str | None, writer: str, began_at: int | None = 10) -> UnrecordedCommand:
    return UnrecordedCommand(
        seq=4,
        cmd=cmd,
        writer=writer,
        cwd="/",
        started_at="2026-05-22T14:03:25.000Z",
        moment_s=0.0,
        raw_start=10,
        began_at=began_at,
    )


class Board:
    """A terminal's current, and a shell that notes what it is asked."""

    def __init__(self) -> None:
        self.command: UnrecordedCommand | None = None
        settings = TerminalSettings.__new__(TerminalSettings)
        self.state = TerminalState(settings, OsProcessHost())
        self.asked: list[FetchLine] = []
        self.is_gone = False
        self.following = ProgressRequests(self, self.state, self)  # type: ignore[arg-type]

    def forward(self, request: FetchLine, reply: Reply[Any]) -> None:
        if self.is_gone:
            raise ActorStopped("it has stopped")
        self.asked.append(request)

    def follow(self, cmd: str | None, seen: Progress | None = None) -> Reply[Progress]:
        reply: Reply[Progress] = Reply()
        request = FollowCommand(name="build", cmd=cmd, writer="alice", seen=seen)
        self.following.add(request, reply)
        return reply


async def test_a_queued_call_hears_who_has_the_terminal_once() -> None:
    board = Board()
    board.command = running("make -j8", "agent:bob")
    told = await board.follow("true").wait()
    assert told == Progress(line="waiting: agent:bob runs 'make -j8' (seq 4)", cursor=0)
    again = board.follow("true", seen=told)
    board.following.changed()
    assert not again.is_settled
    board.command = running(None, "human:ann")
    board.following.changed()
    assert (await again.wait()).line == "waiting: human:ann runs a command (seq 4)"


async def test_a_number_is_told_once_the_shell_has_said_that_the_command_runs() -> None:
    board = Board()
    board.command = running("make -j8", "agent:bob", began_at=None)
    told = await board.follow("true").wait()
    assert told == Progress(line="waiting: agent:bob runs 'make -j8'", cursor=0)
    again = board.follow("true", seen=told)
    assert not again.is_settled
    board.command = running("make -j8", "agent:bob")
    board.following.changed()
    assert (await again.wait()).line == "waiting: agent:bob runs 'make -j8' (seq 4)"


async def test_who_types_is_told_of_too() -> None:
    board = Board()
    waiting = board.follow("true")
    assert not waiting.is_settled
    board.state.typing = Typing(writer="human", since="2026-05-22T14:03:25.000Z")
    board.following.changed()
    assert (await waiting.wait()).line == (
        "waiting: human is typing a line, since 2026-05-22T14:03:25.000Z"
    )


async def test_once_the_command_runs_the_shell_is_asked() -> None:
    board = Board()
    board.follow("make", seen=Progress(line="waiting: x", cursor=0))
    board.command = running("make", "agent:alice")
    board.following.changed()
    board.follow("make", seen=Progress(line="cc a.c", cursor=77))
    assert board.asked == [FetchLine(after=0), FetchLine(after=77)]


async def test_without_a_text_any_command_is_followed() -> None:
    board = Board()
    waiting = board.follow(None)
    assert not waiting.is_settled
    board.command = running("make", "agent:bob")
    board.following.changed()
    assert board.asked == [FetchLine(after=0)]


async def test_a_shell_that_is_gone_is_told() -> None:
    board = Board()
    board.is_gone = True
    board.command = running("make", "agent:alice")
    with pytest.raises(ActorStopped):
        await board.follow("make").wait()


def test_so_many_may_follow() -> None:
    board = Board()
    replies = [board.follow("true") for _ in range(MAX_FOLLOWERS)]
    with pytest.raises(Busy):
        board.follow("true")
    replies[0].fail(Busy("it went away"))
    board.follow("true")
