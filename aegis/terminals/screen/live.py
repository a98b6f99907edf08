"""The screen of a running terminal, fed from its raw log, off the hot path.

The hot path only records the position of the output and the switches of the alternate screen. A
helper task of the shell's actor, which exists while there is work, feeds the emulator in slices and
answers the requests. So a flood of output costs no more than before, and a terminal whose screen
was never requested has no emulator.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import attrs
import structlog
import trio

from actors import Reply
from aegis.errors import StorageError
from aegis.journal.raw_log import RawLog
from aegis.protocol.output_streams import Redraw
from aegis.protocol.screens import Screen, ScreenCursor
from aegis.terminals.parse.control_sequences import ControlSequence
from aegis.terminals.screen.choice import new_emulator
from aegis.terminals.screen.emulator import Emulator, Screenshot
from aegis.terminals.screen.feeding import SLICE_BYTES, Feed, Feeding, Resize, Skip, safe_start
from aegis.terminals.screen.modes import ModeWatch, alternate_switch
from aegis.terminals.screen.painter import Painter
from aegis.terminals.screen.redraw import (
    UNFINISHED_BYTES,
    marks_of,
    redrawn,
    unfinished_bytes,
)
from aegis.terminals.screen.replay import MainStretches

log = structlog.get_logger("aegis.terminals")

MAX_CATCH_UP_BYTES = 8192
"""Limit of bytes fed at once to answer a program's query for the cursor."""

GATHER_S = 0.02
"""Time, in seconds, that a full-screen program's output is collected, without a request."""

StartSoon = Callable[[Callable[[], Awaitable[object]]], None]


@attrs.frozen
class _Request:
    """A request for the screen at offset ``target`` of the output."""

    target: int
    answer: Callable[[Screenshot], None]


