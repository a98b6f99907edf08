"""The requests that are sent to the agent, and their handlers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from aegis.agents.drivers.acp.frames import AcpReply, reply_in, request
from aegis.agents.drivers.harness import Frame, Output, Write

HIDDEN = "\u2039secret\u203a"

Handler = Callable[[AcpReply], list[Output]]
"""Takes the response to a request."""


class AcpCalls:
    """The requests of ours that the agent has not answered yet.

    ``secret`` is hidden in errors: some agents repeat the parameters of a failed request.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._last_id = 0
        self._handlers: dict[int, Handler] = {}

    def make(self, method: str, params: Mapping[str, Any], then: Handler) -> Write:
        """Return the frame of a request; ``then`` takes its response."""
        self._last_id += 1
        self._handlers[self._last_id] = then
        return Write(request(self._last_id, method, params))

    def answered(self, frame: Frame) -> list[Output] | None:
        """Take a response; None if it answers no open request."""
        id_ = frame.get("id")
        # True == 1 in Python, so the type is compared too.
        handler = self._handlers.pop(id_, None) if type(id_) is int else None
        return handler(self._without_secret(reply_in(frame))) if handler else None

    def _without_secret(self, reply: AcpReply) -> AcpReply:
        if not self._secret or reply.error is None:
            return reply
        return attrs.evolve(reply, error=reply.error.replace(self._secret, HIDDEN))
