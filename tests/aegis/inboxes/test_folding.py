"""Wakes that nobody reads fold into one message per terminal, and nothing is lost by it.

The last tests compare random runs with a model that never folds: a list of all messages, and the
place up to which it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs
import pytest

from aegis.errors import Unavailable
from aegis.journal.archive import DEFAULT_KEEP, Keep
from aegis.protocol.inboxes import Deliver, Message, MessageList
from aegis.protocol.wakes import parse_wake_id
from tests.aegis.inboxes.office import Office, ids, limited, note, play, wake

FOLDED = re.compile(
    r"older messages of this terminal are folded into this one, up to seq (\d+)\n"
    r'read them: aegis_term_read\(name="([a-z]+)", since_seq=(-?\d+)\)'
)


async def shown(office: Office, after: str | None = None) -> list[str]:
    """Return what a reader sees, short: ``build 3`` for a wake, ``build (0, 3]`` for a fold."""
    return [_short(each) for each in (await office.read(after=after)).messages]


def _short(message: Message) -> str:
    about = parse_wake_id(message.id)
    if about is None:
        return message.id
    folded = FOLDED.fullmatch(message.body)
    if folded is None:
        return f"{about.terminal} {about.seq}"
    assert folded[2] == about.terminal
    assert message.text.endswith(f"Z\n{message.body}")
    return f"{about.terminal} ({folded[3]}, {folded[1]}]"


def wakes(*seqs: int, terminal: str = "build") -> list[Deliver]:
    return [wake(each, terminal) for each in seqs]


@pytest.fixture
def two_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep only two wakes one by one."""
    limited(monkeypatch, MAX_WAKES=2)


