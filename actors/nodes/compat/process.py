"""The stand-ins for ``trio.Process`` and ``trio.lowlevel.open_process``.

tractor starts a child with a command of its own and later closes it with ``async with process``,
which Trio no longer offers. The stand-in starts *our* child module instead, in a session of its
own, gives it the key over standard input and keeps that pipe open: while it is, the child may live
(``leash``). How the next process of a task is started is in a context variable, because tractor
starts the task that spawns it.
"""

from __future__ import annotations

import ast
import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from types import TracebackType

import attrs
import trio

from actors.errors import MisuseError

CHILD_MODULE = "actors.nodes.workers.child"
_TRACTORS_OWN = ["-m", "tractor._child"]
_STANDARD_ERROR = 2


@attrs.define(eq=False)
class Spawn:
    """How one worker is started, and the result; ``uid`` is tractor's identifier."""

    secret: bytes = attrs.field(repr=False)
    environment: Mapping[str, str] | None = None
    spawned: trio.Event = attrs.field(factory=trio.Event)
    process: trio.Process | None = None
    uid: tuple[str, str] | None = None


SPAWN: ContextVar[Spawn] = ContextVar("actors_nodes_spawn")
"""Set in the task that asks tractor for a worker."""


class Process:
    """A process that can be entered; leaving closes its input, waits, and kills when cancelled."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process

    def __getattr__(self, name: str) -> object:
        return getattr(self._process, name)

    def __repr__(self) -> str:
        return repr(self._process)

    async def wait(self) -> int:
        """Wait for its end and return how it ended. tractor calls it through the class, too."""
        return await self._process.wait()

    async def __aenter__(self) -> Process:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await end_process(self._process)


async def end_process(process: trio.Process) -> None:
    """Close the input of ``process``, which ends a worker, and wait until it has been reaped.

    However it goes, cancelled included, the process is gone when this returns.
    """
    try:
        if process.stdin is not None:
            await process.stdin.aclose()
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


async def open_process(command: Sequence[str]) -> Process:
    """Start a worker with the arguments that tractor gives its own child.

    Raises ``MisuseError`` when tractor spawns outside of ``SPAWN`` or another command than known,
    ``OSError`` when there can be no process.
    """
    spawn = SPAWN.get(None)
    if spawn is None or list(command[1:3]) != _TRACTORS_OWN:
        raise MisuseError("Workers are started by a Worker only, with the tractor that is pinned.")
    name, number = ast.literal_eval(command[command.index("--uid") + 1])
    spawn.uid = (name, number)
    process = await trio.lowlevel.open_process(
        [sys.executable, "-E", "-P", "-m", CHILD_MODULE, *command[3:]],
        stdin=subprocess.PIPE,
        stdout=_STANDARD_ERROR,  # a worker never writes among what its parent prints
        env=dict(os.environ if spawn.environment is None else spawn.environment),
        start_new_session=True,
    )
    spawn.process = process
    spawn.spawned.set()
    assert process.stdin is not None
    with contextlib.suppress(trio.BrokenResourceError):  # it is dead: who watches it says how
        await process.stdin.send_all(spawn.secret.hex().encode() + b"\n")
    return Process(process)
