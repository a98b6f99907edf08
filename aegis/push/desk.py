"""``PushDesk``: the actor of the browsers that get notifications while their page is closed.

What a browser should be notified of follows from what is open and what was sent: there is no queue
of messages that could grow, and after a kill the rest is sent. A message that may have been sent
before replaces itself in the browser.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import structlog
import trio

from actors import Actor, Reply
from aegis.clock import utc_now
from aegis.errors import AegisError, InvalidRequest, NotFound, StorageError, Unavailable
from aegis.journal.flusher import Flusher
from aegis.journal.folding import exists
from aegis.journal.table import Table
from aegis.limits import in_thread, in_thread_or_here
from aegis.protocol.feeds import FollowInbox, InboxPlace
from aegis.protocol.inboxes import HUMAN, Message, ReadInbox
from aegis.protocol.push import (
    GetPushKey,
    ListPush,
    PageSubscribePush,
    PushKey,
    PushRemoved,
    PushSubscription,
    PushSubscriptions,
    RemovePush,
    SubscribePush,
)
from aegis.protocol.requests import FollowRequests, RequestPlace
from aegis.push.endpoint import read_endpoint
from aegis.push.notices import PushNotice, message_notice, request_notice, settled_notice
from aegis.push.rows import CLIENT, NOTICE, PushClient, PushedRequest, PushRow, client_id
from aegis.state.sealing import Seal
from aegis.turns.services import Services

if TYPE_CHECKING:
    from aegis.push.delivery import PushDelivery
    from aegis.push.network import PushNetwork
    from aegis.push.vapid import VapidKey

log = structlog.get_logger("aegis.push")

MAX_CLIENTS = 32
"""The largest number of browsers that are subscribed."""

GRACE_S = 2.0
"""Seconds that a request must be open before a browser is notified: most of them are short."""

LOOKUP_S = 5.0
"""Seconds for which a new subscription waits for the address of its push service."""

FOLLOW_S = 3_600.0
FIRST_BACKOFF_S = 2.0
MAX_BACKOFF_S = 900.0
MAX_TRIES = 8
"""Tries for one message, after which it is left out."""

MAX_AT_ONCE, AT_ONCE_S = 20, 20.0
"""Messages to one browser in so many seconds; further ones wait."""

MAX_FIRST = 50
"""Messages since a subscription that are looked through when it is served first."""

BEGIN_AGAIN_S = 5.0

PushMessage = GetPushKey | SubscribePush | PageSubscribePush | ListPush | RemovePush


@attrs.define
class PushPace:
    """How often one browser was sent something, and how often that failed in a row."""

    sending: trio.Lock = attrs.field(factory=trio.Lock)
    times: deque[float] = attrs.field(factory=partial(deque[float], maxlen=MAX_AT_ONCE))
    failures: int = 0
    about: str = ""
    tries: int = 0

    def wait_s(self, now: float) -> float:
        """Return the seconds after which the next message may be sent."""
        is_full = len(self.times) == MAX_AT_ONCE
        return max(0.0, self.times[0] + AT_ONCE_S - now) if is_full else 0.0

    def has_tries(self, about: str) -> bool:
        """Count a failed try of a message; return whether there may be another."""
        self.failures += 1
        self.tries = self.tries + 1 if about == self.about else 1
        self.about = about
        return self.tries < MAX_TRIES


class PushDesk(Actor[PushMessage]):
    """The desk of a daemon, with the ledger ``path`` and the key in ``key_file``.

    ``is_logged_in`` returns whether a page is, by its id. ``network`` is for tests. The ledger is
    created with the first subscription, and nothing for sending is loaded before it.
    """

    def __init__(
        self,
        *,
        path: Path,
        key_file: Path,
        seal: Seal | None,
        flusher: Flusher,
        is_logged_in: Callable[[str], bool],
        network: PushNetwork | None = None,
    ) -> None:
        self._path, self._key_file, self._seal = path, key_file, seal
        self._flusher, self._is_logged_in, self._network = flusher, is_logged_in, network
        self._key: VapidKey | None = None
        self._open: dict[str, tuple[float, PushNotice]] = {}
        """The open requests, with the moment since when they are known, and their notices."""
        self._is_listed = False
        self._paces: dict[str, PushPace] = {}
        self._news = trio.Event()
        self._loading = trio.Lock()

    async def setup(self) -> None:
        """Register the service, and start sending if there are subscriptions."""
        self._services = Services(self.context.system)
        self._table: Table[PushRow] = Table(
            self._path, PushRow, self._flusher, self.context, lost=self._stir
        )
        self.context.register("service", "push")
        self.context.start_soon(self._live)

    async def teardown(self) -> None:
        """Close the ledger."""
        self._table.close()

    async def receive(self, message: PushMessage) -> None:
        """Carry out a command, in a task: files and names are slow."""
        self.context.start_soon(self._carry_out, message, self.defer(message))

    async def _carry_out(self, message: PushMessage, reply: Reply[Any]) -> None:
        try:
            match message:
                case GetPushKey():
                    reply.send(PushKey(public_key=(await self._own_key()).public))
                case SubscribePush():
                    reply.send(await self._subscribe(message))
                case ListPush():
                    reply.send(await self._list())
                case RemovePush(id=name):
                    reply.send(await self._remove(name))
        except AegisError as error:
            reply.fail(error)

    # Subscriptions.

    async def _own_key(self) -> VapidKey:
        if self._key is None:
            async with self._loading:
                if self._key is None:
                    self._key = await in_thread(_open_key, self._key_file, self._seal)
        return self._key

    async def _subscribe(self, message: SubscribePush) -> PushSubscription:
        endpoint = read_endpoint(message.endpoint)
        await self._own_key()  # without one nothing can be sent
        await in_thread_or_here(_check_keys, message.p256dh, message.auth)
        await self._check_address(endpoint.host)
        await self._load(creates=True)
        self._drop_ended()
        key = client_id(message.endpoint)
        known = self._table.rows.get(key)
        if known is None and sum(1 for _ in self._clients()) >= MAX_CLIENTS:
            raise Unavailable(
                f"{MAX_CLIENTS} browsers are subscribed, which is the limit: remove one first "
                "(push list, push remove)"
            )
        row = PushClient(
            id=key,
            endpoint=message.endpoint,
            p256dh=message.p256dh,
            auth=message.auth,
            label=message.label,
            requests=message.requests,
            ends=message.ends,
            hides=message.hides,
            created=known.created if isinstance(known, PushClient) else utc_now(),
            page=message.page if isinstance(message, PageSubscribePush) else None,
            woken=known.woken if isinstance(known, PushClient) else "",
        )
        stored: Reply[None] = Reply()
        self._table.put(row, partial(stored.send, None), stored)
        await stored.wait()
        self._stir()
        return row.shown()

    async def _check_address(self, host: str) -> None:
        """Refuse a push service at a private address now, if it can be looked up.

        It is checked again before each message.
        """
        from aegis.push.network import ForbiddenService, UnreachableService

        with trio.move_on_after(LOOKUP_S), contextlib.suppress(UnreachableService):
            try:
                await (await self._way()).address_of(host)
            except ForbiddenService as error:
                raise InvalidRequest(
                    f"endpoint is not the address of a push service: {error}"
                ) from error

    async def _list(self) -> PushSubscriptions:
        if not await self._load(creates=False):
            return PushSubscriptions(subscriptions=[])
        self._drop_ended()
        shown = (self._table.shown(each.id) for each in self._clients())
        rows = [each for each in shown if isinstance(each, PushClient)]
        rows.sort(key=lambda each: each.created)
        return PushSubscriptions(subscriptions=[each.shown() for each in rows])

    async def _remove(self, name: str) -> PushRemoved:
        is_loaded = await self._load(creates=False)
        found = [each.id for each in self._clients()] if is_loaded else []
        if name != "all":
            found = [each for each in found if each == f"{CLIENT}{name}"]
            if not found:
                raise NotFound(f"there is no subscription {name!r}; list them: push list")
        for each in found:
            stored: Reply[None] = Reply()
            self._drop(each, partial(stored.send, None), stored)
            await stored.wait()
        return PushRemoved(ids=[each.removeprefix(CLIENT) for each in found])

    def _drop_ended(self) -> None:
        """Remove the browsers whose login has ended: a lost phone is logged out for good."""
        for each in [*self._table.rows.values()]:
            if isinstance(each, PushClient) and not self._is_current(each):
                self._drop(each.id)

    def _drop(
        self,
        client: str,
        then: Callable[[], None] | None = None,
        reply: Reply[None] | None = None,
    ) -> None:
        if not self._table.drop(client, then, reply):
            return  # the disk refuses: the next one asks again
        for each in [*self._shown_by(client)]:
            self._is_withdrawn(client, each)
        self._stir()

    def _clients(self) -> Iterator[PushClient]:
        rows = [each for each in self._table.rows.values() if isinstance(each, PushClient)]
        return (each for each in rows if self._is_current(each))

    def _client(self, client: str) -> PushClient | None:
        row = self._table.rows.get(client)
        return row if isinstance(row, PushClient) and self._is_current(row) else None

    def _is_current(self, client: PushClient) -> bool:
        # The row of a login that has ended stays for as long as the disk refuses to drop it.
        return client.page is None or self._is_logged_in(client.page)

    async def _load(self, *, creates: bool) -> bool:
        """Read the ledger; return False if there is none. Raises ``StorageError``."""
        async with self._loading:
            if not self._table.is_open and not creates:
                disk = self._flusher.disk
                if not await self._flusher.look(partial(exists, disk, self._path)):
                    return False
            await self._table.open()
            if self._table.problem:
                raise StorageError(self._table.refusal)
            return True

    # Sending.

    def _stir(self) -> None:
        """Have each task look at what is to be sent now."""
        self._news.set()
        self._news = trio.Event()

    async def _live(self) -> None:
        while True:
            try:
                await self._work()
            except* Exception:
                log.exception("push begins again")
            await trio.sleep(BEGIN_AGAIN_S)

    async def _work(self) -> None:
        """Serve the browsers that are subscribed, until cancelled."""
        news = self._news
        while not await self._has_clients():
            await news.wait()
            news = self._news
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow_requests)
            served: dict[str, tuple[PushClient, trio.CancelScope]] = {}
            while True:
                news = self._news
                self._drop_ended()
                clients = {each.id: _settings(each) for each in self._clients()}
                for each in [*served]:
                    if clients.get(each) != served[each][0]:
                        served.pop(each)[1].cancel()
                        self._paces.pop(each, None)
                for key in clients.keys() - served.keys():
                    served[key] = clients[key], trio.CancelScope()
                    nursery.start_soon(self._serve, key, served[key][1])
                await news.wait()

    async def _has_clients(self) -> bool:
        while True:
            try:
                return await self._load(creates=False) and any(self._clients())
            except StorageError as error:
                log.warning("subscriptions not read", why=str(error))
                await trio.sleep(BEGIN_AGAIN_S)

    async def _follow_requests(self) -> None:
        """Keep the open requests up to date, for ever."""
        place: RequestPlace | None = None
        while True:
            request = FollowRequests(place=place)
            news = await self._services.answer("requests", request, FOLLOW_S)
            place = news.place
            if news.open is not None:
                for key in self._open.keys() - set(news.open):
                    del self._open[key]
            for each in news.changed:
                if each.state != "open":
                    self._open.pop(each.id, None)
                elif each.id not in self._open:
                    self._open[each.id] = trio.current_time(), request_notice(each)
            self._is_listed = True
            self._stir()

    async def _serve(self, client: str, scope: trio.CancelScope) -> None:
        """Serve one browser until it is cancelled; what fails for it ends no other."""
        with scope:
            while True:
                try:
                    await self._serve_both(client)
                except* Exception:
                    log.exception("push to a browser begins again", subscription=client)
                await trio.sleep(BEGIN_AGAIN_S)

    async def _serve_both(self, client: str) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._serve_requests, client)
            row = self._client(client)
            if row is not None and row.ends:
                nursery.start_soon(self._serve_messages, client)

    async def _serve_requests(self, client: str) -> None:
        while True:
            news = self._news
            due = self._due(client)
            if isinstance(due, float):
                with trio.move_on_after(due):
                    await news.wait()
            elif await self._send(client, due):
                self._is_sent(client, due)

    def _due(self, client: str) -> PushNotice | float:
        """Return the next notification about a request, or the seconds until there may be one."""
        row = self._client(client)
        if row is None or not self._is_listed:
            return math.inf
        for each in self._shown_by(client):
            if each not in self._open:
                return settled_notice(each)
        wait_s = math.inf
        now, shown = trio.current_time(), set(self._shown_by(client))
        for key, (since, notice) in self._open.items():
            if not row.requests or key in shown or notice.at < row.created:
                continue
            if since + GRACE_S <= now:
                return notice
            wait_s = min(wait_s, since + GRACE_S - now)
        return wait_s

    def _shown_by(self, client: str) -> Iterator[str]:
        """Yield the requests of which a browser shows a notification."""
        for row in [*self._table.rows.values()]:
            if isinstance(row, PushedRequest) and client in row.to:
                yield row.id.removeprefix(NOTICE)

    def _is_sent(self, client: str, notice: PushNotice) -> None:
        if notice.is_settled:
            self._is_withdrawn(client, notice.about)
        elif self._client(client) is not None:
            row = PushedRequest(id=f"{NOTICE}{notice.about}")
            self._table.add_fact(row)
            self._fact(row.id, lambda each: each.sent(client))

    def _is_withdrawn(self, client: str, request: str) -> None:
        row_id = f"{NOTICE}{request}"
        then = partial(self._drop_withdrawn, row_id)
        self._fact(row_id, lambda each: each.withdrawn(client), then)

    def _drop_withdrawn(self, row_id: str) -> None:
        row = self._table.rows.get(row_id)
        if isinstance(row, PushedRequest) and not row.to:
            self._table.drop(row_id)  # if the disk refuses, it is one row that nobody reads

    def _fact(
        self, row_id: str, change: Callable[[Any], Any], then: Callable[[], None] | None = None
    ) -> None:
        if row_id in self._table.rows:
            self._table.fact(row_id, change, then)

    async def _serve_messages(self, client: str) -> None:
        """Notify a browser of the messages to the person, in order."""
        row = self._client(client)
        if row is None:
            return
        place, messages = await self._first_messages(row)
        known = {each.id for each in messages}
        while True:
            for each in messages:
                while not await self._send(client, message_notice(each)):
                    pass
                self._fact(client, partial(_woken, message=each.id))
            request = FollowInbox(handle=HUMAN, place=place)
            news = await self._services.answer("inboxes", request, FOLLOW_S)
            place = news.place
            messages = [each for each in news.messages if each.id not in known]

    async def _first_messages(self, row: PushClient) -> tuple[InboxPlace, Sequence[Message]]:
        """Return a place in the person's inbox, and the messages before it that are to be sent."""
        ask = partial(self._services.answer, "inboxes", timeout=FOLLOW_S)
        if row.woken:
            with contextlib.suppress(InvalidRequest):  # its ledger was lost
                request = FollowInbox(handle=HUMAN, after=row.woken)
                return (await ask(request)).place, ()
        place = (await ask(FollowInbox(handle=HUMAN))).place
        found = await ask(ReadInbox(unread=False, limit=MAX_FIRST))
        return place, [each for each in found.messages if each.timestamp >= row.created]

    async def _send(self, client: str, notice: PushNotice) -> bool:
        """Try to send a notification; return whether no further try is to be made."""
        pace = self._paces.setdefault(client, PushPace())
        async with pace.sending:
            await trio.sleep(pace.wait_s(trio.current_time()))
            self._drop_ended()
            row = self._client(client)
            if row is None:
                await trio.sleep_forever()  # it is cancelled with its browser
                raise AssertionError
            delivery = await self._delivery()
            outcome = await delivery.send(row, notice.hidden() if row.hides else notice)
            pace.times.append(trio.current_time())
            self._fact(client, partial(_with_problem, problem=outcome.why))
            if outcome.result == "gone":
                log.info("browser unsubscribed", subscription=row.id, why=outcome.why)
                self._drop(client)
                await trio.sleep(BEGIN_AGAIN_S)  # until it is cancelled, if the disk lets it go
                return False
            if outcome.result != "again":
                pace.failures = 0
                return True
            if not pace.has_tries(notice.about):
                return True
            backoff = FIRST_BACKOFF_S * 2.0 ** min(pace.failures - 1, 20)
            backoff = min(MAX_BACKOFF_S, backoff) * random.uniform(0.5, 1)  # noqa: S311
            await trio.sleep(max(outcome.retry_s, backoff))
            return False

    async def _way(self) -> PushNetwork:
        if self._network is None:
            self._network = await in_thread_or_here(_network_of_machine)
        return self._network

    async def _delivery(self) -> PushDelivery:
        from aegis.push.delivery import PushDelivery

        return PushDelivery(await self._own_key(), await self._way())


# What is for sending only is imported late, and in a thread: it takes a tenth of a second.


def _open_key(path: Path, seal: Seal | None) -> VapidKey:
    from aegis.push.vapid import open_vapid_key

    return open_vapid_key(path, seal)


def _network_of_machine() -> PushNetwork:
    from aegis.push.network import PushNetwork

    return PushNetwork()


def _check_keys(p256dh: str, auth: str) -> None:
    """Raise ``InvalidRequest`` unless messages can be encrypted for these keys."""
    from aegis.push.encryption import encrypted

    try:
        encrypted(b"", p256dh, auth)
    except ValueError:
        raise InvalidRequest(
            "p256dh is not the public key of a browser: no point of P-256"
        ) from None


def _settings(client: PushClient) -> PushClient:
    """Return a subscription without what changes as messages are sent."""
    return attrs.evolve(client, woken="", problem="")


def _woken(client: PushClient, message: str) -> PushClient:
    return attrs.evolve(client, woken=message)


def _with_problem(client: PushClient, problem: str) -> PushClient:
    return client if client.problem == problem else attrs.evolve(client, problem=problem)
