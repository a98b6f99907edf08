"""The writer of a ledger that is split, on a disk that refuses some calls for a while."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import trio

from actors import ChildSpec, SupervisorSpec
from actors.simulate import Simulation, simulate
from aegis.journal.segment_names import segments_of
from aegis.journal.segments import SegmentReader, close_segment
from aegis.terminals.front.writer import LedgerWriter
from aegis.terminals.messages import ReportSynced, SyncedLedger
from tests.chaos.exhaustive import QuietPlan, World
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.faults.ledgers import FILES, SmallFront

EMPTY: Image = {"/": None, "/state": None}
SEGMENT_BYTES = 1_000
"""The lines of two or three records."""


class Refusing(SimulatedDisk):
    """A disk that refuses to rename or to remove a file while it is told to."""

    refused = ""

    def rename(self, old: Path, new: Path) -> None:
        if self.refused == "rename" and old == FILES.ledger:
            raise OSError(errno.EIO, "refused")
        super().rename(old, new)

    def open(self, path: Path, flags: int) -> int:
        if self.refused == "pack" and ".gz" in path.name:
            raise OSError(errno.ENOSPC, "refused")
        return super().open(path, flags)


async def play(world: World, bursts: list[int]) -> None:
    done = trio.Event()
    writer = ChildSpec.of(
        "writer",
        LedgerWriter,
        files=FILES,
        flusher=world.flusher,
        segment_bytes=SEGMENT_BYTES,
    )
    front = ChildSpec.of("terminal", SmallFront, world=world, bursts=bursts, done=done)
    spec = SupervisorSpec(name="root", children=(writer, front))
    async with world.simulation.open_system(spec):
        await done.wait()
        await trio.sleep(1)  # what is compressed meanwhile


def numbers(disk: SimulatedDisk) -> list[int]:
    found = SegmentReader(FILES.ledger, disk=disk).last_now(1_000)
    assert found.damaged_count == 0
    return [each["seq"] for each in found.records]


@pytest.mark.parametrize("bursts", [[20], [1] * 20, [7, 1, 12]])
def test_a_ledger_is_split_with_and_without_records_that_wait(bursts: list[int]) -> None:
    disk = SimulatedDisk(EMPTY)

    async def story(simulation: Simulation) -> None:
        world = World(disk, simulation, QuietPlan({}))
        await play(world, bursts)
        assert world.evidence.confirmed == [*range(20)]

    simulate(story, seed=1)
    assert numbers(disk) == [*range(20)]
    names = sorted(disk.list_directory(FILES.directory))
    assert len(names) >= 5
    assert [each.endswith(".gz") for each in names] == [True] * (len(names) - 2) + [False] * 2
    firsts = [each.first for each in segments_of(disk, FILES.ledger)]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize("refused", ["rename", "pack"])
def test_a_disk_that_refuses_to_split_or_to_compress_refuses_no_record(
    refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = Refusing(EMPTY)
    disk.refused = refused

    async def story(simulation: Simulation) -> None:
        world = World(disk, simulation, QuietPlan({}))
        await play(world, [1] * 12)
        assert world.evidence.confirmed == [*range(12)]

    simulate(story, seed=1)
    assert numbers(disk) == [*range(12)]
    event = "ledger not split" if refused == "rename" else "old records not reduced"
    logged = capsys.readouterr().out.count(event)
    assert 1 <= logged <= 5, "not for every record"
    is_split = bool(segments_of(disk, FILES.ledger))
    assert is_split == (refused == "pack")


@pytest.mark.parametrize("is_split", [False, True])
def test_after_a_restart_the_last_record_is_known_also_from_a_segment(is_split: bool) -> None:
    disk = SimulatedDisk(EMPTY)

    async def story(simulation: Simulation) -> None:
        world = World(disk, simulation, QuietPlan({}))
        await play(world, [5])
        if is_split:
            close_segment(disk, FILES.ledger, 4)
        writer = ChildSpec.of("writer", LedgerWriter, files=FILES, flusher=world.flusher)
        front = ChildSpec.of("terminal", SmallFront, world=world, bursts=[], done=trio.Event())
        spec = SupervisorSpec(name="root", children=(writer, front))
        async with simulation.open_system(spec) as system:
            report = await system.ref("root/writer").ask(ReportSynced(), timeout=5)
            assert report == SyncedLedger(newest=4)

    simulate(story, seed=1)
    assert numbers(disk) == [*range(5)]
