"""The base class of the nouns of the asynchronous client."""

from __future__ import annotations

from typing import Any, TypeVar

from aegis.client.session import ClientSession
from aegis.protocol.command import Command

T = TypeVar("T")


class Noun:
    """A group of commands of one session. Each method raises ``ClientError``."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def _call(self, command: type[Command[T]], /, **arguments: Any) -> T:
        return await self._session.call(command, arguments)
