"""The live tree as data: snapshots, and bounded streams of changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Self

import attrs
import trio

from actors.errors import MisuseError

QUEUED_AT_MOST = 1024
"""The default number of changes that are queued for a reader."""


@attrs.frozen(kw_only=True)
class Node:
    """One place of the tree and all places below it.

    ``mailbox`` is the number of queued messages; ``uptime_s`` is the age of the incarnation.
    """

    path: str
    name: str
    kind: str
    state: str
    mailbox: int
    restarts: int
    uptime_s: float
    children: list[Node]


@attrs.frozen(kw_only=True)
class Change:
    """A new place of the tree, or a new ``state`` of a place.

    ``state`` is one of ``starting``, ``running``, ``stopping``, ``down`` (ended, may restart) and
    ``stopped``, the last state of a place. ``restarts`` is the number of earlier incarnations,
    ``mailbox`` the number of messages queued at that moment.
    """

    path: str
    kind: str
    state: str
    restarts: int
    mailbox: int


@attrs.frozen
class Gap:
    """A gap in a slow reader's stream: ``missed`` changes were dropped. A ``Node`` follows."""

    missed: int


View = Node | Change | Gap


def count(node: Node) -> int:
    """Return the number of places in the tree of ``node``."""
    return 1 + sum(count(child) for child in node.children)


def mailbox_depths(node: Node) -> dict[str, int]:
    """Return the number of queued messages of each place in the tree of ``node``, by path."""
    depths = {node.path: node.mailbox}
    for child in node.children:
        depths |= mailbox_depths(child)
    return depths


class TreeWatch:
    """A stream of the tree for one reader: ``async for view in watch``.

    It yields the whole tree (a ``Node``), then each ``Change``. A reader that is too slow loses
    changes: it gets a ``Gap``, then the whole tree again. The stream ends when the tree has stopped
    or ``close`` was called. A queued message is not a change: see ``mailbox_depths``.
    """

    def __init__(self, views: Views, tree: Callable[[], Node], capacity: int) -> None:
        if capacity < 1:
            raise MisuseError(f"a watch cannot keep {capacity} changes: 1 or more")
        self._views = views
        self._tree = tree
        self._capacity = capacity
        self._changes: deque[Change] = deque()
        self._missed = 0
        self._wants_tree = True
        self._is_open = True
        self._wakeup = trio.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> View:
        """Return the next view. One task at a time may wait for it."""
        await trio.lowlevel.checkpoint()
        while True:
            if self._missed:
                gap, self._missed = Gap(self._missed), 0
                return gap
            if self._wants_tree:
                return self._whole_tree()
            if self._changes:
                return self._changes.popleft()
            if not self._is_open:
                raise StopAsyncIteration
            self._wakeup = trio.Event()
            await self._wakeup.wait()

    def close(self) -> None:
        """Stop watching; views that are already queued can still be read."""
        self._is_open = False
        self._views.remove(self)
        self._wakeup.set()

    def add(self, change: Change) -> None:
        """Queue a change. For the runtime."""
        if self._wants_tree and not self._missed:
            return  # the snapshot that is read first will include it
        if self._missed or len(self._changes) >= self._capacity:
            self._missed += len(self._changes) + 1
            self._changes.clear()
            self._wants_tree = True
        else:
            self._changes.append(change)
        self._wakeup.set()

    def _whole_tree(self) -> Node:
        assert not self._changes, "changes are queued only after a snapshot"
        self._wants_tree = False
        return self._tree()


class Views:
    """The readers of one tree."""

    def __init__(self) -> None:
        self._watches: list[TreeWatch] = []

    def watch(self, tree: Callable[[], Node], capacity: int) -> TreeWatch:
        """Add a reader, with room for ``capacity`` changes (1 or more)."""
        watch = TreeWatch(self, tree, capacity)
        self._watches.append(watch)
        return watch

    def remove(self, watch: TreeWatch) -> None:
        """Remove a reader."""
        if watch in self._watches:
            self._watches.remove(watch)

    @property
    def is_watched(self) -> bool:
        """Whether there is a reader."""
        return bool(self._watches)

    def publish(self, change: Change) -> None:
        """Send ``change`` to every reader."""
        for watch in self._watches:
            watch.add(change)

    def close(self) -> None:
        """End all streams: the tree has stopped."""
        for watch in list(self._watches):
            watch.close()