class LiveScreen:
    """The screen of one terminal, for each of its shells in turn.

    ``start_soon`` starts a helper task that ends with the actor's incarnation. ``shows_alternate``:
    the alternate screen is shown at the end of the output.
    """

    def __init__(self, raw_log: RawLog, rows: int, cols: int, start_soon: StartSoon) -> None:
        self._raw_log = raw_log
        self._rows, self._cols = rows, cols
        self._start_soon = start_soon
        self._requests: list[_Request] = []
        self._asked: trio.Event | None = None
        self._is_followed = False
        self._is_closed = False
        self.reset()

    def reset(self, modes: ModeWatch | None = None) -> None:
        """Start with an empty screen, for a new shell, whose ``modes`` its owner follows."""
        self._feeding = Feeding(self._raw_log.position)
        self._stretches = MainStretches(self._raw_log.position)
        self.shows_alternate = False
        self.modes = modes or ModeWatch()
        self._emulator: Emulator | None = None
        self._first_size = (self._rows, self._cols)
        if self._requests:
            self._follow()

    def output(self, end: int, sequences: Iterable[ControlSequence]) -> None:
        """Note output up to the offset ``end`` of the raw log, in which ``sequences`` end."""
        for sequence in sequences:
            alternate = alternate_switch(sequence)
            if alternate is not None and alternate is not self.shows_alternate:
                self.shows_alternate = alternate
                self._feeding.switched(sequence.end, alternate=alternate)
                self._stretches.switched(sequence.end, alternate=alternate)
        if self._feeding.output(end):
            self._follow()

    def resize(self, rows: int, cols: int) -> None:
        """Change the size of the window at the end of the output."""
        self._rows, self._cols = rows, cols
        self._feeding.resized(rows, cols)

    def request(self, reply: Reply[Screen]) -> None:
        """Answer with the screen as it is now, once the emulator has reached the end."""
        self.look(lambda shot: reply.send(as_reply(shot)))

    def request_redraw(self, reply: Reply[Redraw], scrollback: int) -> None:
        """Answer with text that draws the screen, and the cursor of the bytes that follow.

        ``scrollback`` is the number of lines above the main screen that it draws first.
        """
        self.look(lambda shot: self._start_drawing(shot, reply, scrollback))

    def look(self, answer: Callable[[Screenshot], None]) -> None:
        """Call ``answer`` with the screen as it is now, once the emulator has reached the end."""
        self._requests.append(_Request(self._raw_log.position, answer))
        if self._asked is not None:
            self._asked.set()
        self._follow()

    def cursor_position(self, at: int | None = None) -> tuple[int, int]:
        """Return row and column of the cursor, from 1, at offset ``at`` (default: the end).

        Call it after ``output`` took the bytes before ``at``, and before later output.
        """
        # A program waits for the answer, so it is given at once: where the emulator is far behind,
        # from the newest few KiB.
        at = self._raw_log.position if at is None else at
        if self._feeding.behind(at) > MAX_CATCH_UP_BYTES:
            emulator = new_emulator(self._rows, self._cols)
            emulator.feed(self._newest(at))
        else:
            while self._advance(at):
                pass
            emulator = self._present()
        row, column = emulator.screen().cursor
        return row + 1, column + 1

    def close(self) -> None:
        """Stop feeding, before the raw log is closed."""
        self._is_closed = True

    def _follow(self) -> None:
        if not self._is_followed:
            self._is_followed = True
            self._start_soon(self._keep_up)

    async def _keep_up(self) -> None:
        """Feed until no work is left."""
        await self._rest(GATHER_S)
        while not self._is_closed:
            begin = trio.current_time()
            wanted = max((request.target for request in self._requests), default=0)
            is_left = self._advance(max(wanted, self._feeding.must_reach))
            self._answer()
            if not is_left and not self._requests:
                break
            # So a program that draws without end takes at most half of the loop's time.
            await self._rest(trio.current_time() - begin)
        self._is_followed = False

    async def _rest(self, seconds: float) -> None:
        """Let other tasks run for this time, or until the next request."""
        if self._requests:
            await trio.lowlevel.checkpoint()
        else:
            self._asked = trio.Event()
            with trio.move_on_after(seconds):
                await self._asked.wait()
            self._asked = None

    def _answer(self) -> None:
        """Answer the requests whose offset was reached."""
        if self._feeding.is_in_between:
            return  # a change at this offset, such as a resize, comes with the next step
        fed = self._feeding.fed
        reached = [request for request in self._requests if request.target <= fed]
        if reached:
            self._requests = [request for request in self._requests if request.target > fed]
            shot = self._present().screen()
            for request in reached:
                request.answer(shot)

    def _start_drawing(self, shot: Screenshot, reply: Reply[Redraw], scrollback: int) -> None:
        # The modes are those at the end of the output, perhaps later than the fed bytes: the bytes
        # that follow repeat the switches.
        fed, modes = self._feeding.fed, self.modes.sequences()
        newest, _ = self._read(max(fed - UNFINISHED_BYTES, 0), fed)
        end = fed - unfinished_bytes(newest)
        painter = Painter(shot, self._stretches, lambda start, stop: self._read(start, stop)[0])

        async def draw() -> None:
            drawing = await painter.draw(end, scrollback)
            redraw, marks = redrawn(drawing, shot, modes), marks_of(drawing)
            reply.send(Redraw(redraw=redraw, cursor=end, partial=shot.partial, marks=marks))

        self._start_soon(draw)

    def _advance(self, target: int) -> bool:
        """Do one step towards ``target``; return False if it was reached."""
        step = self._feeding.next(target)
        match step:
            case Feed(start=start, end=end):
                data, missing = self._read(start, end)
                if missing:
                    self._present().skip(alternate=self._feeding.alternate)
                self._present().feed(data)
                self._feeding.reached(end)
                self._log_failure()
            case Skip(to=to, alternate=alternate):
                data, _ = self._read(to, to + SLICE_BYTES)
                self._present().skip(alternate=alternate)
                self._feeding.reached(to + safe_start(data))
            case Resize(rows=rows, cols=cols):
                self._present().resize(rows, cols)
        return step is not None

    def _log_failure(self) -> None:
        failure = self._present().take_failure()
        if failure is not None:
            log.error("screen begun anew", log=str(self._raw_log.path), error=failure)

    def _present(self) -> Emulator:
        if self._emulator is None:
            self._emulator = new_emulator(*self._first_size)
        return self._emulator

    def _newest(self, at: int) -> bytes:
        data, _ = self._read(at - MAX_CATCH_UP_BYTES, at)
        return data[safe_start(data) :]

    def _read(self, start: int, end: int) -> tuple[bytes, int]:
        """Return the readable bytes of ``[start, end)``, and the number of missing ones."""
        try:
            return self._raw_log.read(start, end)
        except StorageError:
            return b"", end - start


def as_reply(shot: Screenshot) -> Screen:
    """Return the screen as a reply."""
    row, col = shot.cursor
    return Screen(
        rows=shot.rows,
        cols=shot.cols,
        cursor=ScreenCursor(row=row, col=col, visible=shot.cursor_visible),
        title=shot.title,
        alternate=shot.alternate,
        partial=shot.partial,
        lines=list(shot.lines),
    )
