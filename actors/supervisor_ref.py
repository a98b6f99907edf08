"""``SupervisorRef``: the handle of a dynamic supervisor."""

from __future__ import annotations

from typing import Any

from actors.cell import Cell, RunningSupervisor
from actors.errors import ActorStopped
from actors.ref import Ref
from actors.reply import Reply
from actors.spec import AnySpec


class SupervisorRef:
    """The handle of a dynamic supervisor: start and stop its children."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    @property
    def names(self) -> list[str]:
        """The names of the children there are, in the order of starting."""
        return list(self._cell.children)

    async def start_child(self, spec: AnySpec) -> Ref[Any]:
        """Start a child and wait until its set-up is done.

        Raises ``StartFailed`` (its ``__cause__`` is what the set-up raised), ``MisuseError`` if the
        name is taken, ``ActorStopped`` while the supervisor is not up. If the caller is cancelled,
        the child starts all the same.
        """
        reply: Reply[Ref[Any]] = Reply()
        self._supervisor().start_child(spec, reply)
        return await reply.wait()

    async def stop_child(self, name: str) -> None:
        """Stop a child in order and wait until it is gone. No such child: nothing to do."""
        reply: Reply[None] = Reply()
        self._supervisor().stop_child(name, reply)
        await reply.wait()

    def _supervisor(self) -> RunningSupervisor:
        if self._cell.supervisor is None:
            raise ActorStopped(f"{self._cell.path} is not running")
        return self._cell.supervisor
