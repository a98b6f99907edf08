"""The desk of notifications, with real files and a push service; what it follows is played."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from actors import Actor, ChildSpec, Request, SupervisorSpec, System, open_system
from aegis.clock import utc_now
from aegis.errors import AegisError, InvalidRequest, NotFound, Unavailable
from aegis.journal.disk import OsDisk
from aegis.journal.flusher import Flusher
from aegis.protocol.feeds import FollowInbox, InboxNews, InboxPlace
from aegis.protocol.inboxes import Message, MessageList, ReadInbox
from aegis.protocol.push import (
    GetPushKey,
    ListPush,
    PageSubscribePush,
    PushSubscription,
    RemovePush,
    SubscribePush,
)
from aegis.protocol.requests import FollowRequests, RequestInfo, RequestNews, RequestPlace
from aegis.push import desk
from aegis.push.desk import MAX_CLIENTS, MAX_TRIES, PushDesk
from aegis.push.network import PushNetwork
from tests.aegis.tui.examples import request
from tests.fakes.push_service import PushBrowser, PushService, ServiceNetwork, push_service

GUARD_S = 60.0


@attrs.define
class Life:
    """What is in the daemon beside the desk; it survives each life."""

    requests: dict[str, RequestInfo] = attrs.field(factory=dict)
    order: list[str] = attrs.field(factory=list)
    messages: list[Message] = attrs.field(factory=list)
    pages: set[str] = attrs.field(factory=set)
    changed: trio.Event = attrs.field(factory=trio.Event)

    def stir(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    def open(self, key: str, **fields: Any) -> None:
        self._put(request(key, created=utc_now(), **fields))

    def settle(self, key: str) -> None:
        self._put(attrs.evolve(self.requests[key], state="answered"))

    def _put(self, info: RequestInfo) -> None:
        self.requests[info.id] = info
        self.order.append(info.id)
        self.stir()

    def write(self, key: str, body: str, status: Any = "ok") -> None:
        self.messages.append(
            Message(
                id=key,
                sender="agent:ann",
                body=body,
                text=body,
                timestamp=utc_now(),
                status=status,
            )
        )
        self.stir()


class PlayedServices(Actor[FollowRequests | FollowInbox | ReadInbox]):
    """The desk of requests, and the inbox of the person."""

    def __init__(self, life: Life) -> None:
        self._life = life

    async def setup(self) -> None:
        self.context.register("service", "requests")
        self.context.register("service", "inboxes")

    async def receive(self, message: FollowRequests | FollowInbox | ReadInbox) -> None:
        match message:
            case ReadInbox():
                self.reply(message, MessageList(messages=[*self._life.messages], next=None))
            case FollowInbox():
                self.context.start_soon(self._inbox, message, self.defer(message))
            case FollowRequests():
                self.context.start_soon(self._requests, message, self.defer(message))

    async def _requests(self, message: FollowRequests, reply: Any) -> None:
        life, own = self._life, f"{id(self)}"
        if message.place is None or message.place.incarnation != own:
            shown = [each for each in life.requests.values() if each.state == "open"]
            place = RequestPlace(incarnation=own, change=len(life.order))
            opened = [each.id for each in shown]
            reply.send(RequestNews(changed=shown, place=place, open=opened))
            return
        while not (changed := life.order[message.place.change :]):
            await life.changed.wait()
        place = RequestPlace(incarnation=own, change=len(life.order))
        found = [life.requests[each] for each in dict.fromkeys(changed)]
        reply.send(RequestNews(changed=found, place=place))

    async def _inbox(self, message: FollowInbox, reply: Any) -> None:
        ids = [each.id for each in self._life.messages]
        if message.place is None:
            if message.after not in (None, *ids):
                reply.fail(InvalidRequest("no such message was ever in this inbox"))
                return
            at = len(ids) if message.after is None else ids.index(message.after) + 1
            place = InboxPlace(at=at, number=at, life=1)
            reply.send(InboxNews(messages=[], missed=0, place=place))
            return
        while not (news := self._life.messages[message.place.at :]):
            await self._life.changed.wait()
        at = message.place.at + len(news)
        reply.send(InboxNews(messages=news, missed=0, place=InboxPlace(at=at, number=at, life=1)))


@attrs.define
class Office:
    """One life of the daemon."""

    system: System

    async def ask(self, command: Request[Any]) -> Any:
        ref = self.system.registry.find("service", "push")
        assert ref is not None
        return await ref.ask(command, timeout=GUARD_S)

    async def subscribe(self, browser: PushBrowser, **fields: Any) -> PushSubscription:
        found: PushSubscription = await self.ask(SubscribePush(**browser.keys, **fields))
        return found

    async def listed(self) -> list[PushSubscription]:
        found: list[PushSubscription] = (await self.ask(ListPush())).subscriptions
        return found

    async def until_listed(self, is_so: Callable[[list[PushSubscription]], bool]) -> None:
        """Wait until the list is so."""
        while not is_so(await self.listed()):  # noqa: ASYNC110 -- nothing announces it
            await trio.sleep(0.01)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[PushService]:
    (tmp_path / "service").mkdir()
    with push_service(tmp_path / "service") as running:
        yield running


@pytest.fixture
def life(monkeypatch: pytest.MonkeyPatch) -> Life:
    monkeypatch.setattr(desk, "GRACE_S", 0.0)
    monkeypatch.setattr(desk, "FIRST_BACKOFF_S", 0.01)
    monkeypatch.setattr(desk, "BEGIN_AGAIN_S", 0.05)
    return Life()


@asynccontextmanager
async def office(
    tmp_path: Path,
    life: Life,
    service: PushService,
    network: PushNetwork | None = None,
    flusher: Flusher | None = None,
) -> AsyncIterator[Office]:
    state = tmp_path / "state"
    state.mkdir(exist_ok=True)
    children = (
        ChildSpec.of("played", PlayedServices, life=life),
        ChildSpec.of(
            "push",
            PushDesk,
            path=state / "push.jsonl",
            key_file=state / "push.key",
            seal=None,
            flusher=flusher or Flusher(),
            is_logged_in=life.pages.__contains__,
            network=network or service.network(),
        ),
    )
    async with open_system(SupervisorSpec(name="root", children=children)) as system:
        with trio.fail_after(GUARD_S):
            yield Office(system)


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 -- the service runs in threads
        await trio.sleep(0.01)


async def test_a_request_is_sent_once_and_withdrawn_once_it_is_answered_elsewhere(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    phone, desk_top = PushBrowser("/send/phone"), PushBrowser("/send/desk")
    async with office(tmp_path, life, service) as running:
        life.open("b" * 12)  # before the subscription: nobody waits for news of it
        await running.subscribe(phone)
        await running.subscribe(desk_top, hides=True)
        life.open("a" * 12)
        await until(lambda: len(service.received) == 2)
        life.settle("a" * 12)
        await until(lambda: len(service.received) == 4)
    first, last = service.of(phone)
    assert (first["title"], first["body"]) == ("ann waits for you", "Bash")
    assert (first["tag"], first["settled"]) == ("a" * 12, False)
    assert (last["tag"], last["settled"], last["title"]) == ("a" * 12, True, "Answered")
    hidden, _ = service.of(desk_top)
    assert (hidden["title"], hidden["body"]) == ("Something waits for you", "")
    assert b"ann" not in str(hidden).encode()
    topics = [each.headers["topic"] for each in service.received if each.path == "/send/phone"]
    assert topics[0] == topics[1]
    urgent = [each.headers["urgency"] for each in service.received if each.path == "/send/phone"]
    assert urgent == ["high", "normal"]


async def test_a_request_that_is_answered_at_once_is_not_sent(
    tmp_path: Path, life: Life, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "GRACE_S", 1.0)
    browser = PushBrowser()
    async with office(tmp_path, life, service) as running:
        await running.subscribe(browser)
        life.open("a" * 12)
        life.settle("a" * 12)
        life.open("b" * 12)
        await until(lambda: bool(service.received))
    assert [each["tag"] for each in service.of(browser)] == ["b" * 12]


async def test_a_restart_sends_nothing_twice_and_withdraws_what_was_answered_meanwhile(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    browser = PushBrowser()
    async with office(tmp_path, life, service) as running:
        key = (await running.ask(GetPushKey())).public_key
        await running.subscribe(browser, ends=True)
        life.open("a" * 12)
        life.open("b" * 12)
        life.write("m1", "it is built")
        await until(lambda: len(service.received) == 3)
        # What was sent is in the ledger as soon as the next one is begun.
        life.write("m2", "it failed", "error")
        await until(lambda: len(service.received) == 4)
    life.settle("a" * 12)
    async with office(tmp_path, life, service) as running:
        assert (await running.ask(GetPushKey())).public_key == key
        [listed] = await running.listed()
        assert (listed.service, listed.ends, listed.problem) == ("push.example", True, "")
        life.open("c" * 12)
        await until(lambda: len(service.received) >= 6)
        life.settle("c" * 12)
        await until(lambda: any(each["settled"] for each in service.of(browser)[5:]))
    sent = service.of(browser)
    by_tag = [(each["tag"], each["settled"]) for each in sent]
    assert by_tag.count(("a" * 12, False)) == by_tag.count(("a" * 12, True)) == 1
    assert by_tag.count(("b" * 12, False)) == 1
    assert ("b" * 12, True) not in by_tag
    titles = [each["title"] for each in sent]
    assert "ann is done" in titles
    assert "ann failed" in titles


async def test_messages_are_sent_only_where_they_are_wanted(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    ends, asks = PushBrowser("/send/ends"), PushBrowser("/send/asks")
    async with office(tmp_path, life, service) as running:
        await running.subscribe(ends, requests=False, ends=True)
        await running.subscribe(asks)
        await running.subscribe(asks)  # again: it replaces itself
        life.write("m1", "it is built")
        life.open("a" * 12)
        await until(lambda: len(service.received) == 2)
        assert len(await running.listed()) == 2
    assert [each["title"] for each in service.of(ends)] == ["ann is done"]
    assert [each["title"] for each in service.of(asks)] == ["ann waits for you"]


async def test_a_browser_that_has_unsubscribed_is_forgotten(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    service.answers += [(410, {})]
    async with office(tmp_path, life, service) as running:
        await running.subscribe(PushBrowser())
        life.open("a" * 12)
        await running.until_listed(lambda found: not found)
    assert len(service.received) == 1


async def test_a_busy_service_is_asked_again_and_a_dead_one_not_for_ever(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    service.answers += [(429, {"Retry-After": "0"}), (503, {}), (500, {})]
    browser = PushBrowser()
    async with office(tmp_path, life, service) as running:
        await running.subscribe(browser)
        life.open("a" * 12)
        await until(lambda: len(service.received) == 4)
        service.answers += [(500, {})] * MAX_TRIES
        life.open("b" * 12)
        await until(lambda: len(service.received) == 4 + MAX_TRIES)
        life.open("c" * 12)
        await until(lambda: len(service.received) == 5 + MAX_TRIES)
    tags = [each["tag"][0] for each in service.of(browser)]
    assert tags == ["a"] * 4 + ["b"] * MAX_TRIES + ["c"]


async def test_a_refusal_is_shown_and_is_not_repeated(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    service.answers += [(403, {})]
    async with office(tmp_path, life, service) as running:
        await running.subscribe(PushBrowser(), label="phone")
        life.open("a" * 12)
        await running.until_listed(lambda found: found[0].problem == "push.example answered 403")
        life.open("b" * 12)
        await until(lambda: len(service.received) == 2)
        await running.until_listed(lambda found: not found[0].problem)


async def test_one_that_fails_delays_no_other(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    class Half(ServiceNetwork):
        async def lookup(self, host: str) -> list[str]:
            if host == "away.example":
                raise OSError("no such name")
            if host == "odd.example" and life.requests:
                raise RuntimeError
            return await super().lookup(host)

    away, odd, here = PushBrowser(), PushBrowser(), PushBrowser()
    away.endpoint, odd.endpoint = "https://away.example/x", "https://odd.example/x"
    async with office(tmp_path, life, service, Half(service)) as running:
        for each in (away, odd, here):
            await running.subscribe(each, ends=True)
        for number in range(1, 4):
            life.open(f"{number}" * 12)
            life.write(f"m{number}", "it is built")
            await until(lambda: len(service.of(here)) == 2 * len(life.messages))
        found = {each.service for each in await running.listed()}
        assert found == {"away.example", "odd.example", "push.example"}


async def test_a_browser_whose_last_message_is_unknown_gets_the_next_one(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    browser = PushBrowser()
    async with office(tmp_path, life, service) as running:
        await running.subscribe(browser, ends=True)
        life.write("m1", "it is built")
        await until(lambda: len(service.received) == 1)
        life.open("a" * 12)  # what was sent before is in the ledger now
        await until(lambda: len(service.received) == 2)
    life.messages.clear()
    async with office(tmp_path, life, service):
        life.write("m2", "it failed", "error")
        # The request may be sent again: that it was is in the ledger a moment later.
        await until(lambda: "ann failed" in [each["title"] for each in service.of(browser)])


async def test_a_login_that_ended_ends_its_subscription(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    life.pages |= {"p1", "p2"}
    lost, kept = PushBrowser("/send/lost"), PushBrowser("/send/kept")
    async with office(tmp_path, life, service) as running:
        await running.ask(PageSubscribePush(**lost.keys, page="p1"))
        await running.ask(PageSubscribePush(**kept.keys, page="p2"))
        life.pages.remove("p1")
        life.open("a" * 12)
        await until(lambda: bool(service.received))
        assert [each.page for each in await running.listed()] == ["p2"]
    assert service.of(lost) == []
    assert len(service.of(kept)) == 1


class RefusingDisk(OsDisk):
    """A disk that takes no further line once ``is_full``."""

    is_full = False

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(fd, data)


async def test_a_lost_phone_gets_nothing_while_the_disk_refuses_to_drop_it(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    life.pages |= {"p1", "p2"}
    disk = RefusingDisk()
    lost, kept = PushBrowser("/send/lost"), PushBrowser("/send/kept")

    def has_tags(count: int) -> bool:
        return len({each["tag"] for each in service.of(kept)}) == count

    async with office(tmp_path, life, service, flusher=Flusher(disk)) as running:
        await running.ask(PageSubscribePush(**lost.keys, page="p1", ends=True))
        await running.ask(PageSubscribePush(**kept.keys, page="p2", ends=True))
        life.write("m1", "it is built")
        await until(lambda: len(service.received) == 2)
        disk.is_full = True
        life.pages.remove("p1")
        for number in range(3):
            life.open(f"{number}" * 12)
            life.write(f"m{number + 2}", "it is built")
            await until(partial(has_tags, 2 * number + 3))
        assert len(service.of(lost)) == 1
        disk.is_full = False
        await running.until_listed(lambda found: [each.page for each in found] == ["p2"])


async def test_subscriptions_are_bounded_and_removed(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    async with office(tmp_path, life, service) as running:
        assert await running.listed() == []
        with pytest.raises(NotFound):
            await running.ask(RemovePush(id="abc"))
        assert (await running.ask(RemovePush(id="all"))).ids == []
        assert not (tmp_path / "state" / "push.jsonl").exists()
        for number in range(MAX_CLIENTS):
            await running.subscribe(PushBrowser(f"/send/{number}"))
        with pytest.raises(Unavailable, match="32 browsers are subscribed"):
            await running.subscribe(PushBrowser("/send/more"))
        first = (await running.listed())[0]
        assert (await running.ask(RemovePush(id=first.id))).ids == [first.id]
        await running.subscribe(PushBrowser("/send/more"))
        assert len((await running.ask(RemovePush(id="all"))).ids) == MAX_CLIENTS
        assert await running.listed() == []


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"endpoint": "http://push.example/x"}, "must begin with https"),
        ({"endpoint": "https://10.0.0.1/x"}, "no public address"),
        ({"p256dh": "A" * 87}, "no point of P-256"),
    ],
)
async def test_a_bad_subscription_is_refused(
    tmp_path: Path, life: Life, service: PushService, fields: dict[str, str], why: str
) -> None:
    async with office(tmp_path, life, service) as running:
        with pytest.raises(InvalidRequest, match=why):
            await running.ask(SubscribePush(**{**PushBrowser().keys, **fields}))
        assert await running.listed() == []


async def test_a_name_of_this_network_is_refused_at_once(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    class Inner(PushNetwork):
        async def lookup(self, host: str) -> list[str]:
            return ["10.0.0.9"]

    async with office(tmp_path, life, service, Inner()) as running:
        with pytest.raises(InvalidRequest, match=r"push\.example is at 10\.0\.0\.9"):
            await running.subscribe(PushBrowser())


async def test_a_damaged_key_costs_the_daemon_nothing(
    tmp_path: Path, life: Life, service: PushService
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "push.key").write_text("rubbish")
    (tmp_path / "state" / "push.key").chmod(0o600)
    async with office(tmp_path, life, service) as running:
        for command in (GetPushKey(), SubscribePush(**PushBrowser().keys)):
            with pytest.raises(AegisError, match="browsers have to subscribe again"):
                await running.ask(command)
        assert await running.listed() == []
