"""Faults from the environment: ``AEGIS_FAULT`` injects failures into a daemon, for tests.

The variable holds faults with commas between them, each ``<point>@<pass>=<kind>``:

    AEGIS_FAULT='ledger.sync.before@3=kill,actor.receive.before[Shell]@9=crash'

A kind is ``kill`` (SIGKILL to the daemon itself), ``crash`` (an exception in the code that reaches
the point), an errno in lower case (``enospc``, ``eio``), ``block:<seconds>``, which blocks the
event loop, or ``delay:<seconds>`` where the point allows it.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from functools import partial

from actors.faults import Block, Crash, Delay, Fault, Kill, Plan, Raise
from aegis.errors import StartupError

VARIABLE = "AEGIS_FAULT"

_ENTRY = re.compile(r"(?P<point>[a-z_.]+(?:\[[^]]+\])?)@(?P<number>[1-9][0-9]*)=(?P<kind>.+)")
_PAUSE = re.compile(r"(?P<kind>delay|block):(?P<seconds>[0-9]+(?:\.[0-9]+)?)")


def plan_from_environment(environment: Mapping[str, str]) -> Plan | None:
    """Return the plan in the variable; None if it is not set. Raises ``StartupError``."""
    text = environment.get(VARIABLE)
    return None if not text else parse_plan(text)


def parse_plan(text: str) -> Plan:
    """Parse a plan. Raises ``StartupError`` if it is malformed."""
    return Plan(dict(map(_parse_entry, text.split(","))))


def _parse_entry(entry: str) -> tuple[tuple[str, int], Fault]:
    match = _ENTRY.fullmatch(entry.strip())
    fault = None if match is None else _fault(match["kind"])
    if match is None or fault is None:
        raise StartupError(
            f"{VARIABLE} contains {entry!r}; use <point>@<pass>=kill, crash, delay:<seconds>, "
            "block:<seconds> or the name of an errno"
        )
    return (match["point"], int(match["number"])), fault


def _fault(kind: str) -> Fault | None:
    pause = _PAUSE.fullmatch(kind)
    number = getattr(errno, kind.upper(), None) if kind.isalnum() else None
    if kind == "kill":
        return Kill()
    if kind == "crash":
        return Crash()
    if pause is not None:
        seconds = float(pause["seconds"])
        return Delay(seconds) if pause["kind"] == "delay" else Block(seconds)
    return Raise(partial(_os_error, number)) if isinstance(number, int) else None


def _os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
