"""The front of a terminal between its clients and a shell that plays a script."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import Actor, ActorStopped, ChildSpec, Ref, Reply, SupervisorSpec, open_system
from aegis.errors import Busy
from aegis.journal.flusher import Flusher
from aegis.processes.os_processes import OsProcessHost
from aegis.protocol.inboxes import Deliver
from aegis.protocol.output import FollowCommand, Progress
from aegis.protocol.terminals import RunCommand, Typing
from aegis.terminals import messages as msg
from aegis.terminals.front.terminal import MAX_FOLLOWERS, Terminal
from aegis.terminals.front.writer import LedgerWriter
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.shell import Shell
from tests.aegis.terminals.samples import AT, ended, started

SETTINGS = TerminalSettings(
    name="build",
    life="l",
    shell="bash",
    cwd="/",
    env={},
    cols=80,
    rows=24,
    started_at=AT,
    root="/",
)

INTRODUCTION = msg.Introduction(
    life=1,
    first_cursor=0,
    cursor=0,
    shells=("sh",),
    shell="sh",
    pid=None,
    integration="osc133",
    was_prompted=True,
    at_prompt=True,
    cwd="/",
    typing=None,
    submitted=None,
    needs_input=None,
    failure="",
    ending=None,
    notifications=(),
)


class ScriptedShell(Shell):
    """A shell's actor that introduces itself and keeps the requests that it gets."""

    def __init__(self, *, introduction: msg.Introduction, asked: list[Any]) -> None:
        self._introduction = introduction
        self._asked = asked

    async def setup(self) -> None: ...

    async def teardown(self) -> None: ...

    async def receive(self, message: Any) -> None:
        if isinstance(message, msg.Introduce):
            self.context.sibling("terminal", Terminal).tell(self._introduction)
            return
        self._asked.append(message)
        if isinstance(message, msg.FetchLine):
            self.defer(message)


class NoInboxes(Actor[Deliver]):
    """The inboxes, to which no terminal here sends anything."""


@attrs.define
class Board:
    """A front whose shell does what the test says, and all that the shell was asked."""

    front: Ref[Any]
    shell: Ref[Any]
    asked: list[Any]

    async def settled(self, *news: Any) -> None:
        """Send these notifications of the shell; return when all that they lead to is done."""
        for each in news:
            self.front.tell(each)
        await trio.testing.wait_all_tasks_blocked(0.01)

    async def runs(self, cmd: str | None, writer: str, *, begun: bool = True) -> None:
        """A command is submitted for this writer, or typed without a text, and begins."""
        if cmd is None:
            await self.settled(started(10))
            return
        self.front.send_request(RunCommand(name="build", cmd=cmd, timeout=60, from_handle=writer))
        await self.settled()
        if begun:
            await self.begins(cmd)

    async def begins(self, cmd: str) -> None:
        """The submitted command begins."""
        (sent,) = self.taken(msg.Submit)
        begin = attrs.evolve(started(0, sent.call), cmd=cmd, writer=sent.writer)
        await self.settled(begin)

    def follow(self, cmd: str | None, seen: Progress | None = None) -> Reply[Progress]:
        return self.front.send_request(
            FollowCommand(name="build", cmd=cmd, writer="alice", seen=seen)
        )

    def taken(self, kind: type[Any]) -> list[Any]:
        """Return the requests of this class that the shell has got since the last call."""
        found = [each for each in self.asked if isinstance(each, kind)]
        self.asked[:] = [each for each in self.asked if not isinstance(each, kind)]
        return found


@pytest.fixture(params=[INTRODUCTION])
async def board(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Board]:
    flusher, files, asked = Flusher(), TerminalFiles(tmp_path / "build"), list[Any]()
    files.directory.mkdir()
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        root = system.supervisor("root")
        inboxes = await root.start_child(ChildSpec.of("inboxes", NoInboxes))
        arguments: dict[str, Any] = {
            "settings": SETTINGS,
            "inboxes": inboxes,
            "host": OsProcessHost(),
        }
        shell = {"introduction": request.param, "asked": asked}
        children = (
            ChildSpec.of("writer", LedgerWriter, files=files, flusher=flusher),
            ChildSpec.of("terminal", Terminal, files=files, flusher=flusher, **arguments),
            ChildSpec.of("shell", ScriptedShell, **shell),
        )
        await root.start_child(SupervisorSpec(name="build", children=children))
        found = Board(system.ref("root/build/terminal"), system.ref("root/build/shell"), asked)
        await found.settled()
        yield found


