"""What a conversation needs of a connection of messages: the WebSocket, or lines."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import attrs

from aegis.servers.calls import Identity


class WireClosed(Exception):
    """The connection is over."""


@attrs.frozen
class Binary:
    """A message of bytes that is no text."""

    data: bytes


class Wire(Protocol):
    """A connection of messages."""

    async def receive(self) -> str | bytes | Binary:
        """The next message. Raises ``WireClosed``, or ``InvalidRequest`` for one of a bad kind."""
        ...

    async def send(self, message: str | bytes) -> None:
        """Send one message, text or binary; several tasks may call it. Raises ``WireClosed``."""
        ...

    def trust(self, identity: Identity | None) -> None:
        """The client has shown who it is: lift the limits meant for strangers.

        ``identity`` is whose key it showed; None: it is known by its connection.
        """
        ...

    def holding(self, size: int) -> AbstractContextManager[None]:
        """So many bytes wait for the client during the block; too many end the connection."""
        ...


class TextWire(Wire, Protocol):
    """A connection of messages that are all text."""

    async def receive(self) -> str | bytes:
        """The next message. Raises as ``Wire.receive`` does."""
        ...
