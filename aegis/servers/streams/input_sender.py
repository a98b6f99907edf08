"""``InputSender``: sends a client's input to the terminal, in order, and reports refusals.

Input is keys, or claims of the terminal's size. Sending does not wait for the terminal's answers; a
task awaits them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import trio

from actors import Reply
from actors.errors import AskError
from aegis.errors import AegisError, Busy
from aegis.protocol.output_streams import Refused
from aegis.servers.calls import failure_of
from aegis.servers.streams.outlet import Outlet

MAX_UNANSWERED = 512
"""Messages of input that the terminal has not answered yet."""

TOO_MANY = (
    f"{MAX_UNANSWERED} messages of keys are not answered by the terminal yet; wait a moment, "
    "then type again"
)

T = TypeVar("T")


class InputSender(Generic[T]):
    """The input of one stream. ``run`` reports refusals to ``outlet``, until cancelled.

    ``send`` sends input to the terminal; it raises ``AegisError`` or ``AskError``. ``item`` makes
    the item that reports a refusal.
    """

    def __init__(
        self,
        send: Callable[[T], Reply[Any]],
        outlet: Outlet,
        item: Callable[[Refused], object],
    ) -> None:
        self._send = send
        self._outlet = outlet
        self._item = item
        self._unanswered: deque[Reply[Any]] = deque()
        self._refused: AegisError | AskError | None = None
        self._news = trio.Event()
        self._refusal = trio.Event()

    def put(self, data: T) -> None:
        """Send input to the terminal; a refusal is reported by ``run``."""
        try:
            if len(self._unanswered) >= MAX_UNANSWERED:
                raise Busy(TOO_MANY)
            self._unanswered.append(self._send(data))
        except (AegisError, AskError) as error:
            self._refuse(error)
        else:
            self._news.set()

    async def run(self) -> None:
        """Await the answers and report refusals; of several at once, the newest."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._await_answers)
            nursery.start_soon(self._send_refusals)

    async def _await_answers(self) -> None:
        while True:
            while self._unanswered:
                try:
                    await self._unanswered[0].wait()
                except (AegisError, AskError) as error:
                    self._refuse(error)
                self._unanswered.popleft()
            self._news = trio.Event()
            await self._news.wait()

    async def _send_refusals(self) -> None:
        while True:
            await self._refusal.wait()
            await self._outlet.room()
            self._refusal = trio.Event()
            error, self._refused = self._refused, None
            failure = None if error is None else failure_of(error)
            if failure is not None:
                refused = Refused(code=failure.code, message=failure.sentence)
                await self._outlet.item(self._item(refused))

    def _refuse(self, error: AegisError | AskError) -> None:
        self._refused = error
        self._refusal.set()
