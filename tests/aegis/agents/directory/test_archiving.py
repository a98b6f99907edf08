"""Transcripts of closed sessions are moved to the archive, where all that they had is found."""

from __future__ import annotations

import gzip
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from actors import Actor, ChildSpec, Reply
from actors.messages import Request
from actors.simulate import Simulation, simulate
from aegis.agents.directory.all_sessions import delete_files, delete_left
from aegis.agents.directory.archiving import SessionArchiver
from aegis.agents.directory.following import answer_ended
from aegis.agents.directory.roster import Member, Roster
from aegis.agents.sessions.past import SessionPast, carried
from aegis.agents.sessions.transcript import TRANSCRIPT, TranscriptWriter, fold
from aegis.errors import AegisError, NotFound
from aegis.journal.archive import Keep
from aegis.journal.disk import read_file, replace_file, storage_error
from aegis.journal.ledger import decode_line, encode_line, seal_line
from aegis.journal.rotation import previous_of
from aegis.protocol.agents import ReadSession
from aegis.protocol.agents import Transcript as Entries
from aegis.protocol.feeds import FollowSession, SessionNews
from tests.aegis.simulated_daemon import SimulatedDaemon
from tests.chaos.machine.disk_model import cached_image
from tests.chaos.machine.simulated_disk import ANY, Die, ProcessDied, SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.reproducible import reproducible

AGENTS = Path("/state/agents")
ARCHIVE = Path("/state/archive")
FEW = Keep(newest=2, days=0, most=1_000)


@attrs.frozen
class Close(Request[None]):
    """End the actor of a session, whose roster has it as closed."""

    id: str


@attrs.frozen
class Reopen(Request[int]):
    """Have the directory of a closed session back, and open it; the reply is its newest entry."""

    id: str


@attrs.frozen
class Purge(Request[None]):
    """Delete all of a closed session."""

    id: str


Message = Close | Reopen | Purge | ReadSession | FollowSession


class Keeper(Actor[Message]):
    """The part of the directory of sessions that has those that are closed."""

    def __init__(
        self, *, roster: Roster, running: set[str], disk: SimulatedDisk, keep: Keep
    ) -> None:
        self._roster, self._running = roster, running
        self._flusher, self._keep = SimulatedFlusher(disk), keep

    async def setup(self) -> None:
        self._lock = trio.Lock()
        self._archiver = SessionArchiver(
            directory=AGENTS,
            archive=ARCHIVE,
            keep=self._keep,
            flusher=self._flusher,
            lock=self._lock,
            roster=lambda: self._roster,
            is_at_rest=lambda id_: id_ not in self._running,
            start_soon=self.context.start_soon,
        )
        await delete_left(self._roster, AGENTS, self._flusher, self._archiver.of)
        self._archiver.look()

    async def receive(self, message: Message) -> None:
        match message:
            case Close(id=id_):
                self._archiver.look(self._roster.by_id[id_])
                self.reply(message, None)
            case Reopen(id=id_):
                reopen = partial(self._reopen, self._roster.by_id[id_])
                self.context.start_soon(self._answer, reopen, self.defer(message))
            case Purge(id=id_):
                purge = partial(self._purge, self._roster.by_id[id_])
                self.context.start_soon(self._answer, purge, self.defer(message))
            case ReadSession(handle=handle):
                member, reply = self._roster.get(handle), self.defer(message)
                stored = self._archiver.of(member)
                self.context.start_soon(answer_ended, member, stored, self._flusher, message, reply)
            case FollowSession(handle=handle):
                member, news = self._roster.get(handle), self.defer(message)
                stored = self._archiver.of(member)
                self.context.start_soon(answer_ended, member, stored, self._flusher, message, news)

    async def _answer(self, work: Callable[[], Awaitable[Any]], reply: Reply[Any]) -> None:
        try:
            reply.send(await work())
        except AegisError as error:
            reply.fail(error)

    async def _reopen(self, member: Member) -> int:
        async with self._archiver.restored(member), self._lock:
            reopen = partial(Member.reopen, changed=self._roster.next_change())
            self._roster.change(member.id, reopen)
            self._running.add(member.id)
        transcript = await TranscriptWriter.open(AGENTS / member.id / TRANSCRIPT, self._flusher)
        newest = transcript.newest
        transcript.close()
        return newest

    async def _purge(self, member: Member) -> None:
        async with self._lock:
            purged = partial(Member.purged, changed=self._roster.next_change())
            self._roster.change(member.id, purged)
        try:
            await self._flusher.call(partial(delete_files, self._archiver.of(member)))
        except OSError as error:
            raise storage_error("delete", AGENTS / member.id, error) from error


