"""``open_system``: start a tree of actors, and stop it in order at the end of a block."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from actors.cell import Cell
from actors.deadlines import Deadlines
from actors.errors import ActorError, StartFailed
from actors.policy import Exit, ExitKind
from actors.slow_steps import SlowStepObserver, watched_steps
from actors.spec import SupervisorSpec
from actors.supervisor import run_supervisor
from actors.system import Observer, System, Tracer


@asynccontextmanager
async def open_system(
    spec: SupervisorSpec,
    *,
    observer: Observer | None = None,
    on_slow_step: SlowStepObserver | None = None,
    debug: bool = False,
    chance: random.Random | None = None,
    tracer: Tracer | None = None,
    above: str = "",
    prepare: Callable[[System], None] | None = None,
) -> AsyncIterator[System]:
    """Start the tree of ``spec``, wait until all of it is up, and stop it in order at the end.

    Raises ``StartFailed`` if it does not come up. If the root gives up while the body runs, the
    body is cancelled and ``RestartsExhausted`` is raised.

    ``observer`` is called for starts and crashes. ``on_slow_step`` is called for every step of this
    loop that blocked it for more than 0.1 s; ``debug`` adds the step's stack, at the cost of a
    thread. ``chance`` is the random source of the jitter in pauses. ``tracer`` is called for every
    incarnation, message and timer. ``above`` is the path that the tree is below, if it is part of
    another process's tree. ``prepare`` is called with the system before anything starts.
    """
    system = System(spec, observer, chance, tracer, above)
    if prepare is not None:
        prepare(system)
    up = trio.Event()
    alarm = trio.CancelScope()
    root_failure: ActorError | None = None
    body_failure: Exception | None = None

    async def live(scope: trio.CancelScope) -> None:
        nonlocal root_failure
        try:
            await _run_root(system, lambda _: up.set())
            if not up.is_set():
                raise StartFailed(f"{spec.name} was stopped before it was up")
        except ActorError as error:
            root_failure = error
            scope.cancel()
        finally:
            alarm.cancel()

    with watched_steps(on_slow_step, system.path_of, debug=debug):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_run_deadlines, system.deadlines, alarm)
            nursery.start_soon(live, nursery.cancel_scope, name=spec.name)
            await up.wait()
            try:
                yield system
            except Exception as error:  # kept bare: the nursery would wrap it in a group
                body_failure = error
            finally:
                system.root.request_stop()
    if root_failure is not None:
        root_failure.__context__ = body_failure  # its cause stays what made the root fail
        raise root_failure
    if body_failure is not None:
        raise body_failure


async def _run_root(system: System, on_started: Callable[[Cell], None]) -> None:
    """Run the root's only incarnation. Raises the error that made it give up."""
    root = system.root
    system.root_task = trio.lowlevel.current_task()
    root.begin_incarnation()
    ended = Exit(ExitKind.STOPPED)
    try:
        ended = await run_supervisor(system, root, on_started)
    finally:
        root.make_final(ended)
        system.has_stopped()
    if ended.error is not None:
        raise ended.error


async def _run_deadlines(deadlines: Deadlines, alarm: trio.CancelScope) -> None:
    with alarm:
        await deadlines.run()
