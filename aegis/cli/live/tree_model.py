"""The model of ``tree --watch``: the tree, its changes, and its lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from aegis.cli.printing.formatting import escaped_line, table
from aegis.protocol.daemon import TreeNode
from aegis.protocol.streams import TreeChange

HEAD = ["actor", "kind", "state", "restarts", "restarted"]


@attrs.define
class _Actor:
    kind: str
    state: str
    restarts: int
    restarted: str = ""
    children: dict[str, _Actor] = attrs.field(factory=dict)


class TreeModel:
    """The actors of the tree by path, in the order in which they were reported."""

    def __init__(self) -> None:
        self._top: dict[str, _Actor] = {}

    def replace(self, whole: TreeNode) -> None:
        """Replace the whole tree; marks of earlier restarts are kept."""
        before, self._top = self._top, {}
        self._top[whole.name] = _placed(whole, before.get(whole.name))

    def change(self, change: TreeChange, now: str) -> None:
        """Apply a change; ``now`` is the text that marks a restart."""
        *above, name = change.path.split("/")
        places = self._top
        for part in above:
            if part not in places:
                return  # below an actor that has stopped meanwhile
            places = places[part].children
        if change.state == "stopped":
            places.pop(name, None)
            return
        place = places.setdefault(name, _Actor(change.kind, change.state, change.restarts))
        if change.restarts > place.restarts:
            place.restarted = now
        place.kind, place.state, place.restarts = change.kind, change.state, change.restarts

    def lines(self) -> list[str]:
        """Return the tree as escaped lines of a table, the head first."""
        rows = [row for name, place in self._top.items() for row in _rows(name, place, "", "")]
        return table(HEAD, rows, is_plain=True).split("\n")


def _placed(node: TreeNode, before: _Actor | None) -> _Actor:
    known = {} if before is None else before.children
    children = {child.name: _placed(child, known.get(child.name)) for child in node.children}
    restarted = "" if before is None or node.restarts < before.restarts else before.restarted
    return _Actor(node.kind, node.state, node.restarts, restarted, children)


def _rows(name: str, place: _Actor, branch: str, indent: str) -> Iterator[Sequence[object]]:
    mark = f"↻ {place.restarted}" if place.restarted else ""
    yield [f"{branch}{name}", place.kind, place.state, place.restarts, mark]
    last = len(place.children) - 1
    for number, (child, below) in enumerate(place.children.items()):
        corner, deeper = ("└─ ", "   ") if number == last else ("├─ ", "│  ")
        yield from _rows(child, below, indent + corner, indent + deeper)


def change_line(change: TreeChange, now: str) -> str:
    """Return a change as one line: ``14:03:25 root/terminals/build  running · restarts 1``."""
    restarts = f" · restarts {change.restarts}" if change.restarts else ""
    return escaped_line(f"{now} {change.path}  {change.state}{restarts}")


def painted(
    before: Sequence[str], lines: Sequence[str], cols: int, rows: int
) -> tuple[str, list[str]]:
    """Return the output that turns a window showing ``before`` into ``lines``, and its new rows.

    Only rows that differ are written. Lines are truncated to the window; the last row shows how
    many lines are left out.
    """
    shown = list(lines)
    if len(shown) > rows:
        shown = [*shown[: rows - 1], f"… {len(shown) - rows + 1} more"]
    shown = [line[:cols] for line in shown]
    old = [*before, *[""] * (len(shown) - len(before))]
    new = [*shown, *[""] * (len(before) - len(shown))]
    changed = [
        f"\x1b[{row};1H{line}\x1b[K"
        for row, (was, line) in enumerate(zip(old, new, strict=True), 1)
        if was != line
    ]
    return "".join(changed), shown
