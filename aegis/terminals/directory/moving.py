"""``Mover``: restarts the terminals whose worker died, on any worker that is up.

The remaining processes of a terminal are ended first; then it is restored from its files, as at the
start of a daemon. A terminal that loses its worker too often has failed: it may be the cause.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import attrs
import structlog
import trio

from actors import describe
from actors.policy import RestartBudget
from aegis.errors import Unavailable
from aegis.protocol.naming import name_key
from aegis.terminals.directory.placed_subtrees import PlacedSubtrees
from aegis.terminals.settings import TerminalSettings

log = structlog.get_logger("aegis.terminals")

LOSSES = RestartBudget(intensity=5, period_s=60.0)
"""How often a terminal may lose its worker before it has failed."""

WAIT_UP_S = 15.0
"""How long a terminal waits for a worker before it has failed; it is restarted when one is up."""


class MovableTerminals(Protocol):
    """The operations on terminals that a move needs. ``open`` is by the keys of names."""

    open: dict[str, TerminalSettings]
    subtrees: PlacedSubtrees
    start_soon: Callable[..., object]

    async def end_processes(self, name: str) -> tuple[str, ...]:
        """End all processes of the terminal's shells; return those that remain."""

    async def restart(self, settings: TerminalSettings) -> None:
        """Start a terminal that has lost its actors."""

    def fail_open(self, key: str, why: str) -> Any:
        """Turn an open terminal into a failed one."""


@attrs.frozen(eq=False)
class Move:
    """One terminal that lost its worker ``node`` and is being restarted.

    Cancelling ``waiting`` ends its wait for a worker; ``done`` is set at the end in any case.
    """

    settings: TerminalSettings
    node: str
    waiting: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    done: trio.Event = attrs.field(factory=trio.Event)

    def refusal(self) -> Unavailable:
        """Return the error for requests that need the terminal now."""
        return Unavailable(
            f"terminal {self.settings.name!r} cannot be used right now: its worker died; it is "
            "being started again: try again in a moment"
        )


class Mover:
    """The moves of ``terminals``; those in progress are in ``moves``, by the keys of names."""

    def __init__(self, terminals: MovableTerminals) -> None:
        self._terminals = terminals
        self.moves: dict[str, Move] = {}
        self._losses: dict[str, RestartBudget] = {}

    def worker_lost(self, path: str, reason: str) -> TerminalSettings | None:
        """Restart the terminal whose subtree at ``path`` went down with its worker.

        Return its settings; None if no open terminal has that path, or it has moved already.
        """
        subtrees = self._terminals.subtrees
        for key, settings in self._terminals.open.items():
            name = settings.name
            if path == subtrees.path(name) and subtrees.front(name) is None:
                move = self.moves[key] = Move(settings, subtrees.node_of(name))
                log.warning(
                    "terminal lost its worker", terminal=name, node=move.node, reason=reason
                )
                subtrees.remove(name)
                self._terminals.start_soon(self._move, key, move)
                return settings
        return None

    def has_moved(self, name: str) -> bool:
        """Whether the terminal has lost a worker since it was spawned."""
        return name_key(name) in self._losses

    async def cancel(self, name: str) -> None:
        """Cancel the terminal's move before it ends; wait until the move is done.

        The move may still have started the terminal.
        """
        key = name_key(name)
        if (move := self.moves.get(key)) is not None:
            move.waiting.cancel()
            await move.done.wait()
        self._losses.pop(key, None)

    async def _move(self, key: str, move: Move) -> None:
        try:
            await self._restart(key, move)
        finally:
            del self.moves[key]
            move.done.set()

    async def _restart(self, key: str, move: Move) -> None:
        terminals, name = self._terminals, move.settings.name
        try:
            await terminals.end_processes(name)
        except Exception as error:  # the start of its next shell tries once more
            log.warning("processes not ended", terminal=name, why=describe(error))
        spent = self._losses.get(key, LOSSES).spend(trio.current_time())
        self._losses[key] = spent
        if spent.is_exhausted:
            terminals.fail_open(
                key, f"its worker died {len(spent.times)} times within {spent.period_s:g} s"
            )
            return
        with move.waiting:
            await terminals.subtrees.wait_up(WAIT_UP_S)
        if not move.waiting.cancel_called:
            await terminals.restart(move.settings)