def test_a_thousand_wakes_are_kept_one_by_one_and_older_ones_fold() -> None:
    async def story(office: Office) -> None:
        await office.fill(wakes(*range(1000)))
        assert await shown(office) == [f"build {each}" for each in range(1000)]
        await office.fill(wakes(*range(1000, 5000)))
        assert (await shown(office))[:2] == ["build (-1, 3999]", "build 4000"]
        assert len(await shown(office, after=wake(3999).id)) == 1000
        await office.restart(power_fails=True)
        assert (await shown(office))[0] == "build 4000"
        await office.fill([note(1), *wakes(*range(5000, 6000))])
        assert (await shown(office))[:3] == ["build (3999, 4999]", "n1", "build 5000"]
        assert (await office.all())[0] == wake(5000).id, "all of them are single ones"

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_a_fold_is_acknowledged_with_the_newest_of_all_only_if_all_its_wakes_are_shown() -> None:
    async def story(office: Office) -> None:
        await office.fill([*wakes(0, 1, 2), note(1), *wakes(3)])
        assert await shown(office) == ["build (-1, 1]", "build 2", "n1", "build 3"]
        for limit, end in ((4, None), (5, wake(3).id)):
            found = await office.read(unread=False, limit=limit)
            assert (len(found.messages), found.next) == (limit, end)
        assert await shown(office, after=wake(0).id) == ["build (0, 1]", "build 2", "n1", "build 3"]
        assert (await office.read(unread=False, limit=4)).next == wake(3).id, "the first was read"

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_a_fold_says_which_wakes_it_holds_and_how_to_read_them() -> None:
    async def story(office: Office) -> None:
        place = await office.follow()
        await office.fill(wakes(*range(7, 12)))
        body = (
            "older messages of this terminal are folded into this one, up to seq 9\n"
            'read them: aegis_term_read(name="build", since_seq=6)'
        )
        expected = Message(
            id="term:build/5f3a/9/pm",
            sender="term:build",
            body=body,
            text=f"> from term:build · 2026-05-22T14:03:09Z\n{body}",
            timestamp="2026-05-22T14:03:09.120Z",
        )
        for _ in range(2):
            assert await office.message() == expected
            assert (await office.follow(place)).messages[0] == expected
            assert (await office.read(unread=False)).messages[2].body == "$ make"
            await office.restart()

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_each_terminal_and_each_life_of_a_name_has_a_fold_of_its_own() -> None:
    async def story(office: Office) -> None:
        lives = [wake(0, life="one"), wake(1, "test", "one"), wake(0, life="two")]
        await office.deliver(*lives, wake(8, "last"), wake(9, "last"))
        expected = ["build (-1, 0]", "test (0, 1]", "build (-1, 0]", "last 8", "last 9"]
        assert await shown(office) == expected
        await office.restart()
        assert await shown(office) == expected

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_other_messages_keep_their_place_and_never_fold() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1), wake(1), note(2), wake(2), note(3), wake(3), wake(4), note(4))
        assert await shown(office) == [
            "n1", "n2", "build (0, 2]", "n3", "build 3", "build 4", "n4",
        ]  # fmt: skip

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_to_acknowledge_a_fold_is_to_acknowledge_all_of_it() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1), *wakes(*range(5)))
        assert await shown(office, after=wake(2).id) == ["build 3", "build 4"]
        written = office.data()
        assert await shown(office, after=wake(2).id) == ["build 3", "build 4"]
        assert office.data() == written

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_a_wake_that_folded_after_it_was_shown_is_acknowledged_exactly() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1), wake(1), note(2), *wakes(2, 3, 4, 5))
        assert await shown(office) == ["n1", "n2", "build (0, 3]", "build 4", "build 5"]
        expected = ["n2", "build (1, 3]", "build 4", "build 5"]
        assert await shown(office, after=wake(1).id) == expected
        written = office.data()
        assert await shown(office, after=wake(1).id) == expected
        assert office.data() == written, "it is acknowledged"
        await office.restart(power_fails=True)
        assert await shown(office) == expected
        assert await shown(office, after=wake(2).id) == ["build (2, 3]", "build 4", "build 5"]

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_a_message_between_is_acknowledged_without_the_fold_that_ends_behind_it() -> None:
    async def story(office: Office) -> None:
        await office.deliver(wake(1), note(1), *wakes(2, 3, 4))
        expected = ["build (0, 2]", "build 3", "build 4"]
        assert await shown(office, after="n1") == expected
        await office.deliver(*wakes(5, 6))
        await office.restart(power_fails=True)
        assert await shown(office) == ["build (0, 4]", "build 5", "build 6"]

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_a_wake_that_was_sent_again_after_later_ones_is_not_acknowledged_with_them() -> None:
    async def story(office: Office) -> None:
        await office.deliver(*wakes(5, 6, 4, 7, 8))
        expected = ["build (3, 6]", "build 7", "build 8"]
        assert await shown(office) == expected
        assert await shown(office, after=wake(5).id) == expected, "4 came after 5 and is not read"
        assert await shown(office, after=wake(4).id) == expected[1:]

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_a_late_wake_that_folds_alone_is_not_acknowledged_by_the_id_of_a_later_record() -> None:
    async def story(office: Office) -> None:
        await office.deliver(wake(5))
        await office.unread(after=wake(5).id)
        await office.deliver(*wakes(4, 6, 7))
        assert await shown(office, after=wake(5).id) == ["build (3, 4]", "build 6", "build 7"]

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_a_full_inbox_takes_a_wake_that_makes_others_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, MAX_UNREAD=4)

    async def story(office: Office) -> None:
        await office.deliver(wake(1), note(1), note(2), wake(2))
        # The first fold of a terminal takes the place of one wake.
        assert isinstance(await office.refused(wake(3)), Unavailable)
        await office.unread(after=wake(2).id)
        await office.deliver(wake(10), wake(11), note(3), wake(12), wake(13))
        assert await shown(office) == ["build (9, 11]", "n3", "build 12", "build 13"]
        assert isinstance(await office.refused(note(4)), Unavailable)
        await office.deliver(wake(14))
        assert await shown(office) == ["n3", "build (9, 12]", "build 13", "build 14"]

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_room_for_text_is_counted_with_what_folding_frees(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(office: Office) -> None:
        await office.deliver(*(wake(each, body="x" * 500) for each in range(4)))
        limited(monkeypatch, MAX_UNREAD_CHARS=1000)
        assert isinstance(await office.refused(note(1)), Unavailable)
        await office.deliver(*(wake(each, body="x" * 500) for each in range(4, 40)))
        assert await shown(office) == ["build (-1, 37]", "build 38", "build 39"]
        assert await shown(office, after=wake(39).id) == []
        limited(monkeypatch, MAX_UNREAD_CHARS=1)
        await office.deliver(note(1))

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_wakes_that_wait_for_their_sync_take_the_room_that_their_folds_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(office: Office) -> None:
        await office.deliver(*wakes(0, 1, 2, 3), note(1))
        assert await shown(office) == ["build (-1, 1]", "build 2", "build 3", "n1"]
        limited(monkeypatch, MAX_UNREAD=5)
        sent = [office.ask_soon(each) for each in (*wakes(4, 5, 6), note(2), note(3))]
        await office.settles()
        assert [each.error is None for each in sent[:3]] == [True, True, True]
        assert isinstance(sent[4].error, Unavailable)
        assert await shown(office) == ["n1", "build (-1, 4]", "build 5", "build 6"]
        await office.deliver(note(2))
        assert isinstance(await office.refused(note(3)), Unavailable)
        await office.deliver(wake(7))
        assert await shown(office) == ["n1", "build (-1, 5]", "build 6", "n2", "build 7"]

    play(story)


@pytest.mark.usefixtures("two_wakes")
def test_unread_ids_stay_known_however_many_came_since() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1), wake(0, "test"), *wakes(*range(50)))
        expected = ["n1", "test (-1, 0]", "build (-1, 47]", "build 48", "build 49"]
        for _ in range(2):
            await office.deliver(note(1), wake(0, "test"))
            assert await shown(office) == expected
            await office.restart(power_fails=True)
        assert await shown(office, after=wake(0, "test").id) == expected[2:]

    play(story, keep=Keep(newest=0, days=0))


