"""The front of a terminal between its clients and a shell that plays a script."""

from __future__ import annotations

import errno
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import Actor, ActorStopped, ChildSpec, Ref, Reply, SupervisorSpec, open_system
from actors.faults import RUNTIME, Crash, Plan, armed
from aegis.errors import Busy, InvalidRequest, StorageError
from aegis.journal.disk import OsDisk
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from aegis.processes.os_processes import OsProcessHost
from aegis.protocol.inboxes import Deliver
from aegis.protocol.output import FollowCommand, Progress, ReadOutput
from aegis.protocol.terminals import ReadRecords, RunCommand, Typing
from aegis.terminals import messages as msg
from aegis.terminals.front.terminal import MAX_FOLLOWERS, Terminal
from aegis.terminals.front.writer import LedgerWriter
from aegis.terminals.output.notifier import Notifier
from aegis.terminals.record import commands_in
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.shell import Shell
from tests.aegis.terminals.samples import AT, ended, started

HANG_S = 60.0
"""A guard against hanging, far above what anything here takes."""

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

    def __init__(
        self, *, introductions: list[msg.Introduction], asked: list[Any], heard: Notifier
    ) -> None:
        self._introductions = introductions
        self._asked = asked
        self._heard = heard

    async def setup(self) -> None: ...

    async def teardown(self) -> None: ...

    async def receive(self, message: Any) -> None:
        self._asked.append(message)
        self._heard.notify()
        if isinstance(message, msg.Introduce):
            self.context.sibling("terminal", Terminal).tell(self._introductions[-1])
        if isinstance(message, msg.FetchLine):
            self.defer(message)


class SlowDisk(OsDisk):
    """A disk whose syncs wait for ``may_sync``, and which can refuse lines and syncs."""

    def __init__(self) -> None:
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.refuses = self.refuses_syncs = False

    def fdatasync(self, fd: int) -> None:
        self.may_sync.wait()
        if self.refuses_syncs:
            raise OSError(errno.EIO, "broken")
        super().fdatasync(fd)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if self.refuses:
            raise OSError(errno.ENOSPC, "full")
        return super().write(fd, data)


class NoInboxes(Actor[Deliver]):
    """The inboxes, to which no terminal here sends anything."""


@attrs.define
class Board:
    """A front whose shell does what the test says, and all that the shell was asked."""

    front: Ref[Any]
    shell: Ref[Any]
    asked: list[Any]
    heard: Notifier
    introductions: list[msg.Introduction]
    files: TerminalFiles
    disk: SlowDisk

    def records(self) -> list[dict[str, Any]]:
        """Return the lines of the ledger's file, synced or not."""
        return [json.loads(line) for line in self.files.ledger.read_bytes().splitlines()]

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

    async def asks(self, kind: type[Any]) -> None:
        """Wait until the shell gets a request of this class."""
        with trio.fail_after(HANG_S):
            while not self.taken(kind):
                await self.heard.wait()

    def taken(self, kind: type[Any]) -> list[Any]:
        """Return the requests of this class that the shell has got since the last call."""
        found = [each for each in self.asked if isinstance(each, kind)]
        self.asked[:] = [each for each in self.asked if not isinstance(each, kind)]
        return found


@pytest.fixture(params=[INTRODUCTION])
async def board(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Board]:
    disk, files, asked = SlowDisk(), TerminalFiles(tmp_path / "build"), list[Any]()
    flusher, introductions, heard = Flusher(disk), [request.param], Notifier()
    files.directory.mkdir()
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        root = system.supervisor("root")
        inboxes = await root.start_child(ChildSpec.of("inboxes", NoInboxes))
        arguments: dict[str, Any] = {
            "settings": SETTINGS,
            "inboxes": inboxes,
            "host": OsProcessHost(),
        }
        children = (
            ChildSpec.of("writer", LedgerWriter, files=files, flusher=flusher),
            ChildSpec.of("terminal", Terminal, files=files, flusher=flusher, **arguments),
            ChildSpec.of(
                "shell", ScriptedShell, introductions=introductions, asked=asked, heard=heard
            ),
        )
        await root.start_child(SupervisorSpec(name="build", children=children))
        front, shell = system.ref("root/build/terminal"), system.ref("root/build/shell")
        found = Board(front, shell, asked, heard, introductions, files, disk)
        await found.settled()
        yield found
        disk.may_sync.set()


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


# Records.


