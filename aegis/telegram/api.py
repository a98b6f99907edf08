"""The calls of the Bot API. The token is in every address: no error is passed on as it is."""

from __future__ import annotations

import json
import math
from typing import Any

import httpx2 as httpx
import trio

from aegis.limits import is_no_thread, no_thread
from aegis.telegram.settings import ChatSettings

CALL_S = 10.0
"""Seconds that a call may take."""

MAX_ANSWER_BYTES = 8 * 1024 * 1024
MAX_RETRY_S = 3_600.0


class ApiError(Exception):
    """The base class of failed calls; the text has no token."""


class CallRefused(ApiError):
    """The Bot API refused: ``code`` as in HTTP, ``retry_after`` in seconds with 429.

    ``moved_to``: the id that the chat has now, because the group became a supergroup.
    """

    def __init__(
        self,
        code: int,
        description: str,
        retry_after: float | None = None,
        moved_to: int | None = None,
    ) -> None:
        super().__init__(f"{code}: {description}")
        self.code = code
        self.description = description
        self.retry_after = retry_after
        self.moved_to = moved_to


class ApiUnreachable(ApiError):
    """There was no answer, or none that can be read: the call may have been made."""


class Bot:
    """The bot of a token. A context manager."""

    def __init__(self, settings: ChatSettings) -> None:
        self._base = f"{settings.api.rstrip('/')}/bot{settings.token}/"
        # No proxy of the environment gets the token, and no redirect is followed.
        self._client = httpx.AsyncClient(trust_env=False, follow_redirects=False)

    async def __aenter__(self) -> Bot:
        return self

    async def __aexit__(self, *_: object) -> None:
        with trio.CancelScope(shield=True), trio.move_on_after(1):
            await self._client.aclose()

    async def call(self, method: str, *, wait_s: float = 0.0, **arguments: Any) -> Any:
        """Call a method; return its result. ``wait_s``: how long the server may wait.

        Raises ``ApiError``.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        body = await self._post(method, given, wait_s + CALL_S)
        match body:
            case {"ok": True, "result": result}:
                return result
            case {"ok": False, "error_code": int(code), **rest}:
                raise CallRefused(
                    code,
                    str(rest.get("description", ""))[:300],
                    _retry_after(rest),
                    _moved_to(rest),
                )
        raise ApiUnreachable("the answer of the Bot API cannot be read")

    async def _post(self, method: str, arguments: dict[str, Any], timeout_s: float) -> Any:
        # One deadline for everything: a half-dead connection may send a byte now and then.
        with trio.move_on_after(timeout_s):
            try:
                answer = await self._client.post(
                    f"{self._base}{method}", json=arguments, timeout=timeout_s
                )
                if len(answer.content) > MAX_ANSWER_BYTES:
                    raise ApiUnreachable("the answer of the Bot API is too long")
                return json.loads(answer.content)
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError) as error:
                # The text of such an error has the address, and so the token.
                raise ApiUnreachable(type(error).__name__) from None
            except RuntimeError as error:  # names are looked up in a thread
                if not is_no_thread(error):
                    raise
                raise ApiUnreachable(str(no_thread("look up the Bot API"))) from None
        raise ApiUnreachable("no answer in time")


def _moved_to(document: dict[Any, Any]) -> int | None:
    parameters = document.get("parameters")
    new = parameters.get("migrate_to_chat_id") if isinstance(parameters, dict) else None
    return new if isinstance(new, int) else None


def _retry_after(document: dict[Any, Any]) -> float | None:
    parameters = document.get("parameters")
    seconds = parameters.get("retry_after") if isinstance(parameters, dict) else None
    if not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return None
    return min(MAX_RETRY_S, max(0.0, float(seconds)))
