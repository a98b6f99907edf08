"""One command on several terminals at once."""

from __future__ import annotations

from typing import Any

import attrs

from aegis.protocol.command import MAX_TIMEOUT_S, Command, at_most_chars, between, described
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE, is_name, name_key
from aegis.protocol.terminals import (
    DEFAULT_RUN_TIMEOUT_S,
    MAX_CMD_CHARS,
    CommandRecord,
    limit_of_time,
)

MAX_BROADCAST = 64
"""Terminals that one broadcast may name."""


@attrs.frozen(kw_only=True)
class BroadcastOutcome:
    """The outcome of a broadcast on the terminal ``name``: a ``record``, or an ``error`` sentence.

    The other one of the two is null.
    """

    name: str
    record: CommandRecord | None
    error: str | None


@attrs.frozen(kw_only=True)
class BroadcastOutcomes:
    """``result`` has one outcome per terminal, in the order of the request's ``names``.

    ``more``: together they were too long for a reply, so ``cmd``, ``stdout`` and ``stderr`` of the
    longest records are shorter here than in ``aegis_term_read``.
    """

    result: list[BroadcastOutcome]
    more: bool = False


def _check_names(_: Any, attribute: attrs.Attribute[Any], names: list[str]) -> None:
    if not 1 <= len(names) <= MAX_BROADCAST:
        raise ValueError(
            f"{attribute.name} must hold 1 to {MAX_BROADCAST} terminals, not {len(names)}"
        )
    for name in names:
        if not is_name(name):
            raise ValueError(f"{attribute.name} must each be {NAME_RULE}, not {name[:80]!r}")
    if len({name_key(name) for name in names}) < len(names):
        raise ValueError(f"{attribute.name} must be different terminals; case makes no difference")


@attrs.frozen(kw_only=True)
class Broadcast(Command[BroadcastOutcomes]):
    """Run one command on several terminals at once and collect their records.

    On each terminal it is a call of aegis_term_run: it is queued there, and has the whole
    ``timeout``. A terminal on which it fails (busy, closed, unknown) has a sentence in ``error``;
    the others are not affected.
    """

    names: list[str] = attrs.field(
        validator=_check_names,
        metadata=described(
            f"The terminals, 1 to {MAX_BROADCAST} different ones.",
            minItems=1,
            maxItems=MAX_BROADCAST,
            uniqueItems=True,
            items={"type": "string", "pattern": f"^{NAME_PATTERN}$"},
        ),
    )
    cmd: str = attrs.field(
        validator=at_most_chars(MAX_CMD_CHARS),
        metadata=described(
            "The command, as you would type it; several lines are one command.",
            "The command, as you would type it.",
        ),
    )
    timeout: float = attrs.field(
        default=DEFAULT_RUN_TIMEOUT_S,
        validator=between(0.01, MAX_TIMEOUT_S, "seconds"),
        metadata=limit_of_time("Seconds for each terminal, time in its queue included."),
    )
