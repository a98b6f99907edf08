"""The interface of a connection of messages to its conversation: the WebSocket, or lines."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import attrs

from aegis.servers.calls import Identity


class WireClosed(Exception):
    """The error for a connection that is over."""


@attrs.frozen
class Binary:
    """A binary message."""

    data: bytes


class Wire(Protocol):
    """A connection of messages."""

    async def receive(self) -> str | bytes | Binary:
        """Return the next message. Raises ``WireClosed``, or ``InvalidRequest`` for a bad kind."""
        ...

    async def send(self, message: str | bytes) -> None:
        """Send one message, text or binary; several tasks may call it. Raises ``WireClosed``."""
        ...

    def trust(self, identity: Identity | None) -> None:
        """Lift the limits for unauthenticated clients: the client has proved its identity.

        ``identity`` is the owner of the client's key; None: it is identified by its connection.
        """
        ...

    def holding(self, size: int) -> AbstractContextManager[None]:
        """Count ``size`` unread bytes during the block; too many end the connection."""
        ...


class TextWire(Wire, Protocol):
    """A connection of messages that are all text."""

    async def receive(self) -> str | bytes:
        """Return the next message. Raises as ``Wire.receive`` does."""
        ...

    async def wait_gone(self) -> None:
        """After ``receive`` raised ``WireClosed``: return once the client reads no longer."""
        ...
