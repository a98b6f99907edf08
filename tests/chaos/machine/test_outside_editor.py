"""Tests of the program that edits files of a simulated disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
import trio.testing

from aegis.journal.file_content import FilePlace
from tests.chaos.machine.disk_images import legal_images
from tests.chaos.machine.outside_editor import OutsideEditor, repaired, with_line
from tests.chaos.machine.simulated_disk import SimulatedDisk

PLACE = FilePlace("/", "plan.md", ".beside")
TEXT = "# Plan\n\n## todo\n\n- one\n\n## done\n"


def disk_with(text: str = TEXT) -> SimulatedDisk:
    return SimulatedDisk({"/": None, "/plan.md": text.encode()})


def is_open(disk: SimulatedDisk) -> bool:
    with disk.shared_directory(PLACE) as directory:
        return directory.read(PLACE.name, 100).is_open


@pytest.mark.parametrize(
    ("text", "section", "expected"),
    [
        (None, "todo", "## todo\n\nnew\n"),
        ("# Plan\n", "todo", "# Plan\n\n## todo\n\nnew\n"),
        (TEXT, "todo", "# Plan\n\n## todo\n\n- one\nnew\n\n## done\n"),
        (TEXT, "done", "# Plan\n\n## todo\n\n- one\n\n## done\n\nnew\n"),
    ],
)
def test_a_line_is_added_at_the_end_of_its_section(
    text: str | None, section: str, expected: str
) -> None:
    assert with_line(text, section, "new") == expected


def test_a_replaced_file_is_durable_and_nothing_is_left_beside_it() -> None:
    disk = disk_with()
    OutsideEditor(disk.model, "/plan.md").replace("new\n")
    assert [*legal_images(disk.model)] == [{"/": None, "/plan.md": b"new\n"}]


def test_a_replaced_file_that_is_not_synced_may_be_old_empty_or_zeros_after_a_loss_of_power() -> (
    None
):
    disk = disk_with("old\n")
    OutsideEditor(disk.model, "/plan.md", syncs=False).replace("new\n")
    left = {image.get("/plan.md") for image in legal_images(disk.model)}
    assert {b"old\n", b"new\n", b"", b"\0\0\0\0"} <= left


async def test_a_file_that_is_written_in_place_and_not_synced_may_be_truncated(
    autojump_clock: trio.testing.MockClock,
) -> None:
    disk = disk_with("old\n")
    await OutsideEditor(disk.model, "/plan.md", syncs=False).write_slowly(lambda: "new\n", 1.0)
    left = {image.get("/plan.md") for image in legal_images(disk.model)}
    assert {b"old\n", b"new\n", b""} <= left


def test_a_person_removes_zeros() -> None:
    assert repaired("\0\0new\n\0") == "new\n"
    assert repaired(None) is None


async def test_a_file_is_seen_to_be_open_while_it_is_written(
    autojump_clock: trio.testing.MockClock,
) -> None:
    disk = disk_with()
    editor = OutsideEditor(disk.model, "/plan.md")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(editor.write_slowly, lambda: "new\n", 1.0)
        await trio.sleep(0.2)
        assert (is_open(disk), editor.text()) == (True, TEXT)
        await trio.sleep(0.5)
        assert (is_open(disk), editor.text()) == (True, "new\n")
    assert not is_open(disk)


async def test_it_survives_the_death_of_the_daemon_and_keeps_its_file(
    autojump_clock: trio.testing.MockClock,
) -> None:
    disk = disk_with()
    own = disk.open(Path("/plan.md"), os.O_RDONLY)
    editor = OutsideEditor(disk.model, "/plan.md")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(editor.write_slowly, lambda: "new\n", 1.0)
        await trio.sleep(0.2)
        disk.model.close_all()
        with pytest.raises(OSError, match="EBADF"):
            disk.size(own)
    assert editor.text() == "new\n"


async def test_it_writes_nothing_to_a_file_that_another_editor_has_replaced(
    autojump_clock: trio.testing.MockClock,
) -> None:
    disk, made = disk_with(), list[str]()
    editor = OutsideEditor(disk.model, "/plan.md")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(editor.write_slowly, lambda: "slow\n", 1.0, lambda: made.append("it"))
        await trio.sleep(0.2)
        editor.replace("other\n")
    assert (editor.text(), made) == ("other\n", [])
