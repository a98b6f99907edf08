"""What the nouns of a client have in common: the way of a call."""

from __future__ import annotations

from typing import Any, TypeVar

from aegis.client.session import Session
from aegis.protocol.command import Command

T = TypeVar("T")


class Noun:
    """Some commands of one session, as methods. Each raises ``ClientError``."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def _call(self, command: type[Command[T]], /, **arguments: Any) -> T:
        return await self._session.call(command, arguments)