class Office(SimulatedDaemon):
    """A daemon with closed sessions; the roster and what is written are those of its client."""

    def __init__(self, simulation: Simulation, keep: Keep) -> None:
        super().__init__(simulation, "root/keeper")
        self.keep = keep
        self.roster = Roster()
        self.running: set[str] = set()
        self.texts: dict[str, list[str]] = {}
        self.has_died = False

    def actors(self) -> tuple[ChildSpec, ...]:
        keeper = ChildSpec.of(
            "keeper",
            Keeper,
            roster=self.roster,
            running=self.running,
            disk=self.disk,
            keep=self.keep,
        )
        return (keeper,)

    def dies(self) -> None:
        pass

    def dies_at(self, number: int) -> None:
        """Kill the daemon right before a call of the disk: the next one if the ``number`` is 1."""
        self.plan.faults[ANY, self.plan.hits[ANY] + number] = Die()
        self.disk.on_death = self._died

    def _died(self) -> None:
        self.has_died = True
        self._scope.cancel()

    async def _live(self, task_status: trio.TaskStatus[None]) -> None:
        try:
            await super()._live(task_status)
        except* ProcessDied:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()

    def spawn(self, handle: str) -> Member:
        found = Member(
            id=uuid.uuid4().hex,
            handle=handle,
            profile="p",
            provider="claude",
            place=".",
            spawned_by="human",
            parent=None,
            at=self.in_seconds(0),
            changed=self.roster.next_change(),
        )
        self.roster.put(found)
        self.running.add(found.id)
        self.texts[handle] = []
        return found

    async def says(self, handle: str, *texts: str, limit: int = 1 << 20) -> None:
        """Write entries to the transcript of an open session, durably."""
        path = AGENTS / self.roster.get(handle).id / TRANSCRIPT
        transcript = await TranscriptWriter.open(path, SimulatedFlusher(self.disk), limit)
        async with trio.open_nursery() as nursery:
            transcript.start(nursery.start_soon, lambda *_: None)
            for each in texts:
                entry = {"kind": "started", "at": 1.0, "text": each}
                await transcript.append(0, entry, sync=True)
                await transcript.sync()
            transcript.close()
            nursery.cancel_scope.cancel()
        self.texts[handle] += texts

    async def closes(self, handle: str) -> None:
        id_ = self.roster.get(handle).id
        closed = partial(Member.closed, changed=self.roster.next_change())
        self.roster.change(id_, closed)
        self.running.discard(id_)
        await self.ask(Close(id_))

    async def ended(self, handle: str, *texts: str, **more: Any) -> str:
        """Spawn a session, have it say this, and close it; return its id."""
        id_ = self.spawn(handle).id
        await self.says(handle, *texts, **more)
        await self.closes(handle)
        return id_

    async def read(self, handle: str, **wanted: Any) -> Entries:
        return await self.ask(ReadSession(handle=handle, **wanted))

    async def said(self, handle: str) -> list[str]:
        found = await self.read(handle, last_n=1_000)
        return [each.fields["text"] for each in found.result]

    async def followed(self, handle: str) -> list[str]:
        """Return all texts as a stream has them."""
        news: SessionNews = await self.ask(FollowSession(handle=handle, since=0))
        found: list[str] = []
        while not news.is_over:
            news = await self.ask(FollowSession(handle=handle, place=news.place))
            found += [each.fields["text"] for each in news.entries]
        return found

    def in_place(self) -> set[str]:
        """Return the handles of the sessions whose transcripts are in their directories."""
        image = cached_image(self.disk.model)
        ids = {Path(each).parts[3] for each in image if each.endswith(f"/{TRANSCRIPT}")}
        return {each.handle for each in self.roster.by_id.values() if each.id in ids}

    def archived(self, id_: str) -> list[str]:
        names = [each for each in cached_image(self.disk.model) if f"-{id_}-" in each]
        return sorted(names)

    def left(self) -> list[str]:
        return [each for each in cached_image(self.disk.model) if "/.purged-" in each]


