"""``Mover``: starts terminals again whose worker died, on another one or where it is up again.

First what is left of their processes is ended, then each comes over its files, as by ``up``. A
terminal that loses its worker again and again has failed: it may be what kills them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import structlog
import trio

from actors import describe
from actors.policy import Budget
from aegis.errors import Unavailable
from aegis.protocol.naming import name_key
from aegis.terminals.settings import TerminalSettings

if TYPE_CHECKING:
    from aegis.terminals.directory.life_cycle import Lives

log = structlog.get_logger("aegis.terminals")

LOSSES = Budget(intensity=5, period_s=60.0)
"""How often a terminal may lose its worker and come back."""

WAIT_UP_S = 15.0
"""How long a terminal waits for a worker; then it has failed, and comes back when there is one."""


@attrs.frozen(eq=False)
class Move:
    """One on its way from ``node``.

    ``waiting`` is what may be cut short, ``over`` is set in any case.
    """

    settings: TerminalSettings
    node: str
    waiting: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    over: trio.Event = attrs.field(factory=trio.Event)

    def refusal(self) -> Unavailable:
        """What is told to whoever wants to use it meanwhile."""
        return Unavailable(
            f"terminal {self.settings.name!r} cannot be used right now: its worker died; it is "
            "being started again: try again in a moment"
        )


class Mover:
    """Those of ``lives`` that are on their way are in ``under_way``, by their keys."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives
        self.under_way: dict[str, Move] = {}
        self._losses: dict[str, Budget] = {}

    def lost(self, path: str, reason: str) -> TerminalSettings | None:
        """The subtree at ``path`` went down with its worker: bring its terminal back.

        Gives its settings; None if there is no such terminal, or it is somewhere else by now.
        """
        places = self._lives.subtrees
        for key, settings in self._lives.open.items():
            name = settings.name
            if path == places.path(name) and places.front(name) is None:
                move = self.under_way[key] = Move(settings, places.node_of(name))
                log.warning(
                    "terminal lost its worker", terminal=name, node=move.node, reason=reason
                )
                places.forget(name)
                self._lives.start_soon(self._carry_out, key, move)
                return settings
        return None

    def has_moved(self, name: str) -> bool:
        """Whether the terminal has lost a worker since it was spawned."""
        return name_key(name) in self._losses

    async def call_off(self, name: str) -> None:
        """The terminal is to end: return once nothing starts it any more.

        It may have been started by then.
        """
        key = name_key(name)
        if (move := self.under_way.get(key)) is not None:
            move.waiting.cancel()
            await move.over.wait()
        self._losses.pop(key, None)

    async def _carry_out(self, key: str, move: Move) -> None:
        try:
            await self._bring_back(key, move)
        finally:
            del self.under_way[key]
            move.over.set()

    async def _bring_back(self, key: str, move: Move) -> None:
        lives, name = self._lives, move.settings.name
        try:
            await lives.end_processes(name)
        except Exception as error:  # its next shell tries once more
            log.warning("processes not ended", terminal=name, why=describe(error))
        spent = self._losses.get(key, LOSSES).spend(trio.current_time())
        self._losses[key] = spent
        if spent.is_exhausted:
            lives.give_up(
                key, f"its worker died {len(spent.times)} times within {spent.period_s:g} s"
            )
            return
        with move.waiting:
            await lives.subtrees.wait_up(WAIT_UP_S)
        if not move.waiting.cancel_called:
            await lives.start_over(move.settings)
