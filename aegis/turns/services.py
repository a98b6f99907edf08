"""``Services``: calls of the daemon's services, repeated through their restarts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import attrs
import trio

from actors import AskError, Ref, System
from actors.messages import Request
from aegis.errors import Busy, StorageError, Unavailable
from aegis.protocol.requests import Answerer, FindAnswerer

T = TypeVar("T")

FIND_S = 5.0
"""Seconds that the lookup of a session may take."""

AGAIN_S = 1.0
"""Seconds until a service that did not answer is asked again."""


@attrs.frozen
class Services:
    """The actors of ``system`` that are registered as services, such as "agents"."""

    system: System

    async def ask(self, service: str, request: Request[T], timeout: float) -> T:
        """Ask once, and wait at most ``timeout`` seconds. Raises ``AegisError``, ``AskError``."""
        found = self.system.registry.find("service", service)
        if found is None:
            raise Unavailable(f"the service {service} is not running")
        answer: T = await found.ask(request, timeout=timeout)
        return answer

    async def answer(self, service: str, request: Request[T], timeout: float) -> T:
        """Ask until there is an answer, of a restarted service too. Raises ``AegisError``.

        Each try takes at most ``timeout`` seconds. Only for a request that may be carried out more
        than once.
        """
        return await until_answered(lambda: self.ask(service, request, timeout))


async def find_answerer(sessions: Ref[Any], handle: str) -> Answerer:
    """Return the rights of a caller, from the directory of sessions. Raises ``AegisError``."""
    try:
        found: Answerer = await sessions.ask(FindAnswerer(handle=handle), timeout=FIND_S)
    except AskError as error:
        sentence = f"the session of {handle!r} could not be looked up; call again"
        raise Unavailable(sentence) from error
    return found


async def until_answered(ask: Callable[[], Awaitable[T]]) -> T:
    """Return the result of ``ask``, called again after each failure that may pass.

    Raises the ``AegisError`` of one that does not.
    """
    while True:
        try:
            return await ask()
        except (AskError, Unavailable, Busy, StorageError):
            await trio.sleep(AGAIN_S)
