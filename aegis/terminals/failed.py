"""A terminal that is open and has no actors: it could not be started, or its subtree gave up."""

from __future__ import annotations

import attrs
import trio

from aegis.errors import Unavailable
from aegis.protocol.terminals import CommandRecord, TerminalInfo
from aegis.terminals.sentences import SPAWN_ANEW
from aegis.terminals.settings import TerminalSettings


@attrs.define(eq=False, kw_only=True)
class FailedTerminal:
    """What there is to say of it. ``why`` is the reason, without a full stop.

    ``settled`` is set when no process of it is left but those in ``leftover``, and the command
    that was in flight has its record, which ``subscribers`` were told of; ``last`` is the newest.
    """

    settings: TerminalSettings
    why: str
    last: CommandRecord | None = None
    subscribers: list[str] = attrs.field(factory=list)
    leftover: tuple[str, ...] = ()
    settled: trio.Event = attrs.field(factory=trio.Event)

    def refusal(self) -> Unavailable:
        """What is told to whoever wants to use it."""
        return Unavailable(f"terminal {self.settings.name!r} has failed: {self.why}; {SPAWN_ANEW}")

    def info(self) -> TerminalInfo:
        """How the list shows it."""
        return TerminalInfo(
            name=self.settings.name,
            pid=None,
            shell=self.settings.shell,
            cwd=self.settings.cwd,
            started_at=self.settings.started_at,
            cols=self.settings.cols,
            rows=self.settings.rows,
            integration="osc133",
            state="failed",
            last_cmd_at=None if self.last is None else self.last.started_at,
            last_exit=None if self.last is None else self.last.exit,
            subscribers=self.subscribers,
            restarts=0,
            node="local",
        )
