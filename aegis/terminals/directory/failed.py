"""A terminal that is open and has no actors: it could not be started, or its subtree gave up."""

from __future__ import annotations

from typing import Literal

import attrs
import trio

from aegis.errors import Unavailable
from aegis.protocol.naming import LOCAL_NODE
from aegis.protocol.terminals import CommandRecord, TerminalInfo
from aegis.terminals.sentences import SPAWN_ANEW
from aegis.terminals.settings import TerminalSettings


@attrs.define(eq=False, kw_only=True)
class FailedTerminal:
    """What there is to say of it. ``why`` is the reason, without a full stop.

    ``settled`` is set when no process of it is left but those in ``leftover``, and the command
    that was in flight has its record, which ``subscribers`` were told of; ``last`` is the newest.
    ``is_known``: the settings are its own, and not a guess. ``is_finalised``: that command really
    has its record; else it is tried once more. ``is_retried``: the disk refused, or no worker was
    up, which may pass; not settled while it is tried. ``node`` is where it ran, or was to.
    """

    settings: TerminalSettings
    why: str
    is_known: bool = True
    is_finalised: bool = False
    last: CommandRecord | None = None
    subscribers: list[str] = attrs.field(factory=list)
    leftover: tuple[str, ...] = ()
    settled: trio.Event = attrs.field(factory=trio.Event)
    is_retried: bool = False
    node: str = LOCAL_NODE

    def refusal(self) -> Unavailable:
        """What is told to whoever wants to use it."""
        name = self.settings.name
        if self.is_retried:
            return Unavailable(
                f"terminal {name!r} has failed: it could not be started, which is tried again and "
                f"again: {self.why}"
            )
        return Unavailable(f"terminal {name!r} has failed: {self.why}; {SPAWN_ANEW}")

    def info(self, state: Literal["starting", "failed"] = "failed") -> TerminalInfo:
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
            state=state,
            last_cmd_at=None if self.last is None else self.last.started_at,
            last_exit=None if self.last is None else self.last.exit,
            subscribers=self.subscribers,
            restarts=0,
            node=self.node,
        )


def unanswered_info(settings: TerminalSettings, node: str = LOCAL_NODE) -> TerminalInfo:
    """How the list shows one whose front does not answer, as far as that is known."""
    unanswered = FailedTerminal(settings=settings, why="it does not answer", node=node)
    return unanswered.info("starting")
