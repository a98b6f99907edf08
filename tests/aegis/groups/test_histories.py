"""Random histories of groups: clients, members, a disk that refuses, kills and losses of power."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import pytest
import trio

from aegis.errors import NotFound
from aegis.journal.archive import Keep
from aegis.protocol.groups import (
    BroadcastToGroup,
    DissolveGroup,
    GroupInfo,
    GroupReplies,
    RenameGroup,
    SpawnIntoGroup,
    SpawnMixedGroup,
    WaitForAll,
    WaitForAny,
)
from aegis.protocol.naming import name_key
from tests.aegis.groups.office import Office, Session, play
from tests.aegis.simulated_daemon import WRITES, Answer

NONE = Keep(newest=0, days=0)
STEPS = 300
NAMES = ("one", "two", "three")
OTHERS = ("one", "new", "other")
"""Names that a group is renamed to."""

TIMEOUTS = (0, 30, 400, 400)


@attrs.frozen
class Question:
    """A request of a client, the moment of it, and its answer."""

    request: Any
    at: float
    answer: Answer[Any]


@attrs.define
class Sent:
    """An acknowledged broadcast: its order, and the id of its group; empty: that is gone."""

    request: BroadcastToGroup
    group: str = ""


@attrs.define
class Part:
    """What was shown of a member in a broadcast that does not await it any more, and since when."""

    status: str
    text: str | None
    reason: str
    since: float


class History:
    """The clients and members of an office, which act at random; what was promised is kept.

    ``parts`` has what was shown of each member in each broadcast once it had ended. ``answers``
    counts what the histories are for.
    """

    def __init__(self, office: Office) -> None:
        self.office = office
        self.chance = office.chance
        self.count = 0
        self.asked: list[Question] = []
        self.sent: dict[str, Sent] = {}
        self.keys: dict[tuple[str, str | None, str], str] = {}
        self.parts: dict[tuple[str, str], Part] = {}
        self.formed: dict[str, set[str]] = {}
        self.names: dict[str, set[str]] = {}
        self.dissolving: set[str] = set()
        self.dissolved: set[str] = set()
        self.answers: Counter[str] = Counter()

    # One random step.

    async def step(self) -> None:
        office, chance = self.office, self.chance
        name = chance.choice(NAMES)
        match chance.randrange(26):
            case 0:
                profile = chance.choice("ab")
                self.ask(SpawnIntoGroup(group=name, profile=profile, from_handle="pm"))
            case 1:
                self.form(name)
            case 2 | 3 | 4:
                self.broadcast(name)
            case 5:
                self.ask(WaitForAll(group=name, timeout=chance.choice(TIMEOUTS)))
            case 6 | 16 | 17:
                cancels, timeout = chance.random() < 0.7, chance.choice(TIMEOUTS)
                self.ask(WaitForAny(group=name, timeout=timeout, cancel_losers=cancels))
            case 7 if chance.random() < 0.4:
                self.ask(RenameGroup(group=name, new_name=chance.choice(OTHERS)))
            case 8 if chance.random() < 0.2:
                self.dissolving.add(name_key(name))
                self.ask(DissolveGroup(group=name))
            case 9 if chance.random() < 0.4:
                office.plan.refuses = chance.choice([WRITES, {"fdatasync"}, {"write"}])
            case 10:
                office.plan.refuses = ()
            case 11 if chance.random() < 0.5:
                await (self.restart if chance.random() < 0.6 else self.crash)()
            case 12:
                await office.passes(chance.choice([1, 6, 40]))
            case 13:
                await office.passes(chance.uniform(0, 0.02))
            case 14:
                self.change_services()
            case 15:
                await trio.sleep(chance.uniform(0, 0.01))
            case _:
                self.work()
        await self.collect()

    def form(self, group: str) -> None:
        profiles = [self.chance.choice("ab") for _ in range(self.chance.randint(2, 4))]
        self.ask(SpawnMixedGroup(group=group, profiles=profiles, from_handle="pm"))

    def broadcast(self, group: str) -> None:
        key, sender = self.chance.choice([None, None, "k", "l"]), self.chance.choice([None, "pm"])
        self.count += 1
        self.ask(
            BroadcastToGroup(
                group=group,
                objective=f"do {key or self.count} for {sender}",
                key=key,
                from_handle=sender,
                callback=self.chance.random() < 0.7 if key is None else True,
            )
        )

    def ask(self, request: Any) -> None:
        question = Question(request, trio.current_time(), self.office.ask_soon(request))
        self.asked.append(question)

    def change_services(self) -> None:
        """Let services fail for a while, or no longer."""
        agents, chance = self.office.agents, self.chance
        agents.refuses_spawn = {"b": "no session is left"} if chance.random() < 0.3 else {}
        agents.holds_spawns = chance.random() < 0.05
        agents.closing_fails = chance.random() < 0.2
        agents.delivering_fails = chance.random() < 0.2

    def work(self) -> None:
        """Let one session begin a turn, or end it in some way."""
        agents, chance = self.office.agents, self.chance
        able = [each for each in agents.sessions.values() if _can_work(each)]
        if not able:
            return
        session = chance.choice(able)
        if session.state != "working":
            agents.begin(session)
            return
        match chance.randrange(8):
            case 0:
                agents.end(session, "failed")
            case 1:
                agents.end(session, "interrupted")
            case 2 if chance.random() < 0.2:
                agents.close(session)
            case _:
                self.reply(session)

    def reply(self, session: Session) -> None:
        """Let a session reply with the id of what it replies to."""
        opened = [each for each in session.entries if each.kind == "turn_opened"]
        [message] = opened[-1].fields["messages"]
        self.office.agents.end(session, text=_text(message["id"]))

    async def restart(self) -> None:
        office = self.office
        await self.collect()
        self.asked = []  # their callers may get an answer of either kind
        office.plan.refuses = ()
        await office.restart(power_fails=self.chance.random() < 0.5)
        await self.check()

    async def crash(self) -> None:
        """Let the desk alone crash; its callers get an error."""
        self.office.plan.refuses = ()  # or it could not start
        await self.office.crashes()
        await self.collect()
        await self.check()

    # What was promised.

    async def collect(self) -> None:
        """Note what was promised by the answers that have come."""
        come = [each for each in self.asked if each.answer.has_come]
        self.asked = [each for each in self.asked if not each.answer.has_come]
        for each in come:
            if each.answer.value is not None:
                await self.note(each)

    async def note(self, question: Question) -> None:
        value, request = question.answer.value, question.request
        self.answers[type(request).__name__] += 1
        match request:
            case BroadcastToGroup():
                await self.note_sent(value.broadcast_id, request)
            case WaitForAll() | WaitForAny():
                self.check_replies(value, question.answer.at)
                self.check_wait(question, value)
            case DissolveGroup():
                assert value.state == "dissolved"
                self.dissolved.add(value.id)
                for member in value.members:
                    assert self.office.member(member.handle).state == "closed"
            case SpawnIntoGroup() | SpawnMixedGroup():
                formed = self.formed.setdefault(value.id, set())
                formed |= {each.handle for each in value.members}
                self.note_names(value)
            case RenameGroup():
                self.note_names(value)

    async def note_sent(self, id_: str, request: BroadcastToGroup) -> None:
        try:
            info = await self.office.show(request.group)
        except NotFound:
            group = ""  # it was dissolved meanwhile
        else:
            is_its = info.broadcast is not None and info.broadcast.broadcast_id == id_
            group = info.id if is_its else ""
        known = self.sent.setdefault(id_, Sent(request, group))
        assert known.request.objective == request.objective, "a key has one order"
        if request.key is not None and group:
            key = (group, request.from_handle, request.key)
            assert self.keys.setdefault(key, id_) == id_, "a key has one broadcast"

    def note_names(self, info: GroupInfo) -> None:
        names = self.names.setdefault(info.id, set())
        names |= {name_key(each) for each in (info.group, *info.aliases)}

    def check_replies(self, found: GroupReplies, at: float) -> None:
        """Check that replies are those to this broadcast, and stay as they were shown."""
        id_ = found.broadcast_id
        assert [*found.by_member] == found.order
        for handle, part in found.metadata.members.items():
            text = found.by_member.get(handle)
            assert (part.status == "replied") == (text is not None)
            if text is not None:
                assert text == _text(f"broadcast:{id_}/{self.office.member(handle).id}")
            if part.status != "pending":
                shown = Part(part.status, text, part.reason, at)
                known = self.parts.setdefault((id_, handle), shown)
                known.since = min(known.since, at)
                assert attrs.evolve(shown, since=known.since) == known, "what was shown stays"
            elif (id_, handle) in self.parts:
                assert at <= self.parts[id_, handle].since, "what was shown is not lost"

    def check_wait(self, question: Question, found: GroupReplies) -> None:
        """Check that a wait has ended with what it promises."""
        request, metadata = question.request, found.metadata
        statuses = [each.status for each in metadata.members.values()]
        assert metadata.is_over == ("pending" not in statuses)
        if metadata.timed_out:
            assert trio.current_time() >= question.at + request.timeout
            return
        if isinstance(request, WaitForAny) and not request.cancel_losers:
            assert metadata.is_over or found.order
        else:
            assert metadata.is_over

    async def listed(self) -> dict[str, GroupInfo]:
        """Return the groups by their ids, but not one whose sender must still be notified."""
        shown = await self.office.listed()
        return {each.id: each for each in shown if each.state != "dissolved"}

    async def check(self) -> None:
        """Check what holds whenever the disk accepts."""
        listed = await self.listed()
        names = Counter(
            name_key(name) for each in listed.values() for name in (each.group, *each.aliases)
        )
        assert not names or max(names.values()) == 1, "each name is that of one group"
        assert not self.dissolved & listed.keys(), "a dissolved group is gone"
        for info in listed.values():
            self.note_names(info)
            if info.broadcast is not None:
                for handle, status in info.broadcast.replies.items():
                    part = self.parts.get((info.broadcast.broadcast_id, handle))
                    assert part is None or part.status == status, "what was shown is not lost"
        for id_, handles in self.formed.items():
            if id_ in listed:
                assert handles <= {each.handle for each in listed[id_].members}
            else:
                assert self.names[id_] & self.dissolving, "a formed group is lost"
        for id_, sent in self.sent.items():
            if sent.group in listed and listed[sent.group].state == "open":
                found = await self.office.replies(id_, listed[sent.group].group)
                self.check_replies(found, trio.current_time())
        for session in self.office.agents.sessions.values():
            orders = Counter(
                each.body for each in session.messages if "/cancel:" not in each.sender
            )
            assert not orders or max(orders.values()) == 1, "an order is sent once to each member"

    # The end.

    async def finish(self) -> None:
        """Let everything end, without further faults."""
        office, agents = self.office, self.office.agents
        office.plan.refuses = ()
        agents.refuses_spawn = {}
        agents.holds_spawns = agents.closing_fails = agents.delivering_fails = False
        for _ in range(50):
            await office.passes(150)
            await self.collect()
            able = [each for each in agents.sessions.values() if _can_work(each)]
            if not able:
                break
            for each in able:
                if each.state != "working":
                    agents.begin(each)
                self.reply(each)
        else:
            raise AssertionError("a turn is opened again and again")
        await office.passes(400)
        await self.collect()
        assert [each.request for each in self.asked] == [], "each caller gets one outcome"

    async def check_end(self) -> None:
        """Check what holds once everything has ended."""
        office, agents = self.office, self.office.agents
        await self.check()
        listed = await self.listed()
        members = sorted(each.handle for info in listed.values() for each in info.members)
        open_ones = {*office.open_sessions()}
        assert open_ones <= {*members}, "no session is left over"
        for info in listed.values():
            assert (info.state, info.forming, info.problem) == ("open", 0, "")
            assert info.broadcast is None or info.broadcast.is_over
        for id_, sent in self.sent.items():
            request = sent.request
            message = office.notification(id_)
            assert (message is not None) == request.callback, "its sender is notified, if it wants"
            if message is not None and sent.group in listed:
                replied = [*(await office.statuses(id_, listed[sent.group].group)).values()]
                number = replied.count("replied")
                words = f"broadcast {id_} is over: {number} of {len(replied)} members have replied"
                assert message.body.startswith(words)
        self.check_losers(listed)
        opened = Counter(agents.opened)
        assert not opened or max(opened.values()) == 1

    def check_losers(self, listed: dict[str, GroupInfo]) -> None:
        """Check that the losers, and nobody else, have been notified and have ended their turns."""
        for (id_, handle), part in self.parts.items():
            senders = [each.sender for each in self.office.cancellations(handle)]
            number = sum(each.endswith(f"/cancel:{id_}") for each in senders)
            assert number <= (part.status == "cancelled")
            if part.reason == "another member's reply was taken":
                assert number == 1 or self.office.member(handle).state == "closed"
        for session in self.office.agents.sessions.values():
            assert session.state in ("idle", "closed")


def _can_work(session: Session) -> bool:
    return session.state == "working" or (session.state == "idle" and bool(session.waiting))


def _text(message: str) -> str:
    return f"the reply to {message}"


SEEDS = [*range(30), *(pytest.param(each, marks=pytest.mark.long) for each in range(30, 330))]


async def play_history(office: Office) -> History:
    """Play a history up to its end."""
    history = History(office)
    for each in NAMES:
        history.form(each)
    for _ in range(STEPS):
        await history.step()
    await history.restart()
    await history.finish()
    await history.check_end()
    return history


@pytest.mark.parametrize("seed", SEEDS)
def test_each_reply_counts_once_for_its_broadcast_and_groups_are_whole(seed: int) -> None:
    async def story(office: Office) -> None:
        history = await play_history(office)
        before = await office.listed()
        office.agents.delivered.clear()
        await office.restart(power_fails=True)
        assert await office.listed() == before, "a restart changes nothing that clients see"
        await history.check_end()
        assert not office.agents.delivered, "nothing is done again"

    play(story, seed=seed, keep=NONE if seed % 2 else None)


def test_the_histories_reach_what_they_are_for() -> None:
    reached: Counter[str] = Counter()

    async def story(office: Office) -> None:
        history = await play_history(office)
        reached.update(history.answers)
        reached["replies"] += sum(each.text is not None for each in history.parts.values())
        reached["losers"] += len(office.agents.withdrawn)

    for seed in range(10):
        play(story, seed=seed)
    assert reached["replies"] > 40
    assert reached["losers"] > 10
    assert min(reached[each.__name__] for each in (WaitForAny, DissolveGroup, RenameGroup)) > 5
