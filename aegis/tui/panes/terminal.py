"""The pane of a terminal: its view, a status line, and the input with its two modes."""

from __future__ import annotations

import time
from functools import partial

import attrs
import trio
import trio.lowlevel
from textual.app import ComposeResult

from aegis.client.client import Client
from aegis.client.errors import ClientError, ConnectionLost
from aegis.client.stream_kinds import Chunk, Gap, OutputValue
from aegis.client.streams import OutputStream
from aegis.protocol.output_streams import (
    BellItem,
    Redraw,
    Refused,
    SizeOwner,
    SizeOwnerItem,
    StateItem,
    TypingItem,
    WindowSize,
)
from aegis.protocol.streams import CommandItem
from aegis.protocol.terminals import NeedsInput, State, Typing
from aegis.shown_text import escape_line
from aegis.tui.model.blocks import CommandBlock, block_of
from aegis.tui.model.rail import status_of
from aegis.tui.model.times import moment
from aegis.tui.panes.followed import FollowedPane
from aegis.tui.panes.pane import Desk
from aegis.tui.panes.styles import styles_of
from aegis.tui.widgets.emulator import HISTORY
from aegis.tui.widgets.input_bar import InputBar
from aegis.tui.widgets.strip_bar import StripBar
from aegis.tui.widgets.terminal import TerminalView

FIRST_BLOCKS = 100
OLDER_BLOCKS = 300
MAX_KEY_READS = 1_024
"""Keystrokes that wait for the connection; more are dropped with a remark."""

EARLY_S = 5.0
"""Seconds that keys wait for the stream: later ones would come as a surprise."""

NOT_CONNECTED = "not typed: the terminal is not connected"

MAX_QUEUED = 32
"""Lines that wait for the end of a command."""

QUEUED_S = 0.5
"""Seconds that a line takes to run in a free terminal; after these it is shown as waiting."""

RUN_LINE = "RUN", "run a command · Ctrl-K types into the program · F1 help"
NEXT_LINE = "NEXT", "runs after this command · Ctrl-K types into the program"

MIN_SIZE, MAX_SIZE = (2, 1), (1000, 1000)
"""Smallest and largest size of a terminal, in columns and rows."""


@attrs.define(eq=False)
class QueuedLine:
    """A line that waits for the terminal. ``scope`` is that of its call, once it was sent.

    ``is_held``: it waits for the person, because it may have been meant for a program that asks,
    or because another shell may be there.
    """

    text: str
    is_held: bool = False
    scope: trio.CancelScope | None = None
    sent_at: float = 0.0

    @property
    def is_sent(self) -> bool:
        """Whether the daemon has it."""
        return self.scope is not None


