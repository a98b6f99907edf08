"""Which of Trio's names tractor uses, and so which stand-ins it gets. Pure.

tractor 0.1.0a5 was written for a Trio in which ``MultiError`` was there, a lone exception left a
nursery bare, an event had a truth value and a process could be entered. A release that no longer
names ``trio.MultiError`` knows today's Trio and gets the real thing. Spawning, serving and
connecting always have a stand-in: it carries the key and the authentication.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs

OF_ANOTHER_TIME = "MultiError"
"""Who names this was written for the Trio before exception groups."""

CARRIES_THE_KEY = frozenset({"lowlevel.open_process", "serve_tcp", "open_tcp_stream"})
"""What a tractor must use: one that goes another way would go around the authentication."""

_DOTTED = re.compile(r"\btrio\.((?:lowlevel\.)?[A-Za-z_]\w*)")
_FROM = re.compile(r"^\s*from trio import ([\w, ]+)$", re.MULTILINE)


@attrs.frozen
class Trio:
    """What the Trio that is installed still has of what an old tractor expects."""

    has_multi_error: bool
    unwraps_lone_exceptions: bool
    events_have_truth: bool
    processes_can_be_entered: bool


def names_used(sources: Iterable[str]) -> frozenset[str]:
    """The names of Trio that these sources use, without ``trio.`` before them."""
    found: set[str] = set()
    for source in sources:
        found.update(_DOTTED.findall(source))
        for names in _FROM.findall(source):
            found.update(name.split(" as ")[0].strip() for name in names.split(","))
    return frozenset(found)


def missing(used: frozenset[str]) -> frozenset[str]:
    """What a tractor with these names does not use although the authentication hangs on it."""
    return CARRIES_THE_KEY - used


def stand_ins(used: frozenset[str], trio: Trio) -> frozenset[str]:
    """The names of Trio that get a stand-in."""
    wanted = set(CARRIES_THE_KEY & used)
    if OF_ANOTHER_TIME in used:
        lacking = {
            "MultiError": not trio.has_multi_error,
            "open_nursery": not trio.unwraps_lone_exceptions,
            "Event": not trio.events_have_truth,
            "Process": not trio.processes_can_be_entered,
        }
        wanted |= {name for name, lacks in lacking.items() if lacks and name in used}
    return frozenset(wanted)
