"""The commands of a terminal that have no record yet, for the identity of their processes."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from actors.messages import Request
from aegis.terminals.record import InFlight


@attrs.frozen
class OpenCommand:
    """The writer's tag, the start and the end of a command, as in its record.

    ``ended_at`` is None while it runs.
    """

    writer: str
    started_at: str
    ended_at: str | None = None


@attrs.frozen(kw_only=True)
class OpenCommands:
    """The commands without a record, oldest first. ``shell`` is the pid of the shell."""

    shell: int | None
    commands: list[OpenCommand]


@attrs.frozen
class ReadOpenCommands(Request[OpenCommands]):
    """Return the commands that have not been recorded yet."""


def open_commands(shell: int | None, commands: Iterable[InFlight]) -> OpenCommands:
    """Return the reply for a shell with this pid."""
    found = [OpenCommand(each.writer, each.started_at) for each in commands]
    return OpenCommands(shell=shell, commands=found)