class TerminalPane(FollowedPane):
    """The terminal ``name``. Its stream is open while the pane is ``followed``."""

    takes_keys = True
    passes = FollowedPane.passes | {"invalid_request"}  # another daemon does not have the cursor

    def __init__(self, desk: Desk, key: str) -> None:
        super().__init__(desk, key)
        self.terminal = key.partition(":")[2]
        self.view = TerminalView()
        self.view.can_focus = False  # what is typed is for the line, wherever a person clicks
        self.bar = InputBar(*RUN_LINE)
        self.bar.line.take_back = self._take_back
        self.strip = StripBar()
        self._keys: trio.MemorySendChannel[bytes] | None = None
        self._early: list[bytes] | None = None
        """Keys before the stream is open for the first time; None: it was."""
        self._followed_at = 0.0
        self._output: OutputStream | None = None
        self._is_shown = False
        self._is_reading_older = False
        self._owner: SizeOwner | None = None
        self._typist: Typing | None = None
        self._bells = 0
        self._state: State | None = None
        self._needs: NeedsInput | None = None
        self._may_need: NeedsInput | None = None
        self._queued: list[QueuedLine] = []
        self._answer = ""
        """The line that was typed into the program last, unless keys followed."""
        self._begun = self._ended = -1
        """The newest command that a call has begun, and the newest one that has ended."""

    def compose(self) -> ComposeResult:
        yield self.view
        yield self.strip
        yield self.bar

    @property
    def title(self) -> str:
        return self.terminal

    @property
    def is_raw(self) -> bool:  # type: ignore[override]
        """Whether every key goes to the program."""
        return self.view.is_raw

    def shown(self) -> None:
        self._is_shown = True
        self.follow()
        self._claim()
        self.changed()
        if not self.is_raw:
            self.take_focus()

    def take_focus(self) -> None:
        """Give the focus to the line at once: a key that was typed already is for it."""
        self.screen.set_focus(self.bar.line)

    def hidden(self) -> None:
        self._is_shown = False
        if self._output is not None:
            self._output.release_size()

    # The stream of the terminal.

    def follow(self) -> None:
        if not self.is_followed:
            self._early, self._followed_at = [], time.monotonic()
        super().follow()

    async def show_stream(self, client: Client) -> None:
        """Show one stream until the terminal closes or the stream has to be opened again."""
        from_command = True
        while True:
            running = self.desk.world.running.get(self.terminal) if from_command else None
            from_command = False
            async with client.terminals.watch(
                self.terminal,
                cursor=None if running is None else running.raw_start,
                screen=running is None,
                scrollback=HISTORY if running is None else 0,
            ) as output:
                self._output = output
                self._begin(output, is_command=running is not None)
                await self._read_blocks(client)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._type_all, output)
                    try:
                        if not await self._show(client, output):
                            return
                    finally:
                        self._output = None
                        nursery.cancel_scope.cancel()

    def _begin(self, output: OutputStream, *, is_command: bool) -> None:
        """Prepare the view for a stream from the beginning of a command's output, or of all."""
        start = output.start
        self._owner, self._typist, self._bells = start.size_owner, start.typing, start.bells
        if is_command:
            self.view.begin_output(start.cols, start.rows)
        else:
            self.view.resize_window(start.cols, start.rows)
        self._claim()
        self._set_state(start.state, start.needs_input)

    async def _show(self, client: Client, output: OutputStream) -> bool:
        """Show values; return True if something is missing and the screen must be drawn again."""
        async for value in output:
            match value:
                case Chunk():
                    self.view.feed(value.data)
                    # The event loop, with its keys and frames, has its turn in a flood.
                    await trio.lowlevel.checkpoint()
                case Redraw():
                    self.view.draw_screen(value.redraw, *self.view.emulator.size)
                case WindowSize():
                    self.view.resize_window(value.cols, value.rows)
                case Gap():
                    return True
                case StateItem(state=state, needs_input=needs):
                    self._set_state(state, needs)
                    if state == "starting":
                        await self._read_blocks(client)
                    else:
                        self._set_command()
                case _:
                    self._note(value)
        return False

    def _note(self, value: OutputValue) -> None:
        """Take what is shown beside the screen."""
        match value:
            case SizeOwnerItem(size_owner=owner):
                self._owner = owner
                self.changed()
            case TypingItem(typing=typing):
                self._typist = typing
                self.changed()
            case BellItem(bells=bells) if bells > self._bells:
                self._bells = bells
                self.desk.ring_bell(self.key)
            case Refused(code="busy", message=message) if message.startswith("the size of"):
                return  # another window has it: this one shows its size
            case Refused():
                self.desk.report(f"{self.terminal}: not typed: {value.message}")
                if self._answer:
                    self._keep(self._answer)

    async def _type_all(self, output: OutputStream) -> None:
        sender, receiver = trio.open_memory_channel[bytes](MAX_KEY_READS)
        self._keys = sender
        self._type_early(sender)
        try:
            async for keys in receiver:
                if self.desk.link.is_connected:
                    await output.type(keys)
                else:  # a fresh shell would get them
                    self.desk.show_remark(NOT_CONNECTED)
        except ClientError:
            return  # the task that shows output gets the same error
        finally:
            self._keys = None

    def _type_early(self, sender: trio.MemorySendChannel[bytes]) -> None:
        early, self._early = self._early or [], None
        if early and time.monotonic() - self._followed_at > EARLY_S:
            self.desk.show_remark(NOT_CONNECTED)
            return
        for keys in early:
            sender.send_nowait(keys)

    # Blocks.

    async def _read_blocks(self, client: Client) -> None:
        past = self.view.past
        since = past.blocks[-1].seq if past.blocks else None
        more = True
        while more:
            reply = await client.terminals.read(
                self.terminal,
                last_n=FIRST_BLOCKS if since is None else None,
                since_seq=since,
            )
            self._add([block_of(each) for each in reply.result], is_past=since is None)
            more = reply.more and since is not None and bool(reply.result)
            since = past.blocks[-1].seq if past.blocks else since
        self._set_command()

    def _add(self, blocks: list[CommandBlock], *, is_past: bool) -> None:
        self.view.add_blocks(blocks)
        self._ended = max([self._ended, *(each.seq for each in blocks)])
        self._set_mode()
        sources = [each.source for each in blocks if each.source.strip()]
        if is_past:  # a line may have been entered before they came
            self.bar.recall.add_earlier(sources)
        else:
            for source in sources:
                self.bar.recall.add(source)

    def on_command(self, item: CommandItem) -> None:
        """Take the start or the end of a command of this terminal."""
        if item.event == "command_finished":
            self._ended, self._may_need = max(self._ended, item.command.seq), None
            self._set_mode()
            self._run_queued()
            self.desk.link.call(self._read_blocks, what=f"{self.terminal}: ")
        else:
            # Another part of the program works, but a line may be its answer, or its secret.
            self._may_need = item.command.may_need_input
            self._set_state(self._state, self._needs)
            self._set_command()

    def _set_command(self) -> None:
        """Show the command that runs, as far as its record is not there yet."""
        running = self.desk.world.running.get(self.terminal)
        blocks = self.view.past.blocks
        if running is not None and (not blocks or blocks[-1].seq < running.seq):
            text = running.cmd if running.cmd is not None else "(not known)"
            self.view.set_command(text.replace("\n", " ⏎ "))
        else:
            self.view.set_command(None)
        self.ticked()

    def on_terminal_view_older_wanted(self) -> None:
        if not self._is_reading_older:
            self._is_reading_older = True
            self.desk.link.call(self._read_older, what=f"{self.terminal}: ")

    async def _read_older(self, client: Client) -> None:
        past = self.view.past
        try:
            first = past.blocks[0].seq if past.blocks else 0
            if first <= 0:
                past.has_older = False
                return
            reply = await client.terminals.read(
                self.terminal, last_n=OLDER_BLOCKS, before_seq=first
            )
            self.view.add_older([block_of(each) for each in reply.result])
        finally:
            self._is_reading_older = False

    # The colours of blocks.

    def on_terminal_view_styles_wanted(self) -> None:
        self.desk.link.call(self._read_styles, what=f"{self.terminal}: ")

    async def _read_styles(self, client: Client) -> None:
        """Read the styles of the blocks that are shown, the lowest first."""
        plain = self.view.plain
        try:
            while plain:
                _, block = max(plain.items())
                runs = await styles_of(client, self.terminal, block)
                plain.pop(block.seq, None)
                self.view.set_runs(block, runs)
        finally:
            plain.clear()  # after a lost connection: they are wanted again when they are drawn

    # Keys.

    def set_raw(self, is_raw: bool) -> None:
        """Switch between the two modes of the input."""
        self.view.set_raw(is_raw)
        self._claim(take=True)
        self.bar.set_raw(is_raw)
        if is_raw:
            self.screen.set_focus(None)
        else:
            self.take_focus()
        self.changed()

    def type(self, keys: bytes) -> None:
        """Type keys into the terminal, in order."""
        self._answer = ""
        if self._keys is None:
            if self._early is None or len(self._early) >= MAX_KEY_READS:
                self.desk.show_remark(NOT_CONNECTED)
            else:
                self._early.append(keys)
            return
        try:
            self._keys.send_nowait(keys)
        except trio.WouldBlock:
            self.desk.show_remark("not typed: too many keys wait for the daemon")

    def type_raw(self, keys: bytes) -> None:
        self.view.type_raw(keys)

    def paste(self, text: str) -> None:
        self.view.paste(text)

    def interrupt(self) -> bool:
        """Type Ctrl-C."""
        self.type(b"\x03")
        return True

    def on_terminal_view_typed(self, message: TerminalView.Typed) -> None:
        self.type(message.keys)

    # The line: run, queued, or typed into the program that waits for it.

    @property
    def _wanted(self) -> NeedsInput | None:
        """The input for which the program waits, or may wait."""
        return self._needs or self._may_need

    def _set_state(self, state: State | None, needs: NeedsInput | None) -> None:
        """Take the state of the terminal, and what its program waits for."""
        self._state, self._needs = state, needs
        if self._wanted is not None:
            self._hold()
        self._set_mode()
        self._run_queued()

    def _hold(self) -> None:
        for each in self._queued:
            each.is_held = not each.is_sent

    @property
    def _is_busy(self) -> bool:
        """Whether a command runs, or a shell starts. The stream may report that after the call."""
        return self._state in (None, "starting", "running") or self._begun > self._ended

    def _set_mode(self) -> None:
        """Say what becomes of the line that is typed."""
        needs, line = self._wanted, self.bar.line
        if needs is not None and needs.kind == "secret":
            note = f"{escape_line(needs.program)} asks for a secret · it is neither shown nor kept"
            self.bar.set_mode("SECRET", note, is_secret=True)
        elif line.password and line.value and self._is_busy:
            return  # the program prints or was looked at meanwhile: the line is still a secret
        elif needs is not None:
            self.bar.set_mode("ANSWER", f"{escape_line(needs.program)} waits for a line")
        elif self._state is not None and self._is_busy:
            self.bar.set_mode(*NEXT_LINE)
        else:
            self.bar.set_mode(*RUN_LINE)

    def on_input_bar_submitted(self, message: InputBar.Submitted) -> None:
        message.stop()
        text = message.text
        self.view.follows = True
        if not self.desk.link.is_connected:
            if text.strip():
                self.desk.report(f"{self.terminal}: the daemon is away; the line was not sent")
                self._keep(text, is_secret=message.is_secret)
            return
        self._claim(take=True)
        if self._wanted is not None or message.is_secret:
            self._type_line(text, is_secret=message.is_secret)
        elif text.strip():
            self._queue(text)
        else:
            for each in self._queued:
                each.is_held = False
            self._run_queued()
        self._set_mode()
        self.changed()

    def _type_line(self, text: str, *, is_secret: bool) -> None:
        """Type a line into the program that waits for it."""
        if not self._is_busy:
            self.desk.report(f"{self.terminal}: not typed: the program has ended")
            return
        # The line editor of a program would edit at the ends of lines that were pasted.
        keys = self.view.pasted(text) if "\n" in text else text.encode(errors="surrogatepass")
        self.type(keys + b"\r")
        self._answer = "" if is_secret else text

    def _queue(self, text: str) -> None:
        if len(self._queued) >= MAX_QUEUED:
            self.desk.report(f"{self.terminal}: {MAX_QUEUED} lines wait already; run it later")
            self._keep(text)
            return
        self.bar.recall.add(text)
        self._queued.append(QueuedLine(text))
        self._run_queued()

    def _run_queued(self) -> None:
        """Run the next line if nothing runs. Until it has begun, no other is sent."""
        line = next((each for each in self._queued if not each.is_held), None)
        if line is not None and not line.is_sent and not self._is_busy:
            line.scope, line.sent_at = trio.CancelScope(), time.monotonic()
            self.desk.link.call(partial(self._run, line, line.scope), what=f"{self.terminal}: ")

    async def _run(self, line: QueuedLine, scope: trio.CancelScope, client: Client) -> None:
        try:
            if not client.is_connected:
                raise ConnectionLost("the daemon is away; the line was not sent")
            with scope:
                # Until the terminal is free: the person sees the line wait, and can take it back.
                record = await client.terminals.run(self.terminal, line.text, until="started")
                if record.end is None:
                    self._begun = max(self._begun, record.seq)
            self._drop(line)
        except ClientError:
            self._drop(line)
            self._keep(line.text)
            raise
        self._set_mode()
        self._run_queued()
        self.changed()

    def _drop(self, line: QueuedLine) -> None:
        if line in self._queued:
            self._queued.remove(line)

    def _keep(self, text: str, *, is_secret: bool = False) -> None:
        """Give a line back that was not carried out: into the input, or in front of the others."""
        if is_secret:
            return
        if self.is_raw or not self.bar.keep(text):
            self._queued.insert(0, QueuedLine(text, is_held=True))
        self.changed()

    def _take_back(self) -> str:
        """Take the newest line out of the queue; empty if there is none."""
        if not self._queued:
            return ""
        line = self._queued.pop()
        if line.scope is not None:
            line.scope.cancel()
        self.changed()
        return line.text

    def disconnected(self) -> None:
        self._state, self._needs, self._may_need, self._begun = None, None, None, -1
        self._hold()
        self._set_mode()
        self.changed()

    def _queue_parts(self) -> tuple[tuple[str, str], ...]:
        """Return the queued lines for the status line; none if there are none."""
        late = time.monotonic() - QUEUED_S
        shown = [each for each in self._queued if not each.is_sent or each.sent_at < late]
        parts: list[tuple[str, str]] = []
        for word, is_held in (("⏸ {} held: ", True), ("⏳ {} queued: ", False)):
            lines = [
                "•••" if self.bar.line.password else escape_line(each.text.replace("\n", " ⏎ "))
                for each in shown
                if each.is_held is is_held
            ]
            if lines:
                parts += [(f" {word.format(len(lines))}", "bold yellow"), (" · ".join(lines), "")]
        return tuple(parts)

    # Size and status.

    def on_terminal_view_fitted(self) -> None:
        self._claim()

    def _claim(self, *, take: bool = False) -> None:
        """Give the terminal the size of the pane, if the pane is shown.

        A window of another client that owns the size keeps it, until this person acts (``take``).
        """
        cols, rows = self.view.room()
        size = min(MAX_SIZE[0], max(MIN_SIZE[0], cols)), min(MAX_SIZE[1], max(MIN_SIZE[1], rows))
        owner = self._owner
        if not self._is_shown or not self.view.size or self._output is None:
            return
        if owner is not None and owner.yours and self.view.emulator.size == size:
            return
        self._output.claim_size(*size, take=take)

    def changed(self) -> None:
        if not self._is_shown:
            return
        self._set_command()
        self._show_status()

    def _show_status(self) -> None:
        info = self.desk.world.terminals.get(self.terminal)
        if info is None:
            self.strip.show(((f" {self.terminal} was closed", "dim"),))
            return
        status = status_of(self.key, self.desk.world, self.desk.now())
        queued = self._queue_parts()
        if queued:
            is_held = any(each.is_held for each in self._queued)
            hint = "Up takes back · Enter runs " if is_held else "Up takes back "
            self.strip.show(queued, ((hint, "dim"),))
            return
        left = [(f" {status.dot} ", ""), (escape_line(_short_path(info.cwd)), "bold")]
        left += [(f" · {info.pid or '-'} · {escape_line(info.shell.rpartition('/')[2])}", "")]
        if info.last_exit is not None:
            left += [
                (" · ", ""),
                (f"exit {info.last_exit}", "green" if not info.last_exit else "red"),
            ]
        if info.subscribers:
            left.append((f" · ✉ {escape_line(', '.join(info.subscribers))}", ""))
        if self._typist is not None and self._typist.writer != "human":
            left.append((f" · {escape_line(self._typist.writer)} is typing", "yellow"))
        if self._owner is not None and not self._owner.yours:
            left.append((f" · size of {escape_line(self._owner.writer)}'s window", "yellow"))
        self.strip.show(tuple(left), ((self._mode_hint(), "dim"),))

    def _mode_hint(self) -> str:
        return "raw " if self.is_raw else "^K raw  ^C interrupt  F1 help "

    def ticked(self) -> None:
        if self._queued and self._is_shown:
            self._show_status()  # a line that was sent may be late
        running = self.desk.world.running.get(self.terminal)
        if running is not None and self.view.command is not None:
            began = moment(running.started_at)
            seconds = None if began is None else self.desk.now() - began
            self.view.set_command_info(running.writer, seconds)


def _short_path(path: str | None) -> str:
    """Return a directory by its last two parts."""
    if not path:
        return "?"
    parts = path.rstrip("/").split("/")
    return path if len(parts) <= 3 else "…/" + "/".join(parts[-2:])
