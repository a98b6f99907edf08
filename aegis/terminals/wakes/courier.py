"""``Courier``: brings the wakes of one terminal to one subscriber, until its inbox confirms them.

Each subscriber has one of its own, so an inbox that is slow or broken holds up no other. What it
cannot be sure of it sends again: the inbox knows the ids that it has.

A wake of a new record is *deferred*: the inbox writes it, and confirms it at its next sync, which
somebody else causes (a reader, another message). Until then the ledger is where it is durable.
Each deferred wake names the one before it (``after``), so the confirmation of one confirms all
before it, and only the newest is watched. What a subscriber lags behind is sent with a sync, as is
everything that goes to an inbox in another process.
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
from aegis.terminals.wakes.notification import Wake
from aegis.terminals.wakes.subscriptions import Filter
from aegis.terminals.wakes.wake_feed import Page, WakeFeed

log = structlog.get_logger()

CONFIRM_S = 10.0
"""Seconds that an inbox may take to confirm what was sent at once."""

MAX_DEFERRED = 64
"""Wakes in a row that are deferred; to a subscriber that lags further behind none is."""

Inbox = Ref[Deliver | SyncInbox]

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 10.0


def retry_delay(failures: int) -> float:
    """Seconds to wait after so many failures in a row (1 or more): each time twice as long."""
    return min(LAST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(failures - 1, 10))


class Courier:
    """The way to ``handle``; ``confirmed`` is the record up to which it was told everything.

    ``filters_of`` says of which records it wants to be told: those that one of the filters lets
    pass; the others are confirmed untold.
    ``send`` puts a wake on its way, behind the number of the one under way before it: to an inbox
    that defers it, or (None) to any inbox with a sync. ``find_inbox`` finds the former, if there is
    one. ``share`` says how many may be under way at once with a sync, ``on_change`` is called when
    ``confirmed`` or ``in_trouble`` has changed.
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
        send: Callable[[Wake, str, int | None, Inbox | None], Reply[Receipt]],
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
        self._news = Notifier()
        self._is_idle = False
        self._failures = 0
        self._page = deque[tuple[Wake, bool]]()  # and whether it is to be told
        self._reached = confirmed  # once the page is told
        self._start: int | None = None
        self._sent = confirmed  # everything up to it is confirmed, deferred, or not to be told
        self._deferred: tuple[int, Reply[Receipt]] | None = None  # the newest
        self._watching: trio.CancelScope | None = None
        self._failure: str | None = None  # of what was deferred

    @property
    def is_under_way(self) -> bool:
        """Whether something is owed that will soon be told."""
        return self.confirmed < self._feed.last and not self.in_trouble

    def stop(self) -> None:
        """Nothing more is owed."""
        self._scope.cancel()
        if self._watching is not None:
            self._watching.cancel()

    async def run_for_ever(self) -> None:
        """Tell all there is and all that comes, as a helper task."""
        with self._scope:
            while True:
                await self._wait_for_work()
                error = self._failure or await self._tell_some()
                if error is None:
                    self._went_well()
                else:
                    self._went_wrong(error)
                    await trio.sleep(retry_delay(self._failures))

    async def _wait_for_work(self) -> None:
        while not (self._failure or self._page) and self._sent >= self._feed.last:
            self._is_idle = True
            try:
                await self._news.wait()
            finally:
                self._is_idle = False

    async def _tell_some(self) -> str | None:
        """Tell the next wakes; what went wrong, if anything did."""
        try:
            if not self._page:
                await self._turn_to(await self._feed.page_after(self._sent, self._start))
            if self._failure is not None:
                return self._failure
            inbox = self._inbox_that_defers()
            if inbox is not None:
                self._defer_page(inbox)
                return None
            with trio.move_on_after(CONFIRM_S) as scope:
                # One that was in trouble is tried with one wake: the rest would come out of order.
                share = 1 if self.in_trouble else self._share()
                await self._tell(list(islice(self._page, share)))
        except (AskError, AegisError) as error:
            return str(error)
        late = f"the inbox did not confirm within {CONFIRM_S:g} seconds"
        return late if scope.cancelled_caught else None

    # Deferred.

    def finished(self, wake: Wake | None) -> None:
        """A record is in the ledger; None: it is to be read from there."""
        if wake is None or not self._is_deferred_at_once(wake):
            self._news.notify()

    def sync_soon(self) -> None:
        """Let the inbox sync what is deferred."""
        inbox = None if self._deferred is None else self._find_inbox()
        if inbox is not None:
            with contextlib.suppress(AskError):  # it is told as it would be without this
                inbox.tell(SyncInbox())

    def _is_deferred_at_once(self, wake: Wake) -> bool:
        """Send the wake without waking the task, which costs more than the rest together."""
        is_next = self._sent == wake.seq - 1 and self._is_idle
        if not is_next or self.in_trouble or self._failure is not None:
            return False
        is_told = self._is_told_by_look(wake)
        inbox = None if is_told is None else self._find_inbox()
        if inbox is None or is_told is None:
            return False
        try:
            self._defer(wake, inbox, is_told=is_told)
        except AskError as error:
            self._fail(str(error))
        return True

    def _is_told_by_look(self, wake: Wake) -> bool | None:
        """Whether the wake is to be told; None if a pattern has to be searched for."""
        if not wake.is_for(self.handle):
            return False
        filters = self._filters_of(wake.seq)
        if any(each.pattern is not None for each in filters):
            return None
        return any(wake.failed or not each.only_failures for each in filters)

    def _inbox_that_defers(self) -> Inbox | None:
        lags = self._start is not None or len(self._page) > MAX_DEFERRED
        return None if self.in_trouble or lags else self._find_inbox()

    def _defer_page(self, inbox: Inbox) -> None:
        while self._page:
            wake, is_told = self._page[0]
            self._defer(wake, inbox, is_told=is_told)
            self._page.popleft()
        self._went_through(self._reached)

    def _defer(self, wake: Wake, inbox: Inbox, *, is_told: bool) -> None:
        if is_told:
            self._deferred = (wake.seq, self._send(wake, self.handle, self._before, inbox))
            if self._watching is None:
                self._watching = trio.CancelScope()
                self._start_soon(self._watch, self._watching)
        self._went_through(wake.seq)

    @property
    def _before(self) -> int | None:
        """The wake that was sent just before, and is not confirmed yet."""
        return None if self._deferred is None else self._deferred[0]

    def _went_through(self, seq: int) -> None:
        self._sent = max(self._sent, seq)
        if self._deferred is None:
            self._confirm(seq)

    async def _watch(self, scope: trio.CancelScope) -> None:
        """Wait until what is deferred is confirmed, as a helper task."""
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
        """What is deferred may be lost: the task sends it again."""
        self._failure = why
        self._deferred = None
        self._news.notify()

    # With a sync.

    async def _turn_to(self, page: Page) -> None:
        """Patterns are searched for here, where no inbox is waited for."""
        chosen = [(wake, await self._is_told(wake)) for wake in page.wakes]
        self._page.extend(chosen)
        self._reached, self._start = page.reached, page.next_start

    async def _is_told(self, wake: Wake) -> bool:
        is_told = self._is_told_by_look(wake)
        if is_told is not None:
            return is_told
        for wanted in self._filters_of(wake.seq):
            if await _passes(wake, wanted):
                return True
        return False

    async def _tell(self, wakes: list[tuple[Wake, bool]]) -> None:
        """All are sent at once, so that they share a sync, and confirmed from the first one on."""
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
        self, wakes: list[tuple[Wake, bool]]
    ) -> tuple[list[tuple[Wake, Reply[Receipt] | None]], AskError | None]:
        """What is under way now (without a reply: nobody is woken), and what stopped the rest."""
        sent: list[tuple[Wake, Reply[Receipt] | None]] = []
        before = self._before
        try:
            for wake, is_told in wakes:
                reply = self._send(wake, self.handle, before, None) if is_told else None
                sent.append((wake, reply))
                before = wake.seq if is_told else before
        except AskError as error:
            return sent, error
        return sent, None

    def _confirm(self, seq: int) -> None:
        self._sent = max(self._sent, seq)
        if seq > self.confirmed:
            self.confirmed = seq
            self._on_change()

    def _went_well(self) -> None:
        if self.in_trouble:
            self._log.info("wakes go on")
            self.in_trouble, self._failures = False, 0
            self._on_change()

    def _went_wrong(self, error: str) -> None:
        """Nothing is kept in memory for who cannot be told: it is all in the ledger."""
        self._failures += 1
        self._failure = self._deferred = None
        self._page.clear()
        self._sent = self._reached = self.confirmed
        self._start = None
        if not self.in_trouble:
            self._log.warning("wake failed", error=error)
            self.in_trouble = True
            self._on_change()


async def _passes(wake: Wake, wanted: Filter) -> bool:
    if wanted.only_failures and not wake.failed:
        return False
    if wanted.pattern is None:
        return True
    # A text that is not known may hold a match: better one wake too many than one too few.
    return wake.cmd is None or await search(wanted.pattern, wake.cmd) is not None
