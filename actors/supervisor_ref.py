"""``SupervisorRef``: the handle of a dynamic supervisor, and what it asks of the running one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from actors.errors import ActorStopped
from actors.ref import Ref
from actors.reply import Reply
from actors.spec import AnySpec

if TYPE_CHECKING:
    from actors.cell import Cell
    from actors.supervisor import Supervisor


@attrs.frozen(eq=False)
class StartChild:
    """Start a child; the answer is its address."""

    spec: AnySpec
    reply: Reply[Ref[Any]]


@attrs.frozen(eq=False)
class StopChild:
    """Stop a child for good; the answer comes when it is gone."""

    name: str
    reply: Reply[None]


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
        self._supervisor().post(StartChild(spec, reply))
        return await reply.wait()

    async def stop_child(self, name: str) -> None:
        """Stop a child in order and wait until it is gone. No such child: nothing to do."""
        reply: Reply[None] = Reply()
        self._supervisor().post(StopChild(name, reply))
        await reply.wait()

    def _supervisor(self) -> Supervisor:
        supervisor = self._cell.system.running_supervisor(self._cell)
        if supervisor is None:
            raise ActorStopped(f"{self._cell.path} is not running")
        return supervisor
