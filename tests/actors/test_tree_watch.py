"""The tree as it changes: the whole first, then changes, and gaps for who reads too slowly."""

from __future__ import annotations

import contextlib

import attrs
import pytest
import trio
import trio.testing

from actors import (
    Actor,
    ActorError,
    Backoff,
    Change,
    ChildSpec,
    Gap,
    MisuseError,
    Node,
    Restart,
    SupervisorSpec,
    System,
    TreeWatch,
    View,
    mailbox_depths,
    open_system,
)
from actors.simulate import Simulation, simulate


@attrs.frozen
class Do:
    how: str


class Busy(Actor[Do]):
    async def receive(self, message: Do) -> None:
        if message.how == "crash":
            raise RuntimeError
        if message.how == "hang":
            await trio.sleep_forever()


def busy(name: str, **options: float) -> ChildSpec:
    return ChildSpec.of(name, Busy).with_options(backoff=Backoff(first_s=5.0), **options)  # type: ignore[arg-type]


SPEC = SupervisorSpec(
    name="root",
    children=(busy("a"), SupervisorSpec(name="pool", dynamic=True)),
)


async def views(watch: TreeWatch, count: int) -> list[View]:
    with trio.fail_after(60):
        return [await anext(watch) for _ in range(count)]


def told(found: list[View]) -> list[str]:
    return [
        f"{view.path} {view.state}" if isinstance(view, Change) else type(view).__name__
        for view in found
    ]


def states(node: Node) -> dict[str, str]:
    found = {node.path: node.state}
    for child in node.children:
        found |= states(child)
    return found


