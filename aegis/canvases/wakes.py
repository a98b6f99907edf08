"""``Wakes``: notifies the subscribers of one canvas of each write and of each save, once.

A wake is sent without a sync (``defer_sync``): until the inbox confirms it, the ledger of the
canvas is its durable copy. It is sent again after a failure and after a restart; the inbox drops
the ids that it knows. The order is kept: each unconfirmed wake names the one before it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable
from itertools import groupby

import attrs
import structlog
import trio

from actors import ActorError, AskError, Ref, Reply, System
from aegis.canvases import faults
from aegis.canvases.state import Bound, CanvasState, Subscriber
from aegis.canvases.wake_text import wake_body, wake_id
from aegis.errors import AegisError
from aegis.protocol.canvases import OUTSIDE, CanvasChange
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


_Newest = dict[str, tuple[int, Reply[Receipt]] | None]
"""The newest unconfirmed wake of each subscriber."""


class Wakes:
    """The deliveries of the canvas ``bound``; ``shown`` returns the name of a change's section.

    ``confirmed`` is called with the progress of handles.
    """

    def __init__(
        self,
        bound: Bound,
        state: CanvasState,
        system: System,
        start_soon: Callable[..., object],
        *,
        shown: Callable[[CanvasChange], str],
        confirmed: Callable[[dict[str, int]], None],
    ) -> None:
        self._bound = bound
        self._state = state
        self._system = system
        self._start_soon = start_soon
        self._shown = shown
        self._confirmed = confirmed
        self._deliveries: dict[str, _Delivery] = {}
        self._is_settling = False

    def push(self) -> None:
        """Send the changes that subscribers do not have."""
        faults.NOTIFY_BEFORE.hit(self._bound.name)
        subscribers = self._state.subscribers
        for key in self._deliveries.keys() - subscribers.keys():
            del self._deliveries[key]
        for key, subscriber in subscribers.items():
            if self._state.is_subscribing(key):
                continue  # to other sections: its changes are sent once that is durable
            delivery = self._deliveries.setdefault(key, _Delivery(subscriber.confirmed))
            try:
                self._send(subscriber, delivery)
            except (ActorError, AegisError) as error:
                self._failed(subscriber, delivery, error)
        faults.NOTIFY_AFTER.hit(self._bound.name)
        if self._deliveries and not self._is_settling and self._owes:
            self._is_settling = True
            self._start_soon(self._settle)

    @property
    def _owes(self) -> bool:
        return any(
            each.confirmed < self._deliveries[key].sent or self._deliveries[key].failures
            for key, each in self._state.subscribers.items()
            if key in self._deliveries
        )

    def _send(self, subscriber: Subscriber, delivery: _Delivery) -> None:
        """Send what the subscriber is owed. Raises ``ActorError``."""
        for _, found in groupby(self._after(delivery.sent), key=_write_of):
            changes = [*found]
            wanted = [each for each in changes if subscriber.wants(each)]
            if wanted:
                message = self._message(subscriber, wanted, delivery.last_id)
                delivery.inbox = delivery.inbox or self._inbox(subscriber)
                delivery.newest = (changes[-1].rev, delivery.inbox.send_request(message))
                delivery.last_id = message.id
            delivery.sent = changes[-1].rev

    def _after(self, rev: int) -> list[CanvasChange]:
        found = []
        for change in reversed(self._state.owed):
            if change.rev <= rev:
                break
            found.append(change)
        return found[::-1]

    def _message(
        self, subscriber: Subscriber, changes: list[CanvasChange], after: str | None
    ) -> Deliver:
        name, life, change = self._bound.name, self._bound.life, changes[-1]
        return Deliver(
            handle=subscriber.handle,
            id=wake_id(name, life, change.rev, subscriber.handle),
            sender=f"canvas:{name}",
            body=wake_body(changes, self._shown),
            timestamp=change.timestamp,
            after=after,
            defer_sync=True,
        )

    def _inbox(self, subscriber: Subscriber) -> Ref[Deliver | SyncInbox]:
        """Return the inbox of a subscriber, or the router, which starts it."""
        find = self._system.registry.find
        found = find("inbox", name_key(subscriber.handle)) or find("service", "inboxes")
        if found is None:
            raise AskError("the inboxes are not running")
        return found

    # Confirmations.

    async def _settle(self) -> None:
        """Have the inboxes sync, and note what they have, until nothing is owed."""
        while self._owes:
            failures = max((each.failures for each in self._deliveries.values()), default=0)
            await trio.sleep(min(LAST_RETRY_S, SETTLE_S * 2.0 ** min(failures, 10)))
            # Taken before the inboxes sync: a later wake is not covered by that sync.
            newest = {key: each.newest for key, each in self._deliveries.items()}
            self._ask_to_sync()
            await self._wait_for_confirmations(newest, trio.current_time() + CONFIRM_S)
            self._retry()
        self._is_settling = False

    def _ask_to_sync(self) -> None:
        for key, delivery in self._deliveries.items():
            subscriber = self._state.subscribers.get(key)
            if subscriber is not None and delivery.newest is not None:
                inbox = self._system.registry.find("inbox", key)
                if inbox is not None:
                    with contextlib.suppress(ActorError):  # it is confirmed later without this
                        inbox.tell(SyncInbox())

    async def _wait_for_confirmations(self, newest_of: _Newest, deadline: float) -> None:
        revs: dict[str, int] = {}
        for key, newest in newest_of.items():
            subscriber, delivery = self._state.subscribers.get(key), self._deliveries.get(key)
            if subscriber is None or delivery is None:
                continue
            try:
                if newest is not None:
                    with trio.fail_at(deadline):
                        await newest[1].wait()
            except (ActorError, AegisError, trio.TooSlowError) as error:
                self._failed(subscriber, delivery, error)
                continue
            delivery.failures = 0
            if delivery.newest is newest:
                delivery.confirmed()
                revs[subscriber.handle] = delivery.sent
            elif newest is not None:
                revs[subscriber.handle] = newest[0]
        self._confirmed(revs)

    def _retry(self) -> None:
        """Send again what has failed, or was not confirmed in time."""
        if any(each.failures for each in self._deliveries.values()):
            self.push()

    def _failed(self, subscriber: Subscriber, delivery: _Delivery, error: Exception) -> None:
        if not delivery.failures:
            log.warning(
                "wake failed",
                canvas=self._bound.name,
                handle=subscriber.handle,
                why=str(error) or "no confirmation",
            )
        delivery.begin_again(subscriber.confirmed)


def _write_of(change: CanvasChange) -> Hashable:
    """Return the same value for the changes of one save by another program.

    They have one line of the ledger and one timestamp, so a message has the same changes and the
    same id at each try.
    """
    is_saved = change.writer == OUTSIDE and not change.displaced
    return change.timestamp if is_saved else change.rev
