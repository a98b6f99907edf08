"""Where a terminal is started: which of the places of a daemon takes it. Pure.

Places are worker processes, and the daemon's own process (``local``), which takes what asks for it
by name, and everything where there are no workers.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from aegis.errors import Unavailable
from aegis.protocol.naming import name_key
from aegis.terminals.sentences import no_such_node


class NoPlace(Unavailable):
    """No place can take the terminal now; that passes when a worker is up again."""


@attrs.frozen(kw_only=True)
class Place:
    """Somewhere that terminals may be; ``terminals`` is how many are there, or about to be.

    ``by_name``: it takes only what asks for it.
    """

    name: str
    is_up: bool
    terminals: int
    by_name: bool = False


def choose_place(places: Sequence[Place], wanted: str | None) -> str:
    """The name of the place for a new terminal: the one ``wanted``, else the least loaded.

    Of equals it is the first by name. Raises ``NotFound`` for a name that is none, and
    ``NoPlace`` while the one wanted, or every one, is down.
    """
    if wanted is not None:
        return _named(places, wanted)
    free = [each for each in places if each.is_up and not each.by_name]
    if not free:
        raise NoPlace("no worker is up right now; try again in a moment")
    return min(free, key=lambda each: (each.terminals, _in_order(each.name))).name


def _named(places: Sequence[Place], wanted: str) -> str:
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
    """So that w2 comes before w10."""
    return len(name), name
