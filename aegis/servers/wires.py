"""What a conversation needs of a connection of messages: the WebSocket, or lines."""

from __future__ import annotations

from typing import Protocol

import attrs


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

    def trust(self) -> None:
        """The client has shown who it is: lift the limits meant for strangers."""
        ...


class TextWire(Wire, Protocol):
    """A connection of messages that are all text."""

    async def receive(self) -> str | bytes:
        """The next message. Raises as ``Wire.receive`` does."""
        ...