def play(story: Callable[[Office], Awaitable[None]], *, keep: Keep = FEW, seed: int = 1) -> None:
    async def run(simulation: Simulation) -> None:
        with reproducible(simulation.chance):
            async with Office(simulation, keep).opened() as office:
                await story(office)

    simulate(run, seed=seed)


def test_the_transcripts_of_old_closed_sessions_are_read_from_the_archive() -> None:
    async def story(office: Office) -> None:
        office.spawn("open")
        await office.says("open", "still here")
        ids = [await office.ended(f"s{n}", *(f"{n}/{m}" for m in range(5))) for n in range(5)]
        await office.passes(1)
        for restarts in (False, True, True):
            if restarts:
                await office.restart(power_fails=True)
                await office.passes(1)
            assert office.in_place() == {"open", "s3", "s4"}
            assert office.left() == []
            for number, id_ in enumerate(ids):
                handle, texts = f"s{number}", [f"{number}/{each}" for each in range(5)]
                assert await office.said(handle) == texts
                assert await office.followed(handle) == texts
                assert bool(office.archived(id_)) is (number < 3)
                found = await office.read(handle, since=2)
                assert ([each.seq for each in found.result], found.missed) == ([3, 4, 5], 0)
                assert [each.seq for each in (await office.read(handle, last_n=2)).result] == [4, 5]
                assert (await office.read(handle, since=5)).result == []

    play(story)


def test_a_long_transcript_is_read_as_before_it_was_archived() -> None:
    async def story(office: Office) -> None:
        texts = [f"{number} " + "x" * 20_000 for number in range(60)]
        await office.ended("long", *texts, limit=600_000)
        before = [await office.read("long", last_n=1_000), await office.read("long", since=0)]
        assert before[1].missed > 0, "its file was rotated"
        followed = await office.followed("long")
        for number in range(3):
            await office.ended(f"s{number}", "x")
        await office.passes(1)
        assert "long" not in office.in_place()
        assert [
            await office.read("long", last_n=1_000),
            await office.read("long", since=0),
        ] == before
        assert await office.followed("long") == followed
        kept = before[0].result[0].seq
        assert (await office.read("long", since=kept)).result == before[0].result[1:]

    play(story)


def test_a_session_is_opened_again_with_its_transcript_and_archived_anew() -> None:
    async def story(office: Office) -> None:
        texts = [f"{number} " + "x" * 20_000 for number in range(60)]
        id_ = await office.ended("old", *texts, limit=600_000)
        for number in range(3):
            await office.ended(f"s{number}", "x")
        await office.passes(1)
        before = await office.said("old")
        disk = SimulatedDisk(dict(cached_image(office.disk.model)))
        assert await office.ask(Reopen(id_)) == 60
        assert "old" in office.in_place()
        path = AGENTS / id_ / TRANSCRIPT
        data = read_file(office.disk, path, max_bytes=1 << 30) or b""
        packed = [each for each in office.archived(id_) if "fold" not in each]
        whole = b"".join(gzip.decompress(cached_image(disk.model)[each] or b"") for each in packed)
        lines = [decode_line(each) for each in data.splitlines(keepends=True)]
        assert lines == [decode_line(each) for each in whole.splitlines(keepends=True)]
        assert fold(office.disk, path, len(data)).past.launches == 60
        await office.says("old", "again")
        await office.closes("old")
        await office.passes(1)
        assert office.in_place() == {"old", "s2"}
        assert await office.said("old") == [*before, "again"]
        for number in range(3, 6):
            await office.ended(f"s{number}", "x")
        await office.passes(1)
        assert "old" not in office.in_place()
        assert await office.said("old") == [*before, "again"]
        assert await office.followed("old") == [*before, "again"]

    play(story)


