"""Who is woken when a command has finished, and what each is still owed."""

from __future__ import annotations

from collections import deque

import attrs
import structlog
import trio

from actors import AskError, Ref, Reply
from aegis.errors import AegisError
from aegis.protocol.inboxes import Deliver, Receipt
from aegis.protocol.naming import name_key
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.notification import wake_body, wake_id, wake_sender
from aegis.terminals.record import handle_of

log = structlog.get_logger()

MAX_OWED = 1_000
"""Records that may wait to be told to subscribers; beyond it the oldest are dropped and logged."""

CONFIRM_S = 10.0
"""Seconds that an inbox may take to confirm a message."""

RETRY_S = 1.0
"""Seconds before an inbox that failed is tried again."""


@attrs.define(eq=False)
class _Owed:
    record: CommandRecord
    handles: list[str]


class Wakes:
    """The subscribers of one terminal. Deliveries go out in order, one record after the other."""

    def __init__(self, terminal: str, life: str, inboxes: Ref[Deliver]) -> None:
        self._terminal = terminal
        self._life = life
        self._inboxes = inboxes
        self._handles: dict[str, str] = {}
        self._owed: deque[_Owed] = deque()
        self._news = trio.Event()

    @property
    def subscribers(self) -> list[str]:
        """The handles that are woken, sorted."""
        return sorted(self._handles.values(), key=name_key)

    def subscribe(self, handle: str) -> None:
        """Wake ``handle`` from now on; again changes nothing."""
        self._handles.setdefault(name_key(handle), handle)

    def unsubscribe(self, handle: str) -> None:
        """Wake ``handle`` no more."""
        self._handles.pop(name_key(handle), None)

    def finished(self, record: CommandRecord) -> None:
        """A command has finished: everybody but its writer will be told."""
        writer = name_key(handle_of(record.writer))
        handles = [handle for key, handle in self._handles.items() if key != writer]
        if not handles:
            return
        if len(self._owed) >= MAX_OWED:
            lost = self._owed.popleft()
            log.warning("wake dropped", terminal=self._terminal, seq=lost.record.seq)
        self._owed.append(_Owed(record, handles))
        self._news.set()

    async def deliver_for_ever(self) -> None:
        """Hand on what is owed, as a helper task of the terminal."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            while self._owed:
                owed = self._owed[0]
                owed.handles = await self._deliver(owed)
                if owed.handles:
                    await trio.sleep(RETRY_S)
                elif self._owed and self._owed[0] is owed:
                    self._owed.popleft()

    async def _deliver(self, owed: _Owed) -> list[str]:
        """Deliver to all at once; the handles whose inbox did not confirm are returned."""
        sent = [(handle, self._send(owed.record, handle)) for handle in owed.handles]
        return [handle for handle, reply in sent if not await self._is_confirmed(handle, reply)]

    async def _is_confirmed(self, handle: str, reply: Reply[Receipt] | None) -> bool:
        if reply is None:
            return False
        with trio.move_on_after(CONFIRM_S):
            try:
                await reply.wait()
            except (AskError, AegisError) as error:
                self._log_failure(handle, error)
            else:
                return True
        return False

    def _send(self, record: CommandRecord, handle: str) -> Reply[Receipt] | None:
        try:
            return self._inboxes.send_request(
                Deliver(
                    handle=handle,
                    id=wake_id(self._terminal, self._life, record.seq, handle),
                    sender=wake_sender(self._terminal),
                    body=wake_body(record),
                    timestamp=record.finished_at or record.started_at,
                )
            )
        except AskError as error:
            self._log_failure(handle, error)
            return None

    def _log_failure(self, handle: str, error: Exception) -> None:
        log.warning("wake failed", terminal=self._terminal, handle=handle, error=str(error))
