"""The rotation of a transcript on a simulated disk: kills, losses of power, refusals, readers."""

from __future__ import annotations

import errno
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from actors.codec import unstructure
from aegis.agents.sessions.followers import read_news
from aegis.agents.sessions.past import SessionPast, carried, restored
from aegis.agents.sessions.transcript import (
    ShownPart,
    TranscriptWriter,
    read_closed,
    read_durable,
    shown_of_closed,
)
from aegis.errors import StorageError
from aegis.journal.disk import Disk
from aegis.journal.rotation import next_of, previous_of
from aegis.protocol import agent_events as ev
from aegis.protocol.agents import ReadSession
from aegis.protocol.feeds import SessionPlace
from tests.aegis.agents.sessions.world import World
from tests.chaos.machine.disk_images import drawn_image
from tests.chaos.machine.disk_model import cached_image
from tests.chaos.machine.simulated_disk import (
    ANY,
    Die,
    DiskPlan,
    Fail,
    ProcessDied,
    SimulatedDisk,
)
from tests.chaos.machine.simulated_flusher import SimulatedFlusher

PATH = Path("/agents/s1/transcript.jsonl")
LIMIT = 4_000
Entry = dict[str, Any]


def new_disk() -> SimulatedDisk:
    return SimulatedDisk({"/": None, "/agents": None})


@attrs.define
class Life:
    """One daemon that writes a transcript; ``stored`` is the newest entry that is durable."""

    transcript: TranscriptWriter
    log: list[Entry]
    stored: int = 0
    refused: list[str] = attrs.field(factory=list)
    outcome: trio.Event = attrs.field(factory=trio.Event)
    _seqs: dict[int, int] = attrs.field(factory=dict)

    async def write(self, entry: Entry, *, sync: bool) -> None:
        number = len(self._seqs) + 1
        self._seqs[number] = self.transcript.newest + 1
        self.log.append(entry)
        await self.transcript.append(number, entry, sync=sync)

    def settle(self, number: int, error: StorageError | None) -> None:
        if error is None:
            self.stored = max(self.stored, self._seqs[number])
        else:
            self.refused.append(str(error))
        self.outcome.set()
        self.outcome = trio.Event()

    async def has_stored(self, seq: int) -> None:
        while self.stored < seq:
            await self.outcome.wait()


@asynccontextmanager
async def opened(
    disk: SimulatedDisk, log: list[Entry] | None = None, limit: int = LIMIT
) -> AsyncIterator[Life]:
    transcript = await TranscriptWriter.open(PATH, SimulatedFlusher(disk), limit)
    life = Life(transcript, [] if log is None else log)
    async with trio.open_nursery() as nursery:
        transcript.start(nursery.start_soon, life.settle)
        yield life
        nursery.cancel_scope.cancel()
    transcript.close()


def event(number: int, size: int = 100) -> Entry:
    text = ev.AssistantText(text=f"{number}:".ljust(size, "x"), message="m")
    return {"kind": "event", "at": float(number), "turn": 1, "event": unstructure(text)}


def folded(entries: list[Entry]) -> Entry:
    past = SessionPast()
    for entry in entries:
        past.take(entry)
    return carried(past)


def files(disk: SimulatedDisk) -> dict[str, int]:
    image = cached_image(disk.model)
    parent = str(PATH.parent)
    return {
        name.removeprefix(f"{parent}/"): len(content)
        for name, content in image.items()
        if content is not None and name.startswith(parent)
    }


async def followed(life: Life, place: SessionPlace) -> tuple[list[int], int]:
    """The entries after a place in the order of a follower, and the number of missed ones."""
    seqs: list[int] = []
    missed = 0

    def read(disk: Disk, path: Path, shown: ShownPart) -> Any:
        return read_news(place, disk, path, shown)

    while place.seq < life.transcript.shown.seq:
        news = await life.transcript.look(read)
        seqs += [each.seq for each in news.entries]
        missed, place = missed + news.missed, news.place
    return seqs, missed


def real_entries(seed: int) -> list[tuple[Entry, bool]]:
    """The entries of a machine among agents, people and disks, and whether each is synced."""
    chance = random.Random(seed)
    found: list[tuple[Entry, bool]] = []

    class Recorder(World):
        def carry_out_one(self, output: Any) -> None:
            if type(output).__name__ == "Append":
                found.append((output.entry, output.sync))
            super().carry_out_one(output)

    world = Recorder(chance)
    often = ("arrive", "ready", "result", "talk", "sync", "notify", "ask", "answer", "ring")
    for _ in range(400):
        getattr(world, chance.choice((*often, "set_back", *often, "die")))()
        usage = ev.Usage(input_tokens=chance.randint(0, 9), process_cost_usd=chance.random())
        if world.process == "ready":
            world.agent(usage)
            path, digest = f"/w/{chance.randint(0, 5)}", str(chance.random())
            world.carry_out(world.session.at(world.now).write_edited(path, digest))
    return found


