"""One answer to a request of HTTP: what comes behind its end is passed over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any


class OneAnswer:
    """The ``send`` of an ASGI application that may answer twice.

    The MCP SDK does, where it fails once its answer was sent; to the HTTP server that is an error
    of the application. ``is_whole``: the answer was sent to its end.
    """

    def __init__(self, send: Callable[[Any], Awaitable[None]]) -> None:
        self._send = send
        self.is_whole = False

    async def __call__(self, message: Mapping[str, Any]) -> None:
        """Send a message of the answer."""
        if self.is_whole:
            return
        await self._send(message)
        is_body = message["type"] == "http.response.body"
        self.is_whole = is_body and not message.get("more_body", False)
