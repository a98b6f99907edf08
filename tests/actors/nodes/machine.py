"""What is left of processes, descriptors and tasks, as the kernel and Trio tell."""

from __future__ import annotations

import gc
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import trio

from actors.nodes import NodeRuntime, Worker, WorkerSpec

GUARD_S = 60


def spec(function: str, **settings: object) -> WorkerSpec:
    """A worker that runs one of the functions in ``entries``."""
    name = str(settings.pop("name", "worker"))
    return WorkerSpec(name=name, entry=f"tests.actors.nodes.entries:{function}", **settings)  # type: ignore[arg-type]


@asynccontextmanager
async def running(runtime: NodeRuntime, wanted: WorkerSpec) -> AsyncIterator[Worker]:
    """A worker that is up; it is ended when the block is left."""
    worker = Worker(runtime, wanted)
    with trio.fail_after(GUARD_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(worker.run)
            await worker.wait_up()
            yield worker
            if worker.end is None:
                worker.kill()


def descriptors() -> int:
    """How many this process has open."""
    return len(os.listdir("/proc/self/fd"))


def children() -> set[int]:
    """The processes that this one has started and not reaped, zombies included."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # an idle thread has ended
            found.update(map(int, (task / "children").read_text().split()))
    return found


def tasks() -> int:
    """How many tasks of the present loop there are."""
    return trio.lowlevel.current_statistics().tasks_living


def exists(pid: int) -> bool:
    """Whether there is such a process and it is no zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def resident_kib() -> int:
    """The memory of this process that is in use."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in x)
    return int(line.split()[1])


@contextmanager
def nothing_left() -> Iterator[None]:
    """Hold that the block leaves no process, descriptor or task behind."""
    gc.collect()  # what earlier tests left to it
    before = (children(), descriptors(), tasks())
    yield
    assert (children(), descriptors(), tasks()) == before


async def until(fact: object, *, within_s: float = GUARD_S) -> None:
    """Wait until ``fact()`` is true: for what other processes do, of which nobody tells."""
    assert callable(fact)
    with trio.fail_after(within_s):
        while not fact():  # noqa: ASYNC110
            await trio.sleep(0.01)