def test_a_carried_fold_is_the_same_and_continues_as_the_same() -> None:
    entries = [entry for entry, _ in real_entries(1)]
    for cut in range(0, len(entries), 7):
        copy = restored(folded(entries[:cut]))
        for entry in entries[cut:]:
            copy.take(entry)
        assert carried(copy) == folded(entries)


async def test_the_newest_entries_are_kept_in_two_files_and_numbers_continue(
    autojump_clock: trio.testing.MockClock,
) -> None:
    disk = new_disk()
    async with opened(disk) as life:
        for number in range(1, 201):
            await life.write(event(number), sync=number % 10 == 0)
        await life.has_stored(200)
        assert set(files(disk)) == {"transcript.jsonl", "transcript.jsonl.1"}
        assert sum(files(disk).values()) < LIMIT + 4 * 500
        kept, missed = await followed(life, SessionPlace(seq=0))
        assert kept == list(range(kept[0], 201))
        assert missed == kept[0] - 1 > 100
        assert len(kept) * 250 > LIMIT // 2
    async with opened(disk) as life:
        assert life.transcript.newest == 200


@pytest.mark.parametrize("seed", range(8))
async def test_after_kills_at_random_the_state_is_that_of_an_unrotated_transcript(
    seed: int, autojump_clock: trio.testing.MockClock
) -> None:
    chance = random.Random(seed)
    entries = real_entries(seed)
    disk, log, stored, deaths = new_disk(), list[Entry](), 0, 0
    while len(log) < len(entries):
        disk.plan = DiskPlan({(ANY, chance.randint(5, 120)): Die()})
        limit = chance.choice((1_000, 3_000, 20_000))
        life: Life | None = None
        try:
            async with opened(disk, log, limit) as life:
                life.stored = stored
                assert stored <= life.transcript.newest <= len(log)
                await keep_what_is_left(life, log, stored)
                assert carried(life.transcript.past) == folded(log)
                while len(log) < len(entries):
                    entry, sync = entries[len(log)]
                    await life.write(entry, sync=sync)
                    await trio.sleep(chance.choice((0.0, 0.0, 0.003)))
        except* ProcessDied:
            deaths += 1
        stored = stored if life is None else max(stored, life.stored)
        disk.model.close_all()
        image = (
            drawn_image(disk.model, lambda n: chance.randrange(n))
            if chance.random() < 0.5
            else cached_image(disk.model)
        )
        disk = SimulatedDisk(image)
    assert deaths > 2
    async with opened(disk, log) as last:
        await keep_what_is_left(last, log, stored)
        assert carried(last.transcript.past) == folded(log)


async def test_a_follower_misses_nothing_across_rotations(
    autojump_clock: trio.testing.MockClock,
) -> None:
    chance = random.Random(5)
    async with opened(new_disk()) as life:
        place, seen, missed = SessionPlace(seq=0), list[int](), 0
        for number in range(1, 301):
            await life.write(event(number, chance.randint(1, 300)), sync=chance.random() < 0.3)
            if chance.random() < 0.4:  # it is never further behind than the kept entries
                news = await life.transcript.look(
                    lambda disk, path, shown: read_news(place, disk, path, shown)  # noqa: B023
                )
                seen += [each.seq for each in news.entries]
                missed, place = missed + news.missed, news.place
        await trio.sleep(1)
        rest, more = await followed(life, place)
        assert seen + rest == list(range(1, 301))
        assert missed + more == 0


