"""The screen of a terminal while it lives: fed from its raw log, off the hot path.

It sees the output as it comes, but only notes where it stands and where the alternate screen
begins and ends. A helper task of the shell's actor, which exists while there is something to do,
feeds the emulator in slices and answers who asked. So a program that floods its terminal costs no
more than before, and a terminal whose screen nobody ever saw has no emulator at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
import structlog
import trio

from actors import Reply
from aegis.errors import StorageError
from aegis.journal.raw_log import RawLog
from aegis.protocol.screens import Screen, ScreenCursor
from aegis.protocol.streams import Redraw
from aegis.terminals.screen.alternate import AlternateWatch
from aegis.terminals.screen.choice import new_emulator
from aegis.terminals.screen.emulator import Emulator, Screenshot
from aegis.terminals.screen.feeding import SLICE_BYTES, Feed, Feeding, Resize, Skip, safe_start
from aegis.terminals.screen.modes import ModeWatch
from aegis.terminals.screen.redraw import UNFINISHED_BYTES, redrawn, unfinished_bytes

log = structlog.get_logger("aegis.terminals")

MAX_CATCH_UP_BYTES = 8192
"""What is fed at once to tell a program where the cursor is."""

GATHER_S = 0.02
"""How long what a full-screen program draws gathers before it is fed, unless somebody asks."""

StartSoon = Callable[[Callable[[], Awaitable[object]]], None]


@attrs.frozen
class _Request:
    """Somebody wants to see the screen as it is at offset ``target``, told or drawn."""

    target: int
    tell: Callable[[Screenshot], None]


class LiveScreen:
    """The screen of the shells of one terminal, one after the other.

    An ``OutputObserver``. ``start_soon`` starts a helper task that ends with the actor's life.
    """

    def __init__(self, raw_log: RawLog, rows: int, cols: int, start_soon: StartSoon) -> None:
        self._raw_log = raw_log
        self._rows, self._cols = rows, cols
        self._start_soon = start_soon
        self._requests: list[_Request] = []
        self._asked: trio.Event | None = None
        self._is_followed = False
        self._is_closed = False
        self.begin_anew()

    def begin_anew(self) -> None:
        """A fresh shell, on a PTY of its own: an empty screen."""
        self._feeding = Feeding(self._raw_log.position)
        self._watch = AlternateWatch()
        self._modes = ModeWatch()
        self._emulator: Emulator | None = None
        self._first_size = (self._rows, self._cols)
        if self._requests:
            self._follow()

    @property
    def shows_alternate(self) -> bool:
        """Whether a full-screen program shows its own screen, at the end of the output."""
        return self._watch.shows

    def output(self, data: bytes, cursor: int) -> None:
        """``data`` was printed; its first byte has the offset ``cursor`` in the raw log."""
        self._modes.feed(data)
        for offset, alternate in self._watch.feed(data, cursor):
            self._feeding.switched(offset, alternate=alternate)
        self._feeding.output(cursor + len(data))
        if self._feeding.must_reach > self._feeding.fed:
            self._follow()

    def resize(self, rows: int, cols: int) -> None:
        """The window has another size from here on."""
        self._rows, self._cols = rows, cols
        self._feeding.resized(rows, cols)

    def request(self, reply: Reply[Screen]) -> None:
        """Answer with the screen as it is now, once the emulator is there."""
        self._add(lambda shot: reply.send(as_reply(shot)))

    def request_redraw(self, reply: Reply[Redraw]) -> None:
        """Likewise with text that draws it, and the cursor from which bytes go on."""
        self._add(lambda shot: reply.send(self._redrawn(shot)))

    def _add(self, tell: Callable[[Screenshot], None]) -> None:
        self._requests.append(_Request(self._raw_log.position, tell))
        if self._asked is not None:
            self._asked.set()
        self._follow()

    def cursor_position(self, at: int | None = None) -> tuple[int, int]:
        """Row and column of the cursor, from 1, at offset ``at`` of the output; default: its end.

        For a program that asks, so it is told at once: where the emulator is far behind, from what
        the newest few KiB say. Must be called after ``output`` saw the bytes before ``at``, and
        before later output.
        """
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
        """Feed no more: the raw log is about to be closed."""
        self._is_closed = True

    def _follow(self) -> None:
        if not self._is_followed:
            self._is_followed = True
            self._start_soon(self._keep_up)

    async def _keep_up(self) -> None:
        """Feed until nothing is left to do."""
        await self._rest(GATHER_S)
        while not self._is_closed:
            begin = trio.current_time()
            wanted = max((request.target for request in self._requests), default=0)
            is_left = self._advance(max(wanted, self._feeding.must_reach))
            self._answer()
            if not is_left and not self._requests:
                break
            # So a program that draws without end takes half of the loop's time at most.
            await self._rest(trio.current_time() - begin)
        self._is_followed = False

    async def _rest(self, seconds: float) -> None:
        """Let others have their turn: so long, unless somebody asks."""
        if self._requests:
            await trio.lowlevel.checkpoint()
        else:
            self._asked = trio.Event()
            with trio.move_on_after(seconds):
                await self._asked.wait()
            self._asked = None

    def _answer(self) -> None:
        """Everybody whose moment was reached."""
        if self._feeding.is_in_between:
            return  # the window's size, say: the next step
        fed = self._feeding.fed
        reached = [request for request in self._requests if request.target <= fed]
        if reached:
            self._requests = [request for request in self._requests if request.target > fed]
            shot = self._present().screen()
            for request in reached:
                request.tell(shot)

    def _redrawn(self, shot: Screenshot) -> Redraw:
        """Modes may have been switched behind what was fed: the bytes that follow say so again."""
        fed = self._feeding.fed
        newest, _ = self._read(max(fed - UNFINISHED_BYTES, 0), fed)
        return Redraw(
            redraw=redrawn(shot, self._modes.sequences()),
            cursor=fed - unfinished_bytes(newest),
            partial=shot.partial,
        )

    def _advance(self, target: int) -> bool:
        """One step towards ``target``; False if it was reached."""
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
        """The bytes of ``[start, end)`` that can be read, and how many cannot."""
        try:
            return self._raw_log.read(start, end)
        except StorageError:
            return b"", end - start


def as_reply(shot: Screenshot) -> Screen:
    """A screen as clients are told of it."""
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
