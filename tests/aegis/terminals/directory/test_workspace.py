"""The file with the names of the open terminals."""

from __future__ import annotations

import errno
import json
import threading
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import StartupError, StorageError
from aegis.journal.flusher import Flusher
from aegis.protocol.naming import NAME_PATTERN, name_key
from aegis.terminals.directory.workspace import (
    DamagedWorkspace,
    NewerWorkspace,
    OpenNames,
    decode_workspace,
    encode_workspace,
)
from tests.fakes.faulty_disk import Crash, FaultyDisk

NAMES = st.lists(st.from_regex(NAME_PATTERN, fullmatch=True), unique_by=name_key)


def on_disk(path: Path) -> list[str]:
    return decode_workspace(path.read_bytes())


def files_in(directory: Path) -> list[Path]:
    return list(directory.iterdir())


@given(NAMES)
def test_what_is_written_is_read_again(names: list[str]) -> None:
    assert decode_workspace(encode_workspace(names)) == sorted(names)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "version"),
        (b"{}", "version"),
        (b'{"version": true, "terminals": []}', "version"),
        (b'{"version": "1", "terminals": []}', "version"),
        (b'{"version": 1}', "list"),
        (b'{"version": 1, "terminals": {}}', "list"),
    ],
)
def test_what_was_never_written_is_damaged(data: bytes, why: str) -> None:
    with pytest.raises(DamagedWorkspace, match=why):
        decode_workspace(data)


def test_a_newer_version_is_not_taken_for_damage() -> None:
    with pytest.raises(NewerWorkspace, match="2"):
        decode_workspace(b'{"version": 2}')


def test_only_names_are_read_and_each_terminal_once() -> None:
    names = ["build", "../up", "BUILD", 1, "a"]
    document = json.dumps({"version": 1, "terminals": names}).encode()
    assert [name_key(name) for name in decode_workspace(document)] == ["build", "a"]


async def test_a_change_is_durable_when_it_is_acknowledged_and_no_sync_is_on_the_loop(
    tmp_path: Path,
) -> None:
    disk, path = FaultyDisk(), tmp_path / "workspace.json"
    workspace = await OpenNames.open(path, Flusher(disk))
    await workspace.add("build")
    assert on_disk(path) == ["build"]
    assert disk.calls["rename"] == 1
    assert disk.calls["fsync"] == 2  # of the file, and of its directory
    assert path.stat().st_mode & 0o777 == 0o600
    assert threading.get_ident() not in disk.threads["fsync"]
    await workspace.remove("BUILD")
    assert on_disk(path) == []
    await workspace.remove("never")
    assert disk.calls["rename"] == 2


async def test_changes_that_come_together_share_a_write(tmp_path: Path) -> None:
    disk, path = FaultyDisk(), tmp_path / "workspace.json"
    workspace = await OpenNames.open(path, Flusher(disk))
    names = [f"t{number}" for number in range(50)]
    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(workspace.add, name)
    assert on_disk(path) == sorted(names)
    assert disk.calls["rename"] <= 2


async def test_a_name_that_could_not_be_written_is_not_to_be(tmp_path: Path) -> None:
    disk, path = FaultyDisk(), tmp_path / "workspace.json"
    workspace = await OpenNames.open(path, Flusher(disk))
    await workspace.add("kept")
    disk.fail("write", errno.ENOSPC)
    with pytest.raises(StorageError, match=r"workspace\.json: No space left on device; free"):
        await workspace.add("refused")
    assert (workspace.names, on_disk(path)) == (["kept"], ["kept"])
    await workspace.add("next")
    assert on_disk(path) == ["kept", "next"]


@pytest.mark.parametrize("call", ["write", "rename", "fsync"])
async def test_a_removal_that_could_not_be_written_is_made_good_by_the_next_change(
    tmp_path: Path, call: str
) -> None:
    disk, path = FaultyDisk(), tmp_path / "workspace.json"
    workspace = await OpenNames.open(path, Flusher(disk))
    await workspace.add("one")
    await workspace.add("two")
    disk.fail(call, errno.EIO)
    with pytest.raises(StorageError):
        await workspace.remove("one")
    assert workspace.may_restore("one")
    assert workspace.names == ["two"]
    await workspace.add("three")
    assert on_disk(path) == ["three", "two"]
    assert not workspace.may_restore("one")


async def test_a_sync_of_the_directory_that_failed_leaves_it_open_which_file_is_there(
    tmp_path: Path,
) -> None:
    disk, path = FaultyDisk(), tmp_path / "workspace.json"
    workspace = await OpenNames.open(path, Flusher(disk))
    disk.pass_then_fail("fsync", 1, errno.EIO)
    with pytest.raises(StorageError):
        await workspace.add("build")
    assert workspace.may_restore("build")
    await workspace.remove("build")
    assert on_disk(path) == []


async def test_a_kill_at_any_step_leaves_the_old_names_or_the_new(tmp_path: Path) -> None:
    outcomes = set()
    for step in range(1, 100):
        path = tmp_path / str(step) / "workspace.json"
        disk = FaultyDisk()
        workspace = await OpenNames.open(path, Flusher(disk))
        await workspace.add("old")
        disk.crash_after(step)
        try:
            await workspace.add("new")
        except Crash:
            outcomes.add(tuple((await OpenNames.open(path, Flusher())).names))
        else:
            break
    assert outcomes == {("old",), ("new", "old")}


async def test_a_damaged_file_is_set_aside_once(tmp_path: Path) -> None:
    path = tmp_path / "workspace.json"
    for _ in range(2):
        path.write_bytes(b"damaged")
        assert (await OpenNames.open(path, Flusher())).names == []
        assert not path.exists()
    [aside] = files_in(tmp_path)
    assert aside.name.startswith("workspace.json.damaged-")
    assert aside.read_bytes() == b"damaged"


async def test_a_newer_file_and_one_that_cannot_be_read_prevent_the_start(tmp_path: Path) -> None:
    path = tmp_path / "workspace.json"
    path.write_text('{"version": 3}')
    with pytest.raises(StartupError, match="of version 3, made by a newer aegis-actors"):
        await OpenNames.open(path, Flusher())
    disk = FaultyDisk()
    disk.fail("open", errno.EIO)
    with pytest.raises(StartupError, match="cannot read"):
        await OpenNames.open(path, Flusher(disk))
