"""What is told of places where terminals cannot be. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from aegis.errors import NotFound
from aegis.names import nearest, shorten


def no_such_node(tool: str, name: str, known: Iterable[str]) -> NotFound:
    """Nothing of this name is there, only what is ``known``."""
    there = sorted(known)
    close = nearest(name, there, most=1)
    if close:
        hint = f"did you mean {close[0]!r}?"
    else:
        hint = f"there {'is' if len(there) == 1 else 'are'} {', '.join(there) or 'none'}"
    return NotFound(f"{tool}: there is no node {shorten(name)!r}; {hint}")
