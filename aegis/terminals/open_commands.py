"""The commands of a terminal that have no record yet, for the identity of their processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import attrs

from actors.messages import Request
from aegis.terminals.record import UnrecordedCommand
from aegis.terminals.settings import TerminalSettings


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
    """The commands without a record, oldest first. ``shell`` is the pid of the shell.

    ``opener`` is the tag of the caller who opened the terminal.
    """

    shell: int | None
    opener: str
    commands: list[OpenCommand]


@attrs.frozen
class ReadOpenCommands(Request[OpenCommands]):
    """Return the commands that have not been recorded yet."""


class CurrentShell(Protocol):
    """The shell of a terminal: its pid and the settings of the terminal."""

    @property
    def pid(self) -> int | None:
        """The pid; None without a shell."""

    @property
    def settings(self) -> TerminalSettings:
        """The settings with which the terminal was spawned."""


def open_commands(shell: CurrentShell, commands: Iterable[UnrecordedCommand]) -> OpenCommands:
    """Return the reply of a terminal with this shell."""
    found = [OpenCommand(each.writer, each.started_at) for each in commands]
    return OpenCommands(shell=shell.pid, opener=shell.settings.opener, commands=found)
