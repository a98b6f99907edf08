"""Random histories of a canvas: writers, an editor, a disk that refuses, kills, losses of power."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from typing import Any

import attrs
import pytest
import trio

from actors import ActorError
from aegis.errors import AegisError, Busy, InvalidRequest, NotFound
from aegis.journal.archive import DEFAULT_KEEP, Keep
from aegis.protocol.canvases import (
    OUTSIDE,
    AppendToSection,
    CanvasChange,
    ReadCanvas,
    UnsubscribeCanvas,
    WriteSection,
)
from tests.aegis.canvases.office import Office, appending, play, subscribing, writing
from tests.aegis.simulated_daemon import WRITES, Answer
from tests.chaos.checking.canvas_rules import states
from tests.chaos.machine.outside_editor import with_line

STEPS = 120
SECTIONS = ("A", "B", "C")
WRITERS = ("ada", "bob", "carl")
STRUCK = (
    "open",
    "pread",
    "write",
    "fdatasync",
    "fsync",
    "rename",
    "exchange",
    "unlink",
    "ftruncate",
)
"""Calls of the disk at which the daemon dies, or one of which fails."""

NEVER = 10**9


@attrs.frozen
class Question:
    """A request of a client and its answer; ``token`` is the text of a write."""

    request: Any
    token: str
    answer: Answer[Any]


@attrs.frozen
class Subscribed:
    """What a subscriber wants after a change in ``(low, high]``; () is nothing, None everything.

    ``is_certain``: it was acknowledged.
    """

    sections: tuple[str, ...] | None
    low: int
    high: int
    is_certain: bool

    def wants(self, change: CanvasChange) -> bool:
        return self.sections is None or change.section in self.sections


class History:
    """The clients and the editor of a canvas, which act at random; what was promised is kept.

    ``bob`` subscribes to everything from the beginning, ``eve`` now to this and now to that.
    ``edited`` has the tokens of the editor's lines that are in the file or in the history.
    """

    def __init__(self, office: Office) -> None:
        self.office = office
        self.chance = office.chance
        self.number = 0
        self.revs: dict[str, int] = {}
        self.asked: list[Question] = []
        self.acknowledged: dict[int, Question] = {}
        self.refused: set[str] = set()
        self.edited: set[str] = set()
        self.subscribed: list[Subscribed] = []
        self.held: list[AbstractContextManager[None]] = []
        self.counts: Counter[str] = Counter()

    # One random step.

    async def step(self) -> None:
        office, chance = self.office, self.chance
        match chance.randrange(30):
            case 0 | 1 | 2:
                self.append()
            case 3 | 4 | 5:
                self.write()
            case 6 | 7:
                self.edit()
            case 8:
                office.before("exchange", self.edit, chance.randint(1, 3))
            case 9 if chance.random() < 0.3:
                await self.remove()
            case 10 | 11:
                self.hold_or_release()
            case 12:
                await self.subscribe()
            case 17 if chance.random() < 0.7:
                office.dies_at(chance.choice(STRUCK), chance.randint(1, 8))
                self.append()
                await office.passes(chance.choice([0.1, 7]))
                await self.restart()
            case 18 if chance.random() < 0.4:
                await self.restart()
            case 19 if chance.random() < 0.4:
                await self.crash()
            case 20:
                self.change_inboxes()
            case 21:
                await office.passes(chance.choice([0.1, 1, 6]))
            case 22:
                self.read()
            case 23 | 24 | 25 | 26 | 27:
                self.change_disk()
            case _:
                await trio.sleep(chance.uniform(0, 0.02))
        await self.collect()

    def change_disk(self) -> None:
        """Let the disk refuse calls for a while, or one of them, or no more."""
        plan, chance = self.office.plan, self.chance
        if chance.random() < 0.3:
            plan.refuse_one(chance.choice(STRUCK), chance.randint(1, 6))
        elif chance.random() < 0.3:
            plan.refuses = chance.choice([WRITES, {"fdatasync"}, {"write"}, {"fsync"}])
        else:
            plan.refuses = ()

    def token(self, by: str) -> str:
        self.number += 1
        return f"{by}-{self.number}"

    def append(self) -> None:
        token, writer = self.token("agent"), self.chance.choice(WRITERS)
        self.ask(appending(self.chance.choice(SECTIONS), token, writer), token)

    def write(self) -> None:
        token, section = self.token("agent"), self.chance.choice(SECTIONS)
        is_forced, rev = self.chance.random() < 0.2, self.revs.get(section)
        writer = self.chance.choice(WRITERS)
        self.ask(writing(section, token, by=writer, if_rev=rev, force=is_forced), token)

    def read(self) -> None:
        self.ask(ReadCanvas(name="plan"), "")

    def ask(self, request: Any, token: str) -> None:
        self.asked.append(Question(request, token, self.office.ask_soon(request)))

    def edit(self) -> None:
        """Let the editor add a line to a section, with or without a notice."""
        token = self.token("editor")
        text = with_line(self.office.text(), self.chance.choice(SECTIONS), token)
        self.office.edits(text, is_noticed=self.chance.random() < 0.7)
        self.edited.add(token)

    async def remove(self) -> None:
        """Let the editor remove the file, once all in it is recorded."""
        office = self.office
        office.ends_faults()
        self.release()
        await office.passes(8)
        if office.text() is not None and await self.is_read():
            office.edits(None)

    async def is_read(self) -> bool:
        try:
            await self.office.read()
        except (AegisError, ActorError):
            return False
        return True

    def hold_or_release(self) -> None:
        if self.held or self.office.text() is None:
            self.release()
        else:
            self.held.append(self.office.held_open())
            self.held[0].__enter__()

    def release(self) -> None:
        if self.held:
            self.held.pop().__exit__(None, None, None)

    async def subscribe(self) -> None:
        office, chance = self.office, self.chance
        office.plan.refuses = ()
        low = (await office.info()).rev
        sections = chance.choice([None, *((each,) for each in SECTIONS), ()])
        request = (
            UnsubscribeCanvas(name="plan", from_handle="eve")
            if sections == ()
            else subscribing("eve", None if sections is None else [*sections])
        )
        answer = office.ask_soon(request)
        await office.passes(chance.choice([0.003, 0.02, 7]))
        if not answer.has_come:
            await office.passes(10)
        is_certain = answer.value is not None
        office.plan.faults.clear()
        newest = (await office.changes())[-1].rev if is_certain else NEVER
        self.subscribed.append(Subscribed(sections, low, newest, is_certain))
        self.counts["subscribed"] += is_certain

    def change_inboxes(self) -> None:
        inboxes = self.office.inboxes
        inboxes.confirms = self.chance.random() < 0.6
        inboxes.refuses = {"bob"} if self.chance.random() < 0.3 else set()

    async def restart(self) -> None:
        """Kill the daemon, perhaps with the power, and start it after the editor was at work."""
        office, chance = self.office, self.chance
        await self.collect()
        office.plan.refuses = ()
        self.release()
        await office.stop(power_fails=chance.random() < 0.5, draws=chance.random() < 0.5)
        await self.collect()
        self.asked = []
        if chance.random() < 0.3:
            self.edit()
        await office.start()
        await office.settles()
        self.counts["restarts"] += 1

    async def crash(self) -> None:
        self.office.plan.refuses = ()
        await self.office.crashes(self.chance.choice(["CanvasActor", "CanvasDesk"]))

    # What was promised.

    async def collect(self) -> None:
        """Note what was promised by the answers that have come."""
        come = [each for each in self.asked if each.answer.has_come]
        self.asked = [each for each in self.asked if not each.answer.has_come]
        for each in come:
            self.note(each)

    def note(self, question: Question) -> None:
        value, error = question.answer.value, question.answer.error
        match question.request:
            case ReadCanvas() if value is not None:
                self.revs = {each.section: each.rev for each in value.sections}
            case WriteSection() | AppendToSection() if value is not None:
                assert value.rev not in self.acknowledged, "a revision is given once"
                self.acknowledged[value.rev] = question
                self.counts[value.op] += 1
            case WriteSection() | AppendToSection():
                self.counts[type(error).__name__] += 1
                if isinstance(error, (Busy, InvalidRequest, NotFound)):
                    self.refused.add(question.token)

    # The end.

    async def finish(self) -> None:
        """Let everything end, without further faults."""
        office = self.office
        office.ends_faults()
        self.release()
        office.inboxes.confirms, office.inboxes.refuses = True, set()
        office.notify()
        await office.passes(120)
        await self.collect()
        assert [each.request for each in self.asked] == [], "each caller gets one outcome"

    async def check(self) -> None:
        """Check what holds once everything has ended."""
        office = self.office
        await office.check()
        changes = await office.changes()
        revs = [each.rev for each in changes]
        assert revs == sorted(set(revs)), "each change is recorded once"
        self.check_texts(changes, (await office.read()).sections)
        by_rev = {each.rev: each for each in changes}
        for rev, question in self.acknowledged.items():
            found, answer = by_rev[rev], question.answer.value
            assert (found.text, found.op, found.section) == (
                *(question.token, answer.op),
                question.request.section,
            )
            assert (found.writer, found.timestamp) == (answer.writer, answer.timestamp)
        tokens = Counter(each.text for each in changes if each.writer != OUTSIDE)
        assert not tokens or max(tokens.values()) == 1, "a write is done once"
        assert not self.refused & tokens.keys(), "a refused write is not there"
        kept = (office.text() or "").split("\n")
        for each in changes:
            kept += (each.text or "").split("\n")
        assert self.edited <= {*kept}, "each edit is in the file or in the history"
        self.check_wakes(changes)

    def check_texts(self, changes: list[CanvasChange], sections: Any) -> None:
        """Check that the history results in the texts of the file."""
        texts = [texts for _, texts in states(changes)][-1]
        shown = {each.section: each.text for each in sections if each.text}
        assert shown == {name: text for name, text in texts.items() if text}
        newest = {each.section: each.rev for each in changes if not each.displaced}
        for each in sections:
            if each.section in newest:
                assert each.rev == newest[each.section]

    def check_wakes(self, changes: list[CanvasChange]) -> None:
        """Check that each change has woken its subscribers once, in their order."""
        first = self.subscribed[0].low
        saves: dict[Any, list[CanvasChange]] = {}
        for each in changes:
            is_save = each.writer == OUTSIDE and not each.displaced
            saves.setdefault(each.timestamp if is_save else each.rev, []).append(each)
        for handle in ("bob", "eve"):
            woken = [int(each.id.split("/")[2]) for each in self.office.wakes(handle)]
            assert woken == sorted(set(woken)), "wakes come once and in order"
            # A wake that is not confirmed when its subscriber unsubscribes need not be sent again.
            unsubscribed = [each.high for each in self.subscribed[1:] if each.sections == ()]
            given_up = max(unsubscribed, default=0) if handle == "eve" else 0
            known = 0
            for save in saves.values():
                others = [each for each in save if each.writer != f"agent:{handle}"]
                wanted = {each.rev: self.wanted(handle, each) for each in others}
                wanted = {rev: found for rev, found in wanted.items() if rev > first}
                wakes = [rev for rev, found in wanted.items() if rev in woken and any(found)]
                is_owed = any(all(found) for rev, found in wanted.items() if rev > given_up)
                assert is_owed <= len(wakes) <= 1, "one save is one wake"
                known += len(wakes)
            assert known == len(woken), "nobody is woken by what is not wanted"

    def wanted(self, handle: str, change: CanvasChange) -> list[bool]:
        """Return whether the subscriptions want it that may have been those at this change."""
        if handle == "bob":
            return [True]
        found = []
        for each in reversed(self.subscribed):
            if each.low < change.rev:
                found.append(each.wants(change))
                if each.is_certain and each.high < change.rev:
                    break
        return found


async def play_history(office: Office) -> History:
    """Play a history up to its end."""
    history = History(office)
    await office.subscribe("bob")
    newest = (await office.read()).rev
    history.subscribed.append(Subscribed((), newest, newest, is_certain=True))
    for _ in range(STEPS):
        await history.step()
    await history.restart()
    await history.finish()
    await history.check()
    return history


SEEDS = [*range(40), *(pytest.param(each, marks=pytest.mark.long) for each in range(40, 241))]
FIRST = "## A\n\nfirst\n"
FEW = Keep(newest=2, days=0, most=1_000)
"""Most revisions are in the archive."""


@pytest.mark.parametrize("seed", SEEDS)
def test_no_text_is_lost_and_each_change_wakes_once(seed: int) -> None:
    async def story(office: Office) -> None:
        history = await play_history(office)
        before = await office.changes(), await office.open(), await office.read()
        office.inboxes.tries.clear()
        await office.restart(power_fails=True)
        await office.passes(60)
        after = await office.changes(), await office.open(), await office.read()
        assert after == before, "a restart changes nothing that clients see"
        await history.check()
        assert not office.inboxes.tries, "nothing is sent again"

    keep = FEW if seed % 3 == 1 else DEFAULT_KEEP
    play(story, text=FIRST, in_steps=seed % 4 == 3, keep=keep, seed=seed)


def test_the_histories_reach_what_they_are_for() -> None:
    reached: Counter[str] = Counter()

    async def story(office: Office) -> None:
        history = await play_history(office)
        reached.update(history.counts)
        changes = await office.changes()
        reached["displaced"] += sum(each.displaced for each in changes)
        reached["outside"] += sum(each.writer == OUTSIDE for each in changes)

    for seed in range(10):
        play(story, text=FIRST, seed=seed)
    assert min(reached[each] for each in ("appended", "outside", "Busy", "StorageError")) > 15
    assert min(reached[each] for each in ("written", "subscribed")) > 8
    assert reached["restarts"] > 20
