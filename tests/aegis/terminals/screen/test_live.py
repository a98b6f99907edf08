from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import attrs
import pytest
import trio

from actors import Reply
from aegis.journal.raw_log import RawLog
from aegis.protocol.screens import Screen
from aegis.terminals.parse.control_sequences import SequenceScanner
from aegis.terminals.screen import live as live_module
from aegis.terminals.screen.feeding import WINDOW_BYTES
from aegis.terminals.screen.live import LiveScreen

GUARD_S = 60.0
FLOOD = b"".join(b"line %d\r\n" % number for number in range(20_000))


@attrs.define
class Terminal:
    """A live screen, and what a tracker would do for it."""

    screen: LiveScreen
    log: RawLog
    scanner: SequenceScanner = attrs.field(factory=SequenceScanner)

    def prints(self, *chunks: bytes) -> None:
        for chunk in chunks:
            cursor = self.log.position
            self.log.write(chunk)
            self.screen.output(self.log.position, self.scanner.feed(chunk, cursor))

    async def shown(self) -> Screen:
        reply: Reply[Screen] = Reply()
        self.screen.request(reply)
        with trio.fail_after(GUARD_S):
            return await reply.wait()

    async def lines(self) -> list[str]:
        return [line for line in (await self.shown()).lines if line]

    async def follows(self) -> None:
        """Wait until there is nothing left to follow."""
        with trio.fail_after(GUARD_S):
            while self.screen._is_followed:
                await trio.lowlevel.checkpoint()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RawLog]:
    log = RawLog.open(tmp_path)
    log.write(b"of an earlier shell\r\n")
    yield log
    log.close()


@pytest.fixture
async def terminal(log: RawLog) -> AsyncIterator[Terminal]:
    async with trio.open_nursery() as nursery:
        yield Terminal(LiveScreen(log, 5, 20, nursery.start_soon), log)


async def test_a_screen_nobody_asks_for_is_never_made(terminal: Terminal) -> None:
    terminal.prints(FLOOD)
    await terminal.follows()
    assert terminal.screen._emulator is None


async def test_who_asks_sees_what_was_printed_so_far(terminal: Terminal) -> None:
    terminal.prints(b"hello\r\n", b"\x1b[1mwor", b"ld")
    shown = await terminal.shown()
    assert shown.lines == ["hello", "world", "", "", ""]
    assert (shown.cursor.row, shown.cursor.col, shown.cursor.visible) == (1, 5, True)
    assert (shown.rows, shown.cols, shown.partial, shown.alternate) == (5, 20, False, False)
    terminal.prints(b"!")
    assert await terminal.lines() == ["hello", "world!"]


async def test_of_a_flood_the_newest_is_seen_and_said_to_be_partial(terminal: Terminal) -> None:
    terminal.prints(b"first\r\n", FLOOD)
    shown = await terminal.shown()
    assert shown.partial
    assert shown.lines == [*(f"line {number}" for number in range(19_996, 20_000)), ""]
    terminal.prints(b"\x1b[H\x1b[2J$ ")
    assert not (await terminal.shown()).partial


async def test_a_full_screen_program_is_followed_while_nobody_asks(terminal: Terminal) -> None:
    terminal.prints(b"$ top\r\n\x1b[?1049h\x1b[H\x1b[2Jheading")
    for number in range(10_000):
        terminal.prints(b"\x1b[3;1Hvalue %d   " % number)
        if number % 50 == 0:
            await trio.lowlevel.checkpoint()
    await terminal.follows()
    shown = await terminal.shown()
    assert (shown.lines[0], shown.lines[2]) == ("heading", "value 9999")
    assert (shown.alternate, shown.partial) == (True, False)
    terminal.prints(b"\x1b[?1049l")
    await terminal.follows()
    assert await terminal.lines() == ["$ top"]


async def test_a_switch_that_is_cut_in_two_is_seen(terminal: Terminal) -> None:
    for byte in b"main\x1b[?1049h\x1b[Halt":
        terminal.prints(bytes([byte]))
    assert (await terminal.shown()).alternate
    assert await terminal.lines() == ["alt"]


