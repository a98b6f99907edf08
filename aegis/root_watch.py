"""The actor that stops a daemon whose state directory or lock file is gone or replaced.

Another daemon may then start in this root, and both would write the same files. PostgreSQL has the
same rule for ``postmaster.pid``.
"""

from __future__ import annotations

import attrs
import structlog
import trio

from actors import Actor, ChildSpec
from aegis.process import HeldRoot

log = structlog.get_logger("aegis")

LOOK_S = 1.0
"""Seconds between two looks; a look takes ten microseconds."""


@attrs.frozen(kw_only=True)
class LookAtRoot:
    """It is time to compare the held descriptors with their paths."""


class RootWatch(Actor[LookAtRoot]):
    """Sets ``stop`` when the root is not this process's any more."""

    def __init__(self, *, held: HeldRoot, stop: trio.Event) -> None:
        self._held = held
        self._stop = stop

    async def setup(self) -> None:
        """Look now, and from time to time."""
        self._look()

    async def receive(self, message: LookAtRoot) -> None:
        """Look again."""
        self._look()

    def _look(self) -> None:
        why = self._held.why_lost()
        if why is None:
            self.context.after(LOOK_S, LookAtRoot())
        elif not self._stop.is_set():
            log.error("stopping: another daemon may start in this root", why=why)
            self._stop.set()


def root_watch(held: HeldRoot, stop: trio.Event) -> ChildSpec:
    """Return the actor as a child of the root supervisor."""
    return ChildSpec(name="root-watch", actor=RootWatch, arguments={"held": held, "stop": stop})
