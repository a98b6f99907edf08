"""A ledger that is removed or cut short under its writer: nothing more is acknowledged."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from aegis.errors import StorageError
from aegis.journal.appender import Appender
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line

pytestmark = [pytest.mark.real, pytest.mark.every_python]


@asynccontextmanager
async def running_appender(path: Path) -> AsyncIterator[Appender]:
    async with trio.open_nursery() as nursery:
        appender = await Appender.open(path, Flusher())
        appender.start(nursery.start_soon)
        yield appender
        appender.close()
        nursery.cancel_scope.cancel()


async def put(appender: Appender, number: int) -> None:
    await appender.wait_synced(appender.append(encode_line({"number": number})))


async def test_a_line_in_a_removed_file_is_refused_until_the_file_is_back(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    async with running_appender(path) as appender:
        await put(appender, 0)
        kept = path.read_bytes()
        path.unlink()
        with pytest.raises(StorageError, match="another program removed it"):
            await put(appender, 1)
        with pytest.raises(StorageError, match="another program removed it"):
            await appender.recover()
        path.write_bytes(kept)
        await appender.recover()
        await put(appender, 1)
    assert path.read_bytes() == kept + encode_line({"number": 1})


@pytest.mark.parametrize("left", [0, 10])
async def test_a_line_in_a_shortened_file_is_refused(left: int, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    async with running_appender(path) as appender:
        for number in range(3):
            await put(appender, number)
        os.truncate(path, left)
        with pytest.raises(StorageError, match="shorter than its acknowledged lines"):
            await put(appender, 3)
        with pytest.raises(StorageError, match="shorter than its acknowledged lines"):
            await appender.recover()
    # What is left is not padded out to where the file once ended.
    assert b"\0" not in path.read_bytes()


async def test_a_line_that_was_cut_off_before_its_sync_is_not_acknowledged(tmp_path: Path) -> None:
    """The file still holds all that was synced before, and is shorter than what the sync covers."""
    path = tmp_path / "ledger.jsonl"
    async with running_appender(path) as appender:
        await put(appender, 0)
        synced = path.read_bytes()
        positions = [appender.append(encode_line({"number": number})) for number in (1, 2)]
        os.truncate(path, positions[0].end)
        with pytest.raises(StorageError, match="shorter than"):
            await appender.wait_synced(positions[1])
        assert path.read_bytes() == synced
        await appender.recover()
        await put(appender, 1)
    assert path.read_bytes() == synced + encode_line({"number": 1})
