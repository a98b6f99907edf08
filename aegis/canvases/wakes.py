"""``Wakes``: notifies the subscribers of one canvas of each write and of each save, once.

A wake is sent without a sync (``defer_sync``): until the inbox confirms it, the ledger of the
canvas is its durable copy. It is sent again after a failure and after a restart; the inbox drops
the ids that it knows. The order is kept: each unconfirmed wake names the one before it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import attrs
import structlog
import trio

from actors import ActorError, AskError, Context, Ref, Reply
from aegis.canvases import faults
from aegis.canvases.binding import Bound
from aegis.canvases.revisions import Revision, Subscriber
from aegis.canvases.views import wake_body, wake_id
from aegis.errors import AegisError
from aegis.journal.table import Table
from aegis.protocol.canvases import CanvasChange
from aegis.protocol.inboxes import Deliver, Receipt, SyncInbox
from aegis.protocol.naming import name_key

log = structlog.get_logger("aegis.canvases")

SETTLE_S = 1.0
"""Seconds after which the inboxes are asked to sync; a reader makes them sync at once."""

CONFIRM_S = 10.0
LAST_RETRY_S = 30.0


@attrs.define(eq=False)
class _Delivery:
    """The wakes of one subscriber: those up to ``sent`` are sent, ``newest`` is not confirmed."""

    sent: int
    newest: tuple[int, Reply[Receipt]] | None = None
    last_id: str | None = None
    inbox: Ref[Deliver | SyncInbox] | None = None
    """The inbox or the router that has what is not confirmed: one of them keeps the order."""
    failures: int = 0

    def begin_again(self, confirmed: int) -> None:
        self.sent = confirmed
        self.confirmed()
        self.failures += 1

    def confirmed(self) -> None:
        """Forget what was not confirmed: it is now, or it is sent again."""
        self.newest = self.last_id = self.inbox = None


class Wakes:
    """The deliveries of the canvas ``bound`` to the subscribers ``ids``, which are rows of a table.

    ``after`` returns the changes after a revision, ``shown`` a change as its subscribers see it.
    """

    def __init__(
        self,
        bound: Bound,
        table: Table[Any],
        ids: set[str],
        context: Context,
        *,
        after: Callable[[int], list[Revision]],
        shown: Callable[[Revision], CanvasChange],
    ) -> None:
        self._bound, self._table, self._ids = bound, table, ids
        self._registry = context.system.registry
        self._start_soon = context.start_soon
        self._after, self._shown = after, shown
        self._deliveries: dict[str, _Delivery] = {}
        self._is_settling = False
        self.is_waiting = False
        """Whether a subscriber is not woken until its subscription is durable, or refused."""

    def push(self) -> None:
        """Send the changes that subscribers do not have."""
        faults.NOTIFY_BEFORE.hit(self._bound.name)
        subscribers = dict(self._subscribers())
        self.is_waiting = False
        for key in self._deliveries.keys() - subscribers.keys():
            del self._deliveries[key]
        for key, subscriber in subscribers.items():
            if self._is_being_changed(subscriber):
                self.is_waiting = True  # so that it gets all wakes in order, also after a kill
                continue
            delivery = self._deliveries.setdefault(key, _Delivery(subscriber.confirmed))
            try:
                self._send(subscriber, delivery)
            except (ActorError, AegisError) as error:
                self._failed(subscriber, delivery, error)
        faults.NOTIFY_AFTER.hit(self._bound.name)
        if self._owes() and not self._is_settling:
            self._is_settling = True
            self._start_soon(self._settle)

    def _subscribers(self) -> Iterator[tuple[str, Subscriber]]:
        """Yield the subscriptions that are durable, with all that their inboxes have."""
        for key in sorted(self._ids):
            shown, newest = self._table.shown(key), self._table.rows.get(key)
            if shown is not None:
                yield key, shown if newest is None else shown.has(newest.confirmed)

    def _is_being_changed(self, subscriber: Subscriber) -> bool:
        """Return whether a subscription to other sections is not durable yet."""
        newest = self._table.rows.get(subscriber.id)
        return newest is not None and newest != subscriber.has(newest.confirmed)

    def _owes(self) -> bool:
        """Return whether a wake is not confirmed, or must be sent again."""
        return any(
            each.confirmed < self._deliveries[key].sent or self._deliveries[key].failures
            for key, each in self._subscribers()
            if key in self._deliveries
        )

    def _send(self, subscriber: Subscriber, delivery: _Delivery) -> None:
        """Send what the subscriber is owed. Raises ``ActorError``, ``AegisError``."""
        for _, found in groupby(self._after(delivery.sent), key=lambda change: change.save):
            changes = [*found]
            wanted = [each for each in changes if subscriber.wants(each)]
            if wanted:
                message = self._message(subscriber, wanted, delivery.last_id)
                delivery.inbox = delivery.inbox or self._inbox(subscriber)
                delivery.newest = (changes[-1].number, delivery.inbox.send_request(message))
                delivery.last_id = message.id
            delivery.sent = changes[-1].number

    def _message(
        self, subscriber: Subscriber, changes: Sequence[Revision], after: str | None
    ) -> Deliver:
        name, life, last = self._bound.name, self._bound.life, changes[-1]
        return Deliver(
            handle=subscriber.handle,
            id=wake_id(name, life, last.number, subscriber.handle),
            sender=f"canvas:{name}",
            body=wake_body([*map(self._shown, changes)]),
            timestamp=last.timestamp,
            after=after,
            defer_sync=True,
        )

    def _inbox(self, subscriber: Subscriber) -> Ref[Deliver | SyncInbox]:
        """Return the inbox of a subscriber, or the router, which starts it."""
        find = self._registry.find
        found = find("inbox", name_key(subscriber.handle)) or find("service", "inboxes")
        if found is None:
            raise AskError("the inboxes are not running")
        return found

    # Confirmations.

    async def _settle(self) -> None:
        """Have the inboxes sync, and note what they have, until nothing is owed."""
        while self._owes():
            failures = max((each.failures for each in self._deliveries.values()), default=0)
            await trio.sleep(min(LAST_RETRY_S, SETTLE_S * 2.0 ** min(failures, 10)))
            # Taken before the inboxes sync: a later wake is not covered by that sync.
            newest = {key: each.newest for key, each in self._deliveries.items()}
            self._ask_to_sync()
            deadline = trio.current_time() + CONFIRM_S
            for key, each in newest.items():
                await self._confirm(key, each, deadline)
            if any(each.failures for each in self._deliveries.values()):
                self.push()
        self._is_settling = False

    def _ask_to_sync(self) -> None:
        for key, subscriber in self._subscribers():
            delivery = self._deliveries.get(key)
            inbox = self._registry.find("inbox", name_key(subscriber.handle))
            if inbox is not None and delivery is not None and delivery.newest is not None:
                with contextlib.suppress(ActorError):  # it is confirmed later without this
                    inbox.tell(SyncInbox())

    async def _confirm(
        self, key: str, newest: tuple[int, Reply[Receipt]] | None, deadline: float
    ) -> None:
        """Wait until the inbox of a subscriber has its wakes up to ``newest``, and note that."""
        subscriber, delivery = dict(self._subscribers()).get(key), self._deliveries.get(key)
        if subscriber is None or delivery is None:
            return
        try:
            if newest is not None:
                with trio.fail_at(deadline):
                    await newest[1].wait()
        except (ActorError, AegisError, trio.TooSlowError) as error:
            self._failed(subscriber, delivery, error)
            return
        delivery.failures = 0
        if delivery.newest is newest:
            delivery.confirmed()
            self._has(key, delivery.sent)
        elif newest is not None:
            self._has(key, newest[0])

    def _has(self, key: str, rev: int) -> None:
        """Note that an inbox has the wakes up to ``rev``, unless its handle has unsubscribed."""
        if key in self._table.rows:
            self._table.fact(key, lambda row: row.has(rev))

    def _failed(self, subscriber: Subscriber, delivery: _Delivery, error: Exception) -> None:
        if not delivery.failures:
            log.warning(
                "wake failed",
                canvas=self._bound.name,
                handle=subscriber.handle,
                why=str(error) or "no confirmation",
            )
        delivery.begin_again(subscriber.confirmed)
