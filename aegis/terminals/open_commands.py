"""The commands of a terminal that have no record yet, for the identity of their processes."""

from __future__ import annotations

import attrs

from actors.messages import Request


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