async def test_readers_beside_rotations_see_no_entry_twice_and_none_of_another_place(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with opened(new_disk()) as life:
        readings: list[list[int]] = []

        async def read() -> None:
            while True:
                message = ReadSession(handle="s", since=max(0, life.transcript.newest - 5))
                reply = await read_durable(life.transcript, message)
                readings.append([each.seq for each in reply.result])
                readings.append([e.seq for e in (await newest(life, 12)).result])
                await trio.sleep(0.0001)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            for number in range(1, 201):
                await life.write(event(number), sync=True)
                await trio.sleep(0.001)
            nursery.cancel_scope.cancel()
        assert len(readings) > 50
        for found in readings:
            assert found == list(range(found[0], found[0] + len(found))) if found else True


async def keep_what_is_left(life: Life, log: list[Entry], stored: int) -> None:
    """Remove the entries from ``log`` that were not synced and are lost."""
    shown = life.transcript.shown
    assert stored <= shown.seq
    del log[shown.seq :]
    left, _ = await followed(life, SessionPlace(seq=shown.after))
    for seq in {*range(shown.after + 1, shown.seq + 1)} - {*left}:
        assert seq > stored or not log[seq - 1]  # or an earlier power loss has damaged it
        log[seq - 1] = {}


async def newest(life: Life, count: int) -> Any:
    return await read_durable(life.transcript, ReadSession(handle="s", last_n=count))


async def test_reads_join_both_files_and_say_how_many_entries_are_gone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    disk = new_disk()
    async with opened(disk) as life:
        for number in range(1, 101):
            await life.write(event(number), sync=True)
        await life.has_stored(100)
        oldest = (await followed(life, SessionPlace(seq=0)))[0][0]
        after = life.transcript.shown.after
        assert oldest < after < 100
        for count in (1, 100 - after, 100 - after + 1, 100 - oldest, 1_000):
            found = [each.seq for each in (await newest(life, count)).result]
            assert found == list(range(max(oldest, 101 - count), 101))
        for since in (0, oldest - 1, oldest, after - 1, after, after + 1, 99, 100):
            message = ReadSession(handle="s", since=since)
            reply = await read_durable(life.transcript, message)
            first = max(oldest, since + 1)
            assert [each.seq for each in reply.result] == list(range(first, 101))
            assert reply.missed == first - since - 1
            closed = await read_closed(PATH, SimulatedFlusher(disk), message)
            assert closed == reply
    assert shown_of_closed(disk, PATH).seq == 100


@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
async def test_a_refused_rotation_loses_nothing_and_is_tried_again(
    call: str, autojump_clock: trio.testing.MockClock
) -> None:
    for nth in range(1, 4):
        disk, tried = new_disk(), 0
        async with opened(disk) as life:
            while files(disk).get("transcript.jsonl", 0) < LIMIT // 2:
                tried += 1
                await life.write(event(tried), sync=True)
            await life.has_stored(tried)
            disk.plan = DiskPlan({(call, nth): Fail(errno.ENOSPC)})
            with capture_logs() as logs:
                for number in range(tried + 1, tried + 41):
                    await life.write(event(number), sync=True)
                    await trio.sleep(0.02)
            refusals = [each for each in logs if "not rotated" in each["event"]]
            for each in refusals:
                assert each["why"].startswith("cannot rotate /agents/s1/transcript.jsonl: No space")
                assert each["why"].endswith("free some space, then try again")
            lost = len(life.refused)
            assert life.stored == life.transcript.newest == tried + 40 - lost
            assert lost <= (call == "write")
            assert bool(refusals) or lost or nth > 1
            kept, _ = await followed(life, SessionPlace(seq=tried - 2))
            assert kept[-1] == life.stored
            assert kept == list(range(kept[0], kept[-1] + 1))
            assert next_of(PATH).name not in files(disk)
            assert previous_of(PATH).name in files(disk)


async def test_a_start_rotates_no_file_that_is_not_full(
    autojump_clock: trio.testing.MockClock,
) -> None:
    disk = new_disk()
    opening = {"kind": "turn_opened", "at": 1.0, "uuid": "u", "text": "t"}
    async with opened(disk) as life:
        while life.transcript.shown.after == 0:  # its head is larger than half of the limit
            number = life.transcript.newest
            messages = [{"id": f"{number}".rjust(400, "m"), "sender": "human"}] * 2
            await life.write(opening | {"turn": number, "messages": messages}, sync=True)
        after = life.transcript.shown.after
    for _ in range(5):
        async with opened(disk) as life:
            await life.write(event(1, 10), sync=True)
            await life.has_stored(life.transcript.newest)
            assert life.transcript.shown.after == after


async def test_a_damaged_head_is_replaced_by_the_entries_before_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    disk, log = new_disk(), list[Entry]()
    entries = [entry for entry, _ in real_entries(3)]
    async with opened(disk, log, 40_000) as life:
        while life.transcript.shown.after == 0:
            await life.write(entries[len(log)], sync=True)
        await life.has_stored(len(log))
    image = dict(cached_image(disk.model))
    content = image[str(PATH)]
    assert content is not None
    image[str(PATH)] = content.replace(b'"kind":"head"', b'"kind":"bead"', 1)
    with capture_logs():
        async with opened(SimulatedDisk(image)) as life:
            assert life.transcript.newest == len(log)
            assert carried(life.transcript.past) == folded(log)
