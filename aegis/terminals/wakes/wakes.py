"""``Wakes``: the subscribers of one terminal, kept on disk, and what each was told.

Who subscribes is answered when that is synced. How far each was told is written without a sync:
should it be lost, some wakes are sent again, and the inbox drops them by their ids. It is written
once the inbox has synced its wakes: when it is read, and when this terminal is closed.
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
from aegis.terminals.wakes.notification import Wake, deliver_message
from aegis.terminals.wakes.subscriptions import Filter, Subscription, Subscriptions, restored
from aegis.terminals.wakes.wake_feed import WakeFeed

log = structlog.get_logger()

MAX_AT_ONCE = 64
"""Wakes that are under way to one subscriber."""

MAX_UNDER_WAY = 256
"""Wakes that are under way to all subscribers of a terminal, where that is one each or more."""

SAVE_EVERY_S = 0.2
"""Seconds between two writes of how far the subscribers were told, at least."""

SAVE_LAST_S = 0.2
"""Seconds that the last write waits for one that is under way."""

CLOSE_S = 1.0
STOP_S = 0.3
"""Seconds that the last wakes of a terminal may take, when it is closed and when all stop."""

T = TypeVar("T")
Change = Callable[[Subscriptions], Subscriptions]
StartSoon = Callable[..., object]
"""Starts a helper task that ends with the life of its owner, like ``Context.start_soon``."""

FindInbox = Callable[[str], Inbox | None]
"""Finds the running inbox of a handle's key, if it is in this process."""


def no_inbox(_: str) -> None:
    """No inbox is in this process."""


class Wakes:
    """Tells the subscribers of a terminal what has finished there."""

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

    # The life of a terminal's front.

    async def open(self, last_seq: int) -> int:
        """Read who subscribes; the ledger ends with ``last_seq``. Raises ``StorageError``.

        What was read survives a loss of power, also where an earlier life was killed before it had
        synced it. Gives the highest number that is known to have been given: beyond ``last_seq`` if
        somebody was told of records that the ledger does not have any more.
        """
        self._note = open_note(self._files.subscribers, self._flusher)
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
        told = self._subscriptions.highest
        if told > last_seq:
            log.warning("ledger lost records", terminal=self._name, ends=last_seq, told=told)
        highest = max(last_seq, told)
        self._feed.begin(highest)
        return highest

    def expect(self, seq: int) -> None:
        """Wait for the record ``seq``, which was given and is not in the ledger.

        A loss of power may have damaged its line; the note has the command, and it is recorded
        again. Until then nobody counts as told of it.
        """
        self._feed.begin(min(self._feed.last, seq - 1))

    def start(self, start_soon: StartSoon, find_inbox: FindInbox = no_inbox) -> None:
        """Begin to tell what is owed, in helper tasks."""
        self._start_soon = start_soon
        self._find_running = find_inbox
        self._match_deliveries()

    async def close(self) -> None:
        """Write down how far everybody was told, and let go of the file."""
        self._is_closed = True
        if hasattr(self, "_note"):
            try:
                with trio.move_on_after(SAVE_LAST_S):
                    async with self._writing:  # a write that is under way knows less
                        self._save_last()
            finally:
                self._note.close()

    def _save_last(self) -> None:
        """Only where that takes no sync: what is lost is made good by sending it again."""
        fields = self._progress().stored()
        if self._progress() != self._on_disk and self._note.fits_in_place(fields):
            with contextlib.suppress(StorageError):
                self._note.write(fields)

    @property
    def _writing(self) -> trio.Lock:
        """Held by who writes. Made when needed: most terminals have no subscriber."""
        if self._lock is None:
            self._lock = trio.Lock()
        return self._lock

    # Who subscribes.

    @property
    def subscribers(self) -> list[str]:
        """The handles that are woken, sorted."""
        return self._subscriptions.handles

    def subscribe(self, request: Subscribe, reply: Reply[Subscribed]) -> None:
        """Wake its handle from now on; again changes its filter. Answered when it is on disk."""
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
        """Wake ``handle`` no more; what it is still owed is dropped. Answered likewise."""
        self._change(handle, lambda before: before.unsubscribed(handle), reply, Done)

    def _change(
        self, handle: str, change: Change, reply: Reply[T], answer: Callable[[], T]
    ) -> None:
        """At once where nothing changes and nothing is under way."""
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
        """Let the inbox of ``handle`` confirm what it was sent, within ``CLOSE_S``.

        Before its filter is changed: the filters of records that are not confirmed are kept.
        """
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
            with contextlib.suppress(StorageError):  # perhaps it is on the disk, but was refused
                await self._write_synced(self._progress())
            raise
        self._subscriptions = change(self._progress())
        self._match_deliveries()

    async def _write_synced(self, subscriptions: Subscriptions) -> None:
        self._on_disk = None
        await self._note.write_synced(subscriptions.stored())
        self._on_disk = subscriptions

    def _match_deliveries(self) -> None:
        """One for each subscriber."""
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
        """What may be asked for of this record: while a change is written, before and after it.

        Which of the two is on the disk is open meanwhile. A record that is wanted in one case is
        told: passed over, it could come behind later ones once a next life reads the other.
        """
        possible = [self._subscriptions]
        for change in self._coming:
            with contextlib.suppress(Unavailable):
                possible.append(change(self._subscriptions))
        found = [each.by_key.get(key) for each in possible]
        return [each.filter_of(seq) for each in found if each is not None]

    # Telling them.

    def finished(self, record: CommandRecord) -> None:
        """A command has finished, and is in the ledger: everybody but its writer will be told."""
        wake = self._feed.add(record, is_wanted=bool(self._subscriptions.by_key))
        for delivery in self._deliveries.values():
            delivery.finished(wake)

    async def settle(self, *, daemon_stops: bool) -> None:
        """The terminal ends: wait until everybody whose inbox works was told everything.

        At most ``CLOSE_S``, or ``STOP_S`` when the whole daemon stops. Who was not told then is
        told when the terminal is spawned again.
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
        """The inbox that may defer the sync of a wake; none while everything is to be confirmed."""
        return None if self._is_settling else self._find_running(key)

    def _send(
        self, wake: Wake, handle: str, after: int | None, inbox: Inbox | None
    ) -> Reply[Receipt]:
        """To ``inbox``, which may defer the sync, or to whichever inbox there is or will be."""
        message = deliver_message(
            wake, self._name, self._life, handle, after, defer_sync=inbox is not None
        )
        to: Ref[Deliver] = self._inboxes if inbox is None else inbox
        return to.send_request(message)

    def _share(self) -> int:
        return max(1, min(MAX_AT_ONCE, MAX_UNDER_WAY // max(1, len(self._deliveries))))

    # How far they were told.

    def _progress(self) -> Subscriptions:
        """The subscriptions as they are now."""
        return self._subscriptions.confirmed(
            {key: delivery.confirmed for key, delivery in self._deliveries.items()}
        )

    def _changed_soon(self) -> None:
        self._is_unsaved = True
        self._changed.notify()

    def _save_soon(self) -> None:
        """Without a subscriber there is nothing to save: most terminals need no task for it."""
        if not self._is_saving:
            self._is_saving = True
            self._start_soon(self._save_for_ever)

    async def _save_for_ever(self) -> None:
        """Write down the progress whenever there is any, as a helper task."""
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
    """Raises ``InvalidRequest`` for a pattern that is none."""
    pattern = None if request.pattern is None else Pattern(request.pattern)
    return Filter(pattern=pattern, only_failures=request.only_failures)
