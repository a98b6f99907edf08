"""Workspaces that a daemon finds are shown when they survive a loss of power, and not before."""

from __future__ import annotations

import errno

import pytest

from actors import System
from actors.simulate import Simulation, simulate
from aegis.errors import StorageError
from aegis.protocol.workspaces import CreateWorkspace, ListWorkspaces
from tests.chaos.machine.disk_images import legal_images
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.file_content import FailedSync
from tests.chaos.machine.simulated_disk import Die, DiskPlan, Fail, ProcessDied, SimulatedDisk
from tests.faults.daemons import EMPTY, Place, place

EIO = Fail(errno.EIO)


async def create(system: System, name: str) -> None:
    request = CreateWorkspace(workspace=name, directory="/")
    await system.ref("root/workspaces").ask(request)


async def listed(system: System) -> list[str]:
    found = await system.ref("root/workspaces").ask(ListWorkspaces())
    return [each.workspace_id for each in found.result]


async def second_one_unsynced(here: Place) -> SimulatedDisk:
    """The disk of a daemon that was killed right before it synced its second workspace."""
    disk = SimulatedDisk(EMPTY)

    async def work(system: System) -> None:
        await create(system, "one")
        disk.plan = DiskPlan({("fdatasync", 1): Die()})
        await create(system, "two")

    with pytest.RaisesGroup(ProcessDied, allow_unwrapped=True, flatten_subgroups=True):
        await here.killed_when(disk, work)
    disk.model.close_all()
    left = SimulatedDisk()
    left.model = disk.model
    return left


def shown_after_power_loss(image: Image) -> list[str]:
    async def play(simulation: Simulation) -> list[str]:
        async with place(simulation, simulation.chance) as here:
            return await here.killed_when(SimulatedDisk(image), listed)

    return simulate(play, seed=2).value


def test_a_workspace_that_was_shown_after_a_kill_is_there_after_a_loss_of_power() -> None:
    before: list[Image] = []

    async def play(simulation: Simulation) -> list[Image]:
        async with place(simulation, simulation.chance) as here:
            disk = await second_one_unsynced(here)
            before.extend(legal_images(disk.model))
            assert await here.killed_when(disk, listed) == ["one", "two"]
            return list(legal_images(disk.model))

    after = simulate(play, seed=1).value
    assert ["one"] in map(shown_after_power_loss, before)
    for image in after:
        assert shown_after_power_loss(image) == ["one", "two"]


def test_a_disk_that_cannot_confirm_them_keeps_no_daemon_from_starting_and_loses_none() -> None:
    async def play(simulation: Simulation) -> None:
        async with place(simulation, simulation.chance) as here:
            disk = await second_one_unsynced(here)
            # At the start the sync fails, then the new file; then another new file for a request.
            disk.plan = DiskPlan({("fdatasync", 1): EIO, ("fsync", 1): EIO, ("fsync", 2): EIO})

            async def use(system: System) -> list[str]:
                with pytest.raises(StorageError, match=r"cannot write \.aegis/.*/workspaces\.json"):
                    await listed(system)
                return await listed(system)

            assert await here.killed_when(disk, use) == ["one", "two"]

    simulate(play, seed=1)


@pytest.mark.parametrize("fate", list(FailedSync))
def test_a_workspace_that_the_disk_has_refused_is_not_there_after_a_kill(fate: FailedSync) -> None:
    """Where a sync fails, its pages may be on the disk nevertheless."""

    async def play(simulation: Simulation) -> None:
        async with place(simulation, simulation.chance) as here:
            disk = SimulatedDisk(EMPTY)

            async def refused(system: System) -> None:
                await create(system, "one")
                disk.plan = DiskPlan({("fdatasync", 1): Fail(errno.EIO, fate)})
                with pytest.raises(StorageError):
                    await create(system, "two")

            await here.killed_when(disk, refused)
            disk.model.close_all()
            left = SimulatedDisk()
            left.model = disk.model
            assert await here.killed_when(left, listed) == ["one"]

    simulate(play, seed=1)
