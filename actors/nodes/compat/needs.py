"""The names of Trio that tractor uses, and the stand-ins it therefore gets. Pure.

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
"""The name that marks a tractor written for the Trio before exception groups."""

CARRIES_THE_KEY = frozenset({"lowlevel.open_process", "serve_tcp", "open_tcp_stream"})
"""The names that a tractor must use; any other way would bypass the authentication."""

_DOTTED = re.compile(r"\btrio\.((?:lowlevel\.)?[A-Za-z_]\w*)")
_FROM = re.compile(r"^\s*from trio import ([\w, ]+)$", re.MULTILINE)


@attrs.frozen
class Trio:
    """The expectations of an old tractor that the installed Trio still meets."""

    has_multi_error: bool
    unwraps_lone_exceptions: bool
    events_have_truth: bool
    processes_can_be_entered: bool


def names_used(sources: Iterable[str]) -> frozenset[str]:
    """Return the names of Trio that these sources use, without ``trio.``."""
    found: set[str] = set()
    for source in sources:
        found.update(_DOTTED.findall(source))
        for names in _FROM.findall(source):
            found.update(name.split(" as ")[0].strip() for name in names.split(","))
    return frozenset(found)


def missing(used: frozenset[str]) -> frozenset[str]:
    """Return the names that the authentication needs and this tractor does not use."""
    return CARRIES_THE_KEY - used


def stand_ins(used: frozenset[str], trio: Trio) -> frozenset[str]:
    """Return the names of Trio that get a stand-in."""
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
