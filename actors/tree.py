"""The live tree, as data: a snapshot, and a bounded stream of what changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Self

import attrs
import trio

from actors.errors import MisuseError

QUEUED_AT_MOST = 1024
"""Changes kept for a watcher that does not read, unless it says otherwise."""


@attrs.frozen(kw_only=True)
class Node:
    """One place of the tree. ``mailbox`` counts waiting messages, ``uptime_s`` the present life."""

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
    """A place of the tree is new, or its ``state`` is another one.

    ``state`` is one of ``starting``, ``running``, ``stopping``, ``down`` (no life now, one may
    follow) and ``stopped``, which is the last of a place. A life has started when it is
    ``running``; ``restarts`` counts the lives before the present one. ``mailbox`` counts the
    messages that waited at that moment.
    """

    path: str
    kind: str
    state: str
    restarts: int
    mailbox: int


@attrs.frozen
class Gap:
    """The watcher fell behind: ``missed`` changes were dropped. A fresh ``Node`` follows."""

    missed: int


View = Node | Change | Gap


def count(node: Node) -> int:
    """How many places ``node`` and everything below it are."""
    return 1 + sum(count(child) for child in node.children)


def mailbox_depths(node: Node) -> dict[str, int]:
    """How many messages wait at ``node`` and at everything below it, by path."""
    depths = {node.path: node.mailbox}
    for child in node.children:
        depths |= mailbox_depths(child)
    return depths


class TreeWatch:
    """The tree as it changes, for one reader: ``async for view in watch``.

    First comes the whole tree as it is (a ``Node``), then a ``Change`` for each. Who reads too
    slowly loses changes and is told so: after a ``Gap`` comes the whole tree again. The stream ends
    when the tree has stopped, or with ``close``. A message is no change: for how full the mailboxes
    are now, ask (``mailbox_depths(system.tree())``).
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
        self._news = trio.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> View:
        """The next view. One task at a time may wait for it."""
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
            self._news = trio.Event()
            await self._news.wait()

    def close(self) -> None:
        """Watch no more; what is already queued can still be read."""
        self._is_open = False
        self._views.forget(self)
        self._news.set()

    def add(self, change: Change) -> None:
        """Queue a change. For the runtime."""
        if self._wants_tree and not self._missed:
            return  # the tree that comes first will show it
        if self._missed or len(self._changes) >= self._capacity:
            self._missed += len(self._changes) + 1
            self._changes.clear()
            self._wants_tree = True
        else:
            self._changes.append(change)
        self._news.set()

    def _whole_tree(self) -> Node:
        assert not self._changes, "changes are kept only after the tree they change"
        self._wants_tree = False
        return self._tree()


class Views:
    """All who watch one tree."""

    def __init__(self) -> None:
        self._watches: list[TreeWatch] = []

    def watch(self, tree: Callable[[], Node], capacity: int) -> TreeWatch:
        """One more watcher; ``capacity`` is how many changes are kept for it, 1 or more."""
        watch = TreeWatch(self, tree, capacity)
        self._watches.append(watch)
        return watch

    def forget(self, watch: TreeWatch) -> None:
        """That one watches no more."""
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
        """The tree has stopped: nothing will change any more."""
        for watch in list(self._watches):
            watch.close()
