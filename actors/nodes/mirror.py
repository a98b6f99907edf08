"""The tree of another process as it was last reported, shown below a place of this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import trio

from actors.tree import Change, Node

UNREACHABLE = "unreachable"
"""The state of all places whose process cannot be reached."""


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
    """The places below the path ``root`` in another process; changes go to ``publish``."""

    def __init__(self, root: str, publish: Callable[[Change], None]) -> None:
        self._root = root
        self._publish = publish
        self._top = _Seen("", "", "", 0, 0, 0.0)
        self._is_unreachable = False

    def show(self, tree: Node) -> None:
        """Replace the tree."""
        self._is_unreachable = False
        fresh = _seen(tree)
        for path in [path for path, _ in _walk(self._root, self._top)]:
            if _find(fresh, self._names(path)) is None:
                self._drop(path)
        self._top = fresh
        for path, place in _walk(self._root, fresh):
            self._publish_change(path, place, place.state)

    def change(self, change: Change) -> None:
        """Update one place."""
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
        self._publish(change)

    def fill(self, depths: Mapping[str, int]) -> None:
        """Update the depths of mailboxes, by path."""
        for path, place in _walk(self._root, self._top):
            place.mailbox = depths.get(path, place.mailbox)

    def mark_unreachable(self) -> None:
        """Show all places as unreachable."""
        self._is_unreachable = True
        for path, place in _walk(self._root, self._top):
            self._publish_change(path, place, UNREACHABLE)

    def clear(self) -> None:
        """Remove all places: the process has ended."""
        for path in reversed([path for path, _ in _walk(self._root, self._top)]):
            self._drop(path)
        self._top.children.clear()

    def nodes(self) -> list[Node]:
        """Return the trees directly below ``root``."""
        return [
            self._node(f"{self._root}/{name}", child) for name, child in self._top.children.items()
        ]

    def _node(self, path: str, place: _Seen) -> Node:
        return Node(
            path=path,
            name=place.name,
            kind=place.kind,
            state=UNREACHABLE if self._is_unreachable else place.state,
            mailbox=place.mailbox,
            restarts=place.restarts,
            uptime_s=round(trio.current_time() - place.began_at, 3),
            children=[self._node(f"{path}/{n}", child) for n, child in place.children.items()],
        )

    def _names(self, path: str) -> list[str]:
        """Return the names from the root to ``path``; none if it is not below the root."""
        head = f"{self._root}/"
        return path.removeprefix(head).split("/") if path.startswith(head) else []

    def _drop(self, path: str) -> None:
        *above, name = self._names(path)
        parent = _find(self._top, above)
        place = None if parent is None else parent.children.get(name)
        if place is not None:
            self._publish_change(path, place, "stopped")

    def _publish_change(self, path: str, place: _Seen, state: str) -> None:
        self._publish(
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
    """Return everything below ``place``, parents first."""
    found = []
    for name, child in place.children.items():
        below = f"{path}/{name}"
        found.append((below, child))
        found += _walk(below, child)
    return found
