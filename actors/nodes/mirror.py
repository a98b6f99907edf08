"""The tree of another process, as it was last heard of, to hang below a place of this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import trio

from actors.tree import Change, Node

UNREACHABLE = "unreachable"
"""The state that places are shown in whose process cannot be reached."""


@attrs.define(eq=False)
class _Seen:
    name: str
    kind: str
    state: str
    mailbox: int
    restarts: int
    began_at: float
    children: dict[str, _Seen] = attrs.field(factory=dict)


class Mirror:
    """What is below ``root`` (a path) in another process; ``tell`` hears of what changes."""

    def __init__(self, root: str, tell: Callable[[Change], None]) -> None:
        self._root = root
        self._tell = tell
        self._top = _Seen("", "", "", 0, 0, 0.0)
        self._is_away = False

    def show(self, tree: Node) -> None:
        """This is the whole tree now."""
        self._is_away = False
        fresh = _seen(tree)
        for path in [path for path, _ in _walk(self._root, self._top)]:
            if _find(fresh, self._names(path)) is None:
                self._drop(path)
        self._top = fresh
        for path, place in _walk(self._root, fresh):
            self._say(path, place, place.state)

    def change(self, change: Change) -> None:
        """A place of it is new or in another state."""
        *above, name = self._names(change.path) or [""]
        parent = _find(self._top, above)
        if not name or parent is None:
            return
        if change.state == "stopped":
            parent.children.pop(name, None)
        else:
            known = parent.children.get(name)
            now = trio.current_time()
            began_at = now if known is None or change.restarts != known.restarts else known.began_at
            children = {} if known is None else known.children
            parent.children[name] = _Seen(
                name, change.kind, change.state, change.mailbox, change.restarts, began_at, children
            )
        self._tell(change)

    def fill(self, depths: Mapping[str, int]) -> None:
        """So full are the mailboxes now."""
        for path, place in _walk(self._root, self._top):
            place.mailbox = depths.get(path, place.mailbox)

    def away(self) -> None:
        """It cannot be reached; nobody knows how it stands."""
        self._is_away = True
        for path, place in _walk(self._root, self._top):
            self._say(path, place, UNREACHABLE)

    def gone(self) -> None:
        """It has ended, and all that was there."""
        for path in reversed([path for path, _ in _walk(self._root, self._top)]):
            self._drop(path)
        self._top.children.clear()

    def nodes(self) -> list[Node]:
        """What hangs there now."""
        return [
            self._node(f"{self._root}/{name}", child) for name, child in self._top.children.items()
        ]

    def _node(self, path: str, place: _Seen) -> Node:
        return Node(
            path=path,
            name=place.name,
            kind=place.kind,
            state=UNREACHABLE if self._is_away else place.state,
            mailbox=place.mailbox,
            restarts=place.restarts,
            uptime_s=round(trio.current_time() - place.began_at, 3),
            children=[self._node(f"{path}/{n}", child) for n, child in place.children.items()],
        )

    def _names(self, path: str) -> list[str]:
        """The names on the way from the root to ``path``; none for what is not below it."""
        head = f"{self._root}/"
        return path.removeprefix(head).split("/") if path.startswith(head) else []

    def _drop(self, path: str) -> None:
        *above, name = self._names(path)
        parent = _find(self._top, above)
        place = None if parent is None else parent.children.get(name)
        if place is not None:
            self._say(path, place, "stopped")

    def _say(self, path: str, place: _Seen, state: str) -> None:
        self._tell(
            Change(
                path=path,
                kind=place.kind,
                state=state,
                restarts=place.restarts,
                mailbox=place.mailbox,
            )
        )


def _seen(node: Node) -> _Seen:
    began_at = trio.current_time() - node.uptime_s
    children = {child.name: _seen(child) for child in node.children}
    return _Seen(node.name, node.kind, node.state, node.mailbox, node.restarts, began_at, children)


def _find(place: _Seen, names: list[str]) -> _Seen | None:
    found: _Seen | None = place
    for name in names:
        found = None if found is None else found.children.get(name)
    return found


def _walk(path: str, place: _Seen) -> list[tuple[str, _Seen]]:
    """Everything below ``place``, each before what is below it."""
    found = []
    for name, child in place.children.items():
        below = f"{path}/{name}"
        found.append((below, child))
        found += _walk(below, child)
    return found