def test_a_file_that_has_only_begun_takes_no_entry_away() -> None:
    async def story(office: Office) -> None:
        id_ = await office.ended("old", "alone")
        path = AGENTS / id_ / TRANSCRIPT
        office.disk.rename(path, previous_of(path))  # a kill comes after the head of the next file
        head = {"kind": "head", "after": 1, "past": carried(SessionPast(launches=1))}
        line = seal_line(encode_line(head), office.disk.seal(path))
        replace_file(office.disk, path, [line])
        for number in range(3):
            await office.ended(f"s{number}", "x")
        await office.passes(1)
        assert "old" not in office.in_place()
        assert await office.said("old") == ["alone"]
        assert await office.ask(Reopen(id_)) == 1

    play(story)


def test_a_purge_deletes_what_is_in_the_archive() -> None:
    async def story(office: Office) -> None:
        ids = [await office.ended(f"s{number}", "secret") for number in range(5)]
        await office.passes(1)
        await office.ask(Purge(ids[0]))
        assert office.archived(ids[0]) == []
        purged = partial(Member.purged, changed=office.roster.next_change())
        office.roster.change(ids[1], purged)  # a kill comes before the rest
        await office.restart(power_fails=True)
        assert office.archived(ids[1]) == []
        assert await office.said("s2") == ["secret"]

    play(story)


def test_a_transcript_that_was_deleted_with_the_archive_is_said() -> None:
    async def story(office: Office) -> None:
        ids = [await office.ended(f"s{number}", "text") for number in range(5)]
        await office.passes(1)
        await office.stop()
        image = dict(cached_image(office.disk.model))
        for each in office.archived(ids[0]):
            del image[each]
        office.disk = SimulatedDisk(image, office.plan)
        await office.start()
        for request in (
            ReadSession(handle="s0"),
            FollowSession(handle="s0"),
            Reopen(ids[0]),
        ):
            error = await office.refused(request)
            assert isinstance(error, NotFound)
            assert str(error) == (
                "the transcript of 's0' was deleted with the archive, which has a limit: see "
                "keep.archive_bytes"
            )
        assert await office.said("s1") == ["text"]

    play(story)


def test_the_archive_ends_at_its_limit() -> None:
    async def story(office: Office) -> None:
        for number in range(12):
            await office.ended(f"s{number}", office.chance.randbytes(30_000).hex())
            await office.passes(2)
        size = sum(
            len(data or b"")
            for path, data in cached_image(office.disk.model).items()
            if path.startswith(f"{ARCHIVE}/")
        )
        assert size <= 100_000
        assert await office.said("s9") == office.texts["s9"]
        assert isinstance(await office.refused(ReadSession(handle="s0")), NotFound)

    play(story, keep=attrs.evolve(FEW, archive_bytes=100_000))


def test_what_is_younger_than_its_days_stays() -> None:
    async def story(office: Office) -> None:
        for number in range(5):
            await office.ended(f"s{number}", "text")
        await office.passes(1)
        assert len(office.in_place()) == 5
        await office.passes(2 * 86_400)
        await office.ended("last", "text")
        await office.passes(1)
        assert office.in_place() == {"s4", "last"}

    play(story, keep=attrs.evolve(FEW, days=1))