@pytest.mark.usefixtures("two_wakes")
def test_a_stream_gets_each_wake_before_it_folds_and_a_late_one_the_fold() -> None:
    async def story(office: Office) -> None:
        first = news = await office.follow()
        for seq in range(5):
            await office.deliver(wake(seq))
            news = await office.follow(news)
            assert ([_short(each) for each in news.messages], news.missed) == (
                [f"build {seq}"],
                0,
            )
        late = await office.follow(first)
        assert [_short(each) for each in late.messages] == ["build (-1, 2]", "build 3", "build 4"]
        assert late.missed == 2, "two of them are no messages of their own any more"

    play(story)


# Random runs.

TERMINALS = ("build", "test", "lint")
STEPS = 60


@attrs.define
class Model:
    """All messages, with the place up to which they are read; ``told`` are the wakes seen."""

    came: list[str] = attrs.field(factory=list)
    seqs: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(TERMINALS, -1))
    notes_seen: list[str] = attrs.field(factory=list)
    told: set[tuple[str, int]] = attrs.field(factory=set)

    def unread_notes(self, after: str | None) -> list[str]:
        start = 0 if after is None else self.came.index(after) + 1
        return [each for each in self.came[start:] if each.startswith("n")]

    def read(self, message: Message) -> None:
        """The reader sees a message."""
        about = parse_wake_id(message.id)
        if about is None:
            self.notes_seen.append(message.id)
            return
        folded = FOLDED.fullmatch(message.body)
        since, last = (about.seq - 1, about.seq) if folded is None else (folded[3], folded[1])
        self.told |= {(about.terminal, seq) for seq in range(int(since) + 1, int(last) + 1)}


