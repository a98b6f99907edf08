"""The ledger of the chat on a disk: it stays small, and holds the state through every rotation."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import trio

from actors.codec import unstructure
from actors.faults import Plan, Raise, armed
from aegis.errors import StorageError
from aegis.journal.disk import OsDisk
from aegis.journal.faults import JOURNAL
from aegis.journal.flusher import Flusher
from aegis.journal.rotation import previous_of
from aegis.telegram.forms import Draft
from aegis.telegram.ledger import Fold, line
from aegis.telegram.store import Store

LIMIT = 4_096
POINTS = ("ledger.rotate.before", "ledger.rename.before", "ledger.rename.after")


async def opened(path: Path, nursery: trio.Nursery) -> Store:
    return await Store.open(path, Flusher(OsDisk()), nursery.start_soon, limit_bytes=LIMIT)


async def fill(store: Store, count: int) -> None:
    await store.append(line("secret", secret="s"))
    for number in range(count):
        await store.append(line("told", session=f"s{number % 7}", entry=number))
        await store.append(line("problem", text=f"problem {number}"))
    await store.append(line("asked", request="r", digest="d", message=7))
    draft = Draft(update=3, step=1, values={"a": True})
    await store.append(line("drafted", request="r", draft=unstructure(draft)))


def state_of(fold: Fold) -> dict[str, object]:
    return vars(fold) | {"skipped": 0}


async def test_the_ledger_stays_small_and_holds_the_same_state(tmp_path: Path) -> None:
    path = tmp_path / "telegram.jsonl"
    async with trio.open_nursery() as nursery:
        store = await opened(path, nursery)
        await fill(store, 200)
        store.close()
        again = await opened(path, nursery)
        assert state_of(again.fold) == state_of(store.fold)
        assert again.fold.told == {f"s{each % 7}": each for each in range(193, 200)}
        again.close()
        nursery.cancel_scope.cancel()
    sizes = sizes_in(tmp_path)
    assert len(sizes) == 2
    assert max(sizes) < 3 * LIMIT


def sizes_in(directory: Path) -> list[int]:
    return [each.stat().st_size for each in directory.iterdir()]


async def test_lines_of_many_tasks_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "telegram.jsonl"
    async with trio.open_nursery() as nursery:
        store = await opened(path, nursery)
        async with trio.open_nursery() as writers:
            for number in range(100):
                writers.start_soon(store.append, line("begun", id=number))
        async with trio.open_nursery() as writers:
            for number in range(100):
                writers.start_soon(store.append, line("begun", id=1000 + number))
            await store.append(line("begun", id=5000))
        store.close()
        again = await opened(path, nursery)
        assert again.fold.begun == {*range(100), *range(1000, 1100), 5000}
        assert previous_of(path).exists()
        again.close()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("point", POINTS)
async def test_a_disk_that_refuses_a_rotation_loses_nothing(tmp_path: Path, point: str) -> None:
    path = tmp_path / "telegram.jsonl"
    refused = Raise(lambda: OSError(errno.ENOSPC, "no space"))
    plan = Plan({(point, 1): refused})
    async with trio.open_nursery() as nursery:
        store = await opened(path, nursery)
        with armed(plan, JOURNAL):
            await fill(store, 100)
        assert plan.hits[point] > 1  # it was tried again
        store.close()
        again = await opened(path, nursery)
        assert state_of(again.fold) == state_of(store.fold)
        again.close()
        nursery.cancel_scope.cancel()


async def test_a_disk_that_refuses_a_line_refuses_its_caller(tmp_path: Path) -> None:
    path = tmp_path / "telegram.jsonl"
    plan = Plan({("ledger.sync.before", 2): Raise(lambda: OSError(errno.EIO, "no"))})
    async with trio.open_nursery() as nursery:
        store = await opened(path, nursery)
        await store.append(line("begun", id=1))
        with armed(plan, JOURNAL):
            await store.append(line("begun", id=2))
            with pytest.raises(StorageError):
                await store.append(line("begun", id=3))
        await store.append(line("begun", id=4))
        assert store.fold.begun == {1, 2, 4}
        store.close()
        nursery.cancel_scope.cancel()