@pytest.mark.parametrize("kind", [Reopen, Purge])
def test_a_session_that_is_opened_or_purged_while_it_is_moved_is_not_mixed_up(
    kind: type[Reopen | Purge],
) -> None:
    async def story(office: Office, number: int) -> bool:
        for each in range(2):
            await office.ended(f"s{each}", f"{each}/0", f"{each}/1")
        first = office.roster.get("s0").id
        office.spawn("s2")
        await office.says("s2", "2/0")
        calls = 0
        answers: list[Any] = []

        def ask_at(_: str) -> None:
            nonlocal calls
            calls += 1
            if calls == number:
                answers.append(office.ask_soon(kind(first)))

        office.disk.before_call = ask_at
        await office.closes("s2")
        await office.passes(2)
        office.disk.before_call = lambda _: None
        if answers and kind is Reopen:
            assert answers[0].value == 2
            assert "s0" in office.in_place()
            path = AGENTS / first / TRANSCRIPT
            assert b"0/1" in (read_file(office.disk, path, max_bytes=1 << 20) or b"")
        elif answers:
            assert answers[0].error is None
            assert (office.archived(first), "s0" in office.in_place()) == ([], False)
        else:
            assert await office.said("s0") == ["0/0", "0/1"]
        assert office.left() == []
        return bool(answers)

    was_asked: list[bool] = []
    for number in range(1, 120):

        async def one(office: Office, number: int = number) -> None:
            was_asked.append(await story(office, number))

        play(one)
    assert was_asked[:20] == [True] * 20
    assert not was_asked[-1], "the end was reached"


CALLS = 120
"""More than the calls of the disk in which a transcript is moved, and its session opened again."""


@pytest.mark.parametrize("power_fails", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_kill_at_each_call_of_the_disk_loses_no_entry(power_fails: bool) -> None:
    died: list[bool] = []

    async def story(office: Office) -> None:
        for number in range(2):
            await office.ended(f"s{number}", f"{number}/0", f"{number}/1")
        first, last = office.roster.get("s0").id, office.spawn("s2").id
        await office.says("s2", "2/0")
        office.dies_at(1 + len(died))
        closed = partial(Member.closed, changed=office.roster.next_change())
        office.roster.change(last, closed)
        office.running.discard(last)
        requests: tuple[Request[Any], ...] = (Close(last), Reopen(first))
        for request in requests:
            office.ask_soon(request)
            await office.passes(1)
        died.append(office.has_died)
        office.plan.faults.clear()
        await office.restart(power_fails=power_fails, draws=True)
        await office.passes(70)
        assert office.left() == []
        for handle, texts in office.texts.items():
            assert await office.said(handle) == texts
        if first not in office.running:
            assert await office.ask(Reopen(first)) == 2

    for number in range(CALLS):
        play(story, seed=number)
    assert sum(died) > 40
    assert not died[-1], "each call was struck"


SEEDS = [*range(12), *(pytest.param(each, marks=pytest.mark.long) for each in range(12, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_that_refuses_and_kills_lose_no_entry(seed: int) -> None:
    async def story(office: Office) -> None:
        purged: list[str] = []
        for number in range(20):
            await office.draws_trouble()
            faults, office.plan.faults = office.plan.faults, {}  # the roster is the test's own
            handle = f"s{number}"
            member = office.spawn(handle)
            await office.says(handle, *(f"{number}/{each}" for each in range(3)))
            office.plan.faults = faults
            await office.closes(handle)
            await office.passes(office.chance.choice([0, 1, 70]))
            closed = [each for each in office.roster.closed if each not in purged]
            drawn, id_ = office.chance.random(), office.chance.choice(closed or [member.id])
            if drawn < 0.2 and closed:
                office.ask_soon(Reopen(id_))
                await office.passes(office.chance.choice([0, 0.2]))
            elif drawn < 0.3 and closed:
                office.ask_soon(Purge(id_))
                purged.append(id_)
            for each in [*office.running]:
                await office.closes(office.roster.by_id[each].handle)
        office.plan.faults.clear()
        await office.passes(200)
        await office.restart(power_fails=True)
        await office.passes(70)
        assert office.left() == []
        for member in office.roster.by_id.values():
            if member.is_purged:
                assert office.archived(member.id) == []
                continue
            assert await office.said(member.handle) == office.texts[member.handle]
            assert await office.followed(member.handle) == office.texts[member.handle]
        assert len(office.in_place()) <= 2 + len(office.running)

    play(story, seed=seed)
