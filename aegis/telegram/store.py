"""``ChatStore``: what the chat has to know after a restart."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import attrs
import structlog
import trio

from actors import Context, Reply
from aegis.errors import StorageError
from aegis.journal.disk import shown
from aegis.journal.flusher import Flusher
from aegis.journal.rotation import previous_of, settle_rotation
from aegis.journal.table import REOPEN_S, Table
from aegis.telegram import faults
from aegis.telegram.forms import Draft
from aegis.telegram.rows import (
    CHAT_ID,
    ORDER,
    REQUEST,
    SESSION,
    ChatOrder,
    ChatRow,
    ChatSession,
    ChatState,
    ShownRequest,
    lines_of_today,
)
from aegis.telegram.updates import Update

log = structlog.get_logger("aegis.telegram")

MAX_ASKED = 1_000
"""Open requests whose messages are remembered, so that they can be edited."""

MAX_CLOSED = 1_000
"""Messages of settled requests that are remembered: a late reply to one is no message to a session.
"""

MAX_SESSIONS = 5_000
"""Sessions whose topic and place in the transcript are remembered: those used last."""

R = TypeVar("R", ChatState, ChatOrder, ChatSession, ShownRequest)


class ChatStore:
    """The rows of the ledger ``path``.

    A change by a coroutine is durable when that returns; if the disk refuses, it waits until the
    disk accepts again. What has happened in the chat is noted by a function: the disk cannot refuse
    it. ``pending`` are the orders that are durable and not done, by the ids of their updates.
    """

    def __init__(self, path: Path, flusher: Flusher, context: Context) -> None:
        self.pending: dict[int, ChatOrder] = {}
        self.next_update = 0
        """The lowest id of an update that is not accepted."""
        self._path, self._flusher = path, flusher
        self._table: Table[ChatRow] = Table(path, ChatRow, flusher, context, upgrade=lines_of_today)
        self._used = 0
        self._done: set[int] = set()

    async def open(self) -> None:
        """Read the ledger, or create it; if the disk refuses, wait until it accepts."""
        disk, previous = self._flusher.disk, previous_of(self._path)
        while True:
            try:  # a version before tables may have been killed while it began a new file
                await self._flusher.call(partial(settle_rotation, disk, self._path))
                break
            except StorageError as error:
                log.warning("ledger not opened", file=shown(self._path), why=str(error))
                await trio.sleep(REOPEN_S)
        await self._table.open()
        await self._table.accepts()
        with contextlib.suppress(OSError):  # the file before, which such a version has kept
            await self._flusher.call(partial(disk.unlink, previous))
        self._derive()
        if not self.state.secret:
            await self._keep("secret", self._with(secret=secrets.token_hex(32)))

    def _derive(self) -> None:
        orders = [*self._all(ChatOrder)]
        self.pending = {each.number: each for each in orders if not each.is_done}
        self.next_update = 1 + max((each.number for each in orders), default=-1)
        for each in orders:
            if each.is_done:
                self._drop_done(each.number)
        sessions = [each.used for each in self._all(ChatSession)]
        requests = [each.used for each in self._all(ShownRequest)]
        self._used = max(sessions + requests, default=0)

    def close(self) -> None:
        """Close the ledger."""
        self._table.close()

    # The chat.

    @property
    def state(self) -> ChatState:
        """The row about the chat itself."""
        row = self._table.rows.get(CHAT_ID)
        return row if isinstance(row, ChatState) else ChatState()

    def chat_of(self, chat_id: int) -> int:
        """Return the id that the chat of the configuration has now."""
        return self.state.moved.get(str(chat_id), chat_id)

    def moved(self, old: int, new: int) -> None:
        """The group became a supergroup with another id."""
        self._note("moved", CHAT_ID, lambda row: attrs.evolve(row, moved={str(old): new}))

    def has_problem(self, problem: str) -> None:
        """The bot does not work for this reason, which ``doctor`` reads; empty: it works."""
        self._note("problem", CHAT_ID, lambda row: attrs.evolve(row, problem=problem))

    def woken(self, message: str) -> None:
        """The messages to the person up to this one were sent."""
        self._note("woken", CHAT_ID, lambda row: attrs.evolve(row, woken=message))

    async def focus_on(self, session: str) -> None:
        """Send plain text to this session from now on."""
        if self.state.focus != session:
            await self._keep("focus", self._with(focus=session))

    def _with(self, **fields: str) -> Callable[[], ChatState]:
        return lambda: attrs.evolve(self.state, **fields)  # type: ignore[arg-type]

    # Orders.

    async def accept(self, update: Update) -> None:
        """Accept an update, which is then done once."""
        order = ChatOrder.of(update)
        await self._keep("accepted", lambda: order)
        self.pending[order.number] = order
        self.next_update = max(self.next_update, order.number + 1)

    async def begin(self, update: Update) -> None:
        """Begin an order that must not be repeated."""
        order = attrs.evolve(self.pending[update.update], is_begun=True)
        await self._keep("begun", lambda: order)
        self.pending[update.update] = order

    def done(self, update: Update) -> None:
        """An order was carried out."""
        order = self.pending.pop(update.update)
        self._note("done", order.id, ChatOrder.done, partial(self._drop_done, order.number))

    def _drop_done(self, number: int) -> None:
        self._done.add(number)
        for each in [each for each in self._done if each < self.next_update - 1]:
            self._done.remove(each)
            self._table.drop(f"{ORDER}{each}")  # if the disk refuses, by the next life

    # Sessions.

    def session(self, session: str) -> ChatSession | None:
        """Return what is known of a session."""
        row = self._table.rows.get(f"{SESSION}{session}")
        return row if isinstance(row, ChatSession) else None

    def session_of(self, thread: int | None) -> str:
        """Return the session of a topic, or the one that is talked to; empty: none."""
        if thread is None:
            return self.state.focus
        found = (each.id for each in self._all(ChatSession) if each.topic == thread)
        return next(found, "").removeprefix(SESSION)

    def topic_of(self, session: str) -> int | None:
        """Return the topic of a session."""
        row = self.session(session)
        return None if row is None else row.topic

    def sent_up_to(self, session: str) -> int | None:
        """Return the entry up to which a transcript was sent."""
        row = self.session(session)
        return None if row is None else row.sent

    def opened_topic(self, session: str, thread: int) -> None:
        """A session has got a topic."""
        self._note_session("topic", session, topic=thread)

    def lost_topic(self, thread: int) -> None:
        """A topic was deleted or closed."""
        for each in [each for each in self._all(ChatSession) if each.topic == thread]:
            self._note("untopic", each.id, lambda row: attrs.evolve(row, topic=None))

    async def send_from(self, session: str, entry: int) -> None:
        """Send the transcript of a session from the entry after this one on."""
        used, id_ = self._use(), f"{SESSION}{session}"

        def row() -> ChatSession:
            known = self.session(session) or ChatSession(id=id_)
            return attrs.evolve(known, sent=entry, used=used)

        await self._keep("told", row)
        self._limit([*self._all(ChatSession)], MAX_SESSIONS)

    def sent(self, session: str, entry: int) -> None:
        """The transcript of a session was sent up to this entry."""
        self._note_session("told", session, sent=entry)

    def _note_session(self, kind: str, session: str, **fields: int) -> None:
        used, id_ = self._use(), f"{SESSION}{session}"
        if self._table.shown(id_) is None:  # or else the disk may refuse the row, and this with it
            self._table.add_fact(ChatSession(id=id_, used=used))
        self._note(kind, id_, lambda row: attrs.evolve(row, **fields, used=used))
        self._limit([*self._all(ChatSession)], MAX_SESSIONS)

    # Requests.

    def request(self, request: str) -> ShownRequest | None:
        """Return a request that the chat shows; None if it is settled or not known."""
        row = self._table.rows.get(f"{REQUEST}{request}")
        return row if isinstance(row, ShownRequest) and not row.is_settled else None

    def requests(self) -> dict[str, ShownRequest]:
        """Return the requests that the chat shows, by their ids."""
        rows = (each for each in self._all(ShownRequest) if not each.is_settled)
        return {each.id.removeprefix(REQUEST): each for each in rows}

    def request_of(self, message: int | None) -> str:
        """Return the open request that a message of the chat shows; empty: none."""
        found = (key for key, each in self.requests().items() if each.message == message)
        return next(found, "")

    def is_settled(self, message: int | None) -> bool:
        """Return whether a message of the chat shows a request that was settled."""
        rows = self._all(ShownRequest)
        return any(each.is_settled and each.message == message for each in rows)

    def asked(self, request: str, digest: str, message: int) -> None:
        """The chat shows a request by this message."""
        used, id_ = self._use(), f"{REQUEST}{request}"
        if self._table.shown(id_) is None:
            self._table.add_fact(ShownRequest(id=id_, used=used))
        given = {"digest": digest, "message": message, "is_settled": False, "used": used}
        self._note("asked", id_, lambda row: attrs.evolve(row, **given))
        self._limit([*self.requests().values()], MAX_ASKED)

    async def draft(self, request: str, draft: Draft) -> None:
        """Keep the answers to the questions of a request so far, unless it was settled."""

        def row() -> ShownRequest | None:
            known = self.request(request)
            return None if known is None else attrs.evolve(known, draft=draft)

        await self._keep("drafted", row)

    def settled(self, request: str) -> None:
        """A request was settled, and its message says so."""
        row = self.request(request)
        if row is not None:
            used = self._use()
            self._note("settled", row.id, lambda row: row.settled(used))
            self._limit([each for each in self._all(ShownRequest) if each.is_settled], MAX_CLOSED)

    # Rows.

    def _all(self, of: type[R]) -> Iterator[R]:
        return (row for row in [*self._table.rows.values()] if isinstance(row, of))

    def _use(self) -> int:
        self._used += 1
        return self._used

    def _limit(self, rows: Sequence[ChatSession | ShownRequest], most: int) -> None:
        """Drop those that were used the longest time ago, so that ``most`` are left."""
        if len(rows) > most:
            for row in sorted(rows, key=lambda row: row.used)[: len(rows) - most]:
                self._table.drop(row.id)  # if the disk refuses, with the next one

    def _note(
        self,
        kind: str,
        row_id: str,
        change: Callable[[R], R],
        then: Callable[[], None] | None = None,
    ) -> None:
        faults.APPEND_BEFORE.hit(kind)
        self._table.fact(row_id, change, then)  # type: ignore[arg-type]  # the id says which class
        faults.APPEND_AFTER.hit(kind)

    async def _keep(self, kind: str, row: Callable[[], ChatRow | None]) -> None:
        while True:
            await self._table.accepts()
            new = row()
            if new is None:
                return
            stored: Reply[None] = Reply()
            faults.APPEND_BEFORE.hit(kind)
            self._table.put(new, partial(stored.send, None), stored)
            faults.APPEND_AFTER.hit(kind)
            with contextlib.suppress(StorageError):
                await stored.wait()
                return
