"""The file with what other hosts have."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest
import trio

from aegis.errors import StartupError, StorageError
from aegis.journal.flusher import Flusher
from aegis.terminals.remote.nodes import NodeFile, decode_nodes
from tests.fakes.faulty_disk import Crash, FaultyDisk


def on_disk(path: Path) -> list[str]:
    [node] = decode_nodes(path.read_bytes())
    return sorted(node.closed.values())


def files_in(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def opened(path: Path | None, disk: FaultyDisk) -> NodeFile:
    return await NodeFile.open(path, Flusher(disk))


async def test_a_change_is_durable_when_it_is_saved_and_no_sync_is_on_the_loop(
    tmp_path: Path,
) -> None:
    disk, path = FaultyDisk(), tmp_path / "nodes.json"
    file = await opened(path, disk)
    file.nodes.closed("gpu1", "build")
    await file.save()
    assert on_disk(path) == ["build"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert disk.calls["fsync"] == 2  # of the file, and of its directory
    assert threading.get_ident() not in disk.threads["fsync"]
    again = await opened(path, FaultyDisk())
    assert [node.name for node in again.nodes] == ["gpu1"]


async def test_without_a_node_there_is_no_file_and_without_a_path_never_one(
    tmp_path: Path,
) -> None:
    disk = FaultyDisk()
    await opened(tmp_path / "nodes.json", disk)
    file = await opened(None, disk)
    file.nodes.closed("gpu1", "build")
    await file.save()
    assert files_in(tmp_path) == []
    assert disk.calls["rename"] == 0


async def test_changes_that_come_together_share_a_write(tmp_path: Path) -> None:
    disk, path = FaultyDisk(), tmp_path / "nodes.json"
    file = await opened(path, disk)

    async def change(name: str) -> None:
        file.nodes.closed("gpu1", name)
        await file.save()

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(change, f"t{number}")
    assert len(on_disk(path)) == 50
    assert disk.calls["rename"] <= 2


@pytest.mark.parametrize("call", ["write", "rename", "fsync"])
async def test_what_the_disk_refused_is_saved_with_the_next_change(
    tmp_path: Path, call: str
) -> None:
    disk, path = FaultyDisk(), tmp_path / "nodes.json"
    file = await opened(path, disk)
    file.nodes.closed("gpu1", "one")
    disk.fail(call, errno.EIO)
    with pytest.raises(StorageError, match=r"nodes\.json"):
        await file.save()
    disk.fail(call, errno.EIO)
    await file.save_soon()
    file.nodes.closed("gpu1", "two")
    await file.save_soon()
    assert on_disk(path) == ["one", "two"]


async def test_a_kill_at_any_step_leaves_the_old_names_or_the_new(tmp_path: Path) -> None:
    outcomes = set()
    for step in range(1, 100):
        path, disk = tmp_path / str(step) / "nodes.json", FaultyDisk()
        file = await opened(path, disk)
        file.nodes.closed("gpu1", "old")
        await file.save()
        disk.crash_after(step)
        file.nodes.closed("gpu1", "new")
        try:
            await file.save()
        except Crash:
            outcomes.add(tuple(on_disk(path)))
        else:
            break
    assert outcomes == {("old",), ("new", "old")}


async def test_a_damaged_file_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    path.write_text("rubbish")
    file = await opened(path, FaultyDisk())
    assert list(file.nodes) == []
    [aside] = files_in(tmp_path)
    assert aside.name.startswith("nodes.json.damaged-")
    assert aside.read_text() == "rubbish"


async def test_a_newer_file_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    path.write_text('{"version": 7}')
    with pytest.raises(StartupError, match=r"is of version 7, made by a newer aegis-actors"):
        await opened(path, FaultyDisk())
    assert path.read_text() == '{"version": 7}'


async def test_a_file_that_cannot_be_read_is_told_with_what_to_do(tmp_path: Path) -> None:
    path, disk = tmp_path / "nodes.json", FaultyDisk()
    path.write_text('{"version": 1, "nodes": []}')
    disk.fail("open", errno.EIO)
    with pytest.raises(StartupError, match="put it right, or move it away"):
        await opened(path, disk)
