"""What is told of terminals, and of places for them, that are not there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def no_such_terminal(name: str, open_now: Sequence[str]) -> NotFound:
    """Nothing of this name is or was there; these are open."""
    close = nearest(name, open_now)
    if close:
        hint = f"did you mean {' or '.join(map(repr, close))}?"
        return NotFound(f"there is no terminal {name!r}; {hint} aegis_term_spawn makes a new one")
    hint = f"open now: {', '.join(sorted(open_now)[:20]) or 'none'}"
    return NotFound(f"there is no terminal {name!r} ({hint}); aegis_term_spawn makes one")
