"""``Outbox``: the actor that makes every call of the Bot API but the polling."""

from __future__ import annotations

import random
from typing import Any

import attrs
import structlog
import trio

from actors import Actor, Reply, Request
from aegis.errors import Unavailable
from aegis.telegram import faults
from aegis.telegram.api import ApiError, ApiUnreachable, Bot, CallRefused
from aegis.telegram.settings import ChatSettings
from aegis.telegram.waiting import WaitingCall, WaitingCalls

log = structlog.get_logger("aegis.telegram")

MAX_BACKOFF_S = 30.0
SHORTEST_WAIT_S = 0.001


@attrs.frozen(kw_only=True)
class Send(Request[dict[str, Any]]):
    """Make a call; the reply is its result.

    ``edits`` is the message that it edits: a later edit of the same message replaces it, and both
    are answered with the result of the later. Refused with ``Unavailable``.
    """

    method: str
    arguments: dict[str, Any]
    edits: int | None = None
    spaced: bool = True


class Outbox(Actor[Send]):
    """Sends one call after another, as Telegram's limits allow."""

    def __init__(self, *, settings: ChatSettings) -> None:
        self._settings = settings
        self._waiting = WaitingCalls()
        self._callers: dict[int, list[Reply[dict[str, Any]]]] = {}
        self._count = 0
        self._added = trio.Event()

    async def setup(self) -> None:
        """Start sending."""
        self.context.register("service", "telegram-outbox")
        self.context.start_soon(self._send_all)

    async def receive(self, message: Send) -> None:
        """Queue a call."""
        self._queue(message)

    def _queue(self, message: Send) -> None:
        self._count += 1
        number = self._count
        self._callers[number] = [self.defer(message)]
        dropped = self._waiting.add(
            WaitingCall(
                number=number,
                method=message.method,
                arguments=message.arguments,
                edits=message.edits,
                spaced=message.spaced,
            )
        )
        for each in dropped:
            callers = self._callers.pop(each, [])
            if each == number or message.edits is None:
                for caller in callers:
                    caller.fail(Unavailable("Telegram: too many messages wait"))
            else:
                self._callers[number] += callers
        self._added.set()

    async def _send_all(self) -> None:
        async with Bot(self._settings) as bot:
            failures = 0
            while True:
                taken = self._waiting.take(trio.current_time())
                if isinstance(taken, WaitingCall):
                    failures = await self._send(bot, taken, failures)
                    continue
                self._added = trio.Event()
                # Rounded, a shorter wait may end before the moment that it is for, again and again.
                with trio.move_on_after(max(taken, SHORTEST_WAIT_S)):
                    await self._added.wait()

    async def _send(self, bot: Bot, item: WaitingCall, failures: int) -> int:
        """Make a call; return the number of failures in a row."""
        try:
            faults.SEND_BEFORE.hit(item.method)
            result = await bot.call(item.method, **item.arguments)
            faults.SEND_AFTER.hit(item.method)
        except CallRefused as error:
            if error.code == 429 or error.code >= 500:
                self._waiting.again(item)
                wait_s = error.retry_after or _backoff_s(failures + 1)
                self._waiting.be_quiet(trio.current_time() + wait_s)
                return failures + 1
            if error.moved_to is not None and error.moved_to != item.arguments.get("chat_id"):
                item.arguments["chat_id"] = error.moved_to
                self._waiting.again(item)
                return failures
            if "not modified" in error.description:
                self._settle(item, {}, None)
            else:
                log.warning("telegram refused", method=item.method, why=str(error))
                self._settle(item, None, str(error))
            return 0
        except ApiUnreachable:
            # The message may have been sent: twice is better than never.
            self._waiting.again(item)
            self._waiting.be_quiet(trio.current_time() + _backoff_s(failures + 1))
            return failures + 1
        except ApiError as error:
            self._settle(item, None, str(error))
            return failures + 1
        self._settle(item, result, None)
        return 0

    def _settle(self, item: WaitingCall, result: Any, error: str | None) -> None:
        """Answer the callers of a call that has ended."""
        for caller in self._callers.pop(item.number, []):
            if error is None:
                caller.send(result if isinstance(result, dict) else {})
            else:
                caller.fail(Unavailable(f"Telegram: {error}"))


def _backoff_s(failures: int) -> float:
    return min(MAX_BACKOFF_S, 0.5 * 2.0 ** min(failures, 10)) * random.uniform(0.5, 1)  # noqa: S311
