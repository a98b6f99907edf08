"""``Courier``: brings the wakes of one terminal to one subscriber, until its inbox confirms them.

Each subscriber has one of its own, so an inbox that is slow or broken holds up no other. What it
cannot be sure of it sends again: the inbox knows the ids that it has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

import structlog
import trio

from actors import AskError, Reply
from aegis.errors import AegisError
from aegis.protocol.inboxes import Receipt
from aegis.terminals.notification import Wake
from aegis.terminals.searching import search
from aegis.terminals.subscriptions import Filter
from aegis.terminals.wake_feed import Page, WakeFeed

log = structlog.get_logger()

CONFIRM_S = 10.0
"""Seconds that an inbox may take to confirm what was sent at once."""

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 10.0


def retry_delay(failures: int) -> float:
    """Seconds to wait after so many failures in a row (1 or more): each time twice as long."""
    return min(LAST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(failures - 1, 10))


class Courier:
    """The way to ``handle``; ``confirmed`` is the record up to which it was told everything.

    ``filters_of`` says of which records it wants to be told: those that one of the filters lets
    pass; the others are confirmed untold.
    ``send`` puts a wake on its way, behind the number of the one under way before it; ``share``
    says how many may be under way at once, ``on_change`` is called when ``confirmed`` or
    ``in_trouble`` has changed.
    """

    def __init__(
        self,
        *,
        terminal: str,
        handle: str,
        confirmed: int,
        feed: WakeFeed,
        filters_of: Callable[[int], Sequence[Filter]],
        send: Callable[[Wake, str, int | None], Reply[Receipt]],
        share: Callable[[], int],
        on_change: Callable[[], None],
    ) -> None:
        self.handle = handle
        self.confirmed = confirmed
        self.in_trouble = False
        self._log = log.bind(terminal=terminal, handle=handle)
        self._feed = feed
        self._filters_of = filters_of
        self._send = send
        self._share = share
        self._on_change = on_change
        self._scope = trio.CancelScope()
        self._failures = 0
        self._page = deque[tuple[Wake, bool]]()  # and whether it is to be told
        self._reached = confirmed  # once the page is told
        self._start: int | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether something is owed that will soon be told."""
        return self.confirmed < self._feed.last and not self.in_trouble

    def stop(self) -> None:
        """Nothing more is owed."""
        self._scope.cancel()

    async def run_for_ever(self) -> None:
        """Tell all there is and all that comes, as a helper task."""
        with self._scope:
            while True:
                await self._feed.wait_beyond(self.confirmed)
                error = await self._tell_some()
                if error is None:
                    self._went_well()
                else:
                    self._went_wrong(error)
                    await trio.sleep(retry_delay(self._failures))

    async def _tell_some(self) -> str | None:
        """Tell the next wakes; what went wrong, if anything did."""
        try:
            if not self._page:
                await self._turn_to(await self._feed.page_after(self.confirmed, self._start))
            with trio.move_on_after(CONFIRM_S) as scope:
                # One that was in trouble is tried with one wake: the rest would come out of order.
                share = 1 if self.in_trouble else self._share()
                await self._tell(list(islice(self._page, share)))
        except (AskError, AegisError) as error:
            return str(error)
        late = f"the inbox did not confirm within {CONFIRM_S:g} seconds"
        return late if scope.cancelled_caught else None

    async def _turn_to(self, page: Page) -> None:
        """Patterns are searched for here, where no inbox is waited for."""
        chosen = [(wake, await self._is_told(wake)) for wake in page.wakes]
        self._page.extend(chosen)
        self._reached, self._start = page.reached, page.next_start

    async def _is_told(self, wake: Wake) -> bool:
        if not wake.is_for(self.handle):
            return False
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
        before: int | None = None
        try:
            for wake, is_told in wakes:
                sent.append((wake, self._send(wake, self.handle, before) if is_told else None))
                before = wake.seq if is_told else before
        except AskError as error:
            return sent, error
        return sent, None

    def _confirm(self, seq: int) -> None:
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
        self._page.clear()
        self._reached, self._start = self.confirmed, None
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
