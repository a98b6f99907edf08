"""``WakeSubscribers``: the subscribers of one terminal, stored on disk, and the progress of each.

A subscription is answered after its sync. Progress is written without a sync: if it is lost, some
wakes are sent again, and the inbox drops them by their ids. It is written once the inbox has synced
its wakes: when it is read, and when this terminal is closed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import structlog
import trio

from actors import Ref, Reply
from aegis.errors import AegisError, StorageError, Unavailable
from aegis.journal.flusher import Flusher
from aegis.protocol.inboxes import Deliver, Receipt
from aegis.protocol.naming import name_key
from aegis.protocol.terminals import CommandRecord, Done, Subscribe, Subscribed
from aegis.terminals.history import History
from aegis.terminals.output.notifier import Notifier
from aegis.terminals.output.patterns import Pattern
from aegis.terminals.quarantine import open_note
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.wakes.delivery import Inbox, WakeDelivery
from aegis.terminals.wakes.notification import RecordNotification, deliver_message
from aegis.terminals.wakes.subscriptions import Filter, Subscription, Subscriptions, restored
from aegis.terminals.wakes.wake_feed import WakeFeed

log = structlog.get_logger()

MAX_AT_ONCE = 64
"""Limit of wakes in progress to one subscriber."""

MAX_UNDER_WAY = 256
"""Limit of wakes in progress to all subscribers of a terminal, but at least one each."""

SAVE_EVERY_S = 0.2
"""Minimum time, in seconds, between two writes of the progress."""

SAVE_LAST_S = 0.2
"""Time, in seconds, that the last write waits for one in progress."""

CLOSE_S = 1.0
STOP_S = 0.3
"""Time, in seconds, for the last wakes of a terminal at its end, and at the daemon's end."""

T = TypeVar("T")
Change = Callable[[Subscriptions], Subscriptions]
StartSoon = Callable[..., object]
"""Starts a helper task that ends with its owner's incarnation, like ``Context.start_soon``."""

FindInbox = Callable[[str], Inbox | None]
"""Returns the running inbox of a handle's key, if it is in this process."""


def no_inbox(_: str) -> None:
    """Return None: no inbox is in this process."""


