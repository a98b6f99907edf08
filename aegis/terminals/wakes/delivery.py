"""``WakeDelivery``: the delivery of one terminal's wakes to one subscriber, until confirmed.

Each subscriber has its own delivery, so a slow or broken inbox blocks no other. A wake without
confirmation is sent again: the inbox drops ids that it has.

A wake of a new record is *deferred*: the inbox writes it, and confirms it at its next sync, which a
reader or another message causes. Until then it is durable in the ledger only. Each deferred wake
names the one before it (``after``), so the confirmation of one confirms all before it, and only the
newest is watched. Wakes of older records, and all wakes to an inbox in another process, are sent
with a sync.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

import structlog
import trio

from actors import AskError, Ref, Reply
from aegis.errors import AegisError
from aegis.protocol.inboxes import Deliver, Receipt, SyncInbox
from aegis.terminals.output.notifier import Notifier
from aegis.terminals.output.patterns import search
from aegis.terminals.wakes.notification import RecordNotification
from aegis.terminals.wakes.subscriptions import Filter
from aegis.terminals.wakes.wake_feed import WakeBatch, WakeFeed

log = structlog.get_logger()

CONFIRM_S = 10.0
"""Time, in seconds, in which an inbox must confirm wakes that were sent together."""

MAX_DEFERRED = 64
"""A subscriber that lags further behind gets its wakes with a sync."""

Inbox = Ref[Deliver | SyncInbox]

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 10.0


def retry_delay(failures: int) -> float:
    """Return the seconds to wait after ``failures`` (1 or more) in a row: exponential backoff."""
    return min(LAST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(failures - 1, 10))


class WakeDelivery:
    """The delivery to ``handle``; all wakes up to the record ``confirmed`` are confirmed.

    ``filters_of`` returns the filters for a record: it is sent if one of them lets it pass, else it
    counts as confirmed. ``send`` sends a wake with the number of the unconfirmed wake before it: to
    an inbox that defers, or (None) to any inbox with a sync. ``find_inbox`` finds the former.
    ``share`` returns how many wakes may be in progress with a sync. ``on_change`` is called after
    changes of ``confirmed`` or ``in_trouble``.
    """

    def __init__(
        self,
        *,
        terminal: str,
        handle: str,
        confirmed: int,
        feed: WakeFeed,
        filters_of: Callable[[int], Sequence[Filter]],
        find_inbox: Callable[[], Inbox | None],
        send: Callable[[RecordNotification, str, int | None, Inbox | None], Reply[Receipt]],
        share: Callable[[], int],
        on_change: Callable[[], None],
        start_soon: Callable[..., object],
    ) -> None:
        self.handle = handle
        self.confirmed = confirmed
        self.in_trouble = False
        self._log = log.bind(terminal=terminal, handle=handle)
        self._feed = feed
        self._filters_of = filters_of
        self._find_inbox = find_inbox
        self._send = send
        self._share = share
        self._on_change = on_change
        self._start_soon = start_soon
        self._scope = trio.CancelScope()
        self._work = Notifier()
        self._is_idle = False
        self._failures = 0
        self._page = deque[tuple[RecordNotification, bool]]()  # with whether it is to be sent
        self._reached = confirmed  # once the page is sent
        self._lags = False
        self._sent = confirmed  # everything up to it is confirmed, deferred, or filtered out
        self._deferred: tuple[int, Reply[Receipt]] | None = None  # the newest
        self._watching: trio.CancelScope | None = None
        self._failure: str | None = None  # of what was deferred

    @property
    def is_under_way(self) -> bool:
        """Whether wakes are owed and likely to be confirmed soon."""
        return self.confirmed < self._feed.last and not self.in_trouble

    def stop(self) -> None:
        """End the delivery: no more wakes are owed."""
        self._scope.cancel()
        if self._watching is not None:
            self._watching.cancel()

    async def run_for_ever(self) -> None:
        """Send all wakes, and the ones to come, as a helper task."""
        with self._scope:
            while True:
                await self._wait_for_work()
                error = self._failure or await self._send_some()
                if error is None:
                    self._on_success()
                else:
                    self._on_failure(error)
                    await trio.sleep(retry_delay(self._failures))

    async def _wait_for_work(self) -> None:
        while not (self._failure or self._page) and self._sent >= self._feed.last:
            self._is_idle = True
            try:
                await self._work.wait()
            finally:
                self._is_idle = False

    async def _send_some(self) -> str | None:
        """Send the next wakes; return the error, if any."""
        try:
            if not self._page:
                await self._take_page(await self._feed.page_after(self._sent))
            if self._failure is not None:
                return self._failure
            inbox = self._inbox_that_defers()
            if inbox is not None:
                self._defer_page(inbox)
                return None
            with trio.move_on_after(CONFIRM_S) as scope:
                # After an error one wake is tried: if it fails, later ones would come out of order.
                share = 1 if self.in_trouble else self._share()
                await self._send_synced(list(islice(self._page, share)))
        except (AskError, AegisError) as error:
            return str(error)
        late = f"the inbox did not confirm within {CONFIRM_S:g} seconds"
        return late if scope.cancelled_caught else None

    # Deferred.

    def finished(self, wake: RecordNotification | None) -> None:
        """Take the wake of a record that is in the ledger; None: read it from there."""
        if wake is None or not self._is_deferred_at_once(wake):
            self._work.notify()

    def sync_soon(self) -> None:
        """Ask the inbox to sync the deferred wakes."""
        inbox = None if self._deferred is None else self._find_inbox()
        if inbox is not None:
            with contextlib.suppress(AskError):  # the wakes are confirmed later without this
                inbox.tell(SyncInbox())

    def _is_deferred_at_once(self, wake: RecordNotification) -> bool:
        """Send the wake here if possible, and return whether it was."""
        # Waking the task costs more than all the rest.
        is_next = self._sent == wake.seq - 1 and self._is_idle
        if not is_next or self.in_trouble or self._failure is not None:
            return False
        is_wanted = self._passes_without_search(wake)
        inbox = None if is_wanted is None else self._find_inbox()
        if inbox is None or is_wanted is None:
            return False
        try:
            self._defer(wake, inbox, is_wanted=is_wanted)
        except AskError as error:
            self._fail(str(error))
        return True

    def _passes_without_search(self, wake: RecordNotification) -> bool | None:
        """Return whether the wake is to be sent; None if a pattern must be searched for first."""
        if not wake.is_for(self.handle):
            return False
        filters = self._filters_of(wake.seq)
        if any(each.pattern is not None for each in filters):
            return None
        return any(wake.failed or not each.only_failures for each in filters)

    def _inbox_that_defers(self) -> Inbox | None:
        lags = self._lags or len(self._page) > MAX_DEFERRED
        return None if self.in_trouble or lags else self._find_inbox()

    def _defer_page(self, inbox: Inbox) -> None:
        while self._page:
            wake, is_wanted = self._page[0]
            self._defer(wake, inbox, is_wanted=is_wanted)
            self._page.popleft()
        self._mark_sent(self._reached)

    def _defer(self, wake: RecordNotification, inbox: Inbox, *, is_wanted: bool) -> None:
        if is_wanted:
            self._deferred = (wake.seq, self._send(wake, self.handle, self._before, inbox))
            if self._watching is None:
                self._watching = trio.CancelScope()
                self._start_soon(self._watch, self._watching)
        self._mark_sent(wake.seq)

    @property
    def _before(self) -> int | None:
        """The newest wake that was sent and is not confirmed."""
        return None if self._deferred is None else self._deferred[0]

    def _mark_sent(self, seq: int) -> None:
        self._sent = max(self._sent, seq)
        if self._deferred is None:
            self._confirm(seq)

    async def _watch(self, scope: trio.CancelScope) -> None:
        """Wait for the confirmation of the deferred wakes, as a helper task."""
        with scope:
            while (watched := self._deferred) is not None:
                seq, newest = watched
                try:
                    await newest.wait()
                except (AskError, AegisError) as error:
                    if self._deferred is not None:
                        self._fail(str(error))
                    break
                if self._deferred is watched:
                    self._deferred = None
                    self._confirm(self._sent)
                else:
                    self._confirm(seq)
        if self._watching is scope:
            self._watching = None

    def _fail(self, why: str) -> None:
        """Let the task send the deferred wakes again: they may be lost."""
        self._failure = why
        self._deferred = None
        self._work.notify()

    # With a sync.

    async def _take_page(self, page: WakeBatch) -> None:
        """Take the next page, and apply the filters."""
        # Patterns are searched here, outside the time limit of the inbox.
        chosen = [(wake, await self._is_wanted(wake)) for wake in page.wakes]
        self._page.extend(chosen)
        self._reached, self._lags = page.reached, page.has_older

    async def _is_wanted(self, wake: RecordNotification) -> bool:
        is_wanted = self._passes_without_search(wake)
        if is_wanted is not None:
            return is_wanted
        for wanted in self._filters_of(wake.seq):
            if await _passes(wake, wanted):
                return True
        return False

    async def _send_synced(self, wakes: list[tuple[RecordNotification, bool]]) -> None:
        """Send all at once, so that they share a sync, and confirm them in order."""
        sent, failure = self._send_all(wakes)
        for wake, reply in sent:
            if reply is not None:
                await reply.wait()
            self._page.popleft()
            self._confirm(wake.seq)
        if failure is not None:
            raise failure
        if not self._page:
            self._confirm(self._reached)

    def _send_all(
        self, wakes: list[tuple[RecordNotification, bool]]
    ) -> tuple[list[tuple[RecordNotification, Reply[Receipt] | None]], AskError | None]:
        """Return the wakes taken, each with its reply (None: filtered out), and any error."""
        sent: list[tuple[RecordNotification, Reply[Receipt] | None]] = []
        before = self._before
        try:
            for wake, is_wanted in wakes:
                reply = self._send(wake, self.handle, before, None) if is_wanted else None
                sent.append((wake, reply))
                before = wake.seq if is_wanted else before
        except AskError as error:
            return sent, error
        return sent, None

    def _confirm(self, seq: int) -> None:
        self._sent = max(self._sent, seq)
        if seq > self.confirmed:
            self.confirmed = seq
            self._on_change()

    def _on_success(self) -> None:
        if self.in_trouble:
            self._log.info("wakes go on")
            self.in_trouble, self._failures = False, 0
            self._on_change()

    def _on_failure(self, error: str) -> None:
        """Start again from the ledger: nothing is kept in memory for an inbox that fails."""
        self._failures += 1
        self._failure = self._deferred = None
        self._page.clear()
        self._sent = self._reached = self.confirmed
        self._lags = False
        if not self.in_trouble:
            self._log.warning("wake failed", error=error)
            self.in_trouble = True
            self._on_change()


async def _passes(wake: RecordNotification, wanted: Filter) -> bool:
    if wanted.only_failures and not wake.failed:
        return False
    if wanted.pattern is None:
        return True
    # An unknown text may hold a match: rather one wake too many than one too few.
    return wake.cmd is None or await search(wanted.pattern, wake.cmd) is not None
