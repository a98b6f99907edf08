"""``Openings``: the sessions that are being opened for queues and workflows.

A queue or a workflow knows the handle of a session before it is open. It may close the session, or
ask for it, while the spawn is under way: after a crash of its own actor, or when the workflow was
cancelled. An answer that there is no such session would be true for a moment only, and leave a
session that nobody closes.
"""

from __future__ import annotations

from typing import Any

import trio

from actors import ActorError, Ref, Reply
from aegis.errors import Unavailable
from aegis.protocol import agents as api
from aegis.protocol.naming import name_key

OPENED = api.SpawnWorker | api.SpawnForWorkflow


class Openings:
    """The spawns that are under way, by handle."""

    def __init__(self) -> None:
        self._opened: dict[str, trio.Event] = {}

    def begin(self, request: Any) -> None:
        """Note a request that opens a session."""
        if isinstance(request, OPENED) and request.handle is not None:
            self._opened.setdefault(name_key(request.handle), trio.Event())

    def end(self, request: Any) -> None:
        """Note that a request is answered."""
        if isinstance(request, OPENED) and request.handle is not None:
            opened = self._opened.pop(name_key(request.handle), None)
            if opened is not None:
                opened.set()

    def __contains__(self, handle: object) -> bool:
        return name_key(str(handle)) in self._opened

    async def pass_on(self, message: Any, reply: Reply[Any], to: Ref[Any]) -> None:
        """Pass a command on once the session that it is for is open, or will not be opened."""
        if message.handle in self:
            await self._opened[name_key(message.handle)].wait()
        try:
            to.forward(message, reply)
        except ActorError as error:
            reply.fail(Unavailable(str(error)))
