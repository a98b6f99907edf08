"""``tree --watch``: the supervision tree drawn in place, or its changes line by line."""

from __future__ import annotations

import json
import math
import os
import signal
import stat
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Protocol

import attrs
import trio

from aegis.cli.grammar.verb import TargetDaemon
from aegis.cli.live.event_loop import run
from aegis.cli.live.tree_model import TreeModel, change_line, painted
from aegis.client.client import Client, connect
from aegis.client.errors import ClientError, CommandFailed
from aegis.client.stream_kinds import Gap, TreeValue
from aegis.protocol.daemon import TreeNode
from aegis.protocol.streams import TreeChange

PAINT_S = 0.05
"""Seconds between two paintings, at least: changes in quick succession are painted at once."""

GOODBYE_S = 5.0
"""Seconds in which a daemon that ended its streams in order to stop closes the connection."""

GONE = "the daemon is gone; waiting for it to restart (Ctrl-C ends)"
BACK = "the daemon is back"

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGWINCH)

_OPEN, _CLEAR, _CLOSE = "\x1b[?1049h\x1b[?25l", "\x1b[2J", "\x1b[0m\x1b[?25h\x1b[?1049l"


class TreeDisplay(Protocol):
    """A way to show the tree."""

    def show(self, value: TreeValue) -> None:
        """Show the tree, a change or a gap."""

    def notify(self, sentence: str) -> None:
        """Show a sentence about the daemon."""


class JsonLines:
    """One JSON object in a line for the whole tree, each change and each gap."""

    def show(self, value: TreeValue) -> None:
        name = {TreeNode: "snapshot", TreeChange: "delta", Gap: "gap"}[type(value)]
        _print(json.dumps({name: attrs.asdict(value)}))

    def notify(self, sentence: str) -> None:
        """Print nothing: the stream has a gap for it."""


class Lines:
    """The whole tree as a table, then each change as a line."""

    def show(self, value: TreeValue) -> None:
        match value:
            case TreeNode():
                model = TreeModel()
                model.replace(value)
                _print("\n".join(model.lines()))
            case TreeChange():
                _print(change_line(value, _now()))

    def notify(self, sentence: str) -> None:
        _print(sentence)


class Picture:
    """The tree drawn in a window, in place."""

    def __init__(self) -> None:
        self._model = TreeModel()
        self._sentence = ""
        self._shown: list[str] = []
        self._is_clean = False
        self._changed = trio.Event()

    def show(self, value: TreeValue) -> None:
        match value:
            case TreeNode():
                self._model.replace(value)
            case TreeChange():
                self._model.change(value, _now())
        self._changed.set()

    def notify(self, sentence: str) -> None:
        self._sentence = sentence
        self._changed.set()

    def resized(self) -> None:
        """Repaint everything in the new size of the window."""
        self._is_clean = False
        self._changed.set()

    async def paint(self) -> None:
        """Paint after each change, at most every ``PAINT_S`` seconds."""
        sys.stdout.write(_OPEN)
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            size = os.get_terminal_size(sys.stdout.fileno())
            lines = [*self._model.lines(), *([self._sentence] if self._sentence else [])]
            if not self._is_clean:
                self._shown, self._is_clean = [], True
                sys.stdout.write(_CLEAR)
            text, self._shown = painted(self._shown, lines, size.columns or 80, size.lines or 24)
            sys.stdout.write(text)
            sys.stdout.flush()
            await trio.sleep(PAINT_S)


def watch_tree(daemon: TargetDaemon) -> int:
    """Show the tree until Ctrl-C; return the exit code. Raises ``ClientError``, ``OSError``."""
    if daemon.as_json or not sys.stdout.isatty():
        return run(_Watch(daemon, JsonLines() if daemon.as_json else Lines()).run)
    picture = Picture()
    watch = _Watch(daemon, picture)
    try:
        return run(watch.run)
    finally:
        if watch.has_begun:
            sys.stdout.write(_CLOSE)
            sys.stdout.flush()


class _Watch:
    def __init__(self, daemon: TargetDaemon, view: JsonLines | Lines | Picture) -> None:
        self._daemon = daemon
        self._view = view
        self._code = 0
        self._failure: Exception | None = None
        self.has_begun = False

    async def run(self) -> int:
        """Watch until a signal; return the exit code. Raises ``ClientError``, ``OSError``."""
        with trio.open_signal_receiver(*SIGNALS) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._handle_signals, signals, nursery.cancel_scope)
                nursery.start_soon(self._task, nursery, _wait_unread)
                await self._task(nursery, self._follow, nursery)
                nursery.cancel_scope.cancel()
        if self._failure is not None:
            raise self._failure
        return self._code

    async def _task(
        self, nursery: trio.Nursery, work: Callable[..., Awaitable[None]], *arguments: object
    ) -> None:
        """Run ``work``; its failure cancels everything, and ``run`` raises it outside a group."""
        try:
            await work(*arguments)
        except (ClientError, OSError) as error:
            self._failure = error
            nursery.cancel_scope.cancel()

    async def _handle_signals(self, signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
        async for number in signals:
            if number != signal.SIGWINCH:
                self._code = 0 if number == signal.SIGINT else 128 + number
                scope.cancel()
            elif isinstance(self._view, Picture):
                self._view.resized()

    async def _follow(self, nursery: trio.Nursery) -> None:
        daemon = self._daemon
        async with connect(Path(daemon.root), handle=daemon.handle, patience_s=math.inf) as client:
            nursery.start_soon(self._task, nursery, self._report_losses, client)
            while True:
                try:
                    await self._show(client, nursery)
                except CommandFailed as error:
                    if error.code != "unavailable":
                        raise
                await self._wait_gone(client)

    async def _report_losses(self, client: Client) -> None:
        while True:
            await client.wait_connected(False)
            self._view.notify(f"{_now()} {GONE}")
            await client.wait_connected(True)
            self._view.notify(f"{_now()} {BACK}")

    async def _show(self, client: Client, nursery: trio.Nursery) -> None:
        async with client.tree.watch() as tree:
            if isinstance(self._view, Picture) and not self.has_begun:
                nursery.start_soon(self._task, nursery, self._view.paint)
            self.has_begun = True
            async for value in tree:
                self._view.show(value)

    async def _wait_gone(self, client: Client) -> None:
        """Wait for the end of a daemon that stops. Raises ``ClientError`` if it keeps running."""
        with trio.move_on_after(GOODBYE_S):
            await client.wait_connected(False)
            return
        raise ClientError("the stream of the tree ended while the daemon kept running: try again")


async def _wait_unread() -> None:
    """Raise ``BrokenPipeError`` once the reader of standard output, if a pipe, is gone."""
    # A write would fail too, but nothing is written while the tree does not change.
    output = sys.stdout.fileno()
    if stat.S_ISFIFO(os.fstat(output).st_mode):
        await trio.lowlevel.wait_readable(output)  # readable at the writing end means: error
        raise BrokenPipeError


def _now() -> str:
    return time.strftime("%H:%M:%S")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