class WakeSubscribers:
    """The subscribers of a terminal: notified of each finished command."""

    def __init__(
        self,
        settings: TerminalSettings,
        files: TerminalFiles,
        history: History,
        flusher: Flusher,
        inboxes: Ref[Deliver],
    ) -> None:
        self._name = settings.name
        self._life = settings.life
        self._files = files
        self._flusher = flusher
        self._inboxes = inboxes
        self._feed = WakeFeed(history)
        self._subscriptions = Subscriptions()
        self._on_disk: Subscriptions | None = None
        self._coming: list[Change] = []
        self._deliveries: dict[str, WakeDelivery] = {}
        self._lock: trio.Lock | None = None
        self._changed = Notifier()
        self._is_unsaved = False
        self._cannot_save = False
        self._is_saving = False
        self._is_settling = False
        self._is_closed = False

    # Life cycle of a terminal's front.

    async def open(self, last_seq: int, *, is_new: bool = False) -> int:
        """Read the subscriptions; the ledger ends with ``last_seq``. Raises ``StorageError``.

        ``is_new``: the terminal has no subscriptions yet.
        Return the highest number known to be taken: above ``last_seq`` if subscribers were notified
        of records that the ledger has lost.
        """
        self._note = open_note(self._files.subscribers, self._flusher, is_new=is_new)
        # An earlier life may have been killed before its sync: from here on the content survives a
        # loss of power.
        await self._note.confirm()
        self._on_disk, damaged = restored(self._note.load())
        if self._note.damaged or damaged:
            handles = self._on_disk.handles
            log.warning("subscribers damaged", terminal=self._name, kept=handles)
        self._subscriptions = self._on_disk.in_life(
            self._life, max(last_seq, self._on_disk.highest)
        )
        if self._on_disk.life not in ("", self._life):
            log.warning("terminal has another life id", terminal=self._name, life=self._life)
        notified = self._subscriptions.highest
        if notified > last_seq:
            log.warning("ledger lost records", terminal=self._name, ends=last_seq, told=notified)
        highest = max(last_seq, notified)
        self._feed.begin(highest)
        return highest

    def expect(self, seq: int) -> None:
        """Expect the record ``seq``, whose number is taken and which is not in the ledger.

        A loss of power may have damaged its line; the note has the command, and it is recorded
        again. Until then no subscriber counts as notified of it.
        """
        self._feed.begin(min(self._feed.last, seq - 1))

    def start(self, start_soon: StartSoon, find_inbox: FindInbox = no_inbox) -> None:
        """Start the deliveries, in helper tasks."""
        self._start_soon = start_soon
        self._find_running = find_inbox
        self._match_deliveries()

    async def close(self) -> None:
        """Write the progress and close the file."""
        self._is_closed = True
        if hasattr(self, "_note"):
            try:
                with trio.move_on_after(SAVE_LAST_S):
                    async with self._writing:  # a write in progress has older values
                        self._save_last()
            finally:
                self._note.close()

    def _save_last(self) -> None:
        """Write the progress if that takes no sync: lost progress only repeats some wakes."""
        fields = self._progress().stored()
        if self._progress() != self._on_disk and self._note.fits_in_place(fields):
            with contextlib.suppress(StorageError):
                self._note.write(fields)

    @property
    def _writing(self) -> trio.Lock:
        """The lock of writers. Made when needed: most terminals have no subscriber."""
        if self._lock is None:
            self._lock = trio.Lock()
        return self._lock

    # Subscriptions.

    @property
    def subscribers(self) -> list[str]:
        """The handles that are woken, sorted."""
        return self._subscriptions.handles

    def subscribe(self, request: Subscribe, reply: Reply[Subscribed]) -> None:
        """Wake the request's handle from now on, or change its filter; answer after the sync."""
        handle, last = request.from_handle or "human", self._feed.last
        try:
            wanted = _filter(request)
        except AegisError as error:
            reply.fail(error)
            return
        self._change(
            handle,
            lambda before: before.subscribed(handle, last, wanted),
            reply,
            lambda: Subscribed(subscribers=self.subscribers),
        )

    def unsubscribe(self, handle: str, reply: Reply[Done]) -> None:
        """Stop waking ``handle`` and drop its pending wakes; answer after the sync."""
        self._change(handle, lambda before: before.unsubscribed(handle), reply, Done)

    def _change(
        self, handle: str, change: Change, reply: Reply[T], answer: Callable[[], T]
    ) -> None:
        """Apply ``change`` and answer: at once if nothing changes and no write is in progress."""
        if not self._writing.locked() and self._changes_nothing(change):
            reply.send(answer())
        else:
            self._coming.append(change)
            self._start_soon(self._change_and_answer, handle, change, reply, answer)

    def _changes_nothing(self, change: Change) -> bool:
        try:
            return change(self._subscriptions) == self._subscriptions
        except Unavailable:
            return False

    async def _change_and_answer(
        self, handle: str, change: Change, reply: Reply[T], answer: Callable[[], T]
    ) -> None:
        try:
            await self._confirm_deferred(handle)
            async with self._writing:
                await self._change_on_disk(change)
        except AegisError as error:
            reply.fail(error)
        else:
            reply.send(answer())
        finally:
            self._coming.remove(change)

    async def _confirm_deferred(self, handle: str) -> None:
        """Let the inbox of ``handle`` confirm its wakes, within ``CLOSE_S``."""
        # Called before a change of its filter: the filters of unconfirmed records must be kept.
        delivery = self._deliveries.get(name_key(handle))
        if delivery is None:
            return
        delivery.sync_soon()
        last = self._feed.last
        with trio.move_on_after(CLOSE_S):
            while delivery.confirmed < last and delivery.is_under_way:
                await self._changed.wait()

    async def _change_on_disk(self, change: Change) -> None:
        if self._changes_nothing(change):
            return
        if self._is_closed:
            raise Unavailable(f"terminal {self._name!r} is being closed")
        try:
            await self._write_synced(change(self._progress()))
        except StorageError:
            with contextlib.suppress(StorageError):  # it may be on the disk though it was refused
                await self._write_synced(self._progress())
            raise
        self._subscriptions = change(self._progress())
        self._match_deliveries()

    async def _write_synced(self, subscriptions: Subscriptions) -> None:
        self._on_disk = None
        await self._note.write_synced(subscriptions.stored())
        self._on_disk = subscriptions

    def _match_deliveries(self) -> None:
        """Make one delivery for each subscriber, and stop the others."""
        wanted = self._subscriptions.by_key
        for key in [key for key in self._deliveries if key not in wanted]:
            self._deliveries.pop(key).stop()
        for key, subscription in wanted.items():
            if key not in self._deliveries:
                self._save_soon()
                self._deliveries[key] = self._new_delivery(key, subscription)
                self._start_soon(self._deliveries[key].run_for_ever)

    def _new_delivery(self, key: str, subscription: Subscription) -> WakeDelivery:
        return WakeDelivery(
            terminal=self._name,
            handle=subscription.handle,
            confirmed=subscription.confirmed,
            feed=self._feed,
            filters_of=partial(self._filters_of, key),
            find_inbox=partial(self._find_inbox, key),
            send=self._send,
            share=self._share,
            on_change=self._changed_soon,
            start_soon=self._start_soon,
        )

    def _filters_of(self, key: str, seq: int) -> list[Filter]:
        """Return the possible filters for this record: during a change the old and the new one."""
        # Which of the two is on the disk is open meanwhile. A record that either of them lets pass
        # is sent: skipped, it could come after later ones once the next life reads the other.
        possible = [self._subscriptions]
        for change in self._coming:
            with contextlib.suppress(Unavailable):
                possible.append(change(self._subscriptions))
        found = [each.by_key.get(key) for each in possible]
        return [each.filter_of(seq) for each in found if each is not None]

    # Wakes.

    def finished(self, record: CommandRecord) -> None:
        """Wake the subscribers, except the writer: a command's record is in the ledger."""
        wake = self._feed.add(record, is_wanted=bool(self._subscriptions.by_key))
        for delivery in self._deliveries.values():
            delivery.finished(wake)

    async def settle(self, *, daemon_stops: bool) -> None:
        """Wait, at the terminal's end, until all working inboxes have confirmed everything.

        At most ``CLOSE_S``, or ``STOP_S`` when the whole daemon stops. The rest is sent when the
        terminal is spawned again.
        """
        for delivery in self._deliveries.values():
            delivery.sync_soon()
        self._is_settling = True
        try:
            with trio.move_on_after(STOP_S if daemon_stops else CLOSE_S):
                while any(delivery.is_under_way for delivery in self._deliveries.values()):
                    await self._changed.wait()
        finally:
            self._is_settling = False

    def _find_inbox(self, key: str) -> Inbox | None:
        """Return the inbox that may defer a sync; None while all wakes must be confirmed."""
        return None if self._is_settling else self._find_running(key)

    def _send(
        self, wake: RecordNotification, handle: str, after: int | None, inbox: Inbox | None
    ) -> Reply[Receipt]:
        """Send to ``inbox``, which may defer the sync, or by the router to the handle's inbox."""
        message = deliver_message(
            wake, self._name, self._life, handle, after, defer_sync=inbox is not None
        )
        to: Ref[Deliver] = self._inboxes if inbox is None else inbox
        return to.send_request(message)

    def _share(self) -> int:
        return max(1, min(MAX_AT_ONCE, MAX_UNDER_WAY // max(1, len(self._deliveries))))

    # Progress.

    def _progress(self) -> Subscriptions:
        """Return the subscriptions with the current progress."""
        return self._subscriptions.confirmed(
            {key: delivery.confirmed for key, delivery in self._deliveries.items()}
        )

    def _changed_soon(self) -> None:
        self._is_unsaved = True
        self._changed.notify()

    def _save_soon(self) -> None:
        """Start the task that saves progress; without a subscriber none is needed."""
        if not self._is_saving:
            self._is_saving = True
            self._start_soon(self._save_for_ever)

    async def _save_for_ever(self) -> None:
        """Write the progress after each change, as a helper task."""
        while True:
            if not self._is_unsaved:
                await self._changed.wait()
            self._is_unsaved = False
            async with self._writing:
                await self._save()
            await trio.sleep(SAVE_EVERY_S)

    async def _save(self) -> None:
        now = self._progress()
        if self._is_closed or now == self._on_disk:
            return
        try:
            if self._note.fits_in_place(now.stored()):
                self._note.write(now.stored())
                self._on_disk = now
            else:
                await self._write_synced(now)
        except StorageError as error:
            if not self._cannot_save:
                log.warning("subscribers not written", terminal=self._name, error=str(error))
            self._cannot_save = True
        else:
            self._cannot_save = False


def _filter(request: Subscribe) -> Filter:
    """Return the filter of a request. Raises ``InvalidRequest`` for its pattern."""
    pattern = None if request.pattern is None else Pattern(request.pattern)
    return Filter(pattern=pattern, only_failures=request.only_failures)