# Progress.


async def test_a_queued_call_is_shown_once_who_has_the_terminal(board: Board) -> None:
    await board.runs("make -j8", "bob")
    told = await board.follow("true").wait()
    assert told == Progress(line="waiting: agent:bob runs 'make -j8' (seq 0)", cursor=0)
    again = board.follow("true", seen=told)
    await board.settled()
    assert not again.is_settled
    await board.settled(ended(0, 5), msg.Prompted(cwd="/"))
    await board.runs(None, "")
    assert (await again.wait()).line == "waiting: human runs a command (seq 1)"


async def test_a_number_is_shown_once_the_shell_has_reported_that_the_command_runs(
    board: Board,
) -> None:
    await board.runs("make -j8", "bob", begun=False)
    told = await board.follow("true").wait()
    assert told == Progress(line="waiting: agent:bob runs 'make -j8'", cursor=0)
    again = board.follow("true", seen=told)
    await board.settled()
    assert not again.is_settled
    await board.begins("make -j8")
    assert (await again.wait()).line == "waiting: agent:bob runs 'make -j8' (seq 0)"


async def test_a_line_that_is_typed_is_shown_too(board: Board) -> None:
    waiting = board.follow("true")
    await board.settled()
    assert not waiting.is_settled
    await board.settled(msg.TypingChanged(typing=Typing(writer="human", since=AT)))
    assert (await waiting.wait()).line == f"waiting: human is typing a line, since {AT}"


async def test_once_the_command_runs_the_shell_is_asked(board: Board) -> None:
    board.follow("make", seen=Progress(line="waiting: x", cursor=0))
    await board.runs("make", "alice")
    board.follow("make", seen=Progress(line="cc a.c", cursor=77))
    await board.settled()
    assert board.taken(msg.FetchLine) == [msg.FetchLine(after=0), msg.FetchLine(after=77)]


async def test_without_a_text_any_command_is_followed(board: Board) -> None:
    waiting = board.follow(None)
    await board.settled()
    assert not waiting.is_settled
    await board.runs("make", "bob")
    assert board.taken(msg.FetchLine) == [msg.FetchLine(after=0)]


async def test_progress_of_a_shell_that_is_gone_is_refused(board: Board) -> None:
    await board.runs("make", "alice")
    board.shell.stop()
    await board.settled()
    with pytest.raises(ActorStopped):
        await board.follow("make").wait()


async def test_so_many_may_follow(board: Board) -> None:
    replies = [board.follow("true") for _ in range(MAX_FOLLOWERS)]
    with pytest.raises(Busy):
        await board.follow("true").wait()
    replies[0].give_up(ActorStopped("its caller is gone"))
    again = board.follow("true")
    await board.settled()
    assert not again.is_settled


# Life.

STARTING = attrs.evolve(INTRODUCTION, was_prompted=False, at_prompt=False)


@pytest.mark.parametrize("board", [STARTING], indirect=True)
async def test_a_prompt_answers_everybody_who_waits_for_it_and_their_time_answers_nobody(
    board: Board, autojump_clock: trio.testing.MockClock
) -> None:
    waiting = [board.front.send_request(msg.AwaitPrompt(timeout_s=10)) for _ in range(2)]
    late = board.front.send_request(msg.AwaitPrompt(timeout_s=1))
    await board.settled()
    assert not any(each.is_settled for each in [*waiting, late])
    assert (await late.wait()).state == "starting"
    await board.settled(msg.Prompted(cwd="/"))
    assert [(await each.wait()).state for each in waiting] == ["idle", "idle"]
    await trio.sleep(20)
    assert (await board.front.ask(msg.Describe())).state == "idle"