async def test_a_record_is_in_the_file_in_the_step_of_the_end_and_shown_once_it_is_synced(
    board: Board,
) -> None:
    await board.runs("make", "alice")
    board.disk.may_sync.clear()
    assert board.front.hand_over(ended(0, 5))
    assert [(each["seq"], each["end"]) for each in board.records()] == [(0, "exited")]
    await board.settled()
    assert board.taken(msg.CommandRecorded) == []
    board.disk.may_sync.set()
    await board.asks(msg.CommandRecorded)


async def test_the_outcome_of_a_record_that_the_disk_refuses_is_in_the_note(board: Board) -> None:
    await board.runs("make", "alice")
    board.disk.refuses = True
    await board.settled(ended(0, 5))
    assert board.records() == []
    note = Note.open(board.files.note, Flusher())
    (command,) = commands_in(note.load() or {})
    note.close()
    assert command.outcome is not None
    assert (command.outcome.end, command.outcome.raw_end) == ("exited", 5)


async def test_a_sync_that_the_disk_refuses_is_the_error_of_the_caller(board: Board) -> None:
    running = board.front.send_request(
        RunCommand(name="build", cmd="make", timeout=60, from_handle="alice")
    )
    await board.settled()
    await board.begins("make")
    board.disk.refuses_syncs = True
    board.front.tell(ended(0, 5))
    with pytest.raises(StorageError):
        await running.wait()


async def test_a_record_that_was_handed_over_is_the_one_that_is_shown_though_all_crash(
    board: Board,
) -> None:
    """Front and shell crash before it is synced: neither knows that the command has ended."""
    await board.runs("make", "alice")
    board.disk.may_sync.clear()
    assert board.front.hand_over(ended(0, 5))
    board.introductions.append(attrs.evolve(INTRODUCTION, life=2, shells=("new",), shell="new"))
    with armed(Plan({("actor.receive.before[Terminal]", 1): Crash()}), RUNTIME):
        board.taken(msg.Introduce)
        board.front.tell(msg.RetryAppends())
        await board.asks(msg.Introduce)
    reading = board.front.send_request(ReadRecords(name="build"))
    await board.settled()
    assert not reading.is_settled
    board.disk.may_sync.set()
    (record,) = (await reading.wait()).result
    assert (record.end, record.exit, record.duration_s) == ("exited", 0, 0.0)
    assert [each["end"] for each in board.records()] == ["exited"]


async def test_the_output_of_one_command_is_read_within_it(board: Board) -> None:
    await board.runs("make", "alice")
    board.front.send_request(ReadOutput(name="build", seq=0))
    await board.settled()
    (asked,) = board.taken(msg.FetchOutput)
    assert (asked.cursor, asked.end, asked.command is not None) == (0, None, True)
    await board.settled(ended(0, 5))
    with pytest.raises(InvalidRequest, match="goes from 0 to 5"):
        await board.front.ask(ReadOutput(name="build", seq=0, cursor=6))


# Life.


async def test_a_new_shell_is_sent_the_size_of_the_window(board: Board) -> None:
    board.taken(msg.SetSize)
    await board.settled(attrs.evolve(INTRODUCTION, life=2))
    assert board.taken(msg.SetSize) == [msg.SetSize(rows=24, cols=80)]


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
    assert all(each.is_settled for each in waiting)
    assert [(await each.wait()).state for each in waiting] == ["idle", "idle"]
    await trio.sleep(20)
    assert (await board.front.ask(msg.Describe())).state == "idle"


# The end.


async def test_an_end_that_is_asked_for_again_once_all_has_ended_is_answered_again(
    board: Board,
) -> None:
    """A close and the stop of the daemon overlap."""
    first = board.front.send_request(msg.EndTerminal(end="closed"))
    await board.asks(msg.EndShell)
    await board.settled()
    assert not first.is_settled
    gone = msg.ShellEnded(
        shell="sh",
        exit=0,
        output=msg.NO_OUTPUT,
        finished_at=AT,
        moment_s=0.0,
        raw_end=0,
        leftover=("sleep (7)",),
        end="closed",
    )
    board.front.tell(gone)
    answer = msg.EndedTerminal(leftover=("sleep (7)",))
    assert await first.wait() == answer
    with trio.fail_after(HANG_S):
        again = board.front.send_request(msg.EndTerminal(end="killed_by_restart"))
        assert await again.wait() == answer
