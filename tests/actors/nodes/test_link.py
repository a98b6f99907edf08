"""Two ends of a link in one process, on the mock clock: order, bounds, beats, ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.errors import LinkLost
from actors.nodes.links.heartbeat import Beat
from actors.nodes.links.link import Link
from actors.nodes.links.window import MOST_MESSAGES
from actors.nodes.links.wire import BeatFrame, MessageFrame, OutcomeFrame, OutcomeKind, encode

BEAT = Beat(every_s=1.0, lost_after_s=5.0)
HOUR = 3600.0


@attrs.define
class Wire:
    """Frames in memory. What is ``cut`` is lost, and nobody is told."""

    out: trio.MemorySendChannel[bytes]
    into: trio.MemoryReceiveChannel[bytes]
    cut: bool = False

    async def send(self, frame: bytes) -> None:
        if not self.cut:
            await self.out.send(frame)

    async def receive(self) -> bytes:
        return await self.into.receive()


def wires() -> tuple[Wire, Wire]:
    one_out, other_in = trio.open_memory_channel[bytes](8)
    other_out, one_in = trio.open_memory_channel[bytes](8)
    return Wire(one_out, one_in), Wire(other_out, other_in)


@attrs.define
class Ends:
    """Both ends, and how each one's ``run`` ended and when."""

    parent: Link
    worker: Link
    wire: Wire
    back: Wire
    ended: dict[str, tuple[object, float]] = attrs.field(factory=dict)

    async def run(self, name: str, link: Link) -> None:
        try:
            outcome: object = await link.run()
        except LinkLost as error:
            outcome = str(error)
        self.ended[name] = (outcome, trio.current_time())


@asynccontextmanager
async def linked() -> AsyncIterator[Ends]:
    wire, back = wires()
    ends = Ends(Link(wire, BEAT), Link(back, BEAT), wire, back)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.run, "parent", ends.parent)
        nursery.start_soon(ends.run, "worker", ends.worker)
        yield ends
        nursery.cancel_scope.cancel()


async def test_beats_keep_a_link_up_that_nobody_uses(autojump_clock: MockClock) -> None:
    async with linked() as ends:
        await trio.sleep(HOUR)
        assert ends.ended == {}


@pytest.mark.parametrize("at", [0.0, 7.0, 7.5])
async def test_a_cut_that_nobody_tells_of_is_noticed_by_both_sides_in_time(
    autojump_clock: MockClock, at: float
) -> None:
    async with linked() as ends:
        await trio.sleep(at)
        ends.wire.cut = ends.back.cut = True
        began = trio.current_time()
        await trio.sleep(2 * BEAT.lost_after_s)
        for why, when in ends.ended.values():
            assert why == "The other side was silent for too long."
            assert 0 < when - began <= BEAT.lost_after_s + 1e-6
        assert len(ends.ended) == 2


async def test_a_cut_in_one_direction_is_noticed_by_who_hears_nothing(
    autojump_clock: MockClock,
) -> None:
    async with linked() as ends:
        ends.back.cut = True
        await trio.sleep(2 * BEAT.lost_after_s)
        assert "parent" in ends.ended


async def test_messages_keep_their_order_and_count_as_signs_of_life(
    autojump_clock: MockClock,
) -> None:
    async with linked() as ends:
        for number in range(1_000):
            await ends.parent.send(b"%d" % number)
            assert await ends.worker.receive() == b"%d" % number


async def test_who_sends_waits_while_nobody_receives_and_beats_go_on(
    autojump_clock: MockClock,
) -> None:
    async with linked() as ends:
        with trio.move_on_after(HOUR) as waited:
            for _ in range(MOST_MESSAGES + 1):
                await ends.parent.send(b"x")
        assert waited.cancelled_caught
        assert ends.ended == {}
        for _ in range(MOST_MESSAGES):
            await ends.worker.receive()
        with trio.fail_after(1):
            await ends.parent.send(b"room again")


async def test_senders_get_room_in_the_order_in_which_they_asked(autojump_clock: MockClock) -> None:
    async with linked() as ends:
        for _ in range(MOST_MESSAGES):
            await ends.parent.send(b"first")
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(ends.parent.send, b"%d" % number)
                await wait_all_tasks_blocked()
            got = [await ends.worker.receive() for _ in range(MOST_MESSAGES + 5)]
        assert got[MOST_MESSAGES:] == [b"0", b"1", b"2", b"3", b"4"]


async def test_the_outcome_comes_after_all_messages_and_ends_both_sides(
    autojump_clock: MockClock,
) -> None:
    async with linked() as ends:
        for number in range(10):
            await ends.worker.send(b"%d" % number)
        done = OutcomeFrame(OutcomeKind.DONE)
        await ends.worker.finish(done)
        await trio.sleep(1)
        assert [ended for ended, _ in ends.ended.values()] == [done, done]
        assert not ends.worker.is_lost
        assert all(link.is_done and link.over.is_set() for link in (ends.worker, ends.parent))
        assert [await ends.parent.receive() for _ in range(10)] == [b"%d" % n for n in range(10)]
        with pytest.raises(LinkLost):
            await ends.parent.receive()
        with pytest.raises(LinkLost):
            await ends.parent.send(b"")


async def test_a_stop_is_heard_once(autojump_clock: MockClock) -> None:
    async with linked() as ends:
        ends.parent.ask_to_stop()
        ends.parent.ask_to_stop()
        with trio.fail_after(1):
            await ends.worker.stop_asked.wait()
        assert ends.ended == {}


async def test_whoever_waits_is_let_go_when_the_link_ends(autojump_clock: MockClock) -> None:
    async with linked() as ends:
        refused: list[LinkLost] = []

        async def wait(call: object) -> None:
            assert callable(call)
            with pytest.raises(LinkLost) as caught:
                await call()
            refused.append(caught.value)

        for _ in range(MOST_MESSAGES):
            await ends.parent.send(b"x")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, lambda: ends.parent.send(b"no room"))
            nursery.start_soon(wait, ends.parent.receive)
            await wait_all_tasks_blocked()
            ends.back.out.close()
        assert len(refused) == 2
        assert ends.parent.is_lost
        # And it is over for good.
        with trio.fail_after(1):
            await ends.parent.finish(OutcomeFrame(OutcomeKind.DONE))


@pytest.mark.parametrize(
    "frames",
    [
        [b"\xff"],
        [b""],
        [encode(MessageFrame(b""))] * (MOST_MESSAGES + 1),
        [encode(BeatFrame()) + b"x"],
    ],
)
async def test_who_breaks_the_rules_is_lost(autojump_clock: MockClock, frames: list[bytes]) -> None:
    wire, back = wires()
    link = Link(wire, BEAT)
    async with trio.open_nursery() as nursery:

        async def break_them() -> None:
            for frame in frames:
                await back.send(frame)

        nursery.start_soon(break_them)
        with pytest.raises(LinkLost):
            await link.run()
        assert trio.current_time() < BEAT.lost_after_s


async def test_a_link_that_is_cancelled_lets_go_whoever_waits(autojump_clock: MockClock) -> None:
    wire, _ = wires()
    link = Link(wire, BEAT)
    with trio.move_on_after(1):
        await link.run()
    assert link.is_lost
    assert link.over.is_set()
    assert not link.is_done
    with pytest.raises(LinkLost):
        await link.receive()