async def test_a_program_that_floods_its_screen_is_seen_late_and_partial(
    terminal: Terminal,
) -> None:
    terminal.prints(b"main\x1b[?1049h", FLOOD, FLOOD, b"\x1b[Hthe end")
    shown = await terminal.shown()
    assert (shown.alternate, shown.partial, shown.lines[0]) == (True, True, "the end996")
    terminal.prints(b"\x1b[?1049l")
    assert await terminal.lines() == ["main"]


async def test_who_asks_sees_nothing_older_than_the_question(terminal: Terminal) -> None:
    replies: list[Reply[Screen]] = []
    for number in range(50):
        terminal.prints(b"\r%d" % number)
        replies.append(Reply())
        terminal.screen.request(replies[-1])
        if number % 7 == 0:
            await trio.lowlevel.checkpoint()
    with trio.fail_after(GUARD_S):
        for number, reply in enumerate(replies):
            assert int((await reply.wait()).lines[0]) >= number


async def test_a_new_size_takes_effect_at_its_place(terminal: Terminal) -> None:
    terminal.prints(b"x" * 30)
    terminal.screen.resize(4, 40)
    terminal.prints(b"\r\n" + b"y" * 30)
    shown = await terminal.shown()
    assert shown.lines == ["x" * 20, "x" * 10, "y" * 30, ""]
    assert (shown.rows, shown.cols) == (4, 40)


async def test_a_new_size_shows_at_once_though_nothing_was_printed_since(
    terminal: Terminal,
) -> None:
    await terminal.shown()
    terminal.prints(b"x" * 30)
    terminal.screen.resize(4, 40)
    shown = await terminal.shown()
    assert (shown.rows, shown.cols, len(shown.lines)) == (4, 40, 4)


async def test_a_fresh_shell_begins_on_an_empty_screen_of_the_present_size(
    terminal: Terminal,
) -> None:
    terminal.prints(b"old\x1b[?1049hvim")
    terminal.screen.resize(3, 30)
    reply: Reply[Screen] = Reply()
    terminal.screen.request(reply)
    terminal.screen.reset()
    with trio.fail_after(GUARD_S):
        assert (await reply.wait()).lines == ["", "", ""]
    terminal.prints(b"$ ")
    shown = await terminal.shown()
    assert (shown.lines, shown.cols, shown.alternate) == (["$", "", ""], 30, False)


async def test_bytes_that_the_log_lost_make_the_screen_partial(
    monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    terminal.prints(b"before\r\n")
    assert await terminal.lines() == ["before"]
    terminal.prints(b"lost\r\n")
    monkeypatch.setattr(terminal.log, "read", lambda start, end: (b"", end - start))
    assert (await terminal.shown()).partial
    monkeypatch.undo()
    terminal.prints(b"after")
    assert await terminal.lines() == ["after"]


@pytest.mark.parametrize("before", [b"", b"x\x1b[?1049h\x1b[H", FLOOD[:5000], FLOOD])
async def test_where_the_cursor_is_can_be_told_at_once(terminal: Terminal, before: bytes) -> None:
    terminal.prints(before + b"\r\n\x1b[3;")
    terminal.prints(b"7H")
    assert terminal.screen.cursor_position() == (3, 7)


async def test_where_the_cursor_is_can_be_told_of_the_middle_of_a_chunk(
    terminal: Terminal,
) -> None:
    chunk = b"\x1b[999;999H\x1b[6n\x1b[1;1H"
    start = terminal.log.position
    terminal.prints(chunk)
    assert terminal.screen.cursor_position(start + chunk.index(b"\x1b[6n")) == (5, 20)
    assert terminal.screen.cursor_position() == (1, 1)


async def test_telling_the_cursor_in_a_flood_does_not_cost_the_screen(
    monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    terminal.prints(b"top\r\n", b"x" * (WINDOW_BYTES - 100))
    read: list[int] = []
    original = terminal.log.read

    def counted(start: int, end: int) -> tuple[bytes, int]:
        read.append(end - start)
        return original(start, end)

    monkeypatch.setattr(terminal.log, "read", counted)
    terminal.screen.cursor_position()
    assert sum(read) == live_module.MAX_CATCH_UP_BYTES
    assert not (await terminal.shown()).partial


async def test_nothing_is_read_of_a_log_that_is_closed(terminal: Terminal) -> None:
    terminal.prints(b"\x1b[?1049h" + FLOOD)
    terminal.screen.close()
    terminal.log.close()
    await terminal.follows()
