"""The requests that are sent to the agent, and their handlers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aegis.agents.drivers.acp.frames import Reply, reply_in, request
from aegis.agents.drivers.harness import Frame, Output, Write

Handler = Callable[[Reply], list[Output]]
"""Takes the response to a request."""


class Calls:
    """The requests of ours that the agent has not answered yet."""

    def __init__(self) -> None:
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
        return handler(reply_in(frame)) if handler else None
