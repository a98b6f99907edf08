"""The streams of a transcript: order, gaps and limits, over rotations and a failing disk."""

from __future__ import annotations

import errno
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from actors import Reply
from aegis.agents.sessions.followers import MAX_FOLLOWERS, TAIL_BYTES, TranscriptFollowers
from aegis.errors import Busy, InvalidRequest
from aegis.protocol.feeds import FollowSession, SessionNews, SessionPlace
from tests.aegis.agents.sessions.test_rotation import Life, event, new_disk, opened
from tests.chaos.machine.simulated_disk import DiskPlan, Fail, SimulatedDisk

LIMIT = 6_000


@attrs.define
class Reader:
    """A stream that asks again when it has its answer; ``got`` are the seqs, ``gaps`` the lost."""

    followers: TranscriptFollowers
    place: SessionPlace = attrs.field(factory=lambda: SessionPlace(seq=0))
    got: list[int] = attrs.field(factory=list)
    gaps: int = 0
    reply: Reply[SessionNews] | None = None

    async def turn(self) -> None:
        """Take the answer, if there is one, and ask for the next."""
        if self.reply is not None and self.reply.is_settled:
            news, self.reply = await self.reply.wait(), None
            self.gaps += news.missed
            self.got += [each.seq for each in news.entries]
            self.place = news.place
        if self.reply is None:
            self.reply = Reply()
            self.followers.take(FollowSession(handle="s", place=self.place), self.reply)


@asynccontextmanager
async def followed(disk: SimulatedDisk) -> AsyncIterator[tuple[Life, TranscriptFollowers]]:
    async with opened(disk, None, LIMIT) as life, trio.open_nursery() as nursery:
        yield life, TranscriptFollowers(life.transcript, nursery.start_soon)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("seed", range(8))
async def test_readers_get_every_entry_once_in_order_or_a_gap_of_the_right_size(
    seed: int, autojump_clock: trio.testing.MockClock
) -> None:
    chance = random.Random(seed)
    disk = new_disk()
    with capture_logs():
        async with followed(disk) as (life, followers):
            readers = [Reader(followers) for _ in range(4)]
            quick = readers[0]
            for number in range(1, 401):
                if number % 100 == 0:
                    call = chance.choice(("fdatasync", "write", "rename"))
                    disk.plan = DiskPlan({(call, chance.randint(1, 3)): Fail(errno.ENOSPC)})
                await life.write(event(number, chance.randint(1, 400)), sync=chance.random() < 0.3)
                followers.look()
                if chance.random() < 0.3:
                    await trio.sleep(0.002)
                if chance.random() < 0.2:
                    await chance.choice(readers).turn()
                await quick.turn()
            await trio.sleep(1)
            newest = life.transcript.shown.seq
            for reader in readers:
                while reader.place.seq < newest:
                    followers.look()
                    await reader.turn()
                    await trio.sleep(0.01)
                assert reader.got == sorted({*reader.got})
                assert len(reader.got) + reader.gaps == newest
            assert len(quick.got) >= len(readers[-1].got)


async def test_an_entry_that_must_be_durable_is_shown_once_it_is(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with followed(new_disk()) as (life, followers):
        reader = Reader(followers)
        await life.write(event(1), sync=False)
        await life.write(event(2), sync=True)
        await life.write(event(3), sync=False)
        await reader.turn()
        assert life.transcript.shown.seq == 1
        await life.has_stored(2)
        assert life.transcript.shown.seq == 3
        for _ in range(4):
            followers.look()
            await trio.sleep(0.01)
            await reader.turn()
        assert reader.got == [1, 2, 3]


async def test_streams_that_wait_are_bounded_and_those_that_ended_make_room(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with followed(new_disk()) as (life, followers):
        await life.write(event(1), sync=False)
        request = FollowSession(handle="s", place=SessionPlace(seq=1))
        waiting: list[Reply[SessionNews]] = [Reply() for _ in range(MAX_FOLLOWERS)]
        for reply in waiting:
            followers.take(request, reply)
        with pytest.raises(Busy, match="256 streams follow this session already"):
            followers.take(request, Reply())
        waiting[3].give_up(TimeoutError())
        followers.take(request, Reply())
        # The lines that are kept for all of them are bounded too.
        for number in range(2, 400):
            await life.write(event(number, 1_000), sync=False)
        assert followers._tail._size <= TAIL_BYTES


async def test_a_place_after_the_newest_entry_is_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with followed(new_disk()) as (_, followers):
        with pytest.raises(InvalidRequest, match="ends with entry 0, before since=5; leave since"):
            followers.take(FollowSession(handle="s", since=5), Reply())
