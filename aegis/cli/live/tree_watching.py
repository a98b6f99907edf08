"""``tree --watch``: the live tree drawn in place, or its changes line by line."""

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

from aegis.cli.grammar.verb import Daemon
from aegis.cli.live.event_loop import run
from aegis.cli.live.tree_model import TreeModel, change_line, painted
from aegis.client.client import Client, connect
from aegis.client.errors import ClientError, CommandFailed
from aegis.client.stream_kinds import Gap, TreeValue
from aegis.protocol.daemon import TreeNode
from aegis.protocol.streams import TreeChange

PAINT_S = 0.05
"""The window is painted at most so often: many changes in a row are seen at once."""

GOODBYE_S = 5.0
"""A daemon that ends its streams because it stops is gone within this time."""

GONE = "the daemon is gone; waiting for it to come back (Ctrl-C ends)"
BACK = "the daemon is back"

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH)

_OPEN, _CLEAR, _CLOSE = "\x1b[?1049h\x1b[?25l", "\x1b[2J", "\x1b[0m\x1b[?25h\x1b[?1049l"


class View(Protocol):
    """How the tree is shown."""

    def show(self, value: TreeValue) -> None:
        """Something of the tree came."""

    def tell(self, sentence: str) -> None:
        """Something is to be said of the daemon."""


class JsonLines:
    """One JSON object in a line for the whole tree, each change and each gap."""

    def show(self, value: TreeValue) -> None:
        """A line of its own."""
        name = {TreeNode: "snapshot", TreeChange: "delta", Gap: "gap"}[type(value)]
        _print(json.dumps({name: attrs.asdict(value)}))

    def tell(self, sentence: str) -> None:
        """A gap says it."""


class Lines:
    """The whole tree as a table, then each change as a line."""

    def show(self, value: TreeValue) -> None:
        """As it came."""
        match value:
            case TreeNode():
                model = TreeModel()
                model.replace(value)
                _print("\n".join(model.lines()))
            case TreeChange():
                _print(change_line(value, _now()))

    def tell(self, sentence: str) -> None:
        """A line of its own."""
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
        """It is seen with the next painting."""
        match value:
            case TreeNode():
                self._model.replace(value)
            case TreeChange():
                self._model.change(value, _now())
        self._changed.set()

    def tell(self, sentence: str) -> None:
        """It stands below the tree."""
        self._sentence = sentence
        self._changed.set()

    def resized(self) -> None:
        """The window has another size: everything is painted anew."""
        self._is_clean = False
        self._changed.set()

    async def paint(self) -> None:
        """Paint whenever something changed, not too often."""
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


def watch_tree(daemon: Daemon) -> int:
    """Show the tree until Ctrl-C; gives the exit code. Raises ``ClientError``, ``OSError``."""
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
    def __init__(self, daemon: Daemon, view: JsonLines | Lines | Picture) -> None:
        self._daemon = daemon
        self._view = view
        self._code = 0
        self._failure: Exception | None = None
        self.has_begun = False

    async def run(self) -> int:
        """Until it is ended. Raises ``ClientError``, ``OSError``."""
        with trio.open_signal_receiver(*HEARD) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._hear, signals, nursery.cancel_scope)
                nursery.start_soon(self._part, nursery, _wait_unread)
                await self._part(nursery, self._attend, nursery)
                nursery.cancel_scope.cancel()
        if self._failure is not None:
            raise self._failure
        return self._code

    async def _part(
        self, nursery: trio.Nursery, work: Callable[..., Awaitable[None]], *arguments: object
    ) -> None:
        """Do ``work``. Its failure ends all; it is raised behind the nursery, not in a group."""
        try:
            await work(*arguments)
        except (ClientError, OSError) as error:
            self._failure = error
            nursery.cancel_scope.cancel()

    async def _hear(self, signals: AsyncIterator[int], everything: trio.CancelScope) -> None:
        async for number in signals:
            if number != signal.SIGWINCH:
                self._code = 0 if number == signal.SIGINT else 128 + number
                everything.cancel()
            elif isinstance(self._view, Picture):
                self._view.resized()

    async def _attend(self, nursery: trio.Nursery) -> None:
        daemon = self._daemon
        async with connect(Path(daemon.root), handle=daemon.handle, patience_s=math.inf) as client:
            nursery.start_soon(self._part, nursery, self._tell_losses, client)
            while True:
                try:
                    await self._show(client, nursery)
                except CommandFailed as error:
                    if error.code != "unavailable":
                        raise
                await self._wait_gone(client)

    async def _tell_losses(self, client: Client) -> None:
        while True:
            await client.wait_connected(False)
            self._view.tell(f"{_now()} {GONE}")
            await client.wait_connected(True)
            self._view.tell(f"{_now()} {BACK}")

    async def _show(self, client: Client, nursery: trio.Nursery) -> None:
        async with client.tree.watch() as tree:
            if isinstance(self._view, Picture) and not self.has_begun:
                nursery.start_soon(self._part, nursery, self._view.paint)
            self.has_begun = True
            async for value in tree:
                self._view.show(value)

    async def _wait_gone(self, client: Client) -> None:
        """The tree is over: the daemon stops. Raises ``ClientError`` if it goes on all the same."""
        with trio.move_on_after(GOODBYE_S):
            await client.wait_connected(False)
            return
        raise ClientError("the tree is not shown any more, though the daemon goes on: try again")


async def _wait_unread() -> None:
    """Raise ``BrokenPipeError`` once nobody reads the pipe that standard output is.

    A write would tell, but in a tree where nothing happens none comes.
    """
    output = sys.stdout.fileno()
    if stat.S_ISFIFO(os.fstat(output).st_mode):
        await trio.lowlevel.wait_readable(output)  # of the end that is written to: an error
        raise BrokenPipeError


def _now() -> str:
    return time.strftime("%H:%M:%S")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
