"""The id of a wake: terminal, record and the handle it is for. Pure.

The sender of wakes makes it, and the inbox groups the wakes of a terminal by it:
``term:<name>/<life>/<seq>/<handle>``.
"""

from __future__ import annotations

import re

import attrs

from aegis.protocol.naming import NAME_PATTERN

_WAKE_ID = re.compile(rf"term:({NAME_PATTERN})/([^/]+)/(0|[1-9][0-9]{{0,15}})/({NAME_PATTERN})")


@attrs.frozen
class WakeId:
    """The parts of the id: terminal, life of its name, seq of the record, handle."""

    terminal: str
    life: str
    seq: int
    handle: str


def wake_id(terminal: str, life: str, seq: int, handle: str) -> str:
    """Return the id of the wake of ``handle`` about record ``seq``; the same at each try."""
    return f"term:{terminal}/{life}/{seq}/{handle}"


def parse_wake_id(message_id: str) -> WakeId | None:
    """Return the parts of a wake's id; None for the id of any other message."""
    match = _WAKE_ID.fullmatch(message_id)
    return None if match is None else WakeId(match[1], match[2], int(match[3]), match[4])
