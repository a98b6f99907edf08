"""The choice of the node on which a daemon starts a terminal. Pure.

The nodes are the worker processes and the daemon's own process (``local``). With workers, the
daemon's own process takes only terminals that ask for it by name.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from aegis.errors import Unavailable
from aegis.protocol.naming import name_key
from aegis.terminals.sentences import no_such_node


class NoPlace(Unavailable):
    """No node can take the terminal now. This passes when a worker is up again."""


@attrs.frozen(kw_only=True)
class CandidateNode:
    """A node for terminals; ``terminals`` is how many it has, those being started included.

    ``by_name``: it takes only terminals that ask for it by name.
    """

    name: str
    is_up: bool
    terminals: int
    by_name: bool = False


def choose_place(places: Sequence[CandidateNode], wanted: str | None) -> str:
    """Return the node for a new terminal: the one ``wanted``, else the least loaded.

    Of equals it is the first by name. Raises ``NotFound`` for an unknown node, and ``NoPlace``
    while the wanted node, or every node, is down.
    """
    if wanted is not None:
        return _named(places, wanted)
    free = [each for each in places if each.is_up and not each.by_name]
    if not free:
        raise NoPlace("no worker is up right now; try again in a moment")
    return min(free, key=lambda each: (each.terminals, _in_order(each.name))).name


def _named(places: Sequence[CandidateNode], wanted: str) -> str:
    for place in places:
        if name_key(place.name) == name_key(wanted):
            if not place.is_up:
                raise NoPlace(
                    f"node {place.name!r} is down right now; try again in a moment, or leave node "
                    "out"
                )
            return place.name
    names = sorted((each.name for each in places), key=_in_order)
    raise no_such_node("aegis_term_spawn", wanted, names)


def _in_order(name: str) -> tuple[int, str]:
    # w2 comes before w10.
    return len(name), name
