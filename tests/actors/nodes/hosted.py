"""A worker that hosts actors: the function that it runs, and the tree in which it is a child."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import trio

from actors import (
    Actor,
    Backoff,
    ChildSpec,
    LifeCycleEvent,
    Request,
    SupervisorSpec,
    System,
    open_system,
)
from actors.nodes import Beat, Link, WorkerSpec, open_runtime
from actors.nodes.links.vocabulary import Vocabulary
from actors.nodes.workers.hosted_system import hosted_system
from actors.nodes.workers.worker_node import WorkerNode
from tests.actors.nodes.pair import Add, Chain, Do, Echo, Sum, Worked

NO_PAUSE = Backoff(first_s=0, step_s=0)


@attrs.frozen
class Pid(Request[int]):
    """In which process is this?"""


@attrs.frozen
class Leave:
    """End the process: ``how`` is raise, return or exit."""

    how: str


class Inside(Actor[Pid | Leave]):
    """Tells of its process, and ends it."""

    def __init__(self, *, leave: trio.Event, fail: trio.Event) -> None:
        self._leave = leave
        self._fail = fail

    async def setup(self) -> None:
        self.context.register("inside", self.context.path)

    async def receive(self, message: Pid | Leave) -> None:
        match message:
            case Pid():
                self.reply(message, os.getpid())
            case Leave("raise"):
                self._fail.set()
            case Leave("return"):
                self._leave.set()
            case Leave():
                os._exit(3)


VOCABULARY = Vocabulary((Add, Sum, Echo, Do, Chain, Pid, Leave))


async def host(link: Link, argument: bytes) -> None:
    """Run two actors below the path that it is given, until one of them says to leave."""
    above, _, name = argument.decode().rpartition("/")
    leave, fail = trio.Event(), trio.Event()
    tree = SupervisorSpec(
        name=name,
        children=(
            ChildSpec.of("x", Worked),
            ChildSpec.of("i", Inside, leave=leave, fail=fail),
        ),
    )
    async with (
        hosted_system(
            link, tree, above=above, vocabulary=VOCABULARY, exports=lambda _group, _name: True
        ),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(_raise_when, fail)
        await leave.wait()
        nursery.cancel_scope.cancel()


async def _raise_when(fail: trio.Event) -> None:
    await fail.wait()
    raise ValueError("told to")


@asynccontextmanager
async def open_hosting(
    *names: str,
    intensity: int = 3,
    events: list[LifeCycleEvent] | None = None,
    others: tuple[ChildSpec, ...] = (),
) -> AsyncIterator[System]:
    """A system with workers at ``root/workers/<name>``, an actor ``root/a``, and others."""
    async with open_runtime() as runtime:
        workers = tuple(
            ChildSpec.of(
                name,
                WorkerNode,
                runtime=runtime,
                spec=WorkerSpec(
                    name=name,
                    entry=f"{__name__}:host",
                    argument=f"root/workers/{name}".encode(),
                    beat=Beat(0.2, 3.0),
                ),
                vocabulary=VOCABULARY,
                exports=lambda group, name: (group, name) == ("worked", "a"),
            ).with_options(backoff=NO_PAUSE)
            for name in names
        )
        tree = SupervisorSpec(
            name="root",
            intensity=0,
            children=(
                SupervisorSpec(name="workers", children=workers, intensity=intensity, period_s=60),
                ChildSpec.of("a", Worked),
                *others,
            ),
        )
        heard = events if events is not None else []
        async with open_system(tree, observer=heard.append) as system:
            yield system
