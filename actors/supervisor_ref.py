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
        """The names of the current children, in the order of starting."""
        return list(self._cell.children)

    async def start_child(self, spec: AnySpec) -> Ref[Any]:
        """Start a child, wait until its setup is done, and return its address.

        Raises ``StartFailed`` (``__cause__`` is the setup's error), ``MisuseError`` if the name is
        taken or the supervisor is not dynamic, and ``ActorStopped`` if the supervisor is not
        running. A cancelled call does not cancel the start of the child.
        """
        reply: Reply[Ref[Any]] = Reply()
        self._supervisor().start_child(spec, reply)
        return await reply.wait()

    async def stop_child(self, name: str) -> None:
        """Stop a child for good, in order, and wait for its end. No effect if there is none.

        Raises ``ActorStopped`` if the supervisor is not running.
        """
        reply: Reply[None] = Reply()
        self._supervisor().stop_child(name, reply)
        await reply.wait()

    def _supervisor(self) -> RunningSupervisor:
        if self._cell.supervisor is None:
            raise ActorStopped(f"{self._cell.path} is not running")
        return self._cell.supervisor
