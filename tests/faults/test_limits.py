"""Tests that show the documented limits: a limit that is gone should leave the documents too."""

from __future__ import annotations

from tests.chaos.exhaustive import Exploration
from tests.chaos.machine.disk_images import legal_images
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.faults.raw_logs import KeptBytes, Rotation, printed


def is_right(found: KeptBytes) -> bool:
    return all(data == printed(start, start + len(data)) for start, data in found.stretches)


def test_after_a_loss_of_power_the_raw_log_may_show_other_bytes() -> None:
    scenario = Rotation()
    model = Exploration(scenario).run(None).disk.model
    found = [scenario.recover(SimulatedDisk(image)) for image in legal_images(model)]
    assert any(is_right(each) and each.position > 0 for each in found)
    wrong = [each for each in found if not is_right(each)]
    assert any(b"\0" in data for each in wrong for _, data in each.stretches)
    assert any(data and b"\0" not in data for each in wrong for _, data in each.stretches)
