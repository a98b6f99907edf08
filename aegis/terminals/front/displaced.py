"""A submission that is displaced: the shell reads lines that were typed ahead of it first. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from aegis.terminals.front.calls import Call
from aegis.terminals.record import InFlight


@attrs.frozen
class Displaced:
    """A submission that waits in the shell's input behind a typed line.

    ``call`` is None if nobody waits for it any more. The ``seq`` of ``command`` counts only if the
    submission has timed out, for then its caller was shown it.
    """

    command: InFlight
    call: Call | None

    @property
    def number(self) -> int | None:
        """The number of its call."""
        return self.command.call

    @property
    def is_shown(self) -> bool:
        """Whether its caller knows its ``seq``."""
        return self.command.timed_out

    def numbered(self, seq: int, cwd: str | None, cursor: int) -> InFlight:
        """The submission as it would be if it had its turn now, as the command ``seq``."""
        if self.is_shown:
            return self.command
        return attrs.evolve(self.command, seq=seq, cwd=cwd, raw_start=cursor)


def last_begun(commands: Iterable[InFlight]) -> InFlight | None:
    """The command that began last; if none has begun, the one with the highest number."""
    return max(
        commands,
        key=lambda each: (-1 if each.began_at is None else each.began_at, each.seq),
        default=None,
    )


def is_submission(command: InFlight, number: int | None) -> bool:
    """Whether the command is the submission ``number``, which has not begun."""
    return command.began_at is None and command.call == number
