"""Once a note was synced, no loss of power takes it, whatever was written since."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import StorageError
from aegis.journal.note import Note
from tests.chaos.machine.disk_images import legal_images
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.file_content import FailedSync
from tests.chaos.machine.simulated_disk import DiskPlan, Fail, SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher

pytestmark = pytest.mark.one_python

NOTE = Path("/state/note.json")
SHORT, LONG = 10, 5000
STEPS = ("short", "long", "sync", "short, synced", "long, synced", "confirm", "kill")
CALLS = ("write", "pwrite", "open", "rename", "fdatasync", "fsync")

Refusal = tuple[str, int, FailedSync]


class Life:
    """A note, written and synced and opened again, and what of it must be there for good."""

    def __init__(self, image: Image | None = None) -> None:
        self.disk = SimulatedDisk(image or {"/": None, "/state": None})
        self.seqs = itertools.count()
        self.kept = -1
        self.known = -1
        self.open()

    def open(self) -> None:
        self.note = Note.open(NOTE, SimulatedFlusher(self.disk))

    def is_opened(self) -> bool:
        try:
            self.open()
        except StorageError:
            return False
        return True

    async def step(self, name: str) -> None:
        """One step; one that the disk refuses has promised nothing."""
        size = LONG if name.startswith("long") else SHORT
        fields = {"seq": next(self.seqs), "text": "x" * size}
        try:
            match name:
                case "short" | "long":
                    self.note.write(fields)
                case "short, synced" | "long, synced":
                    await self.note.write_synced(fields)
                    self.kept = held(self.note)
                case "sync":
                    await self.note.sync()
                    self.kept = held(self.note)
                case "confirm":
                    await self.note.confirm()
                    return  # of what was written since the note was opened it says nothing
                case "kill":
                    self.be_killed()
            self.known = held(self.note)
        except StorageError:
            self.known = self.kept  # a disk that refuses a sync may drop what was written

    def be_killed(self) -> None:
        self.note.close()
        self.disk.model.close_all()
        while not self.is_opened():
            pass  # the next life is refused too, until the disk takes it
        assert held(self.note) >= self.known

    def check(self) -> None:
        for image in legal_images(self.disk.model):
            assert held_in(image) >= self.kept


def held(note: Note) -> int:
    return -1 if (fields := note.load()) is None else int(fields["seq"])


def held_in(image: Image) -> int:
    note = Note.open(NOTE, SimulatedFlusher(SimulatedDisk(image)))
    note.close()
    return held(note)


def live(steps: Sequence[str], refusals: Sequence[Refusal] = ()) -> None:
    async def play() -> None:
        life = Life()
        life.disk.plan = DiskPlan(
            {(call, number): Fail(errno.EIO, fate) for call, number, fate in refusals}
        )
        for step in steps:
            await life.step(step)
            life.check()
        life.note.close()

    trio.run(play, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("synced", ["short, synced", "long, synced"])
@pytest.mark.parametrize("written", ["short", "long"])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_a_fresh_life_writes_does_not_take_what_the_one_before_had_synced(
    synced: str, written: str, times: int
) -> None:
    live([synced, "kill", *[written] * times])


@pytest.mark.parametrize("synced", ["short, synced", "long, synced"])
def test_a_long_note_does_not_take_what_was_synced(synced: str) -> None:
    live([synced, "long", "short", "short", "long"])


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fate", FailedSync)
def test_a_new_file_after_a_refusal_does_not_take_what_was_synced(
    call: str, fate: FailedSync
) -> None:
    steps = ["short", "sync", "long", "sync", "short", "short", "short", "sync", "kill", "short"]
    for number in range(1, 6):
        live(steps, [(call, number, fate)])


@pytest.mark.parametrize("synced", ["short, synced", "long, synced"])
@pytest.mark.parametrize("written", ["short", "long"])
@pytest.mark.parametrize("fate", FailedSync)
def test_a_write_after_a_refused_sync_is_newer_than_what_that_sync_left(
    synced: str, written: str, fate: FailedSync
) -> None:
    for call in CALLS:
        for number in range(1, 6):
            live([synced, written, "kill"], [(call, number, fate)])


@pytest.mark.parametrize("before", ["", "short, synced"])
@pytest.mark.parametrize("first", [2, 5])
def test_a_note_that_a_power_loss_took_does_not_return_at_the_next_one(
    before: str, first: int
) -> None:
    """Its file had no name any more but that of an unfinished one, which was written anew."""

    async def play() -> None:
        life = Life()
        for step in [before] * bool(before) + ["short"] * first:
            await life.step(step)
        life.note.close()
        for image in legal_images(life.disk.model):
            await _lose_again(image)

    trio.run(play, clock=trio.testing.MockClock(autojump_threshold=0))


async def _lose_again(image: Image) -> None:
    life = Life(image)
    found = held(life.note)
    life.seqs = itertools.count(100)
    for _ in range(4):
        await life.step("short")
        for left in legal_images(life.disk.model):
            now = held_in(left)
            assert now == found or now >= 100, (found, now, sorted(image))
    life.note.close()


@pytest.mark.long
@given(
    steps=st.lists(st.sampled_from(STEPS), max_size=10),
    refusals=st.lists(
        st.tuples(st.sampled_from(CALLS), st.integers(1, 5), st.sampled_from(FailedSync)),
        max_size=2,
    ),
)
def test_no_sequence_of_steps_takes_what_was_synced(
    steps: list[str], refusals: list[Refusal]
) -> None:
    live(steps, refusals)
