"""The attachment of a window to a terminal: output goes to the window, keystrokes to the terminal.

Six tasks run: one shows output, one reads keys, one types them, one sets the size, one handles
signals, and one reports a lost connection. Whichever task ends the attachment cancels the others;
the user's own terminal is restored in every case.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import trio

from aegis.cli.grammar.keys import DetachKeys, shown_keys
from aegis.cli.grammar.verb import TargetDaemon
from aegis.cli.grammar.words import in_verbs
from aegis.cli.live.event_loop import run
from aegis.cli.live.queries import QueryFilter
from aegis.cli.live.tty import OwnTerminal, open_own_terminal
from aegis.cli.live.window import WindowModes
from aegis.cli.printing.formatting import escaped_line
from aegis.client.client import Client, connect
from aegis.client.errors import ClientError, CommandFailed
from aegis.client.stream_kinds import Chunk, Gap, OutputValue
from aegis.client.streams import OutputStream
from aegis.protocol.output_streams import (
    Redraw,
    Refused,
    StateItem,
)

SIGNALS = (
    signal.SIGWINCH,
    signal.SIGTSTP,
    signal.SIGCONT,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
)

MAX_KEY_READS = 64
"""Reads of keys queued for sending; beyond that, keys stay in the buffer of the own terminal."""

GOODBYE_S = 5.0
"""Seconds in which a daemon that ended its streams in order to stop closes the connection."""

MIN_SIZE, MAX_SIZE = (2, 1), (1000, 1000)
"""Smallest and largest size of a terminal, in columns and rows."""


@attrs.frozen
class Ending:
    """The end of an attachment: the exit code, and one sentence for people."""

    code: int
    sentence: str


def run_attach(daemon: TargetDaemon, name: str, keys: bytes, *, types: bool, resizes: bool) -> int:
    """Attach to ``name`` until ``keys`` are pressed or it is over; return the exit code.

    ``types``: keystrokes are sent to the terminal. ``resizes``: the terminal gets the size of the
    window. Raises ``ClientError`` only before anything is shown.
    """

    async def attach() -> Ending:
        async with connect(Path(daemon.root), handle=daemon.handle, patience_s=math.inf) as client:
            with open_own_terminal(0, 1) as own:
                attachment = Attachment(client, name, own, keys, types=types, resizes=resizes)
                return await attachment.run()

    ending = run(attach)
    # Not through sys.stderr: if the window is gone, its buffer would fail once more at the exit.
    with contextlib.suppress(OSError):
        os.write(2, f"{ending.sentence}\n".encode())
    return ending.code


class Attachment:
    """One attachment of the user's terminal ``own`` to the terminal ``name``."""

    def __init__(
        self,
        client: Client,
        name: str,
        own: OwnTerminal,
        detach_keys: bytes,
        *,
        types: bool,
        resizes: bool,
    ) -> None:
        self._client = client
        self._name = name
        self._own = own
        self._hint = f"{shown_keys(detach_keys)} detaches"
        self._detach = DetachKeys(detach_keys)
        self._types = types
        self._resizes = resizes
        self._window = WindowModes()
        self._filter = QueryFilter()
        self._output: OutputStream | None = None
        self._opened = trio.Event()
        self._has_begun = False
        self._following = trio.CancelScope()
        self._draws = True
        self._cursor: int | None = None
        self._is_below_drawn = True
        self._typing = trio.CancelScope()
        self._all_typed = trio.Event()
        self._resized = trio.Event()
        self._all = trio.CancelScope()
        self._ending: Ending | None = None

    async def run(self) -> Ending:
        """Attach until the end; return how it ended."""
        try:
            with trio.open_signal_receiver(*SIGNALS) as signals, self._all:
                await self._run_tasks(signals)
        finally:
            self._leave()
        assert self._ending is not None
        return self._ending

    async def _run_tasks(self, signals: AsyncIterator[int]) -> None:
        sender, receiver = trio.open_memory_channel[bytes](MAX_KEY_READS)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._show_all)
            nursery.start_soon(self._handle_signals, signals)
            nursery.start_soon(self._read_keys, sender)
            nursery.start_soon(self._type_keys, receiver)
            nursery.start_soon(self._set_sizes)
            nursery.start_soon(self._report_losses)

    def _end(self, code: int, sentence: str) -> None:
        self._ending = self._ending or Ending(code, escaped_line(sentence))
        self._all.cancel()

    def _leave(self) -> None:
        if self._has_begun:
            self._own.write_now(self._window.leaving())
        self._own.restore()

    # Output of the terminal.

    async def _show_all(self) -> None:
        """Show one stream after another; redraw the screen where bytes are not enough."""
        wants_more = True
        try:
            await self._resize_first()
            while wants_more:
                try:
                    wants_more = await self._show_one()
                except CommandFailed as error:
                    await self._wait_stopped(error)
            self._end(0, f"the terminal {self._name} was closed")
        except ClientError as error:
            self._end(1, f"aegis-actors: {in_verbs(str(error))}")

    async def _show_one(self) -> bool:
        """Show one stream; return False if the terminal was closed, else True."""
        screen, cursor = self._draws, None if self._draws else self._cursor
        async with self._client.terminals.watch(self._name, screen=screen, cursor=cursor) as output:
            if not self._has_begun:
                self._own.make_raw()
            self._has_begun, self._draws = True, False
            self._is_below_drawn = not (screen and output.start.alternate)
            self._filter = QueryFilter()
            self._output = output
            self._send_size()
            self._opened.set()
            try:
                return await self._show(output)
            finally:
                self._output, self._opened = None, trio.Event()

    async def _show(self, output: OutputStream) -> bool:
        with trio.CancelScope() as self._following:
            async for value in output:
                await self._show_value(value)
            return False
        return True

    def _redraw(self) -> None:
        self._draws = True
        self._following.cancel()

    async def _wait_stopped(self, error: CommandFailed) -> None:
        """Return if the daemon is stopping, since another may start; else raise ``error``."""
        if error.code == "invalid_request" and not self._draws:
            self._draws = True  # a killed daemon may have stored less than it had sent
        elif error.code != "unavailable" or not await self._is_lost_within(GOODBYE_S):
            raise error

    async def _is_lost_within(self, limit_s: float) -> bool:
        with trio.move_on_after(limit_s):
            await self._client.wait_connected(False)
            return True
        return False

    async def _show_value(self, value: OutputValue) -> None:
        match value:
            case Redraw():
                await self._draw(value)
            case Chunk():
                self._cursor = value.next_cursor
                await self._write(self._filter.feed(value.data))
                if not (self._is_below_drawn or self._window.is_alternate):
                    # Below the full-screen program the window shows the user's own lines.
                    self._redraw()
            case Gap():
                await self._notice("output was left out here: this window is too slow")
                self._redraw()
            case StateItem(state="starting"):
                await self._notice(f"the shell has ended; a new one is starting; {self._hint}")
            case StateItem(state="unreachable"):
                await self._notice(
                    f"its host cannot be reached; the terminal keeps running there; {self._hint}"
                )
            case StateItem(state="failed"):
                await self._notice(
                    f"the terminal has failed: see aegis-actors term list; {self._hint}"
                )
            case Refused():
                await self._notice(f"these keys were not typed: {value.message}")

    async def _draw(self, drawing: Redraw) -> None:
        self._cursor = drawing.cursor
        if self._is_below_drawn:
            _, rows = self._own.size()
            await self._own.write(self._window.cleared(rows))
        await self._write(drawing.redraw.encode(errors="replace"))
        if not self._is_below_drawn:
            # The redraw has no colours: a resize makes the program draw itself again.
            self._resized.set()

    async def _write(self, data: bytes) -> None:
        self._window.feed(data)
        await self._own.write(data)

    async def _notice(self, line: str) -> None:
        await self._own.write(self._window.notice(escaped_line(f"[{line}]")))

    # Keystrokes.

    async def _read_keys(self, keys_read: trio.MemorySendChannel[bytes]) -> None:
        is_detached = False
        async with keys_read:
            while not is_detached and (data := await self._own.read()):
                keys, is_detached = self._detach.feed(data)
                if keys and self._types:
                    await keys_read.send(keys)
        if not is_detached:
            self._end(1, "aegis-actors: your window is gone")
        # Keys pressed before the detach keys are still typed, but only for a moment.
        with trio.move_on_after(GOODBYE_S / 5):
            await self._all_typed.wait()
        self._end(0, f"detached from {self._name}")

    async def _type_keys(self, keys_read: trio.MemoryReceiveChannel[bytes]) -> None:
        """Type the keys; keys pressed without a connection are dropped."""
        async for keys in keys_read:
            if self._client.is_connected:
                with trio.CancelScope() as self._typing:
                    await self._type(keys)
        self._all_typed.set()

    async def _type(self, keys: bytes) -> None:
        while self._output is None:
            await self._opened.wait()
        try:
            await self._output.type(keys)
        except ClientError:
            return  # the task that shows output gets the same error

    # The user's window.

    async def _set_sizes(self) -> None:
        while True:
            await self._resized.wait()
            self._resized = trio.Event()
            try:
                self._send_size()
                if self._window.is_alternate and self._types:
                    await self._client.terminals.signal(self._name, "WINCH")
            except ClientError:
                continue  # the task that shows output gets the same error

    async def _resize_first(self) -> None:
        """Resize the terminal before its screen is drawn, unless another window owns its size."""
        size = self._size()
        try:
            if size is not None:
                await self._client.terminals.resize(self._name, *size)
        except CommandFailed as error:
            if error.code != "busy":
                raise

    def _send_size(self) -> None:
        """Take the terminal's size: the user's window was opened, or resized, just now."""
        size = self._size()
        if size is not None and self._output is not None:
            self._output.claim_size(*size, take=True)

    def _size(self) -> tuple[int, int] | None:
        """Return columns and rows of the user's window; None if they are not wanted or unknown."""
        size = self._own.size()
        if not self._resizes or not all(size):
            return None
        cols, rows = (
            max(least, min(most, each))
            for least, most, each in zip(MIN_SIZE, MAX_SIZE, size, strict=True)
        )
        return cols, rows

    async def _handle_signals(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            match number:
                case signal.SIGWINCH:
                    self._resized.set()
                case signal.SIGTSTP:
                    self._leave()
                    os.kill(os.getpid(), signal.SIGSTOP)
                case signal.SIGCONT if self._has_begun:
                    self._own.make_raw()
                    self._resized.set()
                    self._redraw()
                case signal.SIGINT | signal.SIGTERM | signal.SIGHUP | signal.SIGQUIT:
                    name = signal.Signals(number).name
                    self._end(128 + number, f"detached from {self._name}: {name}")

    # The daemon.

    async def _report_losses(self) -> None:
        while True:
            await self._client.wait_connected(True)
            await self._client.wait_connected(False)
            self._typing.cancel()
            if self._has_begun:
                await self._own.write(self._window.leaving())
            await self._notice(f"the daemon is gone; waiting for it to restart; {self._hint}")
            await self._client.wait_connected(True)
            await self._notice("the daemon is back")
            await self._resume()

    async def _resume(self) -> None:
        """Continue below the earlier output; redraw only a full-screen program."""
        try:
            if (await self._client.terminals.screen(self._name)).alternate:
                self._redraw()
        except ClientError:
            return  # the task that shows output gets the same error