async def test_the_whole_tree_comes_first_and_then_each_change(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(SPEC) as system:
        with system.watch_tree() as watch:
            assert await views(watch, 1) == [system.tree()]
            await system.supervisor("root/pool").start_child(busy("b"))
            system.ref("root/a").tell(Do("crash"))
            await trio.sleep(6)
            assert told(await views(watch, 6)) == [
                "root/pool/b down",
                "root/pool/b starting",
                "root/pool/b running",
                "root/a down",
                "root/a starting",
                "root/a running",
            ]
            await system.supervisor("root/pool").stop_child("b")
            assert told(await views(watch, 3)) == [
                "root/pool/b stopping",
                "root/pool/b down",
                "root/pool/b stopped",
            ]


async def test_a_change_tells_kind_restarts_and_waiting_messages(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(SPEC) as system:
        with system.watch_tree() as watch:
            await views(watch, 1)
            a = system.ref("root/a")
            for how in ("crash", "hang", "waits"):
                a.tell(Do(how))
            await trio.sleep(6)
            *_, running = await views(watch, 3)
            assert running == Change(
                path="root/a", kind="Busy", state="running", restarts=1, mailbox=2
            )
            assert mailbox_depths(system.tree()) == {"root": 0, "root/a": 1, "root/pool": 0}


async def test_a_reader_that_falls_behind_gets_a_gap_and_the_whole_tree_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(SPEC) as system:
        with system.watch_tree(capacity=4) as watch:
            await views(watch, 1)
            for name in ("b", "c", "d"):
                await system.supervisor("root/pool").start_child(busy(name))
            gap, tree = await views(watch, 2)
            assert gap == Gap(missed=9)
            assert tree == system.tree()
            await system.supervisor("root/pool").stop_child("b")
            assert told(await views(watch, 3))[-1] == "root/pool/b stopped"


async def test_what_changes_between_a_gap_and_its_tree_is_in_the_tree_and_not_told_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(SPEC) as system:
        with system.watch_tree(capacity=1) as watch:
            await views(watch, 1)
            pool = system.supervisor("root/pool")
            await pool.start_child(busy("b"))
            assert await views(watch, 1) == [Gap(missed=3)]
            await pool.start_child(busy("c"))
            (tree,) = await views(watch, 1)
            assert tree == system.tree()
            system.ref("root/a").stop()
            assert told(await views(watch, 1)) == ["root/a stopping"]


async def test_a_watcher_that_never_reads_costs_no_more_than_its_capacity() -> None:
    async with open_system(SPEC) as system:
        with system.watch_tree(capacity=10) as watch:
            await views(watch, 1)
            pool = system.supervisor("root/pool")
            for number in range(100):
                await pool.start_child(busy(f"b{number}"))
            assert await views(watch, 1) == [Gap(missed=300)]


async def test_snapshots_and_changes_together_always_show_the_tree(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A reader that reads now and then knows the tree at each of its pauses."""
    async with open_system(SPEC) as system:
        with system.watch_tree(capacity=7) as watch:
            known: dict[str, str] = {}
            pool = system.supervisor("root/pool")
            for number in range(40):
                await pool.start_child(busy(f"b{number}"))
                if number % 3 == 0:
                    await pool.stop_child(f"b{number // 2}")
                if number % (1 + number // 10) == 0:
                    await catch_up(watch, known)
                    assert known == states(system.tree())


async def catch_up(watch: TreeWatch, known: dict[str, str]) -> None:
    """Read all there is and note the state of every place."""
    while True:
        with trio.move_on_after(0.001):
            apply(known, await anext(watch))
            continue
        return


def apply(known: dict[str, str], view: View) -> None:
    match view:
        case Node():
            known.clear()
            known.update(states(view))
        case Change(path=path, state="stopped"):
            del known[path]
        case Change(path=path, state=state):
            known[path] = state


async def test_the_stream_ends_when_the_tree_has_stopped() -> None:
    found: list[View] = []

    async def read(system: System, reading: trio.Event) -> None:
        with system.watch_tree() as watch:
            async for view in watch:
                found.append(view)
                reading.set()

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery, open_system(SPEC) as system:
            nursery.start_soon(read, system, reading := trio.Event())
            await reading.wait()
    assert told(found)[1:] == [
        "root stopping",
        "root/pool stopping",
        "root/pool down",
        "root/a stopping",
        "root/a down",
        "root/a stopped",
        "root/pool stopped",
        "root stopped",
    ]


class Fatal(Actor[None]):
    """Stops its own supervisor, and is up in the same moment."""

    async def setup(self) -> None:
        self.context.system.ref("root/hasty").stop()


async def stop_while_starting(simulation: Simulation) -> list[str]:
    hasty = SupervisorSpec(name="hasty", children=(ChildSpec.of("a", Fatal),))
    root = SupervisorSpec(name="root", dynamic=True)
    async with simulation.open_system(root) as system:
        watch = system.watch_tree()
        await views(watch, 1)
        await start_in_vain(system, hasty)
    shown = [view async for view in watch]
    return [line for line in told(shown) if line.startswith("root/hasty ")]


@pytest.mark.parametrize("seed", range(10))
def test_a_supervisor_that_is_stopped_while_it_starts_is_never_shown_as_running(seed: int) -> None:
    states = ["down", "starting", "stopping", "down", "stopped"]
    assert simulate(stop_while_starting, seed=seed).value == [f"root/hasty {s}" for s in states]


async def start_in_vain(system: System, spec: SupervisorSpec) -> None:
    with contextlib.suppress(ActorError):
        await system.supervisor("root").start_child(spec)


async def test_a_closed_watch_hears_nothing_more() -> None:
    async with open_system(SPEC) as system:
        watch = system.watch_tree()
        watch.close()
        watch.close()
        system.ref("root/a").stop()
        await trio.testing.wait_all_tasks_blocked()
        assert told(await views(watch, 1)) == ["Node"]
        with pytest.raises(StopAsyncIteration):
            await anext(watch)


async def test_closing_a_watch_ends_the_wait_of_its_reader() -> None:
    async with open_system(SPEC) as system, trio.open_nursery() as nursery:
        watch = system.watch_tree()
        await views(watch, 1)
        nursery.start_soon(expect_the_end, watch)
        await trio.testing.wait_all_tasks_blocked()
        watch.close()


async def expect_the_end(watch: TreeWatch) -> None:
    with trio.fail_after(60), pytest.raises(StopAsyncIteration):
        await anext(watch)


async def test_two_watchers_read_apart_from_each_other() -> None:
    async with open_system(SPEC) as system:
        with system.watch_tree() as first, system.watch_tree(capacity=1) as second:
            await views(first, 1)
            await views(second, 1)
            await system.supervisor("root/pool").start_child(
                ChildSpec.of("b", Busy).with_options(restart=Restart.TEMPORARY)
            )
            assert len(await views(first, 3)) == 3
            assert told(await views(second, 2)) == ["Gap", "Node"]


async def test_a_watch_keeps_at_least_one_change() -> None:
    async with open_system(SPEC) as system:
        with pytest.raises(MisuseError, match="1 or more"):
            system.watch_tree(capacity=0)