class Run:
    """One inbox and its reader; ``acknowledges_each``: it reads one message at a time."""

    def __init__(self, office: Office, most: int, *, acknowledges_each: bool) -> None:
        self.office = office
        self.chance = office.chance
        self.most = most
        self.acknowledges_each = acknowledges_each
        self.model = Model()
        self.number = 0
        self.unread: list[str] = []
        self.cursor: str | None = None
        self.cursors: list[str] = []

    async def step(self) -> None:
        chance, model = self.chance, self.model
        terminal, number = chance.choice(TERMINALS), chance.randint(1, 3)
        match chance.randrange(8):
            case 0 | 1:
                model.seqs[terminal] += number  # those between were the reader's own commands
                await self.deliver(wake(model.seqs[terminal], terminal))
            case 2:  # a wake that did not arrive when it was sent, but after the one behind it
                model.seqs[terminal] += number + 1
                await self.deliver(wake(model.seqs[terminal], terminal))
                await self.deliver(wake(model.seqs[terminal] - number, terminal))
            case 3:
                self.number += 1
                await self.deliver(note(self.number))
            case 4 if not self.acknowledges_each:
                await self.read(number)
            case 5 if self.cursors and not self.acknowledges_each:
                await self.see(await self.office.read(after=chance.choice(self.cursors[-5:])))
            case 6 if chance.random() < 0.5:
                await self.restart()
            case 7:
                await self.read(1)

    async def deliver(self, message: Deliver) -> None:
        self.model.came.append(message.id)
        before = len(self.unread)
        await self.office.deliver(message)
        await self.see(await self.office.read())
        assert len(self.unread) <= before + 1, "the unread messages became more by folding"

    async def see(self, found: MessageList) -> None:
        self.unread = [_short(each) for each in found.messages]
        singles = [each for each in self.unread if re.fullmatch(r"[a-z]+ \d+", each)]
        assert len(singles) <= self.most

    async def restart(self) -> None:
        await self.see(await self.office.read())
        before = self.unread
        await self.office.restart(power_fails=self.chance.random() < 0.5)
        await self.see(await self.office.read())
        assert self.unread == before, "a restarted inbox shows what it showed"

    async def read(self, limit: int) -> None:
        """Acknowledge what was read before, and read on."""
        found = await self.office.read(after=self.cursor, limit=limit)
        if self.cursor is not None and limit == 1:
            expected = self.model.unread_notes(self.cursor)
            first = next((each for each in ids(found) if each.startswith("n")), None)
            assert first in (None, *expected[:1]), "a note was left out or came again"
        for message in found.messages:
            self.model.read(message)
        if found.next is not None:
            self.cursor = found.next
            self.cursors.append(found.next)
        await self.see(await self.office.read())

    async def read_to_the_end(self) -> None:
        for _ in range(len(self.model.came) + 2):
            await self.read(1)
        assert self.unread == []


def wakes_of(all_ids: Iterable[str]) -> set[tuple[str, int]]:
    found = [about for each in all_ids if (about := parse_wake_id(each)) is not None]
    return {(about.terminal, about.seq) for about in found}


SEEDS = [*range(20), *(pytest.param(each, marks=pytest.mark.long) for each in range(20, 200))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reader_sees_each_message_in_order_and_is_told_of_every_wake(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    most = 1 + seed % 4
    limited(monkeypatch, MAX_WAKES=most, FOLDED_TOGETHER=1 + seed % 3)

    async def story(office: Office) -> None:
        run = Run(office, most, acknowledges_each=seed % 3 == 0)
        for _ in range(STEPS):
            await run.step()
        await run.read_to_the_end()
        notes = [each for each in run.model.came if each.startswith("n")]
        seen = run.model.notes_seen
        assert (seen if run.acknowledges_each else [*dict.fromkeys(seen)]) == notes
        assert wakes_of(run.model.came) <= run.model.told

    keep = Keep(newest=0, days=0) if seed % 2 else DEFAULT_KEEP
    play(story, seed=seed, keep=keep)
