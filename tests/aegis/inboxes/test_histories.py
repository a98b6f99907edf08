"""Random histories of inboxes: many writers, readers, a session, a disk that refuses, kills."""

from __future__ import annotations

from collections import deque
from itertools import islice
from string import ascii_lowercase
from typing import Any

import attrs
import pytest
import trio

from actors import ActorError
from aegis.errors import StorageError, Unavailable
from aegis.journal.archive import DEFAULT_KEEP, Keep
from aegis.protocol.feeds import FollowInbox, InboxNews
from aegis.protocol.inboxes import (
    Deliver,
    FindMessage,
    Handoff,
    Message,
    Place,
    ReadInbox,
    Receipt,
    SyncInbox,
    WaitInbox,
)
from tests.aegis.inboxes.office import Office, handoff, ids, note, play, wake
from tests.aegis.simulated_daemon import WRITES, Answer

STEPS = 150
HANDLES = ("pm", "bob", "builder")
KEYS = ("k1", "k2", "k3")
CALLS = [*sorted(WRITES), "pread", "fsync", "rename", "open", "unlink"]
IN_FLIGHT = 5
"""Messages that one writer has sent and that are not confirmed."""


@attrs.define
class Writer:
    """The sender of numbered messages to one handle, in their order, until each is confirmed.

    ``sent`` are those that are not confirmed, the oldest first. A terminal ``defers`` their syncs.
    ``unsure`` were not confirmed at a loss of power, which may leave a hole before some of them.
    """

    name: str
    handle: str
    defers: bool = False
    number: int = 0
    sent: deque[tuple[Deliver, Answer[Receipt]]] = attrs.field(factory=deque)
    confirmed: list[str] = attrs.field(factory=list)
    unsure: set[str] = attrs.field(factory=set)

    def next(self) -> Deliver:
        self.number += 1
        if self.defers:
            return wake(self.number, self.name, handle=self.handle, defer_sync=True)
        return note(self.number, id=f"{self.name}{self.number}", handle=self.handle)


@attrs.define
class Box:
    """An inbox as its clients know it: its messages in their ``order``, and what they were.

    Messages before ``read`` are acknowledged for sure, those from ``tried`` on are not.
    ``shown`` are those that a reader, a session or a sender knows to be durable.
    """

    handle: str
    bodies: dict[str, str] = attrs.field(factory=dict)
    order: list[str] = attrs.field(factory=list)
    shown: set[str] = attrs.field(factory=set)
    cursors: set[str] = attrs.field(factory=set)
    acknowledged: set[str] = attrs.field(factory=set)

    def first(self, cursors: set[str]) -> int:
        """Return the number of messages that these acknowledgements reach."""
        return max((self.order.index(each) + 1 for each in cursors), default=0)

    def check_all(self, found: list[Message]) -> None:
        """Check the list of all messages, of which no part may have changed since the last."""
        all_ids = [each.id for each in found]
        assert len(set(all_ids)) == len(all_ids), "a message is there twice"
        known = self.shown & {*self.order}
        before = [each for each in self.order if each in known]
        assert [each for each in all_ids if each in known] == before, "a shown message has moved"
        assert self.shown <= {*all_ids}, "a message that was shown or confirmed is lost"
        self.order = all_ids
        for each in found:
            assert each.body == self.bodies[each.id], "a message is forged"
        self.shown |= {*all_ids}

    def check_unread(self, unread: list[str]) -> None:
        """Check the list of all unread messages. Requires a current ``order``."""
        begin = len(self.order) - len(unread)
        assert unread == self.order[begin:], "unread messages are the last ones"
        assert self.first(self.acknowledged) <= begin <= self.first(self.cursors)


@attrs.frozen
class Asked:
    """A request of a reader or of a handoff, and its answer."""

    request: Any
    answer: Answer[Any]


class History:
    """The senders and readers of three inboxes, who act at random; what was promised is kept.

    ``seen`` are the messages that the stream of ``pm`` got, ``missed`` those that it did not.
    """

    def __init__(self, office: Office) -> None:
        self.office = office
        self.chance = office.chance
        self.boxes = {each: Box(each) for each in HANDLES}
        self.writers = [
            *(Writer(name, each) for name in ("ann", "zoe") for each in HANDLES),
            Writer("build", "pm", defers=True),
            Writer("test", "bob", defers=True),
        ]
        self.asked: list[Asked] = []
        self.handoffs = 0
        self.stream: Answer[InboxNews] | None = None
        self.news: InboxNews | None = None
        self.seen: list[str] = []
        office.sessions.places["s-builder"] = Place(is_landed=True)

    # Steps.

    async def step(self) -> None:
        chance = self.chance
        match chance.randrange(20):
            case 0 | 1 | 2 | 3 | 4 | 5:
                for _ in range(chance.randint(1, 4)):
                    self.write(chance.choice(self.writers))
            case 6:
                self.hand_off()
            case 7 | 8:
                self.read()
            case 9 | 10:
                self.acknowledge()
            case 11:
                self.wait()
            case 12 | 13:
                self.follow()
            case 14:
                await self.office.passes(chance.choice([0.1, 1, 3, 40, 70]))
            case _:
                await self.disturb()
        if chance.random() < 0.6:
            await trio.sleep(chance.choice([0, 0.001, 0.004, 0.006, 0.3]))
        self.collect()

    async def disturb(self) -> None:
        """Let something happen that no client wants."""
        office, chance = self.office, self.chance
        handle = chance.choice(HANDLES)
        match chance.randrange(12):
            case 0 if chance.random() < 0.5:
                calls = chance.choice([WRITES, {"fdatasync"}, {"write"}, {"pread"}, {"open"}])
                office.refuse(*calls)
            case 1:
                office.plan.refuse_one(chance.choice(CALLS), chance.randint(1, 5))
            case 2 | 3 | 4:
                office.accept()
            case 5 if chance.random() < 0.5:
                await self.restart()
            case 6 if office.is_running(handle):
                await office.crash_inbox(handle)
            case 7 if chance.random() < 0.5:
                await office.crash_router()
            case 8:
                await office.release(handle)
            case 9 if office.is_running(handle):
                office.inbox(handle).tell(SyncInbox())
            case 10:
                office.stall(chance.choice([0.05, 1, 4]))
            case 11:
                place = chance.choice([Place(is_landed=True), Place(position=2), None])
                office.sessions.places["s-builder"] = place

    def write(self, writer: Writer) -> None:
        if len(writer.sent) < IN_FLIGHT:
            message = writer.next()
            self.boxes[writer.handle].bodies[message.id] = message.body
            self.send(writer, message)

    def send(self, writer: Writer, message: Deliver) -> None:
        """Send a message behind those that are not confirmed."""
        after = writer.sent[-1][0].id if writer.sent else None
        answer = self.office.ask_soon(attrs.evolve(message, after=after))
        writer.sent.append((message, answer))

    def send_again(self, writer: Writer) -> None:
        """Send everything again that is not confirmed, in its order."""
        unsure, writer.sent = writer.sent, deque()
        for message, _ in unsure:
            self.send(writer, message)

    def hand_off(self) -> None:
        chance = self.chance
        self.handoffs += 1
        by, key = chance.choice(["ann", "zoe", None]), chance.choice([None, *KEYS])
        request = handoff(f"work {self.handoffs}", chance.choice(["builder", "pm"]), by, key=key)
        self.asked.append(Asked(request, self.office.ask_soon(request)))

    def read(self) -> None:
        unread = self.chance.random() < 0.7
        limit = self.chance.choice([1, 2, 1000])
        request = ReadInbox(from_handle=self.chance.choice(HANDLES), unread=unread, limit=limit)
        self.asked.append(Asked(request, self.office.ask_soon(request)))

    def acknowledge(self) -> None:
        chance = self.chance
        box = self.boxes[chance.choice(HANDLES)]
        known = [each for each in box.order if each in box.shown]
        if not known:
            return
        after = chance.choice(known[-4:] if chance.random() < 0.4 else known)
        box.cursors.add(after)
        request: Any = ReadInbox(from_handle=box.handle, after=after, limit=1000)
        if chance.random() < 0.3:
            request = WaitInbox(from_handle=box.handle, after=after, timeout=chance.choice([0, 20]))
        for _ in range(chance.choice([1, 1, 2, 3])):  # readers, at the same moment
            self.asked.append(Asked(request, self.office.ask_soon(request)))

    def wait(self) -> None:
        chance = self.chance
        request = WaitInbox(from_handle=chance.choice(HANDLES), timeout=chance.choice([1, 20]))
        answer = self.office.ask_soon(request)
        if chance.random() < 0.2:
            answer.give_up()
        else:
            self.asked.append(Asked(request, answer))

    def follow(self) -> None:
        """Ask for what the stream of ``pm`` gets next."""
        if self.stream is None:
            place = None if self.news is None else self.news.place
            self.stream = self.office.ask_soon(FollowInbox(handle="pm", place=place, limit=3))

    # What was promised.

    def collect(self) -> None:
        """Note what was promised by the answers that have come."""
        for writer in self.writers:
            self.collect_receipts(writer)
        for each in [each for each in self.asked if each.answer.has_come]:
            self.asked.remove(each)
            if each.answer.error is not None:
                allowed = (StorageError, Unavailable, ActorError)
                assert isinstance(each.answer.error, allowed), each
            elif isinstance(each.request, Handoff):
                self.note_handoff(each.request, each.answer.value)
            else:
                self.note_messages(each.request, each.answer.value.messages)
        self.collect_news()
        for asked in self.office.sessions.asked:
            self.note_turn(asked)
        self.office.sessions.asked.clear()

    def collect_receipts(self, writer: Writer) -> None:
        box = self.boxes[writer.handle]
        while writer.sent and writer.sent[0][1].value is not None:
            message, answer = writer.sent.popleft()
            assert answer.value.id == message.id
            writer.confirmed.append(message.id)
            box.shown.add(message.id)
        if writer.sent and (error := writer.sent[0][1].error) is not None:
            assert isinstance(error, (StorageError, Unavailable, ActorError)), error
            self.send_again(writer)

    def note_handoff(self, request: Handoff, receipt: Receipt) -> None:
        box = self.boxes[request.target_handle]
        box.shown.add(receipt.id)
        if request.key is None:
            body = box.bodies.setdefault(receipt.id, request.context)
            assert body == request.context, "another message has this id"

    def note_turn(self, asked: FindMessage) -> None:
        """A session opens a turn for this message: it is durable."""
        self.boxes["builder"].shown.add(asked.message)

    def note_messages(self, request: ReadInbox | WaitInbox, messages: list[Message]) -> None:
        box = self.boxes[request.from_handle or "human"]
        found = [each.id for each in messages]
        assert len({*found}) == len(found)
        self.note_bodies(box, messages)
        box.shown |= {*found}
        if request.after is not None:
            box.acknowledged.add(request.after)
            is_unread = not isinstance(request, ReadInbox) or request.unread
            assert not (is_unread and request.after in found), "it is acknowledged"

    def note_bodies(self, box: Box, messages: list[Message]) -> None:
        for each in messages:
            if "handoff:" in each.id:
                box.bodies.setdefault(each.id, each.body)
            assert box.bodies[each.id] == each.body, "a message is forged"

    def collect_news(self) -> None:
        if self.stream is None or not self.stream.has_come:
            return
        stream, self.stream = self.stream, None
        if stream.error is not None:
            assert isinstance(stream.error, (StorageError, Unavailable, ActorError))
            return
        self.news = stream.value
        self.note_bodies(self.boxes["pm"], stream.value.messages)
        self.seen += ids(stream.value)
        assert len({*self.seen}) == len(self.seen), "a stream gets each message once"
        self.boxes["pm"].shown |= {*ids(stream.value)}

    async def restart(self) -> None:
        office = self.office
        self.collect()
        office.accept()
        power_fails = self.chance.random() < 0.6
        await office.restart(power_fails=power_fails, draws=True)
        self.collect()
        self.asked.clear()  # their callers do not know what has become of them
        self.stream = None
        for each in self.writers:
            each.unsure |= {message.id for message, _ in each.sent} if power_fails else set()
            self.send_again(each)
        await self.check()

    async def check(self) -> None:
        """Check what holds whenever the disk accepts."""
        assert not self.office.own_crashes, "an inbox crashes by itself"
        for handle, box in self.boxes.items():
            found = (await self.office.read(handle, unread=False)).messages
            self.note_bodies(box, found)
            box.check_all(found)
            unread = await self.office.unread(handle)
            if len(unread) > len(box.order):
                continue
            later = (await self.office.read(handle, unread=False)).messages
            self.note_bodies(box, later)
            box.check_all(later)
            unread = await self.office.unread(handle)
            if await self.office.all(handle) == box.order:  # otherwise another one came meanwhile
                box.check_unread(unread)
        for writer in self.writers:
            order = self.boxes[writer.handle].order
            sure = [each for each in order if _is_of(writer, each) and each not in writer.unsure]
            mine = [*map(_number, sure)]
            assert mine == sorted(mine), "the messages of a sender keep their order"

    async def finish(self) -> None:
        """Let all messages arrive, without further faults, and read them."""
        office = self.office
        office.accept()
        for _ in range(10):
            await office.passes(6)
            self.collect()
            for handle in HANDLES:
                await office.read(handle)
        assert not any(each.sent for each in self.writers), "a sender waits for nothing"
        await office.passes(100)
        self.collect()
        assert not self.asked, "a reader waits for nothing"
        await self.check()
        for writer in self.writers:
            order = self.boxes[writer.handle].order
            mine = [each for each in order if _is_of(writer, each)]
            assert sorted(mine, key=_number) == writer.confirmed
            assert len(writer.confirmed) == writer.number
        await self.end_stream()
        await self.check_keys()

    async def end_stream(self) -> None:
        """The stream of ``pm`` has got each message that was not acknowledged before."""
        self.office.ask_soon(note(1, id="last1", handle="pm"))
        self.boxes["pm"].bodies["last1"] = "body 1"
        while "last1" not in self.seen:
            self.follow()
            await self.office.settles()
            self.collect()
        await self.check()
        box = self.boxes["pm"]
        unread = box.order[box.first(box.cursors) :]
        assert {*unread} <= {*self.seen} | {*islice(box.order, self.begun)}
        assert self.seen == [each for each in box.order if each in {*self.seen}]

    @property
    def begun(self) -> int:
        """The messages of ``pm`` before the place at which its stream began."""
        order = self.boxes["pm"].order
        return order.index(self.seen[0]) if self.seen else len(order)

    async def check_keys(self) -> None:
        """Each key of a sender has one message."""
        for by in ("ann", "zoe", None):
            for key in KEYS:
                request = handoff("again", "builder", by, key=key)
                first = await self.office.ask(request)
                again = await self.office.ask(request)
                assert first.id == again.id
        found = (await self.office.read("builder", unread=False)).messages
        texts = [each.body for each in found if "handoff:" in each.id]
        assert len({*texts} - {"again"}) == len([each for each in texts if each != "again"])


def _is_of(writer: Writer, message_id: str) -> bool:
    if writer.defers:
        return message_id.startswith(f"term:{writer.name}/")
    return message_id.startswith(writer.name)


def _number(message_id: str) -> int:
    is_wake = message_id.startswith("term:")
    return int(message_id.split("/")[2] if is_wake else message_id.lstrip(ascii_lowercase))


SEEDS = [*range(40), *(pytest.param(each, marks=pytest.mark.long) for each in range(40, 400))]


@pytest.mark.parametrize("seed", SEEDS)
def test_each_message_is_there_once_in_order_and_unread_until_it_is_acknowledged(seed: int) -> None:
    async def story(office: Office) -> None:
        await office.see(*HANDLES)
        history = History(office)
        for _ in range(STEPS):
            await history.step()
        await history.restart()
        await history.finish()
        before = {each: await office.unread(each) for each in HANDLES}
        await office.restart(power_fails=True)
        assert {each: await office.unread(each) for each in HANDLES} == before

    # Without days and newest ones to keep, messages move as soon as they are read.
    keep = DEFAULT_KEEP if seed % 4 == 0 else Keep(newest=seed % 4 - 1, days=0)
    play(story, seed=seed, keep=keep)
